//! How much of the processor other programs use.
//!
//! A process's `stat` in `/proc` has its own CPU time, exited threads included, and that of its reaped children.
//! When a process is reaped, its times move to its parent: between two readings, the sum over all processes grows
//! by what ran, however briefly it lived. Each process belongs to one of these:
//!
//! - *ours*: this process and its descendants (SPDK's own process, tools).
//! - *for us*: kernel threads. The kernel does not say for whom they work; the load's I/O keeps them busy
//!   (`kworker`: loop devices, writeback, completions; `md`, `jbd2`, `xfsaild`, `ksoftirqd`, `kswapd`), and
//!   another program's I/O shows in its own time. Threads that by nature work for other programs ([`NOT_FOR_US`]:
//!   virtual machines, in-kernel servers) are others'. `io_uring`'s threads are threads of their process.
//! - *others'*: everything else.
//!
//! Where `/proc` hides other processes, as in a container, user and system time in `/proc/stat` beyond all of
//! these is *unattributed*, and counts as others'. Interrupts count for nobody.
//!
//! Along with its times, each process's written bytes are read (`io`) where that is permitted: as root, or for
//! processes of the same user. Unlike the times, these counts do not separate a process from its children.
//!
//! Parsed by hand: of the many fields of `stat` that procfs parses, four are needed, for each process, twice a
//! second; and sysinfo does not count children.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use super::others_io_probe::IoCounts;
use crate::host::processes_in;
use crate::meter::processor::{CpuFigures, matters_from};
use crate::threads;
use crate::units::SECOND_NS;

/// Minimum time between two readings: the times have a resolution of 10 ms.
const APART_NS: u64 = 450_000_000;
/// Readings are spaced so that they take at most one in this many nanoseconds of a CPU.
const COST_ONE_IN: u64 = 50;
/// Ticks are compared with the processes' times over this span, because each tick of 1 to 10 ms is charged whole.
const TICKS_SPAN_NS: u64 = 5 * SECOND_NS;
/// Until then, over at least this.
const TICKS_SPAN_MIN_NS: u64 = 3 * SECOND_NS;
/// The kernel-thread flag in a process's `stat` (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Name prefixes of the kernel threads that work for other programs.
const NOT_FOR_US: &[&str] = &["kvm", "vhost-", "nfsd", "lockd", "ksmbd", "ksmd", "iscsi_t", "cifsd"];
/// The longest chain of parents that is followed.
const PARENTS_MAX: usize = 64;

/// Reads all processes; or nothing, for simulated runs.
pub struct OthersProbe(Option<Others>);

struct Others {
    proc: PathBuf,
    own: i32,
    /// Cgroups of a program that is the load: every process in them is ours, whoever its parent is.
    groups: Vec<PathBuf>,
    ticks_per_s: f64,
    processes: HashMap<i32, Process>,
    sums: [Sum; 3],
    /// Time, ticks in which anything ran, and ticks attributed to processes; oldest first.
    ticks: VecDeque<(u64, u64, u64)>,
    attributed: u64,
    at_ns: u64,
    next_ns: u64,
    last: Option<Used>,
    /// Bytes that others wrote since this was last taken; none if none of their counts could be read.
    written: Option<u64>,
}

/// Cores used between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Used {
    /// None where kernel threads are hidden.
    kernel: Option<f64>,
    others: f64,
    unattributed: f64,
}

/// Who a process works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    ForUs,
    Others,
}

/// One process, in ticks.
#[derive(Debug, Clone, PartialEq)]
struct Process {
    parent: i32,
    begun: u64,
    own: u64,
    /// Of its reaped children.
    reaped: u64,
    whose: Whose,
    /// Bytes written by it and its reaped children; none if that may not be read.
    written: Option<i128>,
}

/// What processes of one kind used between two readings, in ticks.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    own: u64,
    reaped: u64,
    /// What processes that have ended had used at the last reading: it is now in their parents' counts.
    ended: u64,
    /// The part of that which no parent had at the last reading: a parent may be read before its child ends.
    owed: u64,
}

impl Sum {
    /// The ticks used; what is still owed carries over to the next reading.
    fn close(&mut self) -> u64 {
        let used = self.own + self.reaped.saturating_sub(self.ended + self.owed);
        *self = Self { owed: self.ended.saturating_sub(self.reaped), ..Self::default() };
        used
    }
}

impl OthersProbe {
    /// For this system, starting at `now_ns`.
    pub fn open(now_ns: u64) -> Self {
        let proc = Path::new("/proc");
        // Where `/proc` shows another PID namespace, this process's PID there differs from its own.
        let own = std::fs::read_link(proc.join("self")).ok();
        let own = own.and_then(|own| own.to_str()?.parse().ok());
        own.map_or(Self::none(), |own| {
            Self::under(proc, own, rustix::param::clock_ticks_per_second() as f64, now_ns)
        })
    }

