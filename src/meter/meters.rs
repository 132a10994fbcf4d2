//! The meters: at the end of each window they read every source and probe, and compute all figures.

use std::sync::Arc;

use super::compared::Compared;
use super::context::WindowContext;
use super::counts::counters::{Incidents, Polls};
use super::counts::engine::{EngineFigures, EngineTotals};
use super::counts::slow::{KEPT_OF_WINDOWS, slow_of_window};
use super::devices::drives::{DriveFigures, FlashDelta};
use super::devices::layers::LayerFigures;
use super::devices::member::Member;
use super::flags;
use super::latencies::latency::{histograms, summarize};
use super::probes::Probes;
use super::processors::cpu::{self, Steal};
use super::rates::{cache_share, not_held, per_s};
use super::source::{Delta, Source};
use super::turns::settling::{Settling, Trend};
use super::whole_run::totals::{Sums, Totals};
use super::window::{
    ClassFigures, ClassState, CpuFigures, Drained, Latencies, MemberFigures, OthersIo, TotalFigures, Window,
};
use super::written::Written;
use crate::class::Class;
use crate::error::errno_name;
use crate::host::Lost;
use crate::units::mb_per_s;

/// Reads sources and probes, and makes windows and totals from them.
pub struct Meters {
    members: Vec<Member>,
    probes: Probes,
    sources: Vec<Box<dyn Source>>,
    counts: [Counts; 4],
    start_ns: u64,
    windows: u64,
    settling: Settling,
    steal: Steal,
    trends: [Trend; 4],
    reads: [Reads; 4],
    compared: Compared,
    /// The storage engine's counts at the last reading, and what the classes had asked of it.
    engine: EngineTotals,
    /// Bytes that the classes have written and read so far: what they asked of a storage engine.
    asked_bytes: (u64, u64),
    /// Bytes that the block layer has written to the drives since the drives' own counters were last read;
    /// none if it does not see all of them.
    drives_since_flash: Option<u64>,
    sums: Sums,
    /// How many slow I/Os windows may still keep.
    slow_left: usize,
    lost: Vec<Lost>,
}

/// Everything read at a window's end.
pub struct Reading {
    start_ns: u64,
    duration_ns: u64,
    /// I/Os and bytes of each class up to then.
    done: [(u64, u64); 4],
    /// Unfinished I/Os of each class, and the age of the oldest.
    unfinished: [Option<(u64, u64)>; 4],
    cpu: CpuFigures,
    busiest_workers: [Option<f64>; 4],
    members: Vec<MemberFigures>,
    others_io: Vec<OthersIo>,
    engine: Option<EngineFigures>,
    written: Written,
    drives: DriveFigures,
}

/// The counts of the layers below the workers in a window.
struct Below {
    /// Bytes read and written, by member.
    blocks: Vec<Option<(u64, u64)>>,
    layers: LayerFigures,
}

/// A class's counts in a window.
#[derive(Debug)]
struct Counts {
    /// The counts of its sources.
    pub delta: Delta,
    /// Bytes from storage and bytes read, if both became known.
    pub storage: Option<(u64, u64)>,
}

/// A class's reads since storage reads were last known.
#[derive(Debug, Default)]
struct Reads {
    bytes: u64,
    /// Whether there was a turn in that time.
    unsteady: bool,
    share: Option<f64>,
}

