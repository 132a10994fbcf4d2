//! Reads what a program that is the load uses: its cgroup's counts, the devices below it, and pressure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::program::ProgramFigures;
use super::program_io::ByName;
use super::program_threads::BusiestThread;
use crate::error::Result;
use crate::host::{CgroupVersion, LevelDevice, LevelDrive, Levels};
use crate::meter::devices::block::{Device, Passed};

/// Counts that grow while a program runs.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Of the whole program, of its server, and of the measured command.
    cpu_ns: [Option<u64>; 3],
    refaults: Option<u64>,
    major_faults: Option<u64>,
    oom_kills: Option<u64>,
    pressure: Pressure,
}

/// Reads what a program uses.
#[derive(Debug)]
pub struct ProgramProbe {
    /// The cgroups of the whole program, of its server, and of the measured command.
    groups: [PathBuf; 3],
    memory: Option<(PathBuf, CgroupVersion)>,
    top: Vec<Device>,
    bottom: Vec<Device>,
    /// The whole drives below these: flushes are counted only for whole drives.
    whole: Vec<Device>,
    /// The drives once more, read from one answer of a probe for application bytes to the next.
    since_answer: Vec<Device>,
    by_name: ByName,
    /// Of the measured command.
    threads: BusiestThread,
    last: Counts,
}

impl ProgramProbe {
    /// Starts counting: the cgroup of its processes, with those of its server and of the measured command;
    /// the cgroup with its memory; and the devices below its folder.
    ///
    /// # Errors
    /// If no more threads can be started.
    pub fn open(
        (group, [server, run]): (&Path, [PathBuf; 2]),
        memory: Option<&(PathBuf, CgroupVersion)>,
        levels: &Levels,
    ) -> Result<Self> {
        let counted = |devices: &[LevelDevice]| -> Vec<Device> {
            devices.iter().map(|device| Device::open(device.stat.clone())).collect()
        };
        let of_drive =
            |drive: &LevelDrive| Device::open(Path::new("/sys/block").join(&drive.name).join("stat"));
        let groups = [group.to_owned(), server, run];
        let mut probe = Self {
            by_name: ByName::watch(groups.to_vec())?,
            threads: BusiestThread::of(&groups[2]),
            groups,
            memory: memory.cloned(),
            top: counted(&levels.top),
            bottom: counted(&levels.bottom),
            whole: levels.drives.iter().map(of_drive).collect(),
            since_answer: counted(&levels.bottom),
            last: Counts::default(),
        };
        probe.last = probe.counts();
        Ok(probe)
    }

    /// The I/O of its processes, by their names.
    pub fn by_name(&self) -> &ByName {
        &self.by_name
    }

    fn counts(&self) -> Counts {
        let cpu_ns = |group: &PathBuf| {
            number(&text(&group.join("cpu.stat")), "usage_usec").and_then(|us| us.checked_mul(1000))
        };
        let stat = self.memory.as_ref().map(|(dir, _)| text(&dir.join("memory.stat"))).unwrap_or_default();
        Counts {
            cpu_ns: self.groups.each_ref().map(cpu_ns),
            refaults: counted(&stat, "workingset_refault_file")
                .or_else(|| counted(&stat, "workingset_refault")),
            major_faults: counted(&stat, "pgmajfault"),
            oom_kills: self.killed(),
            pressure: Pressure::read(),
        }
    }

    /// Processes that the kernel killed for lack of memory since the program's cgroup was made.
    pub fn oom_kills(&self) -> u64 {
        self.killed().unwrap_or(0)
    }

    fn killed(&self) -> Option<u64> {
        let (dir, version) = self.memory.as_ref()?;
        let of = |file: PathBuf| number(&text(&file), "oom_kill");
        match version {
            // Each cgroup counts only its own.
            CgroupVersion::V1 => {
                let below = self.groups.iter().filter(|group| group.starts_with(dir) && *group != dir);
                let below = below.filter_map(|group| of(group.join("memory.oom_control")));
                Some(of(dir.join("memory.oom_control"))? + below.sum::<u64>())
            }
            CgroupVersion::V2 => of(dir.join("memory.events")),
        }
    }

    /// Bytes written to the drives since the last call, or since it was opened.
    pub fn written_since_answer(&mut self) -> Option<u64> {
        passed(&mut self.since_answer).map(|passed| passed.written_bytes)
    }

