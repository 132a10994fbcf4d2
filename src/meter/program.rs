//! What a program that is the load used and reports of itself: its cgroup's own counts, the devices below it, pressure,
//! and figures from its output. What the kernel does not count is unknown, never zero.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::block::Device;
use crate::host::{CgroupVersion, LevelDevice, Levels};

/// A program in a window, or over a run. Counts are those of its cgroup, with all that it started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProgramFigures {
    /// Processor time in ns (`cpu.stat`).
    pub cpu_ns: Option<u64>,
    /// Bytes of memory at the end, page cache included; over a run, the most of its windows.
    pub memory_bytes: Option<u64>,
    /// Bytes of these that are page cache, likewise.
    pub cache_bytes: Option<u64>,
    /// Pages that had left its page cache, and were read again (`workingset_refault_file`).
    pub refaults: Option<u64>,
    /// Processes that the kernel killed for memory.
    pub oom_kills: Option<u64>,
    /// Bytes read from the devices at the top, whoever asked for them.
    pub top_read_bytes: Option<u64>,
    /// Bytes written to the devices at the top.
    pub top_written_bytes: Option<u64>,
    /// Bytes read from the drives.
    pub drives_read_bytes: Option<u64>,
    /// Bytes written to the drives.
    pub drives_written_bytes: Option<u64>,
    /// Time in which some task of the host waited for a processor, in ns (`/proc/pressure/cpu`).
    pub cpu_some_ns: Option<u64>,
    /// Time in which some task waited for I/O, in ns.
    pub io_some_ns: Option<u64>,
    /// Time in which all tasks that could have run waited for I/O, in ns.
    pub io_full_ns: Option<u64>,
    /// Time in which some task waited for memory, in ns.
    pub memory_some_ns: Option<u64>,
    /// What the program reports of itself, by the names of `[command.metrics]`; those without a value are missing.
    pub metrics: BTreeMap<String, MetricFigures>,
}

/// A figure from a program's output.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricFigures {
    /// Values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their unit; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

impl MetricFigures {
    /// Of one value.
    pub fn of(value: f64, unit: &str) -> Self {
        Self { count: 1, mean: value, min: value, max: value, unit: unit.to_owned() }
    }

    /// Adds later ones.
    pub fn add(&mut self, later: &Self) {
        let count = self.count.saturating_add(later.count);
        if count > 0 {
            let weight = later.count as f64 / count as f64;
            self.mean += (later.mean - self.mean) * weight;
        }
        (self.count, self.min, self.max) = (count, self.min.min(later.min), self.max.max(later.max));
        self.unit.clone_from(&later.unit);
    }
}

impl ProgramFigures {
    /// Adds a later window.
    pub fn add(&mut self, later: &Self) {
        let most = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.max(b));
        self.memory_bytes = most(self.memory_bytes, later.memory_bytes);
        self.cache_bytes = most(self.cache_bytes, later.cache_bytes);
        for (sum, count) in self.counts_mut().into_iter().zip(later.counts()) {
            *sum = sum.zip(count).and_then(|(sum, count)| sum.checked_add(count));
        }
        for (name, later) in &later.metrics {
            match self.metrics.get_mut(name) {
                Some(sum) => sum.add(later),
                None => drop(self.metrics.insert(name.clone(), later.clone())),
            }
        }
    }

    /// What adds up over windows.
    fn counts(&self) -> [Option<u64>; 11] {
        [
            self.cpu_ns,
            self.refaults,
            self.oom_kills,
            self.top_read_bytes,
            self.top_written_bytes,
            self.drives_read_bytes,
            self.drives_written_bytes,
            self.cpu_some_ns,
            self.io_some_ns,
            self.io_full_ns,
            self.memory_some_ns,
        ]
    }

    fn counts_mut(&mut self) -> [&mut Option<u64>; 11] {
        [
            &mut self.cpu_ns,
            &mut self.refaults,
            &mut self.oom_kills,
            &mut self.top_read_bytes,
            &mut self.top_written_bytes,
            &mut self.drives_read_bytes,
            &mut self.drives_written_bytes,
            &mut self.cpu_some_ns,
            &mut self.io_some_ns,
            &mut self.io_full_ns,
            &mut self.memory_some_ns,
        ]
    }

    /// See [`super::window::Window::counts_sum`].
    pub(super) fn counts_sum(&self) -> u128 {
        let metrics = self.metrics.values().map(|metric| u128::from(metric.count));
        self.counts().into_iter().flatten().map(u128::from).chain(metrics).sum()
    }
}

