//! Text that fits: cutting, wrapping, and figures in few cells.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::meter::window::{Change, FigureUnit, LedgerFigure, LedgerLine};
use crate::printable;
use crate::units::{approx_span, format_latency, three_digits};

/// Cells of a line of text that is printed.
pub const WIDTH: usize = 80;
/// Stands for an unknown figure.
pub const NONE: &str = "–";

/// The width of a text, in cells.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text, cut to that many cells, with `…` where something is missing.
pub fn fit(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    cut(text.chars(), cells).into_iter().collect()
}

/// The text, cut at the front (for paths, say) to that many cells.
pub fn fit_end(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    cut(text.chars().rev(), cells).into_iter().rev().collect()
}

/// As many characters as leave room for the `…` after them.
fn cut(chars: impl Iterator<Item = char>, cells: usize) -> Vec<char> {
    let mut out = Vec::new();
    let mut used = 0;
    for c in chars {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > cells {
            break;
        }
        used += w;
        out.push(c);
    }
    out.extend((cells > 0).then_some('…'));
    out
}

/// The text in lines of at most that many cells; a word longer than a line is broken, nothing is lost.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    fill(text, [cells, cells], true)
}

/// Breaks a sentence into lines of at most `cells`; the first keeps its leading spaces, the others start with `indent`.
/// A word longer than a line stays whole.
pub fn paragraph(text: &str, cells: usize, indent: &str) -> String {
    let words = text.trim_start();
    let lead = &text[..text.len() - words.len()];
    let room = [lead, indent].map(|before| cells.saturating_sub(width(before)));
    format!("{lead}{}", fill(words, room, false).join(&format!("\n{indent}")))
}

/// The words in lines, given the width of the first line and of all others.
fn fill(text: &str, cells: [usize; 2], breaks_words: bool) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let room = cells[usize::from(lines.len() > 1)];
        if used > 0 && used + 1 + width(word) > room {
            lines.push(String::new());
            used = 0;
        }
        if used > 0 {
            push(&mut lines, ' ');
            used += 1;
        }
        // A path that is longer than a line is broken between its folders, if it can be.
        for part in word.split_inclusive('/') {
            let room = cells[usize::from(lines.len() > 1)];
            if breaks_words && used > 0 && used + width(part) > room && width(part) <= cells[1] {
                lines.push(String::new());
                used = 0;
            }
            for c in part.chars() {
                let w = c.width().unwrap_or(0);
                let room = cells[usize::from(lines.len() > 1)];
                if breaks_words && used + w > room && used > 0 {
                    lines.push(String::new());
                    used = 0;
                }
                push(&mut lines, c);
                used += w;
            }
        }
    }
    lines
}

/// The text in lines of at most that many cells, with every space kept, as commands and paths need; a longer line is
/// broken anywhere.
pub fn wrap_exact(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        if used > 0 && used + width(word.trim_end_matches(' ')) > cells {
            lines.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let w = c.width().unwrap_or(0);
            if used + w > cells && used > 0 {
                lines.push(String::new());
                used = 0;
            }
            push(&mut lines, c);
            used += w;
        }
    }
    lines
}

/// The text, cut in the middle to that many cells, with `…` where something is missing.
pub fn fit_middle(text: &str, cells: usize) -> String {
    if width(text) <= cells || cells < 3 {
        return fit(text, cells);
    }
    let tail = fit_end(text, cells / 2 + 1);
    let head = fit(text, cells + 1 - width(&tail));
    head + tail.trim_start_matches('…')
}

/// Names cut to that many cells each, so that different names stay different if possible: in the middle, at the front
/// or at the end.
pub fn shortened(names: &[&str], cells: usize) -> Vec<String> {
    let distinct = |names: &[String]| names.iter().collect::<std::collections::BTreeSet<_>>().len();
    let whole: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let ways = [fit_middle, fit_end, fit];
    let mut cut = ways.map(|way| names.iter().map(|name| way(name, cells)).collect::<Vec<_>>()).into_iter();
    let best = cut.clone().find(|cut| distinct(cut) == distinct(&whole));
    best.or_else(|| cut.next()).unwrap_or(whole)
}

fn push(lines: &mut [String], c: char) {
    if let Some(line) = lines.last_mut() {
        line.push(c);
    }
}

/// Pads on the right to that many cells, cutting what is longer.
pub fn left(text: &str, cells: usize) -> String {
    let text = fit(text, cells);
    let pad = cells.saturating_sub(width(&text));
    text + &" ".repeat(pad)
}

