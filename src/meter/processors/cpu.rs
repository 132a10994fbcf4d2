//! The processor over a window: the whole system's shares and cycles.
//!
//! Shares come from `/proc/stat`, whose user time already includes that of guests. Cycles come from the
//! performance-monitoring unit; if it can't be opened or did not count, they are estimated as busy time ×
//! clock frequency, without what the hypervisor took, as none of our cycles ran then. Parsed by hand, because
//! sysinfo gives a single share per CPU, and its parts are needed here.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use super::frequency::FrequencyProbe;
use super::pmu::{CycleCounter, Pmu};
use crate::meter::window::{CpuFigures, CyclesSource};

/// A shorter window has too few of the kernel's 10 ms ticks.
const COARSE_BELOW_NS: u64 = 500_000_000;

/// Ticks may fall short of our own threads' time by this share before they count as having missed some.
const MISSED: f64 = 0.1;

/// Whether the kernel's clock is too coarse for shares over so short a time.
pub(in crate::meter) fn is_coarse(duration_ns: u64) -> bool {
    duration_ns < COARSE_BELOW_NS
}

/// Steal over at least the last half second: in shorter windows, a single tick looks like a lot.
#[derive(Debug, Default)]
pub(in crate::meter) struct Steal(VecDeque<(u64, f64)>);

impl Steal {
    /// The share up to the end of a window of this length and share; none while all windows together are
    /// too short.
    pub fn window(&mut self, duration_ns: u64, share: f64) -> Option<f64> {
        self.0.push_back((duration_ns, share));
        let mut all_ns: u64 = self.0.iter().map(|(ns, _)| ns).sum();
        while let Some((first_ns, _)) = self.0.front()
            && !is_coarse(all_ns - first_ns)
        {
            all_ns -= first_ns;
            self.0.pop_front();
        }
        let stolen_ns: f64 = self.0.iter().map(|(ns, share)| *ns as f64 * share).sum();
        (!is_coarse(all_ns)).then(|| stolen_ns / all_ns as f64)
    }
}

/// Reads the whole system's use of the processor; or nothing, for simulated runs.
pub struct CpuProbe(Option<System>);

struct System {
    stat: PathBuf,
    counter: Option<Box<dyn CycleCounter>>,
    frequency: FrequencyProbe,
    last: Stat,
}

impl CpuProbe {
    /// For this system.
    pub fn open() -> Self {
        let root = Path::new("/");
        let cpus: Vec<u32> = Stat::read(&root.join("proc/stat")).cpus.into_keys().collect();
        let pmu = Pmu::open(&cpus).ok().filter(|_| !cpus.is_empty());
        Self::under(root, pmu.map(|pmu| Box::new(pmu) as Box<dyn CycleCounter>))
    }

    /// For the system under a root, with that cycle counter or none.
    pub fn under(root: &Path, counter: Option<Box<dyn CycleCounter>>) -> Self {
        let stat = root.join("proc/stat");
        let last = Stat::read(&stat);
        Self(Some(System { stat, counter, frequency: FrequencyProbe::new(root), last }))
    }

    /// Reads nothing: all figures stay zero, as simulated runs must repeat exactly.
    pub fn none() -> Self {
        Self(None)
    }

    /// The figures since the last call. stacktune's own cores come from [`super::tasks`].
    pub fn window(&mut self, now_ns: u64, duration_ns: u64) -> CpuFigures {
        self.0.as_mut().map(|system| system.window(now_ns, duration_ns)).unwrap_or_default()
    }
}