/// What grows while a program runs.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    cpu_ns: Option<u64>,
    refaults: Option<u64>,
    oom_kills: Option<u64>,
    pressure: Pressure,
}

/// Reads what a program uses.
#[derive(Debug)]
pub struct ProgramProbe {
    group: PathBuf,
    memory: Option<(PathBuf, CgroupVersion)>,
    top: Vec<Device>,
    bottom: Vec<Device>,
    last: Counts,
}

impl ProgramProbe {
    /// Begins to count: the cgroup in which its processes are, that with its memory, and the devices below its folder.
    pub fn open(group: &Path, memory: Option<&(PathBuf, CgroupVersion)>, levels: &Levels) -> Self {
        let counted = |devices: &[LevelDevice]| -> Vec<Device> {
            devices.iter().map(|device| Device::open(device.stat.clone())).collect()
        };
        let (top, bottom) = (counted(&levels.top), counted(&levels.bottom));
        let mut probe =
            Self { group: group.to_owned(), memory: memory.cloned(), top, bottom, last: Counts::default() };
        probe.last = probe.counts();
        probe
    }

    fn counts(&self) -> Counts {
        let cpu_us = number(&text(&self.group.join("cpu.stat")), "usage_usec");
        let mut refaults = None;
        if let Some((dir, _)) = &self.memory {
            let stat = text(&dir.join("memory.stat"));
            refaults =
                number(&stat, "workingset_refault_file").or_else(|| number(&stat, "workingset_refault"));
        }
        Counts {
            cpu_ns: cpu_us.and_then(|us| us.checked_mul(1000)),
            refaults,
            oom_kills: self.killed(),
            pressure: Pressure::read(),
        }
    }

    /// Processes that the kernel killed for memory since the program's cgroup was made.
    pub fn oom_kills(&self) -> u64 {
        self.killed().unwrap_or(0)
    }

    fn killed(&self) -> Option<u64> {
        let (dir, version) = self.memory.as_ref()?;
        let file = match version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        number(&text(&dir.join(file)), "oom_kill")
    }

    /// What it used since the last call.
    pub fn window(&mut self) -> ProgramFigures {
        let now = self.counts();
        let last = std::mem::replace(&mut self.last, now);
        let since = |now: Option<u64>, last: Option<u64>| now?.checked_sub(last?);
        let [top, drives] = [&mut self.top, &mut self.bottom].map(|devices| moved(devices));
        let (memory_bytes, cache_bytes) = self.memory.as_ref().map_or((None, None), memory_of);
        let (now_p, last_p) = (now.pressure, last.pressure);
        ProgramFigures {
            cpu_ns: since(now.cpu_ns, last.cpu_ns),
            memory_bytes,
            cache_bytes,
            refaults: since(now.refaults, last.refaults),
            oom_kills: since(now.oom_kills, last.oom_kills),
            top_read_bytes: top.map(|(read, _)| read),
            top_written_bytes: top.map(|(_, written)| written),
            drives_read_bytes: drives.map(|(read, _)| read),
            drives_written_bytes: drives.map(|(_, written)| written),
            cpu_some_ns: since(now_p.cpu_some_ns, last_p.cpu_some_ns),
            io_some_ns: since(now_p.io_some_ns, last_p.io_some_ns),
            io_full_ns: since(now_p.io_full_ns, last_p.io_full_ns),
            memory_some_ns: since(now_p.memory_some_ns, last_p.memory_some_ns),
            metrics: BTreeMap::new(),
        }
    }
}