/// Pads on the left to that many cells; a figure that does not fit is shown as `#`, not cut.
pub fn right(figure: &str, cells: usize) -> String {
    let w = width(figure);
    if w > cells {
        return "#".repeat(cells);
    }
    " ".repeat(cells - w) + figure
}

/// A count in six cells at most: `870`, `9876`, `12.3k`, `1.23M`.
pub fn count(x: f64) -> String {
    match x.abs() {
        a if a < 9999.5 => format!("{x:.0}"),
        a if a < 999_500.0 => format!("{}k", three_digits(x / 1e3)),
        a if a < 999_500_000.0 => format!("{}M", three_digits(x / 1e6)),
        _ => format!("{}G", three_digits(x / 1e9)),
    }
}

/// MB/s in five cells: `0`, `25.0`, `2310`, `27000`.
pub fn mb(x: f64) -> String {
    if x == 0.0 { "0".into() } else { three_digits(x) }
}

/// How long windows are together: `0.4s`, `12s`, `3m 20s`.
pub fn windows_span(ns: u64) -> String {
    match ns as f64 / 1e9 {
        seconds if seconds < 0.95 => format!("{seconds:.1}s"),
        seconds => approx_span(seconds),
    }
}

/// A latency, or `–` if unknown.
pub fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| NONE.into(), format_latency)
}

/// How large a change is, in percent: `25`, `3.1`.
pub fn unsigned_percent(change: f64) -> String {
    signed(change.abs()).trim_start_matches('+').to_owned()
}

/// A change in percent, with its sign: `+25%`, `−3.1%`.
pub fn signed_percent(change: f64) -> String {
    signed(change) + "%"
}

/// Beyond this, a change's upper bound only says that almost nothing is known, unless the change itself is large.
const BOUND_MAX: f64 = 10.0;

/// The bounds of a change, where it is known: `(+21 to +29%)`, `(−90 to over +1000%)`.
pub fn bounds(change: Option<f64>, (low, high): (f64, f64)) -> String {
    let is_near = change.is_some_and(|change| change > BOUND_MAX / 2.0 && high < 3.0 * change);
    if !is_near && low < BOUND_MAX && BOUND_MAX < high {
        return format!("({} to over {}%)", signed(low), signed(BOUND_MAX));
    }
    format!("({} to {}%)", signed(low), signed(high))
}

/// The bounds of a change in the ledger, after a space: ` (+21 to +29%)`; nothing if it has none.
pub fn interval(change: &Change) -> String {
    change.interval.map_or_else(String::new, |interval| format!(" {}", bounds(change.relative(), interval)))
}

/// A value of a figure of the ledger.
pub fn ledger_value(unit: FigureUnit, value: f64) -> String {
    match unit {
        FigureUnit::MbPerS => mb(value),
        FigureUnit::LatencyNs => format_latency(value.round() as u64),
        FigureUnit::CyclesPerByte => three_digits(value),
        FigureUnit::Share => percent(value),
    }
}

/// A clear change, in percent with its bounds: `−25% (−29 to −21%)`; its values if there was nothing before. None if
/// it is not clear.
pub fn clear_change(figure: LedgerFigure, change: &Change) -> Option<String> {
    if !change.verdict.is_clear() {
        return None;
    }
    let value = |value| ledger_value(figure.unit, value);
    Some(match change.relative() {
        Some(relative) => signed_percent(relative) + &interval(change),
        None => format!("{}→{}", value(change.before?), value(change.after?)),
    })
}

/// From this factor on, a change of a rate is shown rather than one of a latency.
const RATE_FACTOR_MIN: f64 = 1.1;

