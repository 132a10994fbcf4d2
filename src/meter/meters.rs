//! The meters: at the end of each window every source and probe is read, and all figures are made.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hdrhistogram::Histogram;

use super::block::BlockProbe;
use super::cpu::CpuProbe;
use super::flags::{self, WindowContext};
use super::latency::summarize;
use super::source::{Delta, LatencyDelta, Source};
use super::steady::{Settling, Trend};
use super::tasks::TaskProbe;
use super::temperature::TemperatureProbe;
use super::totals::{Sums, per_s};
use super::window::{
    ClassFigures, ClassHistograms, CpuFigures, Latencies, MemberFigures, State, TotalFigures, Totals, Window,
};
use crate::class::Class;
use crate::error::errno_name;
use crate::units::{MIB, mb_per_s};

/// From so many bytes on the block layer's count is compared with the engine's: below, what is
/// completed and not yet counted would show.
const COMPARABLE_BYTES: u64 = 64 * MIB;

/// A member as the meters know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// See [`MemberFigures::name`].
    pub name: String,
    /// Its device number (major, minor), of a block device.
    pub device: Option<(u32, u32)>,
    /// Where it is; none of what is only imagined.
    pub path: Option<PathBuf>,
}

/// What is read beside the sources.
pub struct Probes {
    /// The processor.
    pub cpu: CpuProbe,
    /// This process's threads.
    pub tasks: TaskProbe,
    /// The members' devices.
    pub block: BlockProbe,
    /// How warm the drives below the members are.
    pub temperature: TemperatureProbe,
}

impl Probes {
    /// Of this system and process, from that time on.
    pub fn system(members: &[Member], now_ns: u64) -> Self {
        let devices: Vec<_> = members.iter().map(|member| member.device).collect();
        Self {
            cpu: CpuProbe::open(),
            tasks: TaskProbe::open(now_ns),
            block: BlockProbe::open(Path::new("/"), &devices),
            temperature: TemperatureProbe::open(Path::new("/"), members),
        }
    }

    /// None: simulated runs repeat exactly.
    pub fn none() -> Self {
        Self {
            cpu: CpuProbe::none(),
            tasks: TaskProbe::none(),
            block: BlockProbe::default(),
            temperature: TemperatureProbe::default(),
        }
    }
}

/// Reads sources and probes, and makes windows and totals of them.
pub struct Meters {
    members: Vec<Member>,
    probes: Probes,
    sources: Vec<Box<dyn Source>>,
    counts: [Counts; 4],
    start_ns: u64,
    windows: u64,
    settling: Settling,
    trends: [Trend; 4],
    reads: [Reads; 4],
    engine_and_block_bytes: (u64, u64),
    sums: Sums,
}

/// What a class counted in a window.
#[derive(Debug)]
struct Counts {
    /// From its sources.
    pub delta: Delta,
    /// Bytes from storage and bytes read, where both became known.
    pub storage: Option<(u64, u64)>,
}

/// A class's reads since storage reads were last told.
#[derive(Debug, Default)]
struct Reads {
    bytes: u64,
    /// Whether a turn fell into that time.
    unsteady: bool,
    share: Option<f64>,
}

impl Meters {
    /// Meters over these members, whose first window begins now.
    pub fn new(now_ns: u64, members: Vec<Member>, probes: Probes) -> Self {
        let counts = || Counts { delta: Delta::new(members.len()), storage: None };
        Self {
            counts: std::array::from_fn(|_| counts()),
            members,
            probes,
            sources: Vec::new(),
            start_ns: now_ns,
            windows: 0,
            settling: Settling::default(),
            trends: Default::default(),
            reads: Default::default(),
            engine_and_block_bytes: (0, 0),
            sums: Sums::default(),
        }
    }

    /// Takes a source; it is dropped when it has ended and was read for the last time.
    pub fn add(&mut self, source: Box<dyn Source>) {
        self.sources.push(source);
    }

