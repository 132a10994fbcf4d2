//! This process's CPU time, and the whole system's busy cores and cycles, compared with other programs'
//! figures while the same load runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::bed::{Bed, Onlooker, Ran, with};
use super::checks::{Check, CheckOutcome};
use super::programs::{self, EndedProgram, RunningProgram, words};
use crate::error::{Error, Result};
use crate::meter::window::{CpuFigures, CyclesSource};
use crate::runs::session::{Event, Session};
use crate::units::format_duration;

const CHECKS: [Check; 3] = [Check::OwnCpu, Check::BusyCores, Check::Cycles];
/// If this process has to wait for a CPU, figures from slightly different times differ. A wrong figure always
/// does, so of several runs the closest one counts.
const RUNS: usize = 3;
/// The shortest windows for which the kernel's ticks of 10 ms are fine enough.
const WINDOW: Duration = Duration::from_millis(500);
/// Time that other programs may take to start and to end.
const BEGIN_AND_END: Duration = Duration::from_secs(10);
/// The unit of the times in `stat`, on every Linux that Rust runs on.
const TICKS_PER_S: f64 = 100.0;
const TASK_CLOCK: &str = "task-clock";
const CYCLES: &str = "cycles";

/// The three checks, and the run that they observed.
pub(super) fn check(bed: &mut Bed) -> Result<(Vec<CheckOutcome>, Ran)> {
    // One class keeps a core busy without any device, so that there is CPU time to compare even on a slow device.
    let window = format_duration(WINDOW);
    let settings = with(
        &bed.settings,
        &[
            ("scan.enabled", "true"),
            ("scan.interface", "null"),
            ("point.enabled", "true"),
            ("point.depth", "4"),
            ("run.window", &window),
        ],
    )?;
    let time = bed.amounts.cpu;
    let mut found: Option<(Vec<CheckOutcome>, Ran)> = None;
    for _ in 0..RUNS {
        let mut beside = Beside::new(time, bed.interrupts);
        let ran = bed.run(&settings, time + BEGIN_AND_END, &mut beside)?;
        let outcomes = beside.outcomes()?;
        let outcomes = match found {
            Some((known, _)) => CheckOutcome::closest(known, outcomes),
            None => outcomes,
        };
        let fails = outcomes.iter().any(CheckOutcome::is_failure);
        found = Some((outcomes, ran));
        if !fails {
            break;
        }
    }
    found.ok_or_else(|| Error::failed("nothing was run"))
}

/// Readings of other programs while the windows pass.
struct Beside<'a> {
    time: Duration,
    interrupts: &'a dyn Fn() -> usize,
    cat: Option<PathBuf>,
    perf: Option<PathBuf>,
    /// At the end of the first window, and after `perf` has ended.
    begins: Option<Reading>,
    ends: Option<Reading>,
    own: Option<RunningProgram>,
    all: Option<RunningProgram>,
    timeline: Timeline,
}

/// A simultaneous reading.
struct Reading {
    at: SystemTime,
    /// `/proc/stat`.
    stat: Option<Ticks>,
    /// Ticks that the kernel has charged to this process, in `/proc/PID/stat`.
    own_ticks: Option<u64>,
    /// Microseconds of CPU time that this process's own cgroup has used.
    cgroup_us: Option<u64>,
}

impl<'a> Beside<'a> {
    fn new(time: Duration, interrupts: &'a dyn Fn() -> usize) -> Self {
        let (cat, perf) = (programs::find("cat"), programs::find("perf"));
        let (begins, ends, own, all) = (None, None, None, None);
        Self { time, interrupts, cat, perf, begins, ends, own, all, timeline: Timeline::default() }
    }

    fn read(&self) -> Reading {
        let own = format!("/proc/{}/stat", std::process::id());
        let cat = |cat: &PathBuf| {
            programs::run(cat, &words(["/proc/stat", &own]), Duration::ZERO, self.interrupts).ok()
        };
        let began = SystemTime::now();
        let read = self.cat.as_ref().and_then(cat);
        // The reading happened at some time in between.
        let at = began + began.elapsed().unwrap_or_default() / 2;
        let stat = read.as_ref().and_then(|ended| Ticks::parse(&ended.out));
        let own_ticks = read.as_ref().and_then(|ended| own_ticks(&ended.out, std::process::id()));
        Reading { at, stat, own_ticks, cgroup_us: own_cgroup_us(Path::new("/"), std::process::id()) }
    }

