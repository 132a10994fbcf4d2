//! Quantities as text: sizes are binary (`16KiB`), rates are decimal (`250MB/s`), never mixed.

use std::time::Duration;

/// One KiB in bytes.
pub const KIB: u64 = 1 << 10;
/// One MiB in bytes.
pub const MIB: u64 = 1 << 20;
/// One GiB in bytes.
pub const GIB: u64 = 1 << 30;
/// Rounds down to whole MiB, the unit of every layout.
pub const fn floor_mib(bytes: u64) -> u64 {
    bytes / MIB * MIB
}

/// One second in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;

const BINARY: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
const DECIMAL: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];

/// Splits `12.5MiB` into its number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse::<f64>().ok()?;
    number.is_finite().then_some((number, text[end..].trim()))
}

fn scaled(number: f64, factor: u64) -> Option<u64> {
    let bytes = number * factor as f64;
    // Above 2^53 a float no longer holds every integer; nothing real is that large.
    ((0.0..9e15).contains(&bytes) && bytes.fract() == 0.0).then_some(bytes as u64)
}

fn factor_of(unit: &str) -> Option<u64> {
    let same = |name: &str| name.eq_ignore_ascii_case(unit);
    if unit.is_empty() || same("B") {
        return Some(1);
    }
    BINARY.iter().chain(&DECIMAL).find(|(name, _)| same(name)).map(|&(_, factor)| factor)
}

/// What a single letter stands for, as in fio, dd and mkfs: `4k` is 4KiB.
fn factor_of_letter(letter: &str) -> Option<u64> {
    let is_first = |name: &str| letter.len() == 1 && name[..1].eq_ignore_ascii_case(letter);
    BINARY.iter().find(|(name, _)| is_first(name)).map(|&(_, factor)| factor)
}

/// Bytes from `512`, `16KiB`, `16k`, `1.5GiB` or `100GB`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    split(text)
        .and_then(|(number, unit)| scaled(number, factor_of(unit).or_else(|| factor_of_letter(unit))?))
        .ok_or_else(|| format!("`{text}` is not a size: write one like 16KiB or 1GiB"))
}

/// A size exactly, in the unit that makes it shortest: `16KiB`, `1GiB`, `2GB`, `1001B`.
pub fn format_size(bytes: u64) -> String {
    let in_units = |units: &[(&str, u64)]| {
        let unit = units.iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
        unit.map_or_else(|| format!("{bytes}B"), |(name, factor)| format!("{}{name}", bytes / factor))
    };
    // The one that was probably meant: 2GB is a whole number of KiB, too.
    let (binary, decimal) = (in_units(&BINARY), in_units(&DECIMAL));
    if decimal.len() < binary.len() { decimal } else { binary }
}

/// A size rounded for reading: `1.43 GiB`.
pub fn approx_size(bytes: u64) -> String {
    match BINARY.iter().find(|(_, factor)| bytes >= *factor) {
        Some((name, factor)) => format!("{} {name}", three_digits(bytes as f64 / *factor as f64)),
        None => format!("{bytes} B"),
    }
}

/// A size rounded for reading in decimal units, as drive makers give it: `1.20 PB`, `600 TB`.
pub fn approx_decimal(bytes: u64) -> String {
    let units = [("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.iter().find(|(_, factor)| bytes as f64 >= *factor) {
        Some((name, factor)) => format!("{} {name}", three_digits(bytes as f64 / factor)),
        None => format!("{bytes} B"),
    }
}

/// Bytes a second from `250MB/s`, `1.5GB/s`, `64MiB/s`.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    text.trim()
        .strip_suffix("/s")
        .and_then(split)
        .and_then(|(number, unit)| scaled(number, factor_of(unit)?))
        .filter(|rate| *rate > 0)
        .ok_or_else(|| format!("`{text}` is not a rate: write one like 250MB/s, or none"))
}

/// A rate exactly, in the largest decimal unit that divides it: `250MB/s`.
pub fn format_rate(bytes_per_s: u64) -> String {
    match DECIMAL.iter().find(|(_, factor)| bytes_per_s >= *factor && bytes_per_s.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}/s", bytes_per_s / factor),
        None => format!("{bytes_per_s}B/s"),
    }
}

