//! What a program that is the load used and reports. Anything that the kernel does not count is unknown, never zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::settings::Better;

/// A program in a window, or over a run. Counts are those of its cgroup, including everything that it started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProgramFigures {
    /// Processor time in ns (`cpu.stat`).
    pub cpu_ns: Option<u64>,
    /// Bytes of memory at the end, page cache included; over a run, the maximum of its windows.
    pub memory_bytes: Option<u64>,
    /// Bytes of these that are page cache, likewise.
    pub cache_bytes: Option<u64>,
    /// Bytes of these that are anonymous memory (`memory.stat`), likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous_bytes: Option<u64>,
    /// Bytes of its memory that are swapped out, likewise; none where the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_bytes: Option<u64>,
    /// Pages that were evicted from its page cache and read again (`workingset_refault_file`).
    pub refaults: Option<u64>,
    /// Processes that the kernel killed for lack of memory.
    pub oom_kills: Option<u64>,
    /// Bytes read from the devices at the top, whoever read them.
    pub top_read_bytes: Option<u64>,
    /// Bytes written to the devices at the top.
    pub top_written_bytes: Option<u64>,
    /// Bytes read from the drives.
    pub drives_read_bytes: Option<u64>,
    /// Bytes written to the drives.
    pub drives_written_bytes: Option<u64>,
    /// Time in which some task on the host waited for a processor, in ns (`/proc/pressure/cpu`).
    pub cpu_some_ns: Option<u64>,
    /// Time in which some task waited for I/O, in ns.
    pub io_some_ns: Option<u64>,
    /// Time in which all tasks that could have run waited for I/O, in ns.
    pub io_full_ns: Option<u64>,
    /// Time in which some task waited for memory, in ns.
    pub memory_some_ns: Option<u64>,
    /// Processor time of the server's processes (`command.start`); none without a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
    /// Processor time of the measured command (`command.run`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_cpu_ns: Option<u64>,
    /// Processor time of its thread that ran most in the window, among those left at the end (`schedstat`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_thread_ns: Option<u64>,
    /// Pages that were not in memory and had to be read (`pgmajfault`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
    /// Reads and writes that the devices at the top completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_ios: Option<u64>,
    /// Their total time in milliseconds, the kernel's queue included; none where the block layer takes no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_ms: Option<u64>,
    /// Reads and writes that the drives completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drives_ios: Option<u64>,
    /// Their total time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drives_ms: Option<u64>,
    /// Flushes that the drives completed; none where the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drives_flushes: Option<u64>,
    /// Their total time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drives_flush_ms: Option<u64>,
    /// Bytes that the program wrote by its own account, between two answers of its probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_bytes: Option<u64>,
    /// Bytes written to the drives between the same moments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_drives_bytes: Option<u64>,
    /// Bytes that its processes read and wrote, by process name; absent where that can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_name: Option<BTreeMap<String, ProcessIo>>,
    /// What the program reports, by the names in `[command.metrics]`; metrics without a value are missing.
    pub metrics: BTreeMap<String, MetricFigures>,
}

/// The I/O of all processes of one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessIo {
    /// Bytes that they read from drives.
    pub read_bytes: u64,
    /// Bytes that they wrote past the page cache or made dirty in it, less those dropped before write-back.
    pub written_bytes: u64,
}

impl ProcessIo {
    /// Adds a later one's bytes.
    pub fn add(&mut self, later: &Self) {
        self.read_bytes = self.read_bytes.saturating_add(later.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(later.written_bytes);
    }
}

/// A figure from a program's output.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricFigures {
    /// Number of values.
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
    /// Which direction is better, where the profile says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

impl MetricFigures {
    /// For a single value.
    pub fn of(value: f64, unit: &str) -> Self {
        Self { count: 1, mean: value, min: value, max: value, unit: unit.to_owned(), better: None }
    }