/// Bytes of memory, and those of page cache.
fn memory_of((dir, version): &(PathBuf, CgroupVersion)) -> (Option<u64>, Option<u64>) {
    let (usage, cache) = match version {
        CgroupVersion::V1 => ("memory.usage_in_bytes", "cache"),
        CgroupVersion::V2 => ("memory.current", "file"),
    };
    let usage = text(&dir.join(usage)).trim().parse().ok();
    (usage, number(&text(&dir.join("memory.stat")), cache))
}

/// Bytes read and written; none without devices, or if one can't be read.
fn moved(devices: &mut [Device]) -> Option<(u64, u64)> {
    // All are read even if one fails, as the next window begins here for each of them.
    let each: Vec<_> = devices.iter_mut().map(Device::window).collect();
    let all = each.into_iter().collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?;
    Some((all.iter().map(|(read, _)| read).sum(), all.iter().map(|(_, written)| written).sum()))
}

/// How long tasks of the host have waited since it started; none where the kernel does not count it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some task for a processor.
    pub cpu_some_ns: Option<u64>,
    /// Some task for I/O.
    pub io_some_ns: Option<u64>,
    /// All tasks for I/O.
    pub io_full_ns: Option<u64>,
    /// Some task for memory.
    pub memory_some_ns: Option<u64>,
}

impl Pressure {
    /// As it is now.
    pub fn read() -> Self {
        let [cpu, io, memory] = ["cpu", "io", "memory"].map(|of| text(&Path::new("/proc/pressure").join(of)));
        Self {
            cpu_some_ns: waited_ns(&cpu, "some"),
            io_some_ns: waited_ns(&io, "some"),
            io_full_ns: waited_ns(&io, "full"),
            memory_some_ns: waited_ns(&memory, "some"),
        }
    }
}

/// The total of a line `some avg10=… total=µs`.
fn waited_ns(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
    line.rsplit_once("total=")?.1.trim().parse::<u64>().ok()?.checked_mul(1000)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// A number of a file with a name and a number in each line.
fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let memory = (dir.path().to_owned(), CgroupVersion::V2);
        let mut probe = ProgramProbe::open(dir.path(), Some(&memory), &Levels::default());
        let none = probe.window();
        assert_eq!(
            (none.cpu_ns, none.refaults, none.memory_bytes, none.top_read_bytes),
            (None, None, None, None)
        );
        file("cpu.stat", "usage_usec 5\nuser_usec 1\n");
        file("memory.stat", "anon 1\nfile 4096\nworkingset_refault_file 3\n");
        file("memory.current", "8192\n");
        assert_eq!(probe.window().cpu_ns, None, "not since when");
        file("cpu.stat", "usage_usec 9\n");
        let some = probe.window();
        assert_eq!((some.cpu_ns, some.refaults, some.oom_kills), (Some(4000), Some(0), None));
        assert_eq!((some.memory_bytes, some.cache_bytes), (Some(8192), Some(4096)));
    }

    #[test]
    fn windows_add_up() {
        let window = |cpu_ns, memory_bytes, value: f64| ProgramFigures {
            cpu_ns,
            memory_bytes,
            metrics: [("tps".to_owned(), MetricFigures::of(value, "txn/s"))].into(),
            ..ProgramFigures::default()
        };
        let mut sum = window(Some(5), Some(7), 1.0);
        sum.add(&window(Some(6), Some(3), 2.0));
        sum.add(&window(Some(1), Some(4), 6.0));
        let tps = &sum.metrics["tps"];
        assert_eq!((sum.cpu_ns, sum.memory_bytes, tps.count, tps.mean), (Some(12), Some(7), 3, 3.0));
        assert_eq!((tps.min, tps.max, sum.counts_sum()), (1.0, 6.0, 15));
        sum.add(&window(None, None, 0.0));
        assert_eq!((sum.cpu_ns, sum.memory_bytes), (None, None));
    }

    #[test]
    fn pressure_is_the_total_of_its_line() {
        let text = "some avg10=1.67 avg60=0.52 avg300=1.66 total=23827628\nfull avg10=0.00 avg60=0.07 avg300=1.52 total=7\n";
        assert_eq!((waited_ns(text, "some"), waited_ns(text, "full")), (Some(23_827_628_000), Some(7000)));
        assert_eq!(waited_ns("", "some"), None);
    }
}
