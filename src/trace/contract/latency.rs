//! How long I/Os took at the drive, from issue to completion.

use crate::trace::io::{Op, TracedIo};

/// A percentile needs at least this many samples beyond it.
const BEYOND: usize = 10;

/// Latencies of the I/Os of one operation, in ns; `None` where there are too few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpLatency {
    /// How many completed.
    pub count: u64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
}

impl OpLatency {
    /// Of the I/Os with that operation; `None` if none completed.
    pub fn of(ios: &[TracedIo], op: Op) -> Option<Self> {
        let of_op = ios.iter().filter(|io| io.op == op);
        let mut latencies_ns: Vec<u64> =
            of_op.filter_map(|io| io.completed_ns?.checked_sub(io.issued_ns)).collect();
        latencies_ns.sort_unstable();
        let count = latencies_ns.len();
        // The longest, except for those beyond the percentile.
        let but = |one_in: usize| {
            let beyond = count / one_in;
            (beyond >= BEYOND).then(|| latencies_ns[count - 1 - beyond])
        };
        Some(Self {
            count: count as u64,
            max_ns: *latencies_ns.last()?,
            p50_ns: but(2),
            p90_ns: but(10),
            p99_ns: but(100),
            p999_ns: but(1000),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::io::TracedDrive;

    #[test]
    fn percentiles_have_ten_beyond_them() {
        let io = |op, issued_ns, completed_ns| TracedIo {
            issued_ns,
            completed_ns,
            offset_bytes: 0,
            bytes: 4096,
            drive: TracedDrive(1),
            pid: 1,
            op,
        };
        let reads = (1..=1000).rev().map(|ns| io(Op::Read, 5, Some(5 + ns)));
        let mut ios: Vec<_> = reads.chain((0..19).map(|_| io(Op::Write, 7, Some(9)))).collect();
        ios.push(io(Op::Flush, 3, None));
        let [reads, writes, discards, flushes] = Op::ALL.map(|op| OpLatency::of(&ios, op));
        let reads = reads.unwrap();
        assert_eq!((reads.count, reads.p50_ns, reads.p90_ns), (1000, Some(500), Some(900)));
        assert_eq!((reads.p99_ns, reads.p999_ns, reads.max_ns), (Some(990), None, 1000));
        assert_eq!(writes.map(|writes| (writes.count, writes.p50_ns, writes.max_ns)), Some((19, None, 2)));
        assert_eq!((discards, flushes), (None, None));
    }
}