impl System {
    fn window(&mut self, now_ns: u64, duration_ns: u64) -> CpuFigures {
        let now = Stat::read(&self.stat);
        if now.cpus.is_empty() {
            // It can't be read now: the next window starts from the last reading.
            return CpuFigures::default();
        }
        let last = std::mem::replace(&mut self.last, now);
        let now = &self.last;
        let ticks = now.all.since(&last.all);
        let all = ticks.all().max(1) as f64;
        let busy_by_cpu: BTreeMap<u32, u64> = now
            .cpus
            .iter()
            .map(|(cpu, ticks)| (*cpu, last.cpus.get(cpu).map_or(0, |last| ticks.since(last).ran())))
            .collect();
        let mut figures = CpuFigures {
            cpus: now.cpus.len() as u32,
            user: ticks.user as f64 / all,
            system: ticks.system as f64 / all,
            interrupt: ticks.interrupt as f64 / all,
            steal: ticks.steal as f64 / all,
            busy: (ticks.ran() + ticks.steal) as f64 / all,
            coarse: is_coarse(duration_ns),
            ..CpuFigures::default()
        };
        let counted = self.counter.as_mut().and_then(|counter| {
            let cycles = counter.cycles();
            cycles.filter(|_| now.cpus.keys().eq(counter.cpus()))
        });
        if let Some(cycles) = counted {
            figures.cycles = cycles;
            figures.cycles_source = CyclesSource::Pmu;
        } else if let Some(frequencies) = self.frequency.read(now_ns, now.cpus.keys().copied())
            && let Some(hz) = frequencies.mean_hz(&busy_by_cpu)
        {
            let busy_s = ticks.ran() as f64 / all * f64::from(figures.cpus) * duration_ns as f64 / 1e9;
            figures.cycles = busy_s * hz;
            figures.frequency_hz = Some(hz);
            figures.frequency_source = Some(frequencies.source.to_owned());
        }
        figures
    }
}

/// Raises the figures to this process's own CPU time, by its threads' clocks. The system can't have been less
/// busy than that: the kernel's ticks miss threads that run between them and, in a machine with an emulated
/// timer, some that poll. If they miss over a tenth of it, which is more than their coarseness explains,
/// estimates are raised to it; counted cycles stay as they are.
pub(in crate::meter) fn at_least_own(figures: CpuFigures, own_cores: f64, duration_ns: u64) -> CpuFigures {
    let figures = CpuFigures { own_cores, ..figures };
    let cpus = f64::from(figures.cpus);
    // A thread's clock may include what the hypervisor took.
    let own_cores = own_cores.min((1.0 - figures.steal) * cpus);
    let missed_cores = own_cores - ran(&figures) * cpus;
    if figures.coarse || missed_cores <= MISSED * own_cores {
        return figures;
    }
    let busy = figures.busy + missed_cores / cpus;
    let estimate_hz = figures.frequency_hz.filter(|_| figures.cycles_source == CyclesSource::Estimate);
    let cycles = figures.cycles + estimate_hz.unwrap_or(0.0) * missed_cores * duration_ns as f64 / 1e9;
    CpuFigures { busy, cycles, ..figures }
}

/// A window's figures by the kernel's ticks alone, which add up over a run.
pub(in crate::meter) fn by_ticks(figures: &CpuFigures, duration_ns: u64) -> CpuFigures {
    let ran = ran(figures);
    let busy = ran + figures.steal;
    let estimate_hz = figures.frequency_hz.filter(|_| figures.cycles_source == CyclesSource::Estimate);
    let busy_s = ran * f64::from(figures.cpus) * duration_ns as f64 / 1e9;
    let cycles = estimate_hz.map_or(figures.cycles, |hz| busy_s * hz);
    CpuFigures { busy, cycles, ..figures.clone() }
}

/// The share of the time in which something ran, by the kernel's ticks.
fn ran(figures: &CpuFigures) -> f64 {
    figures.user + figures.system + figures.interrupt
}

/// Ticks since the system's start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ticks {
    user: u64,
    system: u64,
    interrupt: u64,
    steal: u64,
    idle: u64,
}

impl Ticks {
    fn parse<'a>(fields: impl Iterator<Item = &'a str>) -> Self {
        let mut values = [0; 8]; // guest and guest nice follow, which user and nice already include
        for (value, field) in values.iter_mut().zip(fields) {
            *value = field.parse().unwrap_or(0);
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = values;
        Self { user: user + nice, system, interrupt: irq + softirq, steal, idle: idle + iowait }
    }

    /// The difference; a small step back of the kernel's idle and I/O-wait times counts as zero.
    fn since(&self, last: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(last.user),
            system: self.system.saturating_sub(last.system),
            interrupt: self.interrupt.saturating_sub(last.interrupt),
            steal: self.steal.saturating_sub(last.steal),
            idle: self.idle.saturating_sub(last.idle),
        }
    }

    /// Ticks in which a CPU ran something.
    fn ran(&self) -> u64 {
        self.user + self.system + self.interrupt
    }

    fn all(&self) -> u64 {
        self.ran() + self.steal + self.idle
    }
}

/// `/proc/stat`: all CPUs together, and each online CPU.
#[derive(Debug, Clone, Default)]
struct Stat {
    all: Ticks,
    cpus: BTreeMap<u32, Ticks>,
}