    /// Ends a window and begins the next.
    pub fn window(&mut self, context: &WindowContext) -> Arc<Window> {
        let start_ns = std::mem::replace(&mut self.start_ns, context.now_ns);
        let duration_ns = context.now_ns.saturating_sub(start_ns);
        let workers: Vec<_> =
            self.sources.iter().filter_map(|source| Some((source.thread_id()?, source.class()))).collect();
        self.collect();
        let (cpu, busiest_workers) = self.threads(&workers, duration_ns, context);
        let unsteady = context.turned || context.paused;
        let settling = self.settling.window(start_ns, context.now_ns, unsteady);
        let steady = !unsteady && !settling;

        let mut classes = Class::ALL.map(|class| {
            let busiest_worker = busiest_workers[class.index()];
            ClassFigures { busiest_worker, ..self.figures(class, context, duration_ns) }
        });
        for class in Class::ALL {
            let figures = &mut classes[class.index()];
            let drifting = self.drifts(class, figures, steady);
            figures.flags = flags::of_class(class, context, figures, drifting);
        }
        let temperatures = self.probes.temperature.window();
        let mut members = self.members_and_block(context);
        for (member, temperature_c) in members.iter_mut().zip(&temperatures.members_c) {
            member.temperature_c = *temperature_c;
        }
        let mut flags = flags::of_window(context, &cpu, settling, self.block_difference());
        flags.extend(flags::hot(&temperatures.hot));
        let bytes = classes.iter().map(|class| class.bytes).sum();
        let window = Window {
            index: self.windows,
            start_ns,
            duration_ns,
            setting: context.setting,
            turned: context.turned,
            warmup: context.warmup,
            paused: context.paused,
            total: TotalFigures {
                bytes,
                mb_per_s: mb_per_s(bytes, duration_ns),
                cycles_per_byte: (bytes > 0 && cpu.cycles > 0.0).then(|| cpu.cycles / bytes as f64),
            },
            flags,
            classes,
            cpu,
            members,
            written_bytes_total: context.written_bytes_total,
            histograms: Arc::new(std::array::from_fn(|at| histograms(&self.counts[at].delta))),
        };
        self.windows += 1;
        if !context.warmup {
            self.sums.add(&window, std::array::from_fn(|at| self.counts[at].storage));
            for (class, Counts { delta, .. }) in Class::ALL.into_iter().zip(&self.counts) {
                let latencies = [&delta.service, &delta.response, &delta.write, &delta.flush];
                self.sums.add_latencies(class, latencies);
            }
        }
        Arc::new(window)
    }

    /// Where the window that runs began.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The sums over the counted windows so far.
    pub fn totals(&self) -> Arc<Totals> {
        Arc::new(self.sums.totals(self.block_difference().and_then(flags::block_differs)))
    }

    /// Begins the totals anew with the next window, the comparison with the block layer among them.
    pub fn reset_totals(&mut self) {
        self.sums = Sums::default();
        self.engine_and_block_bytes = (0, 0);
    }

    /// Reads all sources into emptied counts: first what is counted, of all of them in little time, so
    /// that it belongs to the window that ends now; the latencies of many workers take longer.
    fn collect(&mut self) {
        for counts in &mut self.counts {
            counts.storage = None;
            counts.delta.clear();
        }
        // The classes with few workers first, so that they don't wait for the others' latencies.
        let mut workers = [0_usize; 4];
        self.sources.iter().for_each(|source| workers[source.class().index()] += 1);
        self.sources.sort_by_key(|source| workers[source.class().index()]);
        let counts = &mut self.counts;
        let more: Vec<_> = self
            .sources
            .iter_mut()
            .map(|source| source.counts(&mut counts[source.class().index()].delta))
            .collect();
        for source in &mut self.sources {
            source.latencies(&mut counts[source.class().index()].delta);
        }
        let mut more = more.into_iter();
        self.sources.retain(|_| more.next().unwrap_or(true));
    }

    /// The processor, and the busiest worker of each class; takes in what was read from storage.
    fn threads(
        &mut self,
        workers: &[(i32, Class)],
        duration_ns: u64,
        context: &WindowContext,
    ) -> (CpuFigures, [Option<f64>; 4]) {
        let through_cache = Class::ALL.map(|class| !class.writes() && context.through_cache(class));
        let tasks = self.probes.tasks.window(context.now_ns, workers, through_cache);
        for (at, reads) in self.reads.iter_mut().enumerate() {
            reads.bytes += self.counts[at].delta.bytes;
            reads.unsteady |= context.turned;
            if !through_cache[at] {
                *reads = Reads::default();
            } else if let Some(storage) = &tasks.storage_reads {
                let known = storage[at].filter(|_| !reads.unsteady).map(|storage| (storage, reads.bytes));
                let share = known.and_then(|(storage, read)| cache_share(storage, read));
                *reads = Reads { share, ..Reads::default() };
                self.counts[at].storage = known;
            }
        }
        let cpu = self.probes.cpu.window(context.now_ns, duration_ns);
        let cpu = CpuFigures { own_cores: tasks.own_cores, overhead_cores: tasks.overhead_cores, ..cpu };
        (cpu, tasks.busiest_worker)
    }

