//! Charts as characters: bars from zero, and points on a logarithmic scale.

use crate::ui::blocks;

/// Possible ends of a scale, times a power of ten.
const STEPS: [f64; 9] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];
/// Braille dots of the left half, the lowest first.
const LEFT: [u32; 4] = [0x40, 0x04, 0x02, 0x01];
/// Braille dots of the right half.
const RIGHT: [u32; 4] = [0x80, 0x20, 0x10, 0x08];

/// The round number at which a scale from zero ends.
pub fn round_up(x: f64) -> f64 {
    if !x.is_finite() || x <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powi(x.log10().floor() as i32);
    STEPS.into_iter().map(|step| step * power).find(|end| *end >= x).unwrap_or(10.0 * power)
}

/// A column of a bar chart, the lowest row first. Zero is a line at the bottom, never a bar; anything above zero is
/// visible.
pub fn bar(value: f64, end: f64, rows: usize) -> Vec<char> {
    if value <= 0.0 || !value.is_finite() {
        let mut column = vec![' '; rows];
        column[0] = '_';
        return column;
    }
    let eighths = (value / end * (rows * 8) as f64).round() as usize;
    blocks::column(eighths.max(1), rows).collect()
}

/// The decades that contain these latencies, as powers of ten of nanoseconds.
pub fn decades(latencies_ns: impl Iterator<Item = u64>) -> Option<(i32, i32)> {
    let mut bounds: Option<(u64, u64)> = None;
    for ns in latencies_ns.map(|ns| ns.max(1)) {
        let (low, high) = bounds.unwrap_or((ns, ns));
        bounds = Some((low.min(ns), high.max(ns)));
    }
    let (low, high) = bounds?;
    let (low, high) = ((low as f64).log10().floor() as i32, (high as f64).log10().ceil() as i32);
    Some((low, high.max(low + 1)))
}

/// How many dots above the bottom a latency is, at four dots a row.
pub fn dot(ns: u64, (low, high): (i32, i32), rows: usize) -> usize {
    let dots = rows * 4 - 1;
    let share = ((ns.max(1) as f64).log10() - f64::from(low)) / f64::from(high - low);
    (share.clamp(0.0, 1.0) * dots as f64).round() as usize
}

/// A column of a line chart, the lowest row first: from the dot before (left half) to this one.
pub fn line(before: Option<usize>, now: Option<usize>, rows: usize) -> Vec<char> {
    let mut column = vec![' '; rows];
    let Some(now) = now else { return column };
    let mut bits = vec![0u32; rows];
    let before = before.unwrap_or(now);
    for at in before.min(now)..=before.max(now) {
        bits[at / 4] |= LEFT[at % 4];
    }
    bits[now / 4] |= RIGHT[now % 4];
    for (cell, bits) in column.iter_mut().zip(bits) {
        if bits > 0 {
            *cell = char::from_u32(0x2800 + bits).unwrap_or(' ');
        }
    }
    column
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        for (x, end) in [(0.0, 1.0), (1.0, 1.0), (3.1, 4.0), (2310.0, 2500.0), (9000.0, 10_000.0)] {
            assert!((round_up(x) - end).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn bars_grow_from_zero_and_small_values_are_seen() {
        assert_eq!(bar(0.0, 10.0, 2), ['_', ' ']);
        assert_eq!(bar(0.001, 10.0, 2), ['▁', ' ']);
        assert_eq!(bar(5.0, 10.0, 2), ['█', ' ']);
        assert_eq!(bar(10.0, 10.0, 2), ['█', '█']);
        assert_eq!(bar(99.0, 10.0, 2), ['█', '█']);
    }

    #[test]
    fn decades_enclose_every_latency() {
        assert_eq!(decades([].into_iter()), None);
        assert_eq!(decades([85_000, 1_200_000].into_iter()), Some((4, 7)));
        assert_eq!(decades([100_000].into_iter()), Some((5, 6)));
        assert_eq!(dot(10_000, (4, 6), 2), 0);
        assert_eq!(dot(1_000_000, (4, 6), 2), 7);
    }

    #[test]
    fn lines_connect_to_the_previous_point() {
        assert_eq!(line(None, Some(0), 1), ['⣀']);
        assert_eq!(line(Some(3), Some(0), 1), ['⣇']);
        assert_eq!(line(Some(3), None, 1), [' ']);
    }
}
