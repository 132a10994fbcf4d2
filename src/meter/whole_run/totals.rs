//! Sums over the counted windows: all except the warm-up's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::steady_state::{Steadiness, SteadyWatch};
use super::variability::{Variability, VariabilityWatch};
use crate::class::Class;
use crate::meter::beside::others_io::{OthersIo, OthersIoSums};
use crate::meter::counts::engine::EngineFigures;
use crate::meter::counts::slow::{KEPT_OF_RUN, SlowIo, keep_slowest};
use crate::meter::flag::{FlagKind, marks_run, stem};
use crate::meter::flags;
use crate::meter::latencies::latency::summarize;
use crate::meter::processors::cpu::{at_least_own, by_ticks, is_coarse};
use crate::meter::programs::program::ProgramFigures;
use crate::meter::rates::{cache_share, not_held, per_s};
use crate::meter::source::LatencyDelta;
use crate::meter::window::{
    ClassFigures, CpuFigures, CyclesSource, Flag, Latencies, MemberFigures, TotalFigures, Window,
};
use crate::meter::written::Written;
use crate::units::mb_per_s;

/// A run so far: the sums over its counted windows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Seconds in counted windows.
    pub duration_s: f64,
    /// Windows in the totals: all but those of the warm-up.
    pub windows: u64,
    /// The classes, by [`Class::index`]; by name in files.
    #[serde(with = "crate::class::by_name")]
    pub classes: [ClassFigures; 4],
    /// All classes together.
    pub total: TotalFigures,
    /// The processor, averaged over time.
    pub cpu: CpuFigures,
    /// The members, in the target's order; the WAL's own is last, if it has one.
    pub members: Vec<MemberFigures>,
    /// Others' I/O on the drives below the members.
    #[serde(default)]
    pub others_io: Vec<OthersIo>,
    /// The storage engine under the classes; none for pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineFigures>,
    /// What a program that is the load used and reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFigures>,
    /// Bytes written on each level below the application.
    #[serde(default)]
    pub written: Written,
    /// Whether the run is steady.
    #[serde(default)]
    pub steadiness: Steadiness,
    /// How much the throughput varies.
    #[serde(default)]
    pub variability: Variability,
    /// The slowest I/Os of those that windows kept.
    #[serde(default)]
    pub slowest: Vec<SlowIo>,
    /// What makes the whole run untrustworthy: flags of at least a tenth of its windows, flags from the sums,
    /// and pauses and turns. The same holds for the classes' flags.
    pub flags: Vec<Flag>,
}

/// From this share of the windows on, a flag applies to the whole run.
const FLAG_WINDOWS_ONE_IN: u64 = 10;

/// The sums behind [`Totals`], for a live run and for one read from its windows.
#[derive(Debug, Default)]
pub struct Sums {
    duration_ns: u64,
    windows: u64,
    paused_ns: u64,
    settings: Option<(u64, u64)>,
    classes: [ClassSums; 4],
    cpu: CpuSums,
    members: Vec<MemberFigures>,
    others_io: OthersIoSums,
    engine: Option<EngineFigures>,
    program: Option<ProgramFigures>,
    written: Written,
    steady: SteadyWatch,
    variability: VariabilityWatch,
    slowest: Vec<SlowIo>,
    flags: FlagCounts,
}

#[derive(Debug, Default)]
struct ClassSums {
    figures: ClassFigures,
    latencies: [LatencySum; 4],
    busiest_ns: f64,
    busiest_of_ns: u64,
    /// Bytes from storage and bytes read, if both are known.
    storage: (u64, u64),
    flags: FlagCounts,
}

/// Samples so far; the histogram grows as needed.
#[derive(Debug, Default)]
struct LatencySum(Option<LatencyDelta>);

/// Each kind of flag with its number of windows and its last text.
#[derive(Debug, Default)]
struct FlagCounts(BTreeMap<String, (u64, Flag)>);

/// Figures weighted by nanoseconds.
#[derive(Debug, Default)]
struct CpuSums {
    weighted: CpuFigures,
    frequency_ns: u64,
    /// The time of the windows in which others' use is known.
    others_ns: f64,
    /// Bytes and I/Os of the windows whose cycles are known.
    bytes: u64,
    ios: u64,
    estimated: bool,
    last: CpuFigures,
}

