//! Figures 4, 7 and 8: the load of row 5 over a long time, on an array that is 90% full.

use std::time::Duration;

use super::experiment::{Experiment, ExperimentRow, RowTarget, Setup, Shape, row};
use super::figure::Figure::{PointMeanUs, PointP99Us, ScanMbPerS, TotalMbPerS};
use super::tables::DIRECT;

const SLC: &str = "The paper's four consumer drives dropped in scan MB/s, and rose in tail latency, after 50 s at 500 MB/s of writes: an SLC cache of less than 25 GB, about 6 GB a drive. They are specified at 6 to 42 GB each.";
const COLLECTION: &str = "After 30 to 40 minutes, which are 0.9 to 1.2 TB at 500 MB/s, garbage collection halved the scan's MB/s and multiplied the latency of reads; later both recovered in part.";
const ENTERPRISE: &str = "The enterprise drives stayed stable, without a sign of garbage collection.";
const DEPTH: &str = "The paper calls the load similar to row 5 of Table 2; here it is row 5.";
const FOUR: &str = "The load is row 5 of Tables 8 and 9, with four scan threads of 128 reads in flight each.";

/// One row, with that many scan threads.
fn load(threads: &str) -> Vec<ExperimentRow> {
    let turns = [DIRECT, &[("scan.threads", threads)]].concat();
    let words = "all four classes on the block device, 90% of it filled";
    vec![row("5", words, RowTarget::NinetyPercent, &turns, vec![])]
}

fn experiment(name: &'static str, about: &'static str, threads: &str, time: Duration) -> Experiment {
    Experiment {
        name,
        source: "",
        about,
        setup: Setup::Consumer,
        shape: Shape::OverTime,
        columns: &[ScanMbPerS, TotalMbPerS, PointMeanUs, PointP99Us],
        rows: load(threads),
        claims: vec![],
        assumptions: &[],
        remarks: &[],
        time,
        warmup: Duration::ZERO,
        repeat: 1,
    }
}

/// Figure 4: SLC cache, then garbage collection, on the consumer drives.
pub(super) fn figure4() -> Experiment {
    Experiment {
        source: "Figure 4, section 4.8",
        assumptions: &[DEPTH],
        remarks: &[SLC, COLLECTION],
        ..experiment("figure4", "SLC cache and garbage collection over hours", "1", Duration::from_hours(2))
    }
}

/// Figure 7: the SLC cache, on both kinds of drives.
pub(super) fn figure7() -> Experiment {
    Experiment {
        source: "Figure 7, appendix A.2",
        assumptions: &[FOUR],
        remarks: &[SLC, ENTERPRISE],
        ..experiment("figure7", "the SLC cache over minutes", "4", Duration::from_mins(4))
    }
}

/// Figure 8: garbage collection, on both kinds of drives.
pub(super) fn figure8() -> Experiment {
    Experiment {
        source: "Figure 8, appendix A.2",
        assumptions: &[FOUR],
        remarks: &[COLLECTION, ENTERPRISE],
        ..experiment("figure8", "garbage collection over hours", "4", Duration::from_hours(2))
    }
}
