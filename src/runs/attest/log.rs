//! The log of a recording's latencies, read by HdrHistogram's own library for Python.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::bed::Ran;
use super::checks::{Check, CheckOutcome, CheckVerdict};
use super::programs;
use crate::error::Result;
use crate::json;
use crate::meter::window::Latency;

/// Prints the samples that the library reads of each tag, as JSON. Tools round a percentile's rank
/// differently, so it is given by the values one sample below and above.
const SCRIPT: &str = r#"
import json, sys
try:
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader
except ImportError:
    sys.exit(3)
new = lambda: HdrHistogram(1, 60_000_000_000, 3)
reader, sums = HistogramLogReader(sys.argv[1], new()), {}
while (interval := reader.get_next_interval_histogram()) is not None:
    sums.setdefault(interval.get_tag(), new()).add(interval)
def around(histogram, percentile):
    step = 100 / histogram.get_total_count()
    return [histogram.get_value_at_percentile(min(max(percentile + by, 0), 100)) for by in (-step, step)]
print(json.dumps({
    tag: {"count": of.get_total_count(), "max": of.get_max_value(), "p50": around(of, 50), "p99": around(of, 99)}
    for tag, of in sums.items()
}))
"#;
const LIBRARY: &str = "HdrHistogram for Python";
/// Time that the script takes to read a few seconds.
const TIME: Duration = Duration::from_secs(5);

/// A tag's samples as the library reads them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Read {
    count: u64,
    max: f64,
    p50: (f64, f64),
    p99: (f64, f64),
}

/// The check.
pub(super) fn check(ran: &Ran, interrupts: &dyn Fn() -> usize) -> Result<CheckOutcome> {
    let none = |why: &str| Ok(CheckOutcome::not_checkable(Check::Log, why));
    let Some(python) = programs::find("python3") else { return none("Python is not installed") };
    let arguments = [SCRIPT.to_owned(), log_of(&ran.dir)];
    let arguments = [programs::words(["-c"]), arguments.to_vec()].concat();
    let ended = programs::run(&python, &arguments, TIME, interrupts)?;
    if !ended.well {
        return none("HdrHistogram's library for Python can't be used (pip install hdrhistogram)");
    }
    let Ok(read) = json::read::<BTreeMap<String, Read>>(ended.out.as_bytes()) else {
        return none("what HdrHistogram's library printed can't be read");
    };
    let classes = &ran.summary.classes;
    let ours = [("point", &classes.point.service_ns), ("scan", &classes.scan.service_ns)];
    let outcomes = ours.into_iter().filter_map(|(tag, ours)| Some(judged(ours.as_ref()?, read.get(tag))));
    let outcomes: Vec<CheckOutcome> = outcomes.collect();
    let worst = outcomes.iter().find(|outcome| outcome.is_failure()).or(outcomes.first());
    worst.cloned().map_or_else(|| none("no class has a latency"), Ok)
}

fn log_of(recording: &Path) -> String {
    recording.join("latency.hlog").to_string_lossy().into_owned()
}

/// A class's figures compared with those that the library reads: the 99th percentile is shown, all are judged.
fn judged(ours: &Latency, theirs: Option<&Read>) -> CheckOutcome {
    let check = Check::Log;
    let Some(theirs) = theirs else {
        let missing = CheckOutcome { verdict: CheckVerdict::Fail, ..CheckOutcome::not_checkable(check, "") };
        return CheckOutcome { beside: Some(LIBRARY.into()), ..missing }
            .because("the log has no samples of a class");
    };
    let (Some(p50), Some(p99), Some(max)) = (ours.p50, ours.p99, ours.max) else {
        return CheckOutcome::not_checkable(check, "too few I/Os for a 99th percentile");
    };
    let nearest = |ours: u64, (low, high): (f64, f64)| (ours as f64).clamp(low.min(high), high.max(low));
    let of = |ours: u64, theirs: f64| CheckOutcome::of(check, LIBRARY, ours as f64, theirs);
    let outcome = of(p99, nearest(p99, theirs.p99));
    let fails = |why: &str| CheckOutcome { verdict: CheckVerdict::Fail, ..outcome.clone() }.because(why);
    if ours.count != theirs.count {
        return fails("the numbers of samples differ");
    }
    if of(p50, nearest(p50, theirs.p50)).is_failure() {
        return fails("the medians differ");
    }
    if of(max, theirs.max).is_failure() {
        return fails("the largest samples differ");
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_figures_of_the_log_are_judged() {
        let ours = Latency {
            count: 5000,
            p50: Some(70_000),
            p99: Some(140_000),
            max: Some(900_000),
            ..Latency::default()
        };
        let same =
            Read { count: 5000, max: 900_000.0, p50: (69_990.0, 70_010.0), p99: (139_000.0, 141_000.0) };
        assert_eq!(judged(&ours, Some(&same)).verdict, CheckVerdict::Pass);
        let fails = |changed: Read| judged(&ours, Some(&changed)).is_failure();
        assert!(fails(Read { count: 4999, ..same.clone() }));
        assert!(fails(Read { max: 910_000.0, ..same.clone() }));
        assert!(fails(Read { p50: (70_500.0, 70_510.0), ..same.clone() }));
        assert!(fails(Read { p99: (142_000.0, 143_000.0), ..same.clone() }));
        assert!(judged(&ours, None).is_failure());
        let few = Latency { p99: None, ..ours };
        assert_eq!(judged(&few, Some(&same)).verdict, CheckVerdict::NotCheckable);
    }
}