impl Sums {
    /// Adds a counted window except its latencies, with each class's bytes from storage and bytes read if
    /// both became known in it.
    pub fn add(&mut self, window: &Window, storage: [Option<(u64, u64)>; 4]) {
        self.duration_ns += window.duration_ns;
        self.windows += 1;
        self.paused_ns += if window.paused { window.duration_ns } else { 0 };
        self.settings = Some((self.settings.map_or(window.setting, |(first, _)| first), window.setting));
        for class in Class::ALL {
            let at = class.index();
            self.classes[at].add(window.class(class), storage[at], window.duration_ns);
        }
        self.cpu.add(window);
        add_members(&mut self.members, &window.members);
        self.others_io.add(&window.others_io);
        if let Some(engine) = &window.engine {
            let before = self.engine.take().map(|sum| sum.counts).unwrap_or_default();
            self.engine = Some(EngineFigures { counts: before + engine.counts, ..engine.clone() });
        }
        match (&mut self.program, &window.program) {
            (Some(sum), Some(program)) => sum.add(program),
            (sum, program) => *sum = sum.take().or_else(|| program.clone()),
        }
        self.written.add(&window.written);
        self.steady.add(window);
        self.variability.add(window);
        self.slowest.extend_from_slice(&window.slow);
        keep_slowest(&mut self.slowest, KEPT_OF_RUN);
        self.flags.add(&window.flags);
    }

    /// The slowest I/Os so far.
    pub fn slowest(&self) -> &[SlowIo] {
        &self.slowest
    }

    /// Adds latencies of a class, from one window or several: service, response, write and flush.
    pub fn add_latencies(&mut self, class: Class, latencies: [&LatencyDelta; 4]) {
        for (sum, delta) in self.classes[class.index()].latencies.iter_mut().zip(latencies) {
            sum.add(delta);
        }
    }

    /// The totals so far, with the flag from the block layer's cumulative counts.
    pub fn totals(&self, block_differs: Option<Flag>) -> Totals {
        // The last window's flag is replaced by the one over all windows.
        const OF_A_WINDOW: [FlagKind; 5] = [
            FlagKind::Steal,
            FlagKind::Others,
            FlagKind::BlockLayerDiffers,
            FlagKind::Paused,
            FlagKind::Turned,
        ];
        let classes = std::array::from_fn(|at| self.classes[at].figures(self.duration_ns, self.windows));
        let bytes = classes.iter().map(|class: &ClassFigures| class.bytes).sum();
        let mut flags = self.flags.over(self.windows);
        flags.retain(|flag| !OF_A_WINDOW.iter().any(|kind| flag.is(*kind)));
        let cpu = self.cpu.figures(self.duration_ns);
        let others_io = self.others_io.all();
        // Bursts may matter in a tenth of the windows but not in the sum: then the last window's flag stands.
        if let Some(over_all) = flags::others_io(&others_io, self.duration_ns as f64 / 1e9) {
            flags.retain(|flag| !flag.is(FlagKind::OthersIo));
            flags.push(over_all);
        }
        flags.extend(flags::steal(cpu.steal));
        flags.extend(flags::others(&cpu));
        flags.extend(block_differs);
        flags.extend(self.mixed());
        Totals {
            duration_s: self.duration_ns as f64 / 1e9,
            windows: self.windows,
            classes,
            total: TotalFigures::of(bytes, self.duration_ns, &cpu, (self.cpu.bytes, self.cpu.ios)),
            cpu,
            members: self.members.clone(),
            others_io,
            engine: self.engine.clone(),
            program: self.program.clone(),
            written: self.written.clone(),
            steadiness: self.steady.steadiness(),
            variability: self.variability(),
            slowest: self.slowest.clone(),
            flags,
        }
    }

    /// How much the classes' throughput varies, which says nothing where a program was the load.
    fn variability(&self) -> Variability {
        if self.program.is_none() { self.variability.variability() } else { Variability::default() }
    }

    /// Flags that only a whole run can have.
    fn mixed(&self) -> Vec<Flag> {
        let mut flags = Vec::new();
        if let Some((first, last)) = self.settings.filter(|(first, last)| first != last) {
            let turned = match last.abs_diff(first) {
                1 => "A knob was turned".to_owned(),
                turns => format!("Knobs were turned {turns} times"),
            };
            let why = format!("{turned}: the totals are not those of a single setting.");
            flags.push(FlagKind::MixedSettings.flag(why));
        }
        if self.paused_ns > 0 {
            let paused_s = self.paused_ns as f64 / 1e9;
            let why = format!(
                "The run was paused in windows of {paused_s:.0} s in total, which the means include."
            );
            flags.push(FlagKind::Paused.flag(why));
        }
        flags
    }
}

