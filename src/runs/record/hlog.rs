//! `latency.hlog`: an interval log that HdrHistogram's own tools read.
//!
//! `StartTime` and `BaseTime` are the wall clock at the run's time 0, so an interval's time stamp is its
//! window's `start_ns` in seconds. Values are nanoseconds. The tag `scan`, `point`, `wal` or `background` is
//! the class's service latency (for the WAL the commit); `.response`, `wal.write` and `wal.flush` are the
//! others. Those of the warm-up, which the totals leave out, have their own tags (`warmup.scan`): merging a
//! tag gives the percentiles of the summary.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use crate::class::Class;
use crate::meter::window::{ClassHistograms, Window};

/// The log's first lines.
pub(super) fn header(run_started: SystemTime) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("stacktune: latencies in nanoseconds")
        .with_start_time(run_started)
        .with_base_time(run_started)
        .begin_log_with(&mut out, &mut V2DeflateSerializer::new())
        .map_err(|e| e.to_string())?;
    out.extend_from_slice(
        b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
    );
    Ok(out)
}

/// The lines of a window's histograms.
pub(super) fn intervals(window: &Window, serializer: &mut V2DeflateSerializer) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut log =
        IntervalLogWriterBuilder::new().begin_log_with(&mut out, serializer).map_err(|e| e.to_string())?;
    let (start, length) = (Duration::from_nanos(window.start_ns), Duration::from_nanos(window.duration_ns));
    for class in Class::ALL {
        for (tag, histogram) in tagged(class, &window.histograms[class.index()]) {
            let tag = if window.warmup { format!("warmup.{tag}") } else { tag };
            log.write_histogram(histogram, start, length, Tag::new(&tag)).map_err(|e| e.to_string())?;
        }
    }
    Ok(out)
}

/// A class's nonempty histograms, with their tags.
fn tagged(class: Class, histograms: &ClassHistograms) -> impl Iterator<Item = (String, &Histogram<u64>)> {
    let ClassHistograms { service, response, write, flush } = histograms;
    [("", service), (".response", response), (".write", write), (".flush", flush)]
        .into_iter()
        .filter_map(move |(suffix, histogram)| Some((format!("{class}{suffix}"), histogram.as_ref()?)))
        .filter(|(_, histogram)| !histogram.is_empty())
}

/// The sums of the intervals of these windows, by tag. Everything from the first unreadable interval on is
/// left out, and the second item says so.
pub(super) fn sums(log: &[u8], windows: &[&Window]) -> (BTreeMap<String, Histogram<u64>>, Option<String>) {
    // Time stamps in the log have three decimals.
    let starts: HashSet<_> = windows.iter().map(|w| log_ms(Duration::from_nanos(w.start_ns))).collect();
    let mut sums = BTreeMap::new();
    let mut deserializer = Deserializer::new();
    for (number, entry) in IntervalLogIterator::new(log).enumerate() {
        let added = match entry {
            Ok(LogEntry::Interval(i)) if starts.contains(&log_ms(i.start_timestamp())) => {
                add(&mut sums, &i, &mut deserializer)
            }
            Ok(_) => Ok(()),
            Err(_) => Err("it is torn".to_owned()),
        };
        if let Err(why) = added {
            return (sums, Some(format!("entry {} and those after it are left out: {why}", number + 1)));
        }
    }
    (sums, None)
}

/// Milliseconds as the log's writer rounds them.
fn log_ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs() as f64 + f64::from(time.subsec_nanos()) / 1e9)
}

fn add(
    sums: &mut BTreeMap<String, Histogram<u64>>,
    interval: &IntervalLogHistogram,
    deserializer: &mut Deserializer,
) -> Result<(), String> {
    let histogram = decode(interval, deserializer)?;
    let tag = interval.tag().map_or("", |tag| tag.as_str());
    let Some(sum) = sums.get_mut(tag) else {
        sums.insert(tag.to_owned(), histogram);
        return Ok(());
    };
    sum.auto(true);
    sum.add(histogram).map_err(|e| e.to_string())
}

/// An interval's histogram.
fn decode(
    interval: &IntervalLogHistogram,
    deserializer: &mut Deserializer,
) -> Result<Histogram<u64>, String> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(interval.encoded_histogram())
        .map_err(|e| e.to_string())?;
    deserializer.deserialize(&mut bytes.as_slice()).map_err(|e| e.to_string())
}