    /// For the processes in the folder `proc`, of which this one is `own`.
    pub fn under(proc: &Path, own: i32, ticks_per_s: f64, now_ns: u64) -> Self {
        let mut others = Others {
            proc: proc.to_owned(),
            own,
            groups: Vec::new(),
            ticks_per_s,
            processes: HashMap::new(),
            sums: [Sum::default(); 3],
            ticks: VecDeque::new(),
            attributed: 0,
            at_ns: now_ns,
            next_ns: 0,
            last: None,
            written: None,
        };
        others.look();
        others.written = None;
        others.ran().into_iter().for_each(|ran| others.ticks.push_back((now_ns, ran, 0)));
        Self(Some(others))
    }

    /// Counts the processes in these cgroups as ours.
    pub fn add_groups(&mut self, groups: &[PathBuf]) {
        if let Some(others) = &mut self.0 {
            others.groups = groups.to_vec();
        }
    }

    /// Reads nothing, as simulated runs must repeat exactly.
    pub fn none() -> Self {
        Self(None)
    }

    /// Adds to these figures what others used since the last reading.
    pub fn window(&mut self, now_ns: u64, cpu: CpuFigures) -> CpuFigures {
        let Some(used) = self.0.as_mut().and_then(|others| others.window(now_ns)) else { return cpu };
        CpuFigures {
            kernel_cores: used.kernel,
            others_cores: Some(used.others + used.unattributed),
            unattributed_cores: Some(used.unattributed),
            ..cpu
        }
    }

    /// Bytes that others wrote since the last call, as of the last reading: to any drive, or made dirty in
    /// the page cache. None if nobody else's counts can be read.
    pub fn written(&mut self) -> Option<u64> {
        let written = &mut self.0.as_mut()?.written;
        let taken = *written;
        *written = taken.map(|_| 0);
        taken
    }
}

impl Others {
    /// Adds what others wrote since the last reading.
    fn add_written(&mut self, now: &HashMap<i32, Process>) {
        let of = |process: &Process| process.written.filter(|_| process.whose == Whose::Others);
        let is_same = |one: &Process, other: Option<&Process>| other.is_some_and(|of| of.begun == one.begun);
        let mut sum = None;
        for (id, process) in now {
            let Some(written) = of(process) else { continue };
            let known = self.processes.get(id).filter(|known| is_same(process, Some(known)));
            // A process that could not be read before counts from this reading on.
            let before = known.map_or(Some(0), |known| known.written).unwrap_or(written);
            *sum.get_or_insert(0) += written - before;
        }
        // The bytes of a reaped process are now in its parent's count, and were counted before.
        let ended = self.processes.iter().filter(|(id, process)| !is_same(process, now.get(id)));
        let has_heir = |process: &Process| now.get(&process.parent).is_some_and(|of| of.written.is_some());
        let left: i128 =
            ended.filter(|(_, process)| has_heir(process)).filter_map(|(_, of_it)| of(of_it)).sum();
        let more = sum.map(|sum: i128| u64::try_from((sum - left).max(0)).unwrap_or(u64::MAX));
        self.written = more.map_or(self.written, |more| Some(self.written.unwrap_or(0).saturating_add(more)));
    }

    fn window(&mut self, now_ns: u64) -> Option<Used> {
        if now_ns < self.next_ns || now_ns < self.at_ns + APART_NS {
            return self.last;
        }
        let began = threads::own_cpu();
        let seconds = (now_ns - std::mem::replace(&mut self.at_ns, now_ns)) as f64 / SECOND_NS as f64;
        let [ours, for_us, mut others] = self.look();
        self.attributed += ours + for_us + others;
        let before = self.ticks.back().copied();
        let ran = self.ran();
        let unattributed = ran.and_then(|ran| self.unattributed(now_ns, ran));
        if let Some((before, ran)) = before.zip(ran) {
            // A child that ended during a reading may be counted twice.
            others = others.min(ran.saturating_sub(before.1));
        }
        let cores = |ticks: u64| ticks as f64 / self.ticks_per_s / seconds;
        // Where even kernel threads are hidden, so are other programs: only the ticks show them.
        let sees_all = self.processes.values().any(|process| process.whose == Whose::ForUs);
        self.last = (sees_all || unattributed.is_some()).then(|| Used {
            kernel: sees_all.then(|| cores(for_us)),
            others: cores(others),
            unattributed: unattributed.unwrap_or(0.0),
        });
        let cost_ns = threads::own_cpu().saturating_sub(began).as_nanos() as u64;
        self.next_ns = now_ns.saturating_add(cost_ns.saturating_mul(COST_ONE_IN));
        self.last
    }