impl ClassSums {
    fn add(&mut self, window: &ClassFigures, storage: Option<(u64, u64)>, duration_ns: u64) {
        let sum = &mut self.figures;
        sum.state = window.state.clone();
        sum.target_mb_per_s = window.target_mb_per_s;
        sum.ios += window.ios;
        sum.bytes += window.bytes;
        sum.slow_ios += window.slow_ios;
        sum.errors += window.errors;
        for (errno, count) in &window.errnos {
            *sum.errnos.entry(errno.clone()).or_default() += count;
        }
        // Only the last window of a run has it.
        sum.drained = sum.drained.or(window.drained);
        sum.intended += window.intended;
        sum.missed += window.missed;
        if let Some(polls) = window.polls {
            *sum.polls.get_or_insert_default() += polls;
        }
        if let Some(incidents) = window.incidents {
            *sum.incidents.get_or_insert_default() += incidents;
        }
        if let Some(busiest) = window.busiest_worker {
            self.busiest_ns += busiest * duration_ns as f64;
            self.busiest_of_ns += duration_ns;
        }
        if let Some((storage, read)) = storage {
            self.storage = (self.storage.0 + storage, self.storage.1 + read);
        }
        self.flags.add(&window.flags);
    }

    fn figures(&self, duration_ns: u64, windows: u64) -> ClassFigures {
        let mut figures = self.figures.clone();
        let [service, response, write, flush] = &self.latencies;
        figures.not_held = not_held(figures.intended, figures.missed);
        figures.mb_per_s = mb_per_s(figures.bytes, duration_ns);
        figures.iops = per_s(figures.ios, duration_ns);
        figures.latencies = Latencies {
            service_ns: service.summary(),
            response_ns: response.summary().filter(|_| !figures.not_held),
            write_ns: write.summary(),
            flush_ns: flush.summary(),
        };
        figures.busiest_worker =
            (self.busiest_of_ns > 0).then(|| self.busiest_ns / self.busiest_of_ns as f64);
        figures.cache_share = cache_share(self.storage.0, self.storage.1);
        figures.flags = self.flags.over(windows);
        figures.flags.retain(|flag| !flag.is(FlagKind::Cache));
        figures.flags.extend(figures.cache_share.and_then(flags::cache));
        figures
    }
}

impl LatencySum {
    fn add(&mut self, delta: &LatencyDelta) {
        if delta.histogram.is_empty() && delta.max_ns == 0 {
            return;
        }
        let sum = self.0.get_or_insert_with(LatencyDelta::default);
        // Both have the same bounds, so nothing can be out of range.
        let _ = sum.histogram.add(&delta.histogram);
        sum.max_ns = sum.max_ns.max(delta.max_ns);
    }

    fn summary(&self) -> Option<crate::meter::window::Latency> {
        self.0.as_ref().and_then(summarize)
    }
}

impl FlagCounts {
    fn add(&mut self, flags: &[Flag]) {
        for flag in flags {
            let entry = self.0.entry(stem(&flag.text).to_owned()).or_insert_with(|| (0, flag.clone()));
            entry.0 += 1;
            entry.1 = flag.clone();
        }
    }

    /// Flags of at least a tenth of the windows, and those that mark the run with a single window.
    fn over(&self, windows: u64) -> Vec<Flag> {
        let often = |count: u64| count * FLAG_WINDOWS_ONE_IN >= windows;
        let counts = |(count, flag): &&(u64, Flag)| often(*count) || marks_run(flag);
        self.0.values().filter(counts).map(|(_, flag)| flag.clone()).collect()
    }
}

