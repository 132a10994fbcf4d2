//! `latency.hlog`: an interval log that HdrHistogram's own tools read.
//!
//! `StartTime` and `BaseTime` are the wall clock at the run's time 0, so an interval's time stamp is its
//! window's `start_ns` in seconds. Values are nanoseconds. The tag `scan`, `point`, `wal` or `background` is
//! the class's service latency (for the WAL the commit); `.response`, `wal.write` and `wal.flush` are the
//! others. Warm-up latencies, which the totals leave out, have their own tags (`warmup.scan`): merging a tag
//! gives the percentiles of the summary.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, Read};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};

use super::buckets::Buckets;
use super::rebuild::KINDS;
use crate::class::Class;
use crate::meter::window::{ClassHistograms, Window};

/// Longer than any line that a run writes: a histogram takes a few kilobytes.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// The header of a packed histogram (cookie and length), and its cookie.
const PACKED_HEADER_BYTES: usize = 8;
const PACKED: u32 = 0x1c84_9314;
/// More than an unpacked histogram ever takes: 41,984 counts of at most 9 B, see the bounds.
const PLAIN_BYTES_MAX: u64 = 1 << 19;

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

/// Histograms by tag.
pub(super) type Sums = BTreeMap<String, Histogram<u64>>;

/// What a log holds about some windows.
#[derive(Debug, Default)]
pub(super) struct Logged {
    /// The sums of their intervals, by tag.
    pub sums: Sums,
    /// Why everything from some line on was left out.
    pub damage: Option<String>,
    /// The number of repeated lines, which were left out, too.
    pub repeated: u64,
    /// Whether it was read up to its end.
    pub is_whole: bool,
    /// Figures of the windows that do not match their intervals' samples, as clauses.
    pub misfits: Vec<String>,
}

/// Reads the intervals of these windows. An incomplete last line is silently left out.
///
/// # Errors
/// If the log can't be read.
pub(super) fn sums(mut log: impl BufRead, windows: &[&Window]) -> std::io::Result<Logged> {
    // Time stamps in the log have three decimals.
    let at: HashMap<_, _> = windows.iter().map(|w| (log_ms(Duration::from_nanos(w.start_ns)), *w)).collect();
    let mut logged = Logged::default();
    let (mut line, mut seen) = (Vec::new(), HashSet::new());
    for number in 1.. {
        line.clear();
        log.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        let added = if line.len() as u64 == LINE_BYTES_MAX {
            Err("it is longer than any".to_owned())
        } else if !line.ends_with(b"\n") {
            break;
        } else if line.starts_with(b"Tag=") && !seen.insert(hash(&line)) {
            logged.repeated += 1;
            Ok(())
        } else {
            add_line(&mut logged, &line, &at)
        };
        if let Err(why) = added {
            logged.damage = Some(format!("line {number} and those after it are left out: {why}"));
            break;
        }
    }
    logged.is_whole = logged.damage.is_none();
    Ok(logged)
}

/// An interval of a window.
pub(super) struct Interval<'a> {
    /// The index of its window.
    pub window: usize,
    /// Its class.
    pub class: Class,
    /// The suffix of its tag, which names the latency: [`KINDS`].
    pub suffix: &'a str,
    /// Its samples.
    pub samples: Buckets,
}

/// Passes on the intervals of these windows, in the order of the log, up to its end or its first damage.
///
/// # Errors
/// If the log can't be read.
pub(super) fn each(
    mut log: impl BufRead,
    windows: &[Window],
    mut take: impl FnMut(Interval),
) -> std::io::Result<()> {
    let starts = windows.iter().map(|window| log_ms(Duration::from_nanos(window.start_ns)));
    let at: HashMap<_, _> = starts.zip(0..).collect();
    let mut line = Vec::new();
    loop {
        line.clear();
        log.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Ok(());
        }
        for entry in IntervalLogIterator::new(&line) {
            let Ok(entry) = entry else { return Ok(()) };
            let LogEntry::Interval(interval) = entry else { continue };
            let Some(window) = at.get(&log_ms(interval.start_timestamp())) else { continue };
            let Some((class, suffix)) = parts(interval.tag().map_or("", |tag| tag.as_str())) else {
                continue;
            };
            let Ok(samples) = decode(interval.encoded_histogram()) else { return Ok(()) };
            take(Interval { window: *window, class, suffix, samples });
        }
    }
}

fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// Adds a line's interval, if it belongs to a window that begins at one of these times.
fn add_line(logged: &mut Logged, line: &[u8], windows: &HashMap<String, &Window>) -> Result<(), String> {
    for entry in IntervalLogIterator::new(line) {
        let Ok(entry) = entry else { return Err("it is torn".to_owned()) };
        let LogEntry::Interval(interval) = entry else { continue };
        if let Some(window) = windows.get(&log_ms(interval.start_timestamp())) {
            add(logged, &interval, window)?;
        }
    }
    Ok(())
}

/// Milliseconds as the log's writer rounds them.
fn log_ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs() as f64 + f64::from(time.subsec_nanos()) / 1e9)
}

