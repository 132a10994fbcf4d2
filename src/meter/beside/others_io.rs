//! What other programs read and write on the drives below the target, as data.
//!
//! Only I/O that is certainly not the load's is included (see [`super::others_io_probe`]): the figures are
//! lower bounds, and I/O that can't be told apart from the load's own is unknown, not zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meter::processor::OTHERS_SHARE;
use crate::units::mb_per_s;

/// Others' I/O matters from this share of what the drive moves. It is half of what others may take of the
/// processor, as their I/Os are mostly smaller than the load's, and cost a drive more than their bytes show.
const SHARE: f64 = OTHERS_SHARE / 2.0;
/// It must also exceed this rate, or this many bytes if the time is below a second: system services
/// occasionally write less than this.
const BYTES_PER_S: f64 = 1e6;

/// What others did on a drive in a window, or over a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OthersIo {
    /// The kernel's name of the whole drive; if drives can't be told apart, of the array or the devices on them.
    pub drive: String,
    /// Bytes that the drive read and wrote for everyone, by the block layer's count.
    pub bytes: u64,
    /// Bytes that others read: a lower bound; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that others wrote: a lower bound; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

impl OthersIo {
    /// Bytes that others are known to have moved.
    pub fn moved_bytes(&self) -> u64 {
        self.read_bytes.unwrap_or(0).saturating_add(self.written_bytes.unwrap_or(0))
    }

    /// Whether others moved enough over that time to matter.
    pub fn matters(&self, seconds: f64) -> bool {
        let moved = self.moved_bytes() as f64;
        moved > SHARE * self.bytes as f64 && moved > BYTES_PER_S * seconds.max(1.0)
    }

    /// MB/s that others read and wrote over that time, each none if unknown.
    pub fn rates(&self, seconds: f64) -> [Option<f64>; 2] {
        let ns = (seconds * 1e9) as u64;
        [self.read_bytes, self.written_bytes].map(|bytes| bytes.map(|bytes| mb_per_s(bytes, ns)))
    }

    /// See [`crate::meter::window::Window::counts_sum`].
    pub(in crate::meter) fn counts_sum(&self) -> u128 {
        [Some(self.bytes), self.read_bytes, self.written_bytes].into_iter().flatten().map(u128::from).sum()
    }
}

/// Sums by drive. Windows in which a count is unknown add nothing to it: it is a lower bound anyway.
#[derive(Debug, Clone, Default)]
pub(in crate::meter) struct OthersIoSums(BTreeMap<String, OthersIo>);

impl OthersIoSums {
    /// Adds a window.
    pub fn add(&mut self, window: &[OthersIo]) {
        let known = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = more.map_or(*sum, |more| Some(sum.unwrap_or(0) + more));
        };
        for of in window {
            let sum = self.0.entry(of.drive.clone()).or_default();
            sum.drive.clone_from(&of.drive);
            sum.bytes += of.bytes;
            known(&mut sum.read_bytes, of.read_bytes);
            known(&mut sum.written_bytes, of.written_bytes);
        }
    }

    /// Each drive's sum.
    pub fn all(&self) -> Vec<OthersIo> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(bytes: u64, read: Option<u64>, written: Option<u64>) -> OthersIo {
        OthersIo { drive: "nvme0n1".into(), bytes, read_bytes: read, written_bytes: written }
    }

    #[test]
    fn it_matters_from_a_twentieth_of_the_drives_bytes_and_a_megabyte_a_second_on() {
        const MB: u64 = 1_000_000;
        for (all_mb, others_mb, seconds, matters) in [
            (20, 2, 1.0, true),
            (20, 2, 2.0, false),
            (1000, 49, 1.0, false),
            (1000, 51, 1.0, true),
            (10, 1, 0.1, false),
            (20, 2, 0.1, true),
        ] {
            let of = io(all_mb * MB, Some(others_mb * MB / 2), Some(others_mb * MB / 2));
            assert_eq!(of.matters(seconds), matters, "{others_mb} of {all_mb} MB in {seconds} s");
        }
        assert!(!io(100 * MB, None, None).matters(1.0), "unknown");
    }

    #[test]
    fn windows_add_up_by_drive_and_what_is_unknown_adds_nothing() {
        let mut sums = OthersIoSums::default();
        sums.add(&[io(100, Some(5), None), OthersIo { drive: "sda".into(), ..io(7, Some(1), Some(2)) }]);
        sums.add(&[io(50, None, None)]);
        sums.add(&[io(50, Some(1), Some(0))]);
        let all = sums.all();
        assert_eq!(all[0], io(200, Some(6), Some(0)));
        assert_eq!((all.len(), all[1].drive.as_str(), all[1].moved_bytes()), (2, "sda", 3));
    }
}