impl CpuSums {
    fn add(&mut self, window: &Window) {
        // By ticks: adding up each window's larger estimate would give too much.
        let cpu = &by_ticks(&window.cpu, window.duration_ns);
        let sum = &mut self.weighted;
        let ns = window.duration_ns as f64;
        sum.user += cpu.user * ns;
        sum.system += cpu.system * ns;
        sum.interrupt += cpu.interrupt * ns;
        sum.steal += cpu.steal * ns;
        sum.busy += cpu.busy * ns;
        sum.own_cores += cpu.own_cores * ns;
        sum.overhead_cores += cpu.overhead_cores * ns;
        if let Some(others) = cpu.others_cores {
            self.others_ns += ns;
            let add = |sum: &mut Option<f64>, cores: f64| *sum = Some(sum.unwrap_or(0.0) + cores * ns);
            add(&mut sum.others_cores, others);
            add(&mut sum.unattributed_cores, cpu.unattributed_cores.unwrap_or(0.0));
            if let Some(kernel) = cpu.kernel_cores {
                add(&mut sum.kernel_cores, kernel);
            }
        }
        if cpu.cycles > 0.0 {
            sum.cycles += cpu.cycles;
            self.bytes += window.total.bytes;
            self.ios += window.classes.iter().map(|class| class.ios).sum::<u64>();
            self.estimated |= cpu.cycles_source == CyclesSource::Estimate;
        }
        if let Some(hz) = cpu.frequency_hz {
            sum.frequency_hz = Some(sum.frequency_hz.unwrap_or(0.0) + hz * ns);
            self.frequency_ns += window.duration_ns;
            sum.frequency_source.clone_from(&cpu.frequency_source);
        }
        self.last = cpu.clone();
    }

    fn figures(&self, duration_ns: u64) -> CpuFigures {
        let (sum, ns) = (&self.weighted, duration_ns.max(1) as f64);
        let counted = sum.cycles > 0.0 && !self.estimated;
        let own_cores = sum.own_cores / ns;
        let known = |cores_ns: Option<f64>| cores_ns.map(|cores_ns| cores_ns / self.others_ns.max(1.0));
        let figures = CpuFigures {
            cpus: self.last.cpus,
            user: sum.user / ns,
            system: sum.system / ns,
            interrupt: sum.interrupt / ns,
            steal: sum.steal / ns,
            busy: sum.busy / ns,
            own_cores,
            overhead_cores: sum.overhead_cores / ns,
            kernel_cores: known(sum.kernel_cores),
            others_cores: known(sum.others_cores),
            unattributed_cores: known(sum.unattributed_cores),
            cycles: sum.cycles,
            cycles_source: if counted { CyclesSource::Pmu } else { CyclesSource::Estimate },
            frequency_hz: sum.frequency_hz.map(|hz_ns| hz_ns / self.frequency_ns.max(1) as f64),
            frequency_source: sum.frequency_source.clone(),
            // Over a whole run, ticks are fine enough.
            coarse: is_coarse(duration_ns),
        };
        at_least_own(figures, own_cores, duration_ns)
    }
}

fn add_members(sums: &mut Vec<MemberFigures>, members: &[MemberFigures]) {
    if sums.is_empty() {
        sums.extend_from_slice(members);
        return;
    }
    let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
    for (sum, member) in sums.iter_mut().zip(members) {
        sum.read_bytes += member.read_bytes;
        sum.written_bytes += member.written_bytes;
        sum.block_read_bytes = both(sum.block_read_bytes, member.block_read_bytes);
        sum.block_written_bytes = both(sum.block_written_bytes, member.block_written_bytes);
        let temperatures = [sum.temperature_c, member.temperature_c].into_iter().flatten();
        sum.temperature_c = temperatures.reduce(f64::max);
        sum.throttling = sum.throttling.max(member.throttling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::flags::of_others;
    use crate::units::SECOND_NS;

    #[test]
    fn a_run_has_the_flag_of_full_processors_once_if_a_tenth_of_its_windows_has() {
        let cpu = |busy| CpuFigures { cpus: 2, busy, others_cores: Some(1.2), ..CpuFigures::default() };
        for (full, windows, flagged) in [(1, 20, 0), (2, 20, 1), (20, 20, 1)] {
            let mut sums = Sums::default();
            for index in 0..windows {
                let cpu = cpu(if index < full { 1.0 } else { 0.8 });
                let flags = of_others(&cpu).collect();
                sums.add(&Window { duration_ns: SECOND_NS, cpu, flags, ..Window::default() }, [None; 4]);
            }
            let flags = sums.totals(None).flags;
            let of = |kind| flags.iter().filter(|flag| flag.is(kind)).count();
            assert_eq!(
                (of(FlagKind::ProcessorsFull), of(FlagKind::Others)),
                (flagged, 1),
                "{full} of {windows}"
            );
        }
    }
}