    /// What the program used since the last call.
    pub fn window(&mut self) -> ProgramFigures {
        let now = self.counts();
        let last = std::mem::replace(&mut self.last, now);
        let since = |now: Option<u64>, last: Option<u64>| now?.checked_sub(last?);
        let [cpu_ns, server_cpu_ns, run_cpu_ns] =
            std::array::from_fn(|at| since(now.cpu_ns[at], last.cpu_ns[at]));
        let [top, drives, whole] =
            [&mut self.top, &mut self.bottom, &mut self.whole].map(|devices| passed(devices));
        let flushes = whole.and_then(|drives| drives.flushes);
        let memory = self.memory.as_ref().map(memory_of).unwrap_or_default();
        let (now_p, last_p) = (now.pressure, last.pressure);
        ProgramFigures {
            cpu_ns,
            server_cpu_ns,
            run_cpu_ns,
            run_thread_ns: self.threads.window(),
            memory_bytes: memory.all_bytes,
            cache_bytes: memory.cache_bytes,
            anonymous_bytes: memory.anonymous_bytes,
            swapped_bytes: memory.swapped_bytes,
            refaults: since(now.refaults, last.refaults),
            major_faults: since(now.major_faults, last.major_faults),
            oom_kills: since(now.oom_kills, last.oom_kills),
            top_read_bytes: top.map(|top| top.read_bytes),
            top_written_bytes: top.map(|top| top.written_bytes),
            top_ios: top.map(|top| top.ios.ios),
            top_ms: top.map(|top| top.ios.ms),
            drives_read_bytes: drives.map(|drives| drives.read_bytes),
            drives_written_bytes: drives.map(|drives| drives.written_bytes),
            drives_ios: drives.map(|drives| drives.ios.ios),
            drives_ms: drives.map(|drives| drives.ios.ms),
            drives_flushes: flushes.map(|flushes| flushes.ios),
            drives_flush_ms: flushes.map(|flushes| flushes.ms),
            cpu_some_ns: since(now_p.cpu_some_ns, last_p.cpu_some_ns),
            io_some_ns: since(now_p.io_some_ns, last_p.io_some_ns),
            io_full_ns: since(now_p.io_full_ns, last_p.io_full_ns),
            memory_some_ns: since(now_p.memory_some_ns, last_p.memory_some_ns),
            by_name: self.by_name.take(),
            application_bytes: None,
            application_drives_bytes: None,
            metrics: BTreeMap::new(),
        }
    }
}

/// A count of a cgroup and those below it, which version 1 tells from its own.
fn counted(stat: &str, key: &str) -> Option<u64> {
    number(stat, &format!("total_{key}")).or_else(|| number(stat, key))
}

/// A cgroup's current use of memory.
#[derive(Debug, Clone, Copy, Default)]
struct MemoryUse {
    all_bytes: Option<u64>,
    cache_bytes: Option<u64>,
    anonymous_bytes: Option<u64>,
    swapped_bytes: Option<u64>,
}

fn memory_of((dir, version): &(PathBuf, CgroupVersion)) -> MemoryUse {
    let stat = text(&dir.join("memory.stat"));
    let alone = |file: &str| text(&dir.join(file)).trim().parse().ok();
    match version {
        // With the cgroups below it.
        CgroupVersion::V1 => MemoryUse {
            all_bytes: alone("memory.usage_in_bytes"),
            cache_bytes: number(&stat, "total_cache"),
            anonymous_bytes: number(&stat, "total_rss"),
            swapped_bytes: number(&stat, "total_swap"),
        },
        CgroupVersion::V2 => MemoryUse {
            all_bytes: alone("memory.current"),
            cache_bytes: number(&stat, "file"),
            anonymous_bytes: number(&stat, "anon"),
            swapped_bytes: alone("memory.swap.current"),
        },
    }
}

/// The devices' counts together; none without any device, or if one can't be read.
fn passed(devices: &mut [Device]) -> Option<Passed> {
    // Read all of them even if one fails, as the next window starts here for each.
    let each: Vec<_> = devices.iter_mut().map(Device::passed).collect();
    each.into_iter().collect::<Option<Vec<_>>>()?.into_iter().reduce(Passed::and)
}

/// How long tasks on this host have waited since it booted; none where the kernel does not count it.
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
    /// The current totals.
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

/// The total of a line `some avg10=… total=µs`. Parsed by hand: procfs-core rejects a file without a line
/// `full`, as kernels before 5.13 have for processors.
fn waited_ns(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
    line.rsplit_once("total=")?.1.trim().parse::<u64>().ok()?.checked_mul(1000)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The number after a name, in a file with one name and number per line.
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
        let parts = ["server", "run"].map(|part| dir.path().join(part));
        let mut probe = ProgramProbe::open((dir.path(), parts), Some(&memory), &Levels::default()).unwrap();
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
        assert_eq!((some.run_cpu_ns, some.major_faults, some.by_name), (None, None, None));
        assert_eq!((some.memory_bytes, some.cache_bytes), (Some(8192), Some(4096)));
        assert_eq!((some.anonymous_bytes, some.swapped_bytes), (Some(1), None));
        file("memory.swap.current", "4096\n");
        assert_eq!(probe.window().swapped_bytes, Some(4096));
    }

    #[test]
    fn pressure_is_the_total_of_its_line() {
        let text = "some avg10=1.67 avg60=0.52 avg300=1.66 total=23827628\nfull avg10=0.00 avg60=0.07 avg300=1.52 total=7\n";
        assert_eq!((waited_ns(text, "some"), waited_ns(text, "full")), (Some(23_827_628_000), Some(7000)));
        assert_eq!(waited_ns("", "some"), None);
    }
}