    /// Starts `perf stat` of an event, while a shell runs that prints when it begins and ends.
    fn count(&self, event: &str, of: &[String]) -> Option<RunningProgram> {
        let counted = [words(["stat", "-x,", "-e", event]), of.to_vec()].concat();
        let script = format!("date +%s.%N; sleep {}; date +%s.%N", self.time.as_secs_f64());
        let arguments = [counted, words(["--", "sh", "-c"]), vec![script]].concat();
        programs::start(self.perf.as_ref()?, &arguments, self.time).ok()
    }

    fn outcomes(self) -> Result<Vec<CheckOutcome>> {
        let interrupts = self.interrupts;
        let end =
            |running: Option<RunningProgram>| running.map(|running| running.wait(interrupts)).transpose();
        let (own, all) = (end(self.own)?, end(self.all)?);
        let (Some(begins), Some(ends)) = (self.begins, self.ends) else {
            return Ok(CheckOutcome::none(&CHECKS, "the run ended early"));
        };
        let line = &self.timeline;
        let span = (begins.at, ends.at);
        let seconds = ends.at.duration_since(begins.at).unwrap_or_default().as_secs_f64();
        let ours = line.mean(span, |cpu| cpu.own_cores);
        let charged = begins.own_ticks.zip(ends.own_ticks).and_then(|(begin, end)| end.checked_sub(begin));
        let charged = charged.map(|ticks| ("/proc/PID/stat, read by cat", ticks as f64 / TICKS_PER_S));
        let used = begins.cgroup_us.zip(ends.cgroup_us);
        let used = used.map(|(begin, end)| ("its cgroup", end.saturating_sub(begin) as f64 / 1e6));
        let theirs = charged.or(used).map(|(beside, cpu_s)| (beside, cpu_s / seconds));
        let ticks = begins.stat.zip(ends.stat).and_then(|(begin, end)| end.busy_since(begin));
        let is_counted = line.0.iter().all(|(cpu, ..)| cpu.cycles_source == CyclesSource::Pmu);
        Ok(vec![
            own_cpu(ours, theirs, line, own.as_ref()),
            busy_cores(line.mean(span, CpuFigures::cores_used), ticks),
            counted_cycles(is_counted.then_some(line), all.as_ref()),
        ])
    }
}

impl Onlooker for Beside<'_> {
    fn event(&mut self, _: &mut Session, event: &Event) -> Result<bool> {
        let Event::Window(window, _) = event else { return Ok(true) };
        let now = SystemTime::now();
        if self.begins.is_none() {
            self.begins = Some(self.read());
            self.own = self.count(TASK_CLOCK, &["-p".to_owned(), std::process::id().to_string()]);
            self.all = self.count(CYCLES, &["-a".to_owned()]);
            return Ok(true);
        }
        self.timeline.0.push((window.cpu.clone(), now, Duration::from_nanos(window.duration_ns)));
        if self.ends.is_some() {
            return Ok(false);
        }
        let begun = self.begins.as_ref().map_or(now, |begins| begins.at);
        let is_over =
            |running: &mut Option<RunningProgram>| running.as_mut().is_none_or(RunningProgram::is_over);
        if now > begun + self.time && is_over(&mut self.own) && is_over(&mut self.all) {
            // The window in progress still counts then.
            self.ends = Some(self.read());
        }
        Ok(true)
    }
}

/// Windows: their figures, end times and lengths.
#[derive(Default)]
struct Timeline(Vec<(CpuFigures, SystemTime, Duration)>);

impl Timeline {
    /// A figure's mean between two times, each window weighted by its overlap with them; NaN if no window overlaps.
    fn mean(&self, (from, to): (SystemTime, SystemTime), of: impl Fn(&CpuFigures) -> f64) -> f64 {
        let (mut sum, mut all_s) = (0.0, 0.0);
        for (cpu, end, length) in &self.0 {
            let begin = *end - *length;
            let common = to.min(*end).duration_since(from.max(begin)).unwrap_or_default().as_secs_f64();
            sum += of(cpu) * common;
            all_s += common;
        }
        sum / all_s
    }
}

