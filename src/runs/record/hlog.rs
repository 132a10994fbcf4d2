//! `latency.hlog`: an interval log that HdrHistogram's own tools read.
//!
//! `StartTime` and `BaseTime` are the wall clock at the run's time 0, so an interval's time stamp is its
//! window's `start_ns` in seconds. Values are nanoseconds. The tag `scan`, `point`, `wal` or `background` is
//! the class's service latency (for the WAL the commit); `.response`, `wal.write` and `wal.flush` are the
//! others. Those of the warm-up, which the totals leave out, have their own tags (`warmup.scan`): merging a
//! tag gives the percentiles of the summary.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, Read};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use crate::class::Class;
use crate::meter::window::{ClassHistograms, Window};

/// Longer than any line that a run writes: a histogram has a few kilobytes.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// The header of a packed histogram (cookie and length), and its cookie.
const PACKED_HEADER_BYTES: usize = 8;
const PACKED: u32 = 0x1c84_9314;
/// The header of one unpacked, and its cookie.
const PLAIN_HEADER_BYTES: usize = 40;
const PLAIN: u32 = 0x1c84_9313;
/// More than one unpacked ever has: 41,984 counts of at most 9 B, see the bounds.
const PLAIN_BYTES_MAX: u64 = 1 << 19;
/// The bounds of a run's histograms: their digits, and more than their highest value (13 days).
const DIGITS: u32 = 3;
const HIGHEST_MAX: u64 = 1 << 50;
/// More I/Os than a window can have; the sum of all windows fits 64 bits.
const COUNT_MAX: u64 = 1 << 40;

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

/// What a log has of some windows.
#[derive(Debug, Default)]
pub(super) struct Logged {
    /// The sums of their intervals, by tag.
    pub sums: BTreeMap<String, Histogram<u64>>,
    /// Why everything from some line on is left out.
    pub damage: Option<String>,
    /// The number of lines that had been there before, which are left out, too.
    pub repeated: u64,
}

/// Reads the intervals of these windows. An incomplete last line is left out without a word.
///
/// # Errors
/// If the log can't be read.
pub(super) fn sums(mut log: impl BufRead, windows: &[&Window]) -> std::io::Result<Logged> {
    // Time stamps in the log have three decimals.
    let starts: HashSet<_> = windows.iter().map(|w| log_ms(Duration::from_nanos(w.start_ns))).collect();
    let mut logged = Logged::default();
    let mut deserializer = Deserializer::new();
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
            add_line(&mut logged.sums, &line, &starts, &mut deserializer)
        };
        if let Err(why) = added {
            logged.damage = Some(format!("line {number} and those after it are left out: {why}"));
            break;
        }
    }
    Ok(logged)
}

fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// Adds a line's interval, if it is one of a window that begins at one of these times.
fn add_line(
    sums: &mut BTreeMap<String, Histogram<u64>>,
    line: &[u8],
    starts: &HashSet<String>,
    deserializer: &mut Deserializer,
) -> Result<(), String> {
    for entry in IntervalLogIterator::new(line) {
        match entry {
            Ok(LogEntry::Interval(i)) if starts.contains(&log_ms(i.start_timestamp())) => {
                add(sums, &i, deserializer)?;
            }
            Ok(_) => {}
            Err(_) => return Err("it is torn".to_owned()),
        }
    }
    Ok(())
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
    let tag = interval.tag().map_or("", |tag| tag.as_str());
    if !is_tag(tag) {
        return Ok(());
    }
    let histogram = decode(interval.encoded_histogram(), deserializer)?;
    let Some(sum) = sums.get_mut(tag) else {
        sums.insert(tag.to_owned(), histogram);
        return Ok(());
    };
    sum.auto(true);
    sum.add(histogram).map_err(|e| e.to_string())
}

/// Whether the log has that tag: others would only take memory.
fn is_tag(tag: &str) -> bool {
    let tag = tag.strip_prefix("warmup.").unwrap_or(tag);
    let (class, suffix) = tag.split_at(tag.find('.').unwrap_or(tag.len()));
    Class::ALL.iter().any(|known| known.name() == class)
        && ["", ".response", ".write", ".flush"].contains(&suffix)
}

/// An interval's histogram. Its lengths and bounds are checked before anything is made of their size.
fn decode(encoded: &str, deserializer: &mut Deserializer) -> Result<Histogram<u64>, String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).map_err(|e| e.to_string())?;
    let [PACKED, length, _] = fields(&bytes)? else { return Err("it has no packed histogram".into()) };
    let packed = &bytes[PACKED_HEADER_BYTES..];
    if length as usize != packed.len() {
        return Err(format!("it has {} B, and says {length}", packed.len()));
    }
    let mut plain = Vec::new();
    ZlibDecoder::new(packed).take(PLAIN_BYTES_MAX + 1).read_to_end(&mut plain).map_err(|e| e.to_string())?;
    check_plain(&plain)?;
    let histogram: Histogram<u64> =
        deserializer.deserialize(&mut plain.as_slice()).map_err(|e| e.to_string())?;
    if histogram.len() > COUNT_MAX {
        return Err(format!("{} I/Os in a window are impossible", histogram.len()));
    }
    Ok(histogram)
}

/// The first three numbers.
fn fields(bytes: &[u8]) -> Result<[u32; 3], String> {
    let number = |at: usize| Some(u32::from_be_bytes(*bytes.get(at * 4..)?.first_chunk()?));
    let all = || Some([number(0)?, number(1)?, number(2)?]);
    all().ok_or_else(|| "it is too short".to_owned())
}

/// Refuses an unpacked histogram of another size, or of other bounds, than a run has. Its header: cookie, length of
/// the counts, offset, digits (4 bytes each), lowest and highest value (8 each), ratio (8).
fn check_plain(plain: &[u8]) -> Result<(), String> {
    if plain.len() as u64 > PLAIN_BYTES_MAX {
        return Err("it unpacks to more than any histogram has".into());
    }
    let [cookie, length, _] = fields(plain)?;
    let counts = plain.get(PLAIN_HEADER_BYTES..).ok_or("it unpacks to too little")?;
    if cookie != PLAIN || length as usize != counts.len() {
        return Err(format!("it unpacks to {} B of counts, and says {length}", counts.len()));
    }
    let digits = u32::from_be_bytes([plain[12], plain[13], plain[14], plain[15]]);
    let highest = plain[24..32].iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    if digits > DIGITS || highest > HIGHEST_MAX {
        return Err(format!("no histogram of a run has {digits} digits up to {highest}"));
    }
    // As a number, -2^63, which the library can't negate.
    if counts.windows(9).any(|bytes| bytes == [0xff; 9]) {
        return Err("it has an impossible count".into());
    }
    Ok(())
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

    /// What becomes of it after a change to the packed, and one to the unpacked bytes.
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
        decode(&encoded, &mut Deserializer::new()).map(|histogram| histogram.len())
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
            assert!(is_tag(tag), "{tag}");
        }
        for tag in ["", "scan.", "scan.x", "others", "warmup.", "wal.flush.flush"] {
            assert!(!is_tag(tag), "{tag}");
        }
    }
}