fn add(logged: &mut Logged, interval: &IntervalLogHistogram, window: &Window) -> Result<(), String> {
    let tag = interval.tag().map_or("", |tag| tag.as_str());
    // Others would only waste memory.
    let Some((class, suffix)) = parts(tag) else { return Ok(()) };
    let buckets = decode(interval.encoded_histogram())?;
    let kind = KINDS.iter().find(|(of, _)| *of == suffix);
    let (figures, at) = (window.class(class), window.index);
    match kind.and_then(|(_, of)| of(&figures.latencies)) {
        Some(latency) => logged.misfits.extend(buckets.misfit(latency).map(|what| {
            format!("the {what} of {class}{suffix} in window {at} does not match its samples in latency.hlog")
        })),
        // Response times of a rate that was not held are not reported as figures.
        None if suffix == ".response" && figures.not_held => {}
        None => logged
            .misfits
            .push(format!("window {at} has no latency of {class}{suffix}, and latency.hlog has its samples")),
    }
    let sum = match logged.sums.entry(tag.to_owned()) {
        Entry::Occupied(sum) => sum.into_mut(),
        Entry::Vacant(none) => none.insert(buckets.histogram()?),
    };
    buckets.add_to(sum)
}

/// The class of a tag, and the suffix that names its latency, if the log uses such tags.
fn parts(tag: &str) -> Option<(Class, &str)> {
    let tag = tag.strip_prefix("warmup.").unwrap_or(tag);
    let (class, suffix) = tag.split_at(tag.find('.').unwrap_or(tag.len()));
    let class = Class::ALL.into_iter().find(|known| known.name() == class)?;
    KINDS.iter().any(|(known, _)| *known == suffix).then_some((class, suffix))
}

/// An interval's samples. Its lengths and bounds are checked before anything of their size is allocated.
fn decode(encoded: &str) -> Result<Buckets, String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).map_err(|e| e.to_string())?;
    let (header, packed) = bytes.split_at_checked(PACKED_HEADER_BYTES).ok_or("it is too short")?;
    let field = |at: usize| header[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    if field(0) != PACKED {
        return Err("it has no packed histogram".into());
    }
    if field(4) as usize != packed.len() {
        return Err(format!("it has {} B, and says {}", packed.len(), field(4)));
    }
    let mut plain = Vec::new();
    ZlibDecoder::new(packed).take(PLAIN_BYTES_MAX + 1).read_to_end(&mut plain).map_err(|e| e.to_string())?;
    if plain.len() as u64 > PLAIN_BYTES_MAX {
        return Err("it unpacks to more than any histogram has".into());
    }
    Buckets::read(&plain)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::fixture::{self, Like};
    use super::*;

    /// The payload of the first interval of a window.
    fn payload() -> Vec<u8> {
        let log = intervals(&fixture::window(0, Like::default()), &mut V2DeflateSerializer::new()).unwrap();
        let line = String::from_utf8(log).unwrap().lines().next().unwrap().to_owned();
        base64::engine::general_purpose::STANDARD.decode(line.rsplit_once(',').unwrap().1).unwrap()
    }

    /// The result of reading it after a change to the packed, and one to the unpacked bytes.
    fn changed(outer: impl Fn(&mut Vec<u8>), inner: impl Fn(&mut Vec<u8>)) -> Result<u64, String> {
        let payload = payload();
        let mut plain = Vec::new();
        ZlibDecoder::new(&payload[PACKED_HEADER_BYTES..]).read_to_end(&mut plain).unwrap();
        inner(&mut plain);
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&plain).unwrap();
        let packed = encoder.finish().unwrap();
        let mut bytes = [&payload[..4], &(packed.len() as u32).to_be_bytes(), &packed].concat();
        outer(&mut bytes);
        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
        decode(&encoded).map(|buckets| buckets.samples())
    }

    #[test]
    fn lengths_and_bounds_are_checked_before_memory_is_taken() {
        let same = |_: &mut Vec<u8>| {};
        let ios = fixture::window(0, Like::default()).class(Class::Scan).ios;
        assert_eq!(changed(same, same), Ok(ios));
        let all = |at: std::ops::Range<usize>| move |bytes: &mut Vec<u8>| bytes[at.clone()].fill(0xff);
        assert!(changed(same, all(4..8)).unwrap_err().contains("says 4294967295"));
        assert!(changed(all(4..8), same).unwrap_err().contains("says 4294967295"));
        assert!(changed(same, |plain| plain.resize(1 << 20, 0)).unwrap_err().contains("more than any"));
        assert!(changed(same, |plain| plain[15] = 5).unwrap_err().contains("5 digits"));
        assert!(changed(same, all(24..32)).unwrap_err().contains("up to 18446744073709551615"));
        assert!(changed(same, |plain| plain[40..49].fill(0xff)).unwrap_err().contains("impossible count"));
        for length in 0..48 {
            assert!(changed(same, |plain| plain.truncate(length)).is_err());
            assert!(changed(|bytes| bytes.truncate(length), same).is_err());
        }
        assert!(
            changed(|bytes| bytes[0] = 0, same).is_err() && changed(same, |plain| plain[3] ^= 1).is_err()
        );
    }

    #[test]
    fn a_line_without_an_end_is_not_read_on() {
        let window = fixture::window(0, Like::default());
        let logged = sums(std::io::BufReader::new(std::io::repeat(b'x')), &[&window]).unwrap();
        assert!(logged.sums.is_empty() && logged.damage.unwrap().contains("longer than any"));
    }

    #[test]
    fn tags_are_those_that_a_run_has() {
        for tag in ["scan", "wal.flush", "warmup.wal.write", "point.response"] {
            assert!(parts(tag).is_some(), "{tag}");
        }
        for tag in ["", "scan.", "scan.x", "others", "warmup.", "wal.flush.flush"] {
            assert!(parts(tag).is_none(), "{tag}");
        }
    }
}