/// The count of `perf`, and its start and end.
struct Counted {
    count: f64,
    seconds: f64,
    span: (SystemTime, SystemTime),
}

impl Counted {
    /// From its output; none if the event was not counted, or only in user space.
    fn of(ended: &EndedProgram, event: &str) -> Option<Self> {
        let count = perf_count(&ended.err, event)?;
        let time = |text: &str| {
            let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite())?;
            Some(SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(seconds).ok()?)
        };
        let mut times = ended.out.split_whitespace().map_while(time);
        let span = (times.next()?, times.next()?);
        let seconds = span.1.duration_since(span.0).ok()?.as_secs_f64();
        Some(Self { count, seconds, span })
    }
}

/// Judged by the time that the kernel has charged to the process. `perf`'s clock is shown next to it: it counts a
/// thread only from the moment it is attached to it, and a few percent less in some virtual machines.
fn own_cpu(
    ours: f64,
    theirs: Option<(&'static str, f64)>,
    line: &Timeline,
    perf: Option<&EndedProgram>,
) -> CheckOutcome {
    let check = Check::OwnCpu;
    let Some((beside, theirs)) = theirs else {
        let why = "no other program can read /proc/PID/stat, and this process has no cgroup of its own (systemd-run --scope)";
        return CheckOutcome::not_checkable(check, why);
    };
    let outcome = CheckOutcome::of(check, beside, ours, theirs);
    let clock = perf.and_then(|ended| Counted::of(ended, TASK_CLOCK));
    let Some(clock) = clock.filter(|_| outcome.ours.is_some()) else { return outcome };
    let (counted, then) = (clock.count / 1e3 / clock.seconds, line.mean(clock.span, |cpu| cpu.own_cores));
    outcome.because(format!("perf stat counted {counted:.3} cores within that time, stacktune {then:.3}"))
}

/// User and system time of a process, from its `stat` line: `77 (name) S 1 …`, where the name may contain anything.
fn own_ticks(text: &str, pid: u32) -> Option<u64> {
    let stat = &text[text.rfind(&format!("\n{pid} ("))?..];
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // The state is the third field; these are the fourteenth and fifteenth.
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ticks(14)? + ticks(15)?)
}

fn busy_cores(ours: f64, ticks: Option<f64>) -> CheckOutcome {
    match ticks {
        Some(theirs) => CheckOutcome::of(Check::BusyCores, "/proc/stat, read by cat", ours, theirs),
        None => CheckOutcome::not_checkable(Check::BusyCores, "no other program can read /proc/stat"),
    }
}

fn counted_cycles(ours: Option<&Timeline>, perf: Option<&EndedProgram>) -> CheckOutcome {
    let check = Check::Cycles;
    let Some(ours) = ours else {
        return CheckOutcome::not_checkable(check, "no performance-monitoring unit can be used here");
    };
    let Some(perf) = perf else { return CheckOutcome::not_checkable(check, "perf is not installed") };
    let Some(counted) = Counted::of(perf, CYCLES) else {
        return CheckOutcome::not_checkable(check, "perf may not count the whole system's cycles here");
    };
    let rates = ours.0.iter().map(|(cpu, end, length)| {
        (CpuFigures { cycles: cpu.cycles / length.as_secs_f64(), ..cpu.clone() }, *end, *length)
    });
    let ours = Timeline(rates.collect()).mean(counted.span, |cpu| cpu.cycles);
    CheckOutcome::of(check, "perf stat", ours, counted.count / counted.seconds)
}

/// An event's count in the output of `perf stat -x,`; none if it was not counted, or only in user space. A
/// task clock counts time in the kernel all the same.
fn perf_count(text: &str, event: &str) -> Option<f64> {
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let is_it = |name: &str| name == event || (event == TASK_CLOCK && name.strip_suffix(":u") == Some(event));
    rows.filter(|row| row.get(2).is_some_and(|name| is_it(name))).find_map(|row| row[0].parse().ok())
}

/// Ticks of all CPUs since the system's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
    cpus: u64,
}