impl Stat {
    /// Zeros if it can't be read.
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut stat = Self::default();
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            match fields.next().and_then(|name| name.strip_prefix("cpu")) {
                Some("") => stat.all = Ticks::parse(fields),
                Some(cpu) => {
                    if let Ok(cpu) = cpu.parse() {
                        stat.cpus.insert(cpu, Ticks::parse(fields));
                    }
                }
                None => {}
            }
        }
        stat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    const SECOND: u64 = 1_000_000_000;

    struct Scripted(Vec<u32>, Vec<Option<f64>>);

    impl CycleCounter for Scripted {
        fn cpus(&self) -> &[u32] {
            &self.0
        }
        fn cycles(&mut self) -> Option<f64> {
            self.1.remove(0)
        }
    }

    /// A root with two CPUs: the fields of `cpu0` and `cpu1`.
    fn write(root: &Path, cpu0: [u64; 10], cpu1: [u64; 10]) {
        fs::create_dir_all(root.join("proc")).unwrap();
        let line =
            |name: &str, fields: [u64; 10]| format!("{name}  {}\n", fields.map(|n| n.to_string()).join(" "));
        let sum = std::array::from_fn(|at| cpu0[at] + cpu1[at]);
        let text = line("cpu", sum) + &line("cpu0", cpu0) + &line("cpu1", cpu1) + "intr 5 0\nctxt 9\n";
        fs::write(root.join("proc/stat"), text).unwrap();
        let cpuinfo = "processor : 0\ncpu MHz : 3000\n\nprocessor : 1\ncpu MHz : 1000\n";
        fs::write(root.join("proc/cpuinfo"), cpuinfo).unwrap();
    }

    const START: [u64; 10] = [100, 0, 50, 1000, 10, 1, 2, 0, 90, 0];
    // 100 ticks: 30 user (20 of them a guest's), 10 nice, 20 system, 20 idle, 5 waiting, 2 + 3 interrupts, 10 stolen.
    const BUSY: [u64; 10] = [130, 10, 70, 1020, 15, 3, 5, 10, 110, 0];
    const IDLE: [u64; 10] = [100, 0, 50, 1100, 10, 1, 2, 0, 90, 0];

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn an_estimate_is_at_least_the_own_threads_time() {
        let ticks = CpuFigures {
            cpus: 2,
            user: 0.2,
            system: 0.1,
            steal: 0.05,
            busy: 0.35,
            cycles: 6e8,
            frequency_hz: Some(1e9),
            ..CpuFigures::default()
        };
        let same = at_least_own(ticks.clone(), 0.5, SECOND);
        assert_eq!(same, CpuFigures { own_cores: 0.5, ..ticks.clone() });
        let raised = at_least_own(ticks.clone(), 1.4, SECOND);
        assert!(close(raised.busy, 0.75) && close(raised.cycles, 1.4e9), "{raised:?}");
        let ticks_cycles = ticks.cycles;
        let counted = CpuFigures { cycles_source: CyclesSource::Pmu, frequency_hz: None, ..ticks.clone() };
        assert!(close(at_least_own(counted, 1.4, SECOND).cycles, 6e8));
        assert!(close(by_ticks(&raised, SECOND).cycles, ticks_cycles));
        // Below that, ticks are merely coarse; and what the hypervisor took is not the threads' time.
        let little = at_least_own(ticks.clone(), 0.65, SECOND);
        assert_eq!((little.busy, little.cycles), (0.35, 6e8));
        let stolen = CpuFigures { user: 0.8, system: 0.0, steal: 0.2, busy: 1.0, ..ticks.clone() };
        assert!(close(at_least_own(stolen, 2.0, SECOND).busy, 1.0));
        let short = CpuFigures { coarse: true, ..ticks };
        assert!(close(at_least_own(short, 1.4, SECOND).cycles, 6e8));
        assert_eq!(at_least_own(CpuFigures::default(), 0.0, SECOND), CpuFigures::default());
    }

    #[test]
    fn one_tick_of_a_short_window_is_not_steal() {
        let mut steal = Steal::default();
        let short = |steal: &mut Steal, share| steal.window(100_000_000, share);
        assert_eq!(short(&mut steal, 0.05), None, "too little time yet");
        assert!((0..3).all(|_| short(&mut steal, 0.0).is_none()));
        let shares: Vec<_> = (0..6).map(|_| short(&mut steal, 0.0).unwrap()).collect();
        assert!((shares[0] - 0.01).abs() < 1e-9 && shares[1..] == [0.0; 5], "{shares:?}");
        let lasting = (0..5).map(|_| short(&mut steal, 0.1).unwrap()).last().unwrap();
        assert!((lasting - 0.1).abs() < 1e-9, "{lasting}");
        assert_eq!(steal.window(1_000_000_000, 0.04), Some(0.04), "a long window is enough");
    }

    #[test]
    fn shares_are_of_all_cpu_time_and_an_estimate_leaves_out_steal() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), START, START);
        let mut probe = CpuProbe::under(root.path(), None);
        write(root.path(), BUSY, IDLE);
        let cpu = probe.window(SECOND, SECOND);
        assert_eq!((cpu.cpus, cpu.coarse), (2, false));
        for (name, share, expected) in [
            ("user", cpu.user, 0.2),
            ("system", cpu.system, 0.1),
            ("interrupt", cpu.interrupt, 0.025),
            ("steal", cpu.steal, 0.05),
            ("busy", cpu.busy, 0.375),
            ("cycles", cpu.cycles, 0.65 * 3e9), // all of them on the faster CPU
        ] {
            assert!(close(share, expected), "{name}: {share} for {expected}");
        }
        assert_eq!((cpu.cycles_source, cpu.frequency_hz), (CyclesSource::Estimate, Some(3e9)));
    }

    #[test]
    fn counted_cycles_are_preferred_but_not_empty_or_partial_counts() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), START, START);
        let counter = Scripted(vec![0, 1], vec![Some(5e8), None]);
        let mut probe = CpuProbe::under(root.path(), Some(Box::new(counter)));
        write(root.path(), BUSY, IDLE);
        let cpu = probe.window(SECOND, SECOND);
        assert_eq!((cpu.cycles, cpu.cycles_source, cpu.frequency_hz), (5e8, CyclesSource::Pmu, None));
        assert_eq!(probe.window(2 * SECOND, SECOND).cycles_source, CyclesSource::Estimate);

        let counter = Scripted(vec![0], vec![Some(5e8)]); // a CPU has come online since
        let mut probe = CpuProbe::under(root.path(), Some(Box::new(counter)));
        assert_eq!(probe.window(SECOND, SECOND).cycles_source, CyclesSource::Estimate);
    }

    #[test]
    fn a_missing_system_and_a_simulated_one_are_all_zeros() {
        let root = tempfile::tempdir().unwrap();
        let cpu = CpuProbe::under(root.path(), None).window(SECOND, SECOND);
        assert_eq!((cpu.busy, cpu.cycles), (0.0, 0.0));
        assert_eq!(CpuProbe::none().window(SECOND, SECOND), CpuFigures::default());
    }

    #[test]
    fn a_failed_reading_does_not_spoil_the_next() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), START, START);
        let mut probe = CpuProbe::under(root.path(), None);
        fs::remove_file(root.path().join("proc/stat")).unwrap();
        assert_eq!(probe.window(SECOND, SECOND), CpuFigures::default());
        write(root.path(), BUSY, IDLE);
        assert!(close(probe.window(2 * SECOND, SECOND).busy, 0.375));
    }

    #[test]
    fn this_system_shows_a_busy_loop() {
        let mut probe = CpuProbe::open();
        let start = Instant::now();
        let mut sink = 0u64;
        while start.elapsed() < Duration::from_millis(60) {
            sink = std::hint::black_box(sink.wrapping_add(1));
        }
        let duration_ns = start.elapsed().as_nanos() as u64;
        let cpu = probe.window(duration_ns, duration_ns);
        assert!(cpu.cpus > 0 && cpu.coarse);
        // One CPU was busy, less what the 10 ms clock may miss.
        assert!(cpu.busy * f64::from(cpu.cpus) > 0.3, "{cpu:?}");
        assert!((0.0..=1.0).contains(&cpu.busy), "{cpu:?}");
        let parts = cpu.user + cpu.system + cpu.interrupt + cpu.steal;
        assert!(close(parts, cpu.busy), "{cpu:?}");
        if cpu.cycles > 0.0 {
            assert!((1e6..1e13).contains(&cpu.cycles), "{cpu:?}");
        }
    }
}