impl Meters {
    /// Meters for these members; the first window begins now.
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
            steal: Steal::default(),
            trends: Default::default(),
            reads: Default::default(),
            compared: Compared::default(),
            engine: EngineTotals::default(),
            asked_bytes: (0, 0),
            drives_since_flash: Some(0),
            sums: Sums::default(),
            slow_left: KEPT_OF_WINDOWS,
            lost: Vec::new(),
        }
    }

    /// Sets the storage engine's baseline: what it did before the first window does not count.
    pub fn engine_begins(&mut self, figures: Option<EngineFigures>) {
        self.engine = figures.map(|figures| figures.counts).unwrap_or_default();
    }

    /// What the storage engine did since the last reading, including while it was closed, and what was asked of it.
    fn engine(&mut self, now: Option<&EngineFigures>, members: &[MemberFigures]) -> Option<EngineFigures> {
        let (written, read) = &mut self.asked_bytes;
        *written += members.iter().map(|member| member.written_bytes).sum::<u64>();
        *read += members.iter().map(|member| member.read_bytes).sum::<u64>();
        let now = now?;
        let (user_written_bytes, user_read_bytes) = self.asked_bytes;
        let counts = EngineTotals { user_written_bytes, user_read_bytes, ..now.counts };
        let before = std::mem::replace(&mut self.engine, counts);
        Some(EngineFigures { counts: counts - before, ..now.clone() })
    }

    /// What the arrays below the members had lost when the last window ended.
    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// Adds a source; it is dropped once it has ended and been read for the last time.
    pub fn add(&mut self, source: Box<dyn Source>) {
        self.sources.push(source);
    }

    /// Ends a window and begins the next.
    pub fn window(&mut self, context: &WindowContext) -> Arc<Window> {
        let reading = self.read(context);
        self.conclude(context, reading)
    }

    /// Reads all that the window ending now needs; [`Self::conclude`] makes the window.
    pub fn read(&mut self, context: &WindowContext) -> Reading {
        let start_ns = std::mem::replace(&mut self.start_ns, context.now_ns);
        let duration_ns = context.now_ns.saturating_sub(start_ns);
        let workers: Vec<_> =
            self.sources.iter().filter_map(|source| Some((source.thread_id()?, source.class()))).collect();
        let below = self.collect();
        let (cpu, busiest_workers) = self.threads(&workers, duration_ns, context);
        let others_io = self.probes.io_of_others(context.now_ns, context.all_through_block_layer());
        let mut drives = self.probes.drives.window();
        drives.flash = drives.flash.or(self.probes.by_model.since(context.flash));
        drives.count(below.layers, context.all_through_block_layer());
        let mut members = self.members_and_block(context, &below.blocks);
        for (member, of_drives) in members.iter_mut().zip(drives.by_member()) {
            (member.temperature_c, member.throttling) = of_drives;
        }
        let engine = self.engine(context.engine.as_ref(), &members);
        let written = self.written(context, &members, engine.as_ref(), below.layers, drives.flash);
        let done = self.counts.each_ref().map(|counts| (counts.delta.ios, counts.delta.bytes));
        Reading {
            start_ns,
            duration_ns,
            done,
            unfinished: [None; 4],
            cpu,
            busiest_workers,
            members,
            others_io,
            engine,
            written,
            drives,
        }
    }

    /// Adds what was still in flight at the reading, which was the run's end (`end_ns` on the workers' clock, now
    /// at `now_ns`): latencies, failures and intended starts of what has ended since, and the age of what has not.
    pub fn read_rest(&mut self, reading: &mut Reading, end_ns: u64, now_ns: u64) {
        for mut source in std::mem::take(&mut self.sources) {
            let at = source.class().index();
            // Before the counts: what ends in between is counted twice rather than not at all.
            let under_way = source.under_way();
            let delta = &mut self.counts[at].delta;
            if !source.collect(delta) {
                continue;
            }
            for (begun, intents) in under_way {
                for intended_ns in intents.iter().flat_map(|intents| intents.before(end_ns)) {
                    delta.miss(now_ns.saturating_sub(intended_ns));
                }
                for io in begun.into_iter().filter(|io| io.start_ns <= end_ns) {
                    let age_ns = now_ns.saturating_sub(io.start_ns);
                    delta.service.add(age_ns);
                    if let Some(intended_ns) = io.intended_ns {
                        delta.response.add(now_ns.saturating_sub(intended_ns));
                    }
                    let (count, oldest_ns) = reading.unfinished[at].unwrap_or_default();
                    reading.unfinished[at] = Some((count + 1, oldest_ns.max(age_ns)));
                }
            }
            self.sources.push(source);
        }
    }

    /// Makes the window from a reading.
    pub fn conclude(&mut self, context: &WindowContext, reading: Reading) -> Arc<Window> {
        let Reading { start_ns, duration_ns, .. } = reading;
        let unsteady = context.turned || context.paused;
        let settling = self.settling.window(start_ns, context.now_ns, unsteady);
        let mut classes = Class::ALL.map(|class| self.figures(class, context, &reading));
        for class in Class::ALL {
            let figures = &mut classes[class.index()];
            let drifting = self.drifts(class, figures, !unsteady && !settling);
            figures.flags = flags::of_class(class, context, figures, drifting);
            figures.flags.extend(reading.unfinished[class.index()].map(flags::unfinished));
        }
        let Reading { cpu, members, others_io, engine, written, drives, .. } = reading;
        let stolen = self.steal.window(duration_ns, cpu.steal);
        let mut flags = flags::of_window(context, stolen, settling, self.compared.difference());
        flags.extend(flags::of_processor(context, &cpu, duration_ns));
        flags.extend(flags::others_io(&others_io, duration_ns as f64 / 1e9));
        flags.extend(flags::of_drives(&drives));
        self.lost = self.probes.arrays.window();
        flags.extend(flags::of_arrays(&self.lost, &self.probes.arrays.upkeep(context.array), context.array));
        flags.extend(flags::of_attributes(&self.probes.changed_by_others(context.tuned)));
        let bytes = classes.iter().map(|class| class.bytes).sum();
        let ios: u64 = classes.iter().map(|class| class.ios).sum();
        let slow = self.counts.each_mut().map(|of| &mut of.delta.slow);
        let slow = slow_of_window(slow, context.began_ns, &mut self.slow_left, self.sums.slowest());
        let window = Window {
            index: self.windows,
            start_ns,
            duration_ns,
            setting: context.setting,
            turned: context.turned,
            warmup: context.warmup,
            paused: context.paused,
            total: TotalFigures::of(bytes, duration_ns, &cpu, (bytes, ios)),
            flags,
            classes,
            cpu,
            members,
            others_io,
            drive_ios: drives.ios,
            read: drives.read,
            engine,
            program: context.program.clone(),
            traced: context.by_trace.figures.clone(),
            traced_p99_ns: context.by_trace.p99_ns,
            written_bytes_total: context.written_bytes_total,
            written,
            slow,
            histograms: Arc::new(std::array::from_fn(|at| histograms(&self.counts[at].delta))),
        };
        self.windows += 1;
        self.count(&window);
        Arc::new(window)
    }

    /// Adds a window to the totals, unless it belongs to the warm-up.
    fn count(&mut self, window: &Window) {
        if window.warmup {
            return;
        }
        self.sums.add(window, std::array::from_fn(|at| self.counts[at].storage));
        for (class, Counts { delta, .. }) in Class::ALL.into_iter().zip(&self.counts) {
            self.sums.add_latencies(class, [&delta.service, &delta.response, &delta.write, &delta.flush]);
        }
    }

    /// Whether anything that began by this time on the workers' clock is still unfinished.
    pub fn waits_since(&mut self, ns: u64) -> bool {
        let under_way = self.sources.iter_mut().flat_map(|source| source.under_way());
        under_way.flat_map(|(begun, _)| begun).any(|io| io.start_ns <= ns)
    }

    /// The start of the current window.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The sums over the counted windows so far.
    pub fn totals(&self) -> Arc<Totals> {
        Arc::new(self.sums.totals(self.compared.difference().and_then(flags::block_differs)))
    }

    /// Restarts the totals with the next window, including the comparison with the block layer.
    pub fn reset_totals(&mut self) {
        self.sums = Sums::default();
        self.slow_left = KEPT_OF_WINDOWS;
        self.compared = Compared::default();
    }

    /// Reads all sources into emptied counts: first and quickly the counters of the workers and of the layers
    /// below, so that they belong to the window that ends now; the latencies of many workers and the reports
    /// of drives take longer.
    fn collect(&mut self) -> Below {
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
        let below = Below { blocks: self.probes.block.window(), layers: self.probes.layers.window() };
        for source in &mut self.sources {
            source.latencies(&mut counts[source.class().index()].delta);
        }
        let mut more = more.into_iter();
        self.sources.retain(|_| more.next().unwrap_or(true));
        below
    }

    /// The processor's figures, and the busiest worker of each class; also takes what was read from storage.
    fn threads(
        &mut self,
        workers: &[(i32, Class)],
        duration_ns: u64,
        context: &WindowContext,
    ) -> (CpuFigures, [Option<f64>; 4]) {
        let through_cache = Class::ALL.map(|class| !class.writes() && context.through_cache(class));
        let mut tasks = self.probes.tasks.window(context.now_ns, workers, through_cache);
        tasks.add(self.counts.each_ref().map(|counts| counts.delta.elsewhere), duration_ns);
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
        let cpu = cpu::at_least_own(cpu, tasks.own_cores, duration_ns);
        let cpu = CpuFigures { overhead_cores: tasks.overhead_cores, ..cpu };
        (self.probes.others.window(context.now_ns, cpu), tasks.busiest_worker)
    }

    /// All figures of a class except its flags.
    fn figures(&self, class: Class, context: &WindowContext, reading: &Reading) -> ClassFigures {
        let (at, duration_ns) = (class.index(), reading.duration_ns);
        let (ios, bytes) = reading.done[at];
        let of = &context.classes[at];
        let delta = &self.counts[at].delta;
        let errnos: Vec<_> = delta.errnos.iter().enumerate().filter(|(_, count)| **count > 0).collect();
        let not_held = not_held(delta.intended, delta.missed);
        ClassFigures {
            state: of.state.clone(),
            ios,
            bytes,
            drained: Drained {
                ios: delta.ios - ios,
                bytes: delta.bytes - bytes,
                unfinished: reading.unfinished[at].map_or(0, |(count, _)| count),
            }
            .unless_none(),
            slow_ios: delta.slow_ios,
            errors: delta.errnos.iter().sum(),
            errnos: errnos.into_iter().map(|(errno, count)| (symbol(errno), *count)).collect(),
            intended: delta.intended,
            missed: delta.missed,
            mb_per_s: mb_per_s(bytes, duration_ns),
            iops: per_s(ios, duration_ns),
            target_mb_per_s: of.rate_bytes_per_s.map(|rate| rate as f64 / 1e6),
            not_held,
            latencies: Latencies {
                service_ns: summarize(&delta.service),
                response_ns: summarize(&delta.response).filter(|_| !not_held),
                write_ns: summarize(&delta.write),
                flush_ns: summarize(&delta.flush),
            },
            busiest_worker: reading.busiest_workers[at],
            cache_share: self.reads[at].share,
            polls: (delta.polls != Polls::default()).then_some(delta.polls),
            incidents: (delta.incidents != Incidents::default()).then_some(delta.incidents),
            flags: Vec::new(),
        }
    }

    /// Whether the class's main figure trends over the last steady windows.
    fn drifts(&mut self, class: Class, figures: &ClassFigures, steady: bool) -> bool {
        let trend = &mut self.trends[class.index()];
        let value = match class {
            Class::Scan | Class::Background => Some(figures.mb_per_s),
            Class::Point | Class::Wal => {
                let latency = figures.latencies.service_ns.as_ref();
                latency.and_then(|latency| latency.p50.map(|ns| ns as f64).or(latency.mean))
            }
        };
        if let Some(value) = value.filter(|_| steady && figures.state == ClassState::Running) {
            trend.push(value)
        } else {
            trend.clear();
            false
        }
    }

    /// The members' bytes; if all I/O is direct, adds them up for comparison with the block layer's.
    fn members_and_block(
        &mut self,
        context: &WindowContext,
        blocks: &[Option<(u64, u64)>],
    ) -> Vec<MemberFigures> {
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
                    throttling: None,
                }
            })
            .collect();
        self.compared.add(context, &figures, blocks);
        figures
    }

    /// What was written on each level: for pages by the classes' counts, otherwise by the storage engine's,
    /// which reports what it wrote while closed with the next window.
    fn written(
        &mut self,
        context: &WindowContext,
        members: &[MemberFigures],
        engine: Option<&EngineFigures>,
        layers: LayerFigures,
        flash: Option<FlashDelta>,
    ) -> Written {
        let writers = Class::ALL.into_iter().filter(|class| class.writes());
        let (application_bytes, engine_bytes) = if context.pairs {
            let counts = engine.map(|engine| engine.counts).unwrap_or_default();
            (counts.user_written_bytes, counts.written_bytes())
        } else {
            (
                writers.map(|class| self.counts[class.index()].delta.bytes).sum(),
                members.iter().map(|member| member.written_bytes).sum(),
            )
        };
        let drives_bytes = layers.drives_bytes.filter(|_| context.through_block_layer());
        self.drives_since_flash = self.drives_since_flash.zip(drives_bytes).map(|(sum, more)| sum + more);
        let is_new = |flash: &FlashDelta| flash.host_bytes > 0;
        let drives_of_host_bytes = flash.filter(is_new).and_then(|_| self.drives_since_flash.replace(0));
        Written {
            application_bytes,
            engine_bytes,
            top_bytes: layers.top_bytes.filter(|_| context.through_block_layer()),
            drives_bytes,
            drives_of_host_bytes,
            host_bytes: flash.map(|flash| flash.host_bytes),
            flash_bytes: flash.map(|flash| flash.flash_bytes),
            flash_unit_bytes: flash.map(|flash| flash.unit_bytes),
            flash_source: flash.map(|flash| flash.source),
            capacity_bytes: layers.capacity_bytes,
            data_set_bytes: context.data_set_bytes,
            used_bytes: layers.used_bytes,
            used_bytes_max: layers.used_bytes,
        }
    }
}

fn symbol(errno: usize) -> String {
    i32::try_from(errno).ok().and_then(errno_name).map_or_else(|| format!("errno {errno}"), str::to_owned)
}

#[cfg(test)]
#[path = "meters_tests.rs"]
mod tests;