impl Ticks {
    /// From `/proc/stat`.
    fn parse(text: &str) -> Option<Self> {
        let row = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // User, nice, system, idle, I/O wait, both interrupts, steal; guest times are part of user and nice.
        let ticks: Vec<u64> = row.split_whitespace().take(8).filter_map(|ticks| ticks.parse().ok()).collect();
        let [_, _, _, idle, waiting, ..] = ticks[..] else { return None };
        let is_cpu = |line: &&str| {
            line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let cpus = text.lines().filter(is_cpu).count() as u64;
        Some(Self { all: ticks.iter().sum(), idle: idle + waiting, cpus })
    }

    /// Cores that were busy since an earlier reading.
    fn busy_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        // The kernel's I/O wait count may go backwards.
        let idle = self.idle.saturating_sub(before.idle).min(all);
        Some((all - idle) as f64 / all as f64 * self.cpus as f64)
    }
}

/// CPU time of this process's cgroup, if no other process is in it (cgroup v2).
fn own_cgroup_us(root: &Path, pid: u32) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = root.join("sys/fs/cgroup").join(path);
    let processes = fs::read_to_string(folder.join("cgroup.procs")).ok()?;
    if processes.split_whitespace().ne([pid.to_string().as_str()]) {
        return None;
    }
    let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::checks::CheckVerdict;
    use super::*;

    /// Output of `perf` and its shell: it counted from second 1000 to 1002.
    fn perf(event: &str) -> EndedProgram {
        let out = "1000.000000000\n1002.000000000\n".into();
        EndedProgram { well: true, out, err: format!("{event}\n") }
    }

    fn at(seconds: f64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds)
    }

    /// Windows of half a second from second 999 to 1003 with these cores, and others before and after.
    fn line(own_cores: f64) -> Timeline {
        let cpu =
            |own_cores: f64| CpuFigures { own_cores, cycles: own_cores * 0.5e9, ..CpuFigures::default() };
        let half = Duration::from_millis(500);
        let inside = |n: u32| (1000.0..=1002.0).contains(&(999.25 + f64::from(n) / 2.0));
        let window =
            |n: u32| (cpu(if inside(n) { own_cores } else { 7.0 }), at(999.5 + f64::from(n) / 2.0), half);
        Timeline((0..8).map(window).collect())
    }

    #[test]
    fn windows_count_for_as_long_as_they_lie_in_the_time() {
        let line = line(1.0);
        let own = |from, to| line.mean((at(from), at(to)), |cpu| cpu.own_cores);
        assert!((own(1000.0, 1002.0) - 1.0).abs() < 1e-6);
        assert!((own(1001.5, 1002.5) - 4.0).abs() < 1e-6);
        assert!((own(999.75, 1000.75) - 2.5).abs() < 1e-6);
        assert!(own(2000.0, 2001.0).is_nan() && own(1001.0, 1000.0).is_nan());
    }

    #[test]
    fn own_cpu_is_judged_by_what_the_kernel_charges_and_perf_stands_beside() {
        const STAT: &str = "/proc/PID/stat, read by cat";
        let own = |ours: f64, theirs: f64, perf: Option<&EndedProgram>| {
            own_cpu(ours, Some((STAT, theirs)), &line(ours), perf)
        };
        let clock = perf("2474.50,msec,task-clock,2474501020,100.00,1.2,CPUs utilized");
        let outcome = own(1.28, 1.287, Some(&clock));
        assert_eq!((outcome.verdict, outcome.theirs), (CheckVerdict::Pass, Some(1.287)));
        let why = outcome.why.unwrap();
        assert_eq!(why, "perf stat counted 1.237 cores within that time, stacktune 1.280");
        assert_eq!(own(1.237, 1.32, Some(&clock)).verdict, CheckVerdict::Fail, "however close to perf's");
        let of_user = perf("2474.50,msec,task-clock:u,2474501020,100.00,,");
        assert!(own(1.28, 1.287, Some(&of_user)).why.is_some());
        let undated = EndedProgram { out: "1000.0\n%N\n".into(), ..clock };
        for refused in
            [&undated, &perf("<not counted>,msec,task-clock,0,100.00,,"), &perf("1,msec,cpu-clock,1,1,,")]
        {
            let outcome = own(1.28, 1.287, Some(refused));
            assert_eq!((outcome.verdict, outcome.why), (CheckVerdict::Pass, None), "{refused:?}");
        }
        assert_eq!(own(1.28, 1.287, None).verdict, CheckVerdict::Pass);
        let none = own_cpu(1.28, None, &line(1.28), Some(&undated));
        assert_eq!(none.verdict, CheckVerdict::NotCheckable);
    }

    #[test]
    fn what_the_kernel_charges_is_found_behind_any_name() {
        let stat = |pid: u32, name: &str| {
            format!("{pid} ({name}) S 1 7 7 0 -1 4194560 9 9 9 9 120 34 5 6 20 0 3 0 777 1 1\n")
        };
        let read = |own: &str| format!("cpu  1 2 3 4 5 6 7 8 0 0\nintr 77 (1) 2\n{own}");
        assert_eq!(own_ticks(&read(&stat(77, "stacktune")), 77), Some(154));
        assert_eq!(own_ticks(&read(&stat(77, "a) S (b")), 77), Some(154));
        assert_eq!(own_ticks(&read(&stat(78, "stacktune")), 77), None);
        assert_eq!(own_ticks(&read("77 (stacktune) S 1\n"), 77), None);
        let of_this = fs::read_to_string(format!("/proc/{}/stat", std::process::id())).unwrap();
        assert!(own_ticks(&read(&of_this), std::process::id()).is_some(), "{of_this}");
    }

    #[test]
    fn cycles_are_judged_where_both_are_counted() {
        let counted = perf("6000000000,,cycles,4000000000,100.00,,");
        let cycles = |ours: Option<f64>, perf: Option<&EndedProgram>| {
            counted_cycles(ours.map(line).as_ref(), perf).verdict
        };
        assert_eq!(cycles(Some(3.1), Some(&counted)), CheckVerdict::Pass);
        assert_eq!(cycles(Some(3.2), Some(&counted)), CheckVerdict::Fail);
        assert_eq!(cycles(None, Some(&counted)), CheckVerdict::NotCheckable);
        assert_eq!(cycles(Some(3.1), None), CheckVerdict::NotCheckable);
        assert_eq!(cycles(Some(3.1), Some(&perf("6000000000,,cycles:u,1,1,,"))), CheckVerdict::NotCheckable);
        assert_eq!(
            cycles(Some(3.1), Some(&perf("<not supported>,,cycles,0,,,"))),
            CheckVerdict::NotCheckable
        );
    }

    #[test]
    fn busy_cores_are_the_ticks_that_were_not_idle() {
        let stat = |user: u64, idle: u64| {
            let cpus = "cpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\n";
            Ticks::parse(&format!("cpu  {user} 0 50 {idle} 10 5 5 30 999 0\n{cpus}intr 1 2\n")).unwrap()
        };
        let (before, after) = (stat(100, 1000), stat(250, 1050));
        assert_eq!(before, Ticks { all: 1200, idle: 1010, cpus: 2 });
        assert_eq!(after.busy_since(before), Some(1.5));
        assert_eq!(before.busy_since(before), None);
        assert_eq!(Ticks::parse("cpu  1 2\n"), None);
        assert_eq!(busy_cores(1.52, Some(1.5)).verdict, CheckVerdict::Pass);
        assert_eq!(busy_cores(1.6, Some(1.5)).verdict, CheckVerdict::Fail);
        assert_eq!(busy_cores(1.5, None).verdict, CheckVerdict::NotCheckable);
    }

    #[test]
    fn a_cgroup_counts_only_if_no_other_process_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/fs/cgroup/run.scope");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), "1:cpu:/\n0::/run.scope\n").unwrap();
        fs::write(folder.join("cpu.stat"), "usage_usec 2500\nuser_usec 2000\n").unwrap();
        fs::write(folder.join("cgroup.procs"), "77\n").unwrap();
        assert_eq!(own_cgroup_us(root.path(), 77), Some(2500));
        assert_eq!(own_cgroup_us(root.path(), 78), None);
        fs::write(folder.join("cgroup.procs"), "77\n90\n").unwrap();
        assert_eq!(own_cgroup_us(root.path(), 77), None);
    }
}