/// The values that differ most between both sides of a turn, where only a flag forbids a verdict:
/// `scan 100 → 4149 MB/s`. Cycles and missed starts are left out: they follow from the others.
pub fn raw_change(line: &LedgerLine) -> Option<String> {
    if !line.is_flagged() {
        return None;
    }
    let own = line.metrics.iter().map(|(name, change)| (name.as_str(), None, change));
    let figures = line.changes().map(|(figure, change)| (figure.name, Some(figure.unit), change));
    // Of the rates, the one that changed most; else of the latencies.
    let mut most = (false, 1.0, None);
    for (name, unit, change) in own.chain(figures) {
        let (Some(before), Some(after)) = (change.before, change.after) else { continue };
        let factor = (after / before).max(before / after);
        let is_rate = unit == Some(FigureUnit::MbPerS) && factor > RATE_FACTOR_MIN;
        if before.min(after) <= 0.0 || (is_rate, factor) <= (most.0, most.1) {
            continue;
        }
        let text = match unit {
            Some(FigureUnit::CyclesPerByte | FigureUnit::Share) => continue,
            Some(FigureUnit::MbPerS) => {
                format!("{} {} → {} MB/s", name.trim_end_matches(" MB/s"), mb(before), mb(after))
            }
            Some(unit) => format!("{name} {} → {}", ledger_value(unit, before), ledger_value(unit, after)),
            None => {
                format!("{} {} → {}", printable::line(name), three_digits(before), three_digits(after))
            }
        };
        most = (is_rate, factor, Some(text));
    }
    most.2
}

fn signed(share: f64) -> String {
    format!("{:+.*}", usize::from(share.abs() < 0.0995), share * 100.0).replace('-', "−")
}

/// A share in whole percent; a nonzero share that rounds to zero reads `<1%`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.5 => "<1%".into(),
        p => format!("{p:.0}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_with_a_mark() {
        assert_eq!(fit("background", 10), "background");
        assert_eq!(fit("background", 6), "backg…");
        assert_eq!(fit_end("/var/lib/data", 6), "…/data");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("x", 0), "");
    }

    #[test]
    fn different_names_stay_different_when_cut() {
        assert_eq!(shortened(&["nvme0n1", "nvme1n1"], 7), ["nvme0n1", "nvme1n1"]);
        assert_eq!(shortened(&["a-very-long-one", "a-very-long-two"], 8), ["a-v…-one", "a-v…-two"]);
        assert_eq!(shortened(&["1-very-long-name", "2-very-long-name"], 8), ["1-v…name", "2-v…name"]);
        assert_eq!(shortened(&["xx1-long-name-xxx", "xx2-long-name-xxx"], 4), ["xx1…", "xx2…"]);
        assert_eq!(shortened(&["abcdefgh", "abcdefgh"], 4).len(), 2);
    }

    #[test]
    fn bounds_that_say_nearly_nothing_do_not_pretend_to() {
        assert_eq!(bounds(Some(0.1), (-0.05, 0.31)), "(−5.0 to +31%)");
        assert_eq!(bounds(Some(0.2), (-0.99, 83.51)), "(−99 to over +1000%)");
        assert_eq!(bounds(None, (11.0, 12.0)), "(+1100 to +1200%)");
        assert_eq!(bounds(Some(12.21), (9.38, 15.86)), "(+938 to +1586%)");
        assert_eq!(bounds(Some(12.21), (9.38, 83.51)), "(+938 to over +1000%)");
    }

    #[test]
    fn wrapping_loses_nothing() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        let path = wrap("recorded in /root/.local/share/demo-1", 14);
        assert_eq!(path, ["recorded in", "/root/.local/", "share/demo-1"], "between folders");
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn paragraphs_keep_their_indent_and_long_words() {
        assert_eq!(paragraph("  aa bb cc", 7, "    "), "  aa bb\n    cc");
        assert_eq!(paragraph("aa", 1, ""), "aa");
        assert_eq!(paragraph("µµ µµ µµ", 5, " "), "µµ µµ\n µµ");
        assert_eq!(paragraph("", 5, " "), "");
    }

    #[test]
    fn commands_keep_their_blanks_and_both_ends() {
        assert_eq!(wrap_exact("a  'b  c' d", 7), ["a  'b  ", "c' d"]);
        assert_eq!(wrap_exact("abcdefghij", 4).concat(), "abcdefghij");
        assert_eq!(fit_middle("mkfs.ext4 /dev/md7", 11), "mkfs.…v/md7");
        assert_eq!(fit_middle("mkfs", 4), "mkfs");
        for cells in 0..20 {
            assert!(width(&fit_middle("mkfs.ext4 /dev/md7", cells)) <= cells);
        }
    }

    #[test]
    fn a_figure_is_never_cut_into_another() {
        assert_eq!(right("12345", 6), " 12345");
        assert_eq!(right("1234567", 6), "######");
        assert_eq!(count(9999.4), "9999");
        assert_eq!(count(9999.6), "10.0k");
        assert_eq!(count(1_234_567.0), "1.23M");
        assert_eq!(percent(0.001), "<1%");
    }
}