    /// All figures of a class but its busiest worker and its flags.
    fn figures(&self, class: Class, context: &WindowContext, duration_ns: u64) -> ClassFigures {
        let at = class.index();
        let of = &context.classes[at];
        let delta = &self.counts[at].delta;
        let errnos: Vec<_> = delta.errnos.iter().enumerate().filter(|(_, count)| **count > 0).collect();
        let not_held = not_held(delta.intended, delta.missed);
        ClassFigures {
            state: of.state.clone(),
            ios: delta.ios,
            bytes: delta.bytes,
            errors: delta.errnos.iter().sum(),
            errnos: errnos.into_iter().map(|(errno, count)| (symbol(errno), *count)).collect(),
            intended: delta.intended,
            missed: delta.missed,
            mb_per_s: mb_per_s(delta.bytes, duration_ns),
            iops: per_s(delta.ios, duration_ns),
            target_mb_per_s: of.rate_bytes_per_s.map(|rate| rate as f64 / 1e6),
            not_held,
            latencies: Latencies {
                service_ns: summarize(&delta.service),
                response_ns: summarize(&delta.response).filter(|_| !not_held),
                write_ns: summarize(&delta.write),
                flush_ns: summarize(&delta.flush),
            },
            busiest_worker: None,
            cache_share: self.reads[at].share,
            flags: Vec::new(),
        }
    }

    /// Whether what the class is measured for trends over the last steady windows.
    fn drifts(&mut self, class: Class, figures: &ClassFigures, steady: bool) -> bool {
        let trend = &mut self.trends[class.index()];
        let value = match class {
            Class::Scan | Class::Background => Some(figures.mb_per_s),
            Class::Point | Class::Wal => {
                let latency = figures.latencies.service_ns.as_ref();
                latency.and_then(|latency| latency.p50.map(|ns| ns as f64).or(latency.mean))
            }
        };
        if let Some(value) = value.filter(|_| steady && figures.state == State::Running) {
            trend.push(value)
        } else {
            trend.clear();
            false
        }
    }

    /// The members' bytes; where all I/O is direct, they are added up beside the block layer's.
    fn members_and_block(&mut self, context: &WindowContext) -> Vec<MemberFigures> {
        let blocks = self.probes.block.window();
        let figures: Vec<_> = self
            .members
            .iter()
            .enumerate()
            .map(|(at, member)| {
                let sum = |bytes: fn(&(u64, u64)) -> u64| -> u64 {
                    self.counts.iter().filter_map(|counts| counts.delta.members.get(at)).map(bytes).sum()
                };
                let block = blocks.get(at).copied().flatten();
                MemberFigures {
                    name: member.name.clone(),
                    read_bytes: sum(|(read, _)| *read),
                    written_bytes: sum(|(_, written)| *written),
                    block_read_bytes: block.map(|(read, _)| read),
                    block_written_bytes: block.map(|(_, written)| written),
                    temperature_c: None,
                }
            })
            .collect();
        let counted = !blocks.is_empty() && blocks.iter().all(Option::is_some);
        if counted && context.all_direct() && !context.turned {
            let (engine, block) = &mut self.engine_and_block_bytes;
            *engine += figures.iter().map(|member| member.read_bytes + member.written_bytes).sum::<u64>();
            *block += blocks.iter().flatten().map(|(read, written)| read + written).sum::<u64>();
        }
        figures
    }

    /// By which share of the engine's bytes the block layer's differ since the totals began.
    fn block_difference(&self) -> Option<f64> {
        let (engine, block) = self.engine_and_block_bytes;
        (engine >= COMPARABLE_BYTES).then(|| engine.abs_diff(block) as f64 / engine as f64)
    }
}

/// Whether over 1% of the intended starts were missed.
pub(super) fn not_held(intended: u64, missed: u64) -> bool {
    missed.saturating_mul(100) > intended
}