/// A duration from `30s`, `100ms`, `50us`, `1m30s`, `2h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 7] =
        [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
    let wrong = || format!("`{text}` is not a duration: write one like 30s, 100ms or 1m30s");
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, tail) = split(rest).ok_or_else(wrong)?;
        let (name, factor) = UNITS.iter().find(|(name, _)| tail.starts_with(name)).ok_or_else(wrong)?;
        seconds += number * factor;
        rest = tail[name.len()..].trim_start();
    }
    // A century is longer than any run, and far from where Duration overflows.
    if !(0.0..3.2e9).contains(&seconds) {
        return Err(wrong());
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// A duration exactly, in its largest unit: `100ms`, `30s`, `90s`.
pub fn format_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    let units = [("h", 3_600 * 1_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
    match units.iter().find(|(_, factor)| ns >= *factor && ns.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", ns / factor),
        None => format!("{ns}ns"),
    }
}

/// A time span for reading: `3m 20s`, `12s`.
pub fn approx_span(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m {:02}s", s / 60, s % 60),
        _ => format!("{}h {:02}m", s / 3600, s % 3600 / 60),
    }
}

/// A time for reading that may be short: `0.42s`, `12s`, `3m 20s`.
pub fn fine_span(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 9.95 => format!("{}s", three_digits(seconds)),
        seconds => approx_span(seconds),
    }
}

/// Three significant digits: `1.23`, `12.3`, `123`, `1234`.
pub fn three_digits(x: f64) -> String {
    match x.abs() {
        a if a >= 99.95 => format!("{x:.0}"),
        a if a >= 9.995 => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

/// A number with commas between thousands: `1,000,000`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let groups = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| group.iter().map(|&c| char::from(c)).collect::<String>());
    groups.collect::<Vec<_>>().join(",")
}

/// A latency for reading: `870ns`, `12.3µs`, `1.20ms`, `2.00s`.
pub fn format_latency(ns: u64) -> String {
    match ns {
        0..1000 => format!("{ns}ns"),
        1000..999_500 => format!("{}µs", three_digits(ns as f64 / 1e3)),
        999_500..999_500_000 => format!("{}ms", three_digits(ns as f64 / 1e6)),
        _ => format!("{}s", three_digits(ns as f64 / 1e9)),
    }
}

/// Bytes over a time as decimal MB/s.
pub fn mb_per_s(bytes: u64, duration_ns: u64) -> f64 {
    if duration_ns == 0 { 0.0 } else { bytes as f64 * 1e3 / duration_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_000_000].map(grouped), ["0", "999", "1,000", "1,000,000"]);
    }

    #[test]
    fn sizes_go_there_and_back() {
        for text in ["512B", "16KiB", "1GiB", "3MiB", "1001B", "4kB", "2GB", "300MB", "2TiB"] {
            assert_eq!(format_size(parse_size(text).unwrap()), text);
        }
        assert_eq!(parse_size("1.5 GiB").unwrap(), 3 << 29);
        assert_eq!(parse_size("100GB").unwrap(), 100_000_000_000);
        assert_eq!(
            ["4k", "64K", "1M", "2g"].map(|text| format_size(parse_size(text).unwrap())),
            ["4KiB", "64KiB", "1MiB", "2GiB"]
        );
        for wrong in ["", "GiB", "-1", "1XB", "1e30", "0.3B", "9999999TiB", "1GiB/s", "4x", "k", "4Ki"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_decimal_and_need_their_second() {
        assert_eq!(parse_rate("250MB/s").unwrap(), 250_000_000);
        assert_eq!(format_rate(250_000_000), "250MB/s");
        assert_eq!(format_rate(1_500_000_000), "1500MB/s");
        for wrong in ["250MB", "250M/s", "0MB/s", "/s", "MB/s"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_go_there_and_back() {
        assert_eq!(parse_duration("1m30s").unwrap(), Duration::from_secs(90));
        for text in ["100ms", "30s", "50us", "2h", "7ns"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
        for wrong in ["", "5", "s", "1x", "-3s", "99999999999h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn latencies_read_well_at_the_borders_of_their_units() {
        assert_eq!(format_latency(999), "999ns");
        assert_eq!(format_latency(1000), "1.00µs");
        assert_eq!(format_latency(999_499), "999µs");
        assert_eq!(format_latency(999_500), "1.00ms");
        assert_eq!(format_latency(60 * SECOND_NS), "60.0s");
    }
}