    /// Adds later values.
    pub fn add(&mut self, later: &Self) {
        let count = self.count.saturating_add(later.count);
        if count > 0 {
            let weight = later.count as f64 / count as f64;
            self.mean += (later.mean - self.mean) * weight;
        }
        (self.count, self.min, self.max) = (count, self.min.min(later.min), self.max.max(later.max));
        self.unit.clone_from(&later.unit);
        self.better = later.better;
    }
}

fn mean_ns(ios: Option<u64>, ms: Option<u64>) -> Option<f64> {
    let ios = ios.filter(|ios| *ios > 0)?;
    Some(ms? as f64 * 1e6 / ios as f64)
}

impl ProgramFigures {
    /// Bytes written to the drives per byte that the program wrote by its own account.
    pub fn wa_a(&self) -> Option<f64> {
        let application = self.application_bytes.filter(|bytes| *bytes > 0)?;
        Some(self.application_drives_bytes? as f64 / application as f64)
    }

    /// The mean latency of the devices at the top, in ns.
    pub fn top_mean_ns(&self) -> Option<f64> {
        mean_ns(self.top_ios, self.top_ms)
    }

    /// The mean latency of the drives, in ns.
    pub fn drives_mean_ns(&self) -> Option<f64> {
        mean_ns(self.drives_ios, self.drives_ms)
    }

    /// The mean time of the drives' flushes, in ns.
    pub fn drives_flush_mean_ns(&self) -> Option<f64> {
        mean_ns(self.drives_flushes, self.drives_flush_ms)
    }

    /// Adds a later window.
    pub fn add(&mut self, later: &Self) {
        let most = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.max(b));
        self.memory_bytes = most(self.memory_bytes, later.memory_bytes);
        self.cache_bytes = most(self.cache_bytes, later.cache_bytes);
        self.anonymous_bytes = most(self.anonymous_bytes, later.anonymous_bytes);
        self.swapped_bytes = most(self.swapped_bytes, later.swapped_bytes);
        for (sum, count) in self.counts_mut().into_iter().zip(later.counts()) {
            *sum = sum.zip(count).and_then(|(sum, count)| sum.checked_add(count));
        }
        match (&mut self.by_name, &later.by_name) {
            (Some(sums), Some(later)) => {
                later.iter().for_each(|(name, io)| sums.entry(name.clone()).or_default().add(io));
            }
            (sums, _) => *sums = None,
        }
        // A probe answers only in some windows.
        for (sum, later) in [
            (&mut self.application_bytes, later.application_bytes),
            (&mut self.application_drives_bytes, later.application_drives_bytes),
        ] {
            *sum = sum.map_or(later, |sum| Some(sum.saturating_add(later.unwrap_or(0))));
        }
        for (name, later) in &later.metrics {
            match self.metrics.get_mut(name) {
                Some(sum) => sum.add(later),
                None => drop(self.metrics.insert(name.clone(), later.clone())),
            }
        }
    }

    /// The counts, which add up over windows.
    fn counts(&self) -> [Option<u64>; 21] {
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
            self.server_cpu_ns,
            self.run_cpu_ns,
            self.run_thread_ns,
            self.major_faults,
            self.top_ios,
            self.top_ms,
            self.drives_ios,
            self.drives_ms,
            self.drives_flushes,
            self.drives_flush_ms,
        ]
    }

    fn counts_mut(&mut self) -> [&mut Option<u64>; 21] {
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
            &mut self.server_cpu_ns,
            &mut self.run_cpu_ns,
            &mut self.run_thread_ns,
            &mut self.major_faults,
            &mut self.top_ios,
            &mut self.top_ms,
            &mut self.drives_ios,
            &mut self.drives_ms,
            &mut self.drives_flushes,
            &mut self.drives_flush_ms,
        ]
    }

    /// See [`crate::meter::window::Window::counts_sum`].
    pub(in crate::meter) fn counts_sum(&self) -> u128 {
        let metrics = self.metrics.values().map(|metric| metric.count);
        let by_name = self.by_name.iter().flat_map(BTreeMap::values);
        let by_name = by_name.flat_map(|io| [io.read_bytes, io.written_bytes]);
        let application = [self.application_bytes, self.application_drives_bytes];
        let counts = self.counts().into_iter().chain(application).flatten();
        counts.chain(metrics).chain(by_name).map(u128::from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