/// The share of the bytes read that storage did not serve. Reading ahead may take more from storage
/// than was read.
pub(super) fn cache_share(storage_bytes: u64, read_bytes: u64) -> Option<f64> {
    (read_bytes > 0).then(|| 1.0 - (storage_bytes as f64 / read_bytes as f64).min(1.0))
}

fn symbol(errno: usize) -> String {
    let name = i32::try_from(errno).ok().and_then(errno_name);
    name.map_or_else(|| format!("errno {errno}"), str::to_owned)
}

/// The histograms to hand out, no larger than their highest value needs.
fn histograms(delta: &Delta) -> ClassHistograms {
    let fitted = |latency: &LatencyDelta| {
        if latency.histogram.is_empty() {
            return None;
        }
        let mut fitted = Histogram::new(3).ok()?; // grows by itself
        fitted.add(&latency.histogram).ok()?;
        Some(fitted)
    };
    ClassHistograms {
        service: fitted(&delta.service),
        response: fitted(&delta.response),
        write: fitted(&delta.write),
        flush: fitted(&delta.flush),
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::tests::context;
    use super::*;
    use crate::profile::settings::{Buffering, Interface};
    use crate::units::SECOND_NS;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    type Step = Box<dyn FnMut(&mut Delta) -> bool + Send>;

    /// A source that adds what a function does.
    struct Scripted(Class, Step);

    impl Source for Scripted {
        fn class(&self) -> Class {
            self.0
        }
        fn counts(&mut self, delta: &mut Delta) -> bool {
            (self.1)(delta)
        }
        fn latencies(&mut self, _: &mut Delta) {}
        fn thread_id(&self) -> Option<i32> {
            None
        }
    }

    fn members() -> Vec<Member> {
        ["data-0", "data-1"].map(|name| Member { name: name.into(), device: None, path: None }).to_vec()
    }

    fn meters() -> Meters {
        Meters::new(0, members(), Probes::none())
    }

    fn simulated(seconds: u64) -> WindowContext<'static> {
        let mut context = WindowContext { now_ns: seconds * SECOND_NS, ..context() };
        for class in &mut context.classes {
            class.interface = Interface::Sim;
        }
        context
    }

    fn random_source(class: Class, seed: u64) -> Scripted {
        let mut random = StdRng::seed_from_u64(seed);
        let mut left = 30 + seed;
        let step = move |delta: &mut Delta| {
            for _ in 0..random.random_range(0..300) {
                let bits = random.random_range(1..36);
                let ns = random.random_range(0..1 << bits);
                for latency in [&mut delta.service, &mut delta.response, &mut delta.write, &mut delta.flush] {
                    latency.histogram.record(ns).unwrap();
                    latency.max_ns = latency.max_ns.max(ns);
                }
                delta.ios += 1;
                delta.bytes += 4096;
                delta.members[random.random_range(0..2)].1 += 4096;
            }
            delta.intended += random.random_range(0..1000);
            delta.missed += random.random_range(0..5);
            delta.errnos[random.random_range(0..134)] += 1;
            left -= 1;
            left > 0
        };
        Scripted(class, Box::new(step))
    }

    #[test]
    fn the_counted_windows_sum_exactly_to_the_totals() {
        let mut meters = meters();
        for seed in 0..12 {
            meters.add(Box::new(random_source(Class::ALL[seed as usize % 4], seed)));
        }
        let mut counted = Vec::new();
        for at in 1..=60 {
            let mut context = simulated(at);
            (context.warmup, context.turned, context.paused) = (at < 5, at % 7 == 0, at % 11 == 0);
            let window = meters.window(&context);
            if !window.warmup {
                counted.push(window);
            }
        }
        assert!(meters.sources.is_empty(), "all have ended");
        let totals = meters.totals();
        assert_eq!((totals.windows, totals.duration_s), (56, 56.0));
        for class in Class::ALL {
            let (total, at) = (&totals.classes[class.index()], class.index());
            let sum = |figure: fn(&ClassFigures) -> u64| -> u64 {
                counted.iter().map(|window| figure(window.class(class))).sum()
            };
            assert_eq!(total.ios, sum(|figures| figures.ios));
            assert_eq!(total.bytes, sum(|figures| figures.bytes));
            assert_eq!(total.intended, sum(|figures| figures.intended));
            assert_eq!(total.missed, sum(|figures| figures.missed));
            assert_eq!(total.errors, sum(|figures| figures.errors));
            assert_eq!(total.errors, total.errnos.values().sum::<u64>());
            assert!(total.ios > 0 && total.errors > 0);
            let mut merged = LatencyDelta::default();
            for window in &counted {
                if let Some(histogram) = &window.histograms[at].service {
                    merged.histogram.add(histogram).unwrap();
                }
                let max = window.class(class).latencies.service_ns.as_ref().and_then(|latency| latency.max);
                merged.max_ns = merged.max_ns.max(max.unwrap_or(0));
            }
            assert_eq!(total.latencies.service_ns, summarize(&merged));
        }
        assert_eq!(totals.total.bytes, counted.iter().map(|window| window.total.bytes).sum::<u64>());
        for (at, member) in totals.members.iter().enumerate() {
            let written: u64 = counted.iter().map(|window| window.members[at].written_bytes).sum();
            assert_eq!(member.written_bytes, written);
        }
        let written: u64 = totals.members.iter().map(|member| member.written_bytes).sum();
        assert_eq!(written, totals.total.bytes);
        meters.reset_totals();
        assert_eq!(meters.totals().windows, 0);
    }

    #[test]
    fn a_simulated_run_repeats_exactly() {
        let run = || {
            let mut meters = meters();
            meters.add(Box::new(random_source(Class::Wal, 5)));
            let windows: Vec<_> = (1..20).map(|at| meters.window(&simulated(at))).collect();
            (windows, meters.totals())
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn a_rate_with_over_one_percent_missed_is_not_held() {
        let mut meters = meters();
        let mut missed = [10, 11, 0].into_iter();
        let step = move |delta: &mut Delta| {
            delta.ios += 990;
            delta.intended += 1000;
            delta.missed += missed.next().unwrap();
            delta.service.histogram.record(5).unwrap();
            delta.response.histogram.record(5).unwrap();
            true
        };
        meters.add(Box::new(Scripted(Class::Background, Box::new(step))));
        let mut held = Vec::new();
        for at in 1..=3 {
            let mut context = simulated(at);
            context.classes[3].rate_bytes_per_s = Some(25_000_000);
            let window = meters.window(&context);
            let figures = window.class(Class::Background);
            assert_eq!(figures.not_held, figures.latencies.response_ns.is_none());
            assert!(figures.latencies.service_ns.is_some());
            assert_eq!((figures.target_mb_per_s, figures.iops), (Some(25.0), 990.0));
            let totals = meters.totals();
            held.push((!figures.not_held, totals.classes[3].latencies.response_ns.is_some()));
        }
        assert_eq!(held, [(true, true), (false, false), (true, true)]);
    }

    #[test]
    fn a_trend_and_the_settling_time_are_flagged() {
        let mut meters = meters();
        let mut bytes = 1_000_000;
        let step = move |delta: &mut Delta| {
            bytes += 100_000;
            delta.bytes += bytes;
            true
        };
        meters.add(Box::new(Scripted(Class::Scan, Box::new(step))));
        let flags: Vec<(bool, bool)> = (1..=10)
            .map(|at| {
                let window = meters.window(&simulated(at));
                let has =
                    |flags: &[super::super::window::Flag], text| flags.iter().any(|flag| flag.text == text);
                (has(&window.flags, flags::SETTLING), has(&window.classes[0].flags, flags::DRIFTING))
            })
            .collect();
        assert_eq!(flags[..2], [(true, false); 2]);
        assert_eq!(flags[2..7], [(false, false); 5]);
        assert_eq!(flags[7..], [(false, true); 3]);
    }

    #[test]
    fn a_pause_and_several_settings_are_told_of_the_totals() {
        let mut meters = meters();
        for at in 1..=30 {
            let context = WindowContext { paused: at == 3, setting: u64::from(at > 9), ..simulated(at) };
            meters.window(&context);
        }
        let totals = meters.totals();
        let texts: Vec<_> = totals.flags.iter().map(|flag| flag.text.as_str()).collect();
        assert_eq!(texts, ["settling", "mixed settings", "paused"]);
        assert_eq!(totals.classes[0].flags[0].text, "simulated");
    }

    #[test]
    fn direct_io_is_held_against_the_block_layers_count() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/dev/block/259:0");
        std::fs::create_dir_all(&folder).unwrap();
        let stat =
            |sectors: u64| std::fs::write(folder.join("stat"), format!("0 0 {sectors} 0 0 0 0 0")).unwrap();
        stat(0);
        let member = Member { name: "nvme0n1".into(), device: Some((259, 0)), path: None };
        let block = BlockProbe::open(root.path(), &[member.device]);
        let mut meters = Meters::new(0, vec![member], Probes { block, ..Probes::none() });
        let step = |delta: &mut Delta| {
            delta.bytes += 64 * MIB;
            delta.members[0].0 += 64 * MIB;
            true
        };
        meters.add(Box::new(Scripted(Class::Scan, Box::new(step))));
        // 64 MiB are 131,072 sectors.
        for (at, sectors, expected) in
            [(1, 131_072, None), (2, 266_240, None), (3, 420_000, Some("block layer differs 7%"))]
        {
            stat(sectors);
            let window = meters.window(&WindowContext { now_ns: at * SECOND_NS, ..context() });
            assert_eq!(window.members[0].block_written_bytes, Some(0));
            let flag = window.flags.iter().find(|flag| flag.text.starts_with("block"));
            assert_eq!(flag.map(|flag| flag.text.as_str()), expected, "at {at} s");
        }
        assert_eq!(meters.totals().flags.last().unwrap().text, "block layer differs 7%");
        meters.reset_totals();
        stat(551_072);
        let window = meters.window(&WindowContext { now_ns: 4 * SECOND_NS, ..context() });
        assert!(!window.flags.iter().any(|flag| flag.text.starts_with("block")), "what was before is over");
    }

    struct NoClocks;

    impl super::super::tasks::Clocks for NoClocks {
        fn process_ns(&self) -> u64 {
            0
        }
        fn thread_ns(&self, _: i32) -> Option<u64> {
            Some(0)
        }
    }

    /// A worker whose thread is numbered 10, and reads 1000 bytes a window.
    struct Reader;

    impl Source for Reader {
        fn class(&self) -> Class {
            Class::Scan
        }
        fn counts(&mut self, delta: &mut Delta) -> bool {
            delta.bytes += 1000;
            true
        }
        fn latencies(&mut self, _: &mut Delta) {}
        fn thread_id(&self) -> Option<i32> {
            Some(10)
        }
    }

    #[test]
    fn reads_that_storage_did_not_serve_are_flagged_in_windows_and_totals() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("10")).unwrap();
        let io = folder.path().join("10/io");
        std::fs::write(&io, "read_bytes: 7000").unwrap();
        let tasks = TaskProbe::under(folder.path(), Box::new(NoClocks), 0);
        let mut meters = Meters::new(0, members(), Probes { tasks, ..Probes::none() });
        meters.add(Box::new(Reader));
        let mut shares = Vec::new();
        // Half a second a window: bytes from storage become known with every other one.
        for (at, read_bytes, turned) in [
            (1, 7000, false),
            (2, 7000, false),
            (3, 7100, false),
            (4, 7500, false),
            (5, 7500, true),
            (6, 9000, false),
            (8, 9600, false),
        ] {
            std::fs::write(&io, format!("rchar: 1\nread_bytes: {read_bytes}\n")).unwrap();
            let mut context = WindowContext { now_ns: at * SECOND_NS / 2, turned, ..context() };
            context.classes[0].buffering = Buffering::Cached;
            shares.push(meters.window(&context).classes[0].cache_share);
        }
        let turned = None;
        assert_eq!(shares, [None, None, None, Some(0.75), Some(0.75), turned, Some(0.4)]);
        let total = &meters.totals().classes[0];
        assert_eq!(total.cache_share, Some(1.0 - 1100.0 / 3000.0));
        assert_eq!(total.flags.iter().map(|flag| flag.text.as_str()).collect::<Vec<_>>(), ["cache 63%"]);
    }

    #[test]
    fn a_cached_read_share_is_one_without_storage() {
        assert_eq!(cache_share(0, 0), None);
        assert_eq!(cache_share(0, 4096), Some(1.0));
        assert_eq!(cache_share(1024, 4096), Some(0.75));
        assert_eq!(cache_share(8192, 4096), Some(0.0), "reading ahead");
        let mut context = context();
        context.classes[0].buffering = Buffering::Cached;
        assert!(context.through_cache(Class::Scan) && !context.through_cache(Class::Point));
    }
}