    /// Cores busy beyond what processes used; zero while the ticks' error could explain it, none until they
    /// have been read for long enough.
    fn unattributed(&mut self, now_ns: u64, ran: u64) -> Option<f64> {
        self.ticks.push_back((now_ns, ran, self.attributed));
        while self.ticks.get(1).is_some_and(|(at_ns, ..)| now_ns - at_ns >= TICKS_SPAN_NS) {
            self.ticks.pop_front();
        }
        let &(from_ns, ran_then, attributed_then) = self.ticks.front()?;
        let span_ns = now_ns - from_ns;
        let cores = |ticks: u64| ticks as f64 / self.ticks_per_s / (span_ns as f64 / SECOND_NS as f64);
        let all = ran.saturating_sub(ran_then);
        let beyond = cores(all.saturating_sub(self.attributed - attributed_then));
        let is_known = span_ns >= TICKS_SPAN_MIN_NS;
        is_known.then_some(if beyond <= matters_from(cores(all)) { 0.0 } else { beyond })
    }

    /// Ticks in which any CPU ran a process; none if that can't be read.
    fn ran(&self) -> Option<u64> {
        let text = std::fs::read_to_string(self.proc.join("stat")).ok()?;
        let mut fields = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let [user, nice, system] =
            std::array::from_fn(|_| fields.next().and_then(|ticks| ticks.parse::<u64>().ok()));
        Some(user? + nice? + system?)
    }

    /// Reads all processes. Returns the ticks used since the last reading: by ours, for us, and by others.
    fn look(&mut self) -> [u64; 3] {
        let first = self.processes.is_empty();
        let mut now = self.read();
        let mut ended = Vec::new();
        let inside: Vec<u32> = self.groups.iter().flat_map(|dir| processes_in(dir)).collect();
        let whose =
            |id: &i32| if inside.contains(&id.cast_unsigned()) { Whose::Ours } else { self.whose(*id, &now) };
        let whose: Vec<_> = now.keys().map(|id| (*id, whose(id))).collect();
        for (id, whose) in whose {
            now.entry(id).and_modify(|process| process.whose = whose);
        }
        self.add_written(&now);
        for (id, process) in &now {
            let (known, another) = match self.processes.remove(id) {
                Some(known) if known.begun == process.begun => (Some(known), None),
                another => (None, another),
            };
            ended.extend(another);
            // CPU time from before a process was first seen counts, except at the first reading.
            let (own, reaped) = match known {
                Some(known) => (known.own, known.reaped),
                None if first => (process.own, process.reaped),
                None => (0, 0),
            };
            let sum = &mut self.sums[process.whose as usize];
            sum.own += process.own.saturating_sub(own);
            sum.reaped += process.reaped.saturating_sub(reaped);
        }
        ended.extend(self.processes.drain().map(|(_, process)| process));
        for ended in ended {
            self.sums[ended.whose as usize].ended += ended.own + ended.reaped;
        }
        self.processes = now;
        self.sums.each_mut().map(Sum::close)
    }

    /// All processes; kernel threads are already classified.
    fn read(&self) -> HashMap<i32, Process> {
        let entries = std::fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        ids.filter_map(|id| {
            let folder = self.proc.join(id.to_string());
            let text = std::fs::read(folder.join("stat")).ok()?;
            let process = Process::parse(&String::from_utf8_lossy(&text))?;
            let io = (process.whose != Whose::ForUs).then(|| IoCounts::read(&folder.join("io"))).flatten();
            Some((id, Process { written: io.map(|io| io.written()), ..process }))
        })
        .collect()
    }

    fn whose(&self, id: i32, processes: &HashMap<i32, Process>) -> Whose {
        let mut next = id;
        for _ in 0..PARENTS_MAX {
            if next == self.own {
                return Whose::Ours;
            }
            match processes.get(&next) {
                Some(process) => next = process.parent,
                None => break,
            }
        }
        processes.get(&id).map_or(Whose::Others, |process| process.whose)
    }
}

impl Process {
    /// From its `stat`: `1 (name) S 0 …`, where the name may contain anything.
    fn parse(stat: &str) -> Option<Self> {
        let (head, rest) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1;
        // From the third field, the state, on.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        // The children's times are signed.
        let of_children = |field: usize| number(field).unwrap_or(0);
        let for_us = number(9)? & KERNEL_THREAD != 0 && !NOT_FOR_US.iter().any(|not| name.starts_with(not));
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own: number(14)? + number(15)?,
            reaped: of_children(16) + of_children(17),
            begun: number(22)?,
            whose: if for_us { Whose::ForUs } else { Whose::Others },
            written: None,
        })
    }
}

#[cfg(test)]
#[path = "others_tests.rs"]
mod tests;
