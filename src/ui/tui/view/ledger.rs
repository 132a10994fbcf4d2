//! The ledger: what each turn did, the newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::duel;
use super::frame::{has_focus, panel, put, span};
use crate::meter::flag::FlagKind;
use crate::meter::window::{Change, LedgerLine, Verdict};
use crate::ui::text::{NONE, bounds, left, mb, percent, signed_percent, width};
use crate::ui::tui::state::{Focus, State};
use crate::units::{approx_span, format_latency, three_digits};

/// From this width on, a turn takes one row.
const TABLE_CELLS: usize = 112;
const TURN_CELLS: usize = 42;
const CHANGE_CELLS: usize = 16;

/// A figure of the ledger.
struct Figure {
    name: &'static str,
    of: fn(&LedgerLine) -> &Change,
    show: fn(f64) -> String,
    /// Whether a higher value is a gain.
    more_is_gain: bool,
}

const CYCLES: &str = "cycles/B";

/// Those that every turn shows.
const FIGURES: [Figure; 5] = [
    Figure { name: "scan MB/s", of: |l| &l.scan_mb_per_s, show: mb, more_is_gain: true },
    Figure { name: "point p99", of: |l| &l.point_p99_ns, show: ns, more_is_gain: false },
    Figure { name: "wal p99", of: |l| &l.wal_p99_ns, show: ns, more_is_gain: false },
    Figure { name: "total MB/s", of: |l| &l.total_mb_per_s, show: mb, more_is_gain: true },
    Figure { name: CYCLES, of: |l| &l.cycles_per_byte, show: three_digits, more_is_gain: false },
];
/// Those that are shown of an opened turn, and of others where they changed clearly.
const FURTHER: [Figure; 4] = [
    Figure { name: "point p50", of: |l| &l.point_p50_ns, show: ns, more_is_gain: false },
    Figure { name: "wal MB/s", of: |l| &l.wal_mb_per_s, show: mb, more_is_gain: true },
    Figure { name: "wal p50", of: |l| &l.wal_p50_ns, show: ns, more_is_gain: false },
    Figure { name: "missed", of: |l| &l.missed_share, show: percent, more_is_gain: false },
];

fn ns(x: f64) -> String {
    format_latency(x.round() as u64)
}

/// Draws it.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let focused = has_focus(state, Focus::Ledger);
    let ledger = &state.figures().ledger;
    let count = match ledger.len() {
        0 => String::new(),
        1 => "1 turn · ".into(),
        n => format!("{n} turns · "),
    };
    let legend =
        if area.width < 60 { "◇ no clear change" } else { "▲ higher  ▼ lower  ◇ no clear change" };
    let remark = count + legend;
    let inner = panel(state, buf, area, "ledger", &remark, focused);
    let theme = &state.theme;
    if ledger.is_empty() {
        put(buf, inner.x, inner.y, inner.width, &Line::from(span("no knob has been turned yet", theme.dim)));
        return;
    }
    let cells = usize::from(inner.width);
    // Unless the ledger has the focus, the newest turn is shown.
    let chosen = if focused { state.ledger_chosen.min(ledger.len() - 1) } else { 0 };
    let duel = state.duel.as_ref();
    let mut lines = duel.map_or_else(Vec::new, |(_, shown)| duel::rows(state, shown, cells));
    if cells >= TABLE_CELLS {
        lines.push(titles(state));
    }
    let room = usize::from(inner.height).saturating_sub(lines.len());
    let newest_first: Vec<_> = ledger.iter().rev().collect();
    let entry = |at: usize| {
        let open = focused && at == chosen;
        entry(state, newest_first[at], open, cells)
    };
    // The first line shown, such that the chosen one is fully visible, at the bottom if need be.
    let mut first = chosen;
    let mut taken = entry(chosen).len();
    while first > 0 && taken + entry(first - 1).len() <= room {
        first -= 1;
        taken += entry(first).len();
    }
    for at in first..newest_first.len() {
        if lines.len() >= usize::from(inner.height) {
            break;
        }
        lines.extend(entry(at));
    }
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

fn titles(state: &State) -> Line<'static> {
    let mut text = left("turn", TURN_CELLS);
    for figure in &FIGURES {
        text += &left(figure.name, CHANGE_CELLS);
    }
    Line::from(span(text, state.theme.dim))
}

/// A turn's rows; if opened, every figure with its spread.
fn entry(state: &State, line: &LedgerLine, open: bool, cells: usize) -> Vec<Line<'static>> {
    let head = head(state, line, open);
    if open {
        let mut rows = head_rows(head, cells);
        rows.extend(remarks(state, line, cells));
        let further = FURTHER.iter().filter(|figure| (figure.of)(line).before.is_some());
        let figures = FIGURES.iter().chain(further);
        rows.extend(figures.flat_map(|figure| spread(state, line, figure, cells)));
        return rows;
    }
    if cells >= TABLE_CELLS {
        return table(state, line, head, cells);
    }
    let mut rows = head_rows(head, cells);
    rows.extend(remarks(state, line, cells));
    rows.extend(flow(state, line, FIGURES.iter().chain(clear_further(line)), cells));
    rows
}

/// Of the figures that not every turn shows, those that changed clearly.
fn clear_further(line: &LedgerLine) -> impl Iterator<Item = &'static Figure> {
    FURTHER.iter().filter(|figure| (figure.of)(line).verdict.is_clear())
}

/// Number, time and the change.
fn head(state: &State, line: &LedgerLine, chosen: bool) -> Vec<Span<'static>> {
    let theme = &state.theme;
    let undo = if line.undo { "undo " } else { "" };
    vec![
        span(if chosen { "▸" } else { " " }, theme.accent),
        span(format!("{:>3} ", line.number), theme.dim),
        span(format!("{:>7} ", approx_span(line.at_ns as f64 / 1e9)), theme.dim),
        span(format!("{undo}{} ", line.knob), theme.plain),
        span(format!("{} → {}", line.from, line.to), theme.strong),
    ]
}

/// The words beside the figures.
fn words(line: &LedgerLine) -> Vec<String> {
    let mut words = Vec::new();
    if line.open {
        words.push("gathering…".into());
    }
    // A compared line has this among its flags.
    let less_durable = FlagKind::LessDurable.text();
    if line.less_durable && !line.flags.iter().any(|flag| flag == less_durable) {
        words.push(less_durable.into());
    }
    if !line.flags.is_empty() {
        words.push(line.flags.join(", "));
    }
    let verdicts = || line.changes().into_iter().map(|(_, change)| change.verdict);
    if !line.open && verdicts().all(|verdict| verdict == Verdict::None) {
        words.push("no verdict".into());
    } else if !line.open && !verdicts().any(Verdict::is_clear) {
        words.push("◇ no clear change".into());
    }
    words
}

fn remarks(state: &State, line: &LedgerLine, cells: usize) -> Vec<Line<'static>> {
    let duel = state.duels.get(&line.number).cloned();
    let words: Vec<String> = words(line).into_iter().chain(duel).collect();
    let words = words.join(" · ");
    if words.is_empty() {
        return Vec::new();
    }
    let wrapped = crate::ui::text::wrap(&words, cells.saturating_sub(5));
    wrapped.into_iter().map(|text| Line::from(span(format!("     {text}"), state.theme.warn))).collect()
}

fn table(state: &State, line: &LedgerLine, head: Vec<Span<'static>>, cells: usize) -> Vec<Line<'static>> {
    let mut spans = head;
    let used: usize = spans.iter().map(Span::width).sum();
    // A long turn gets a separate row, so that neither its values nor the figures are cut.
    let mut rows = Vec::new();
    if used >= TURN_CELLS {
        rows.push(Line::from(std::mem::take(&mut spans)));
        spans.push(Span::raw(" ".repeat(TURN_CELLS)));
    } else {
        spans.push(Span::raw(" ".repeat(TURN_CELLS - used)));
    }
    for figure in &FIGURES {
        let (text, style) = change(state, line, figure);
        spans.push(span(left(&text, CHANGE_CELLS), style));
    }
    rows.push(Line::from(spans));
    rows.extend(flow(state, line, clear_further(line), cells));
    rows.extend(remarks(state, line, cells));
    rows
}

/// Before, after and the verdict: `2310→2401 ▲`.
fn change(state: &State, line: &LedgerLine, figure: &Figure) -> (String, Style) {
    let change = (figure.of)(line);
    let show = |x: Option<f64>| x.map_or_else(|| NONE.into(), figure.show);
    if change.before.is_none() && change.after.is_none() {
        return (NONE.into(), state.theme.dim);
    }
    let text = format!("{}→{} {}", show(change.before), show(change.after), mark(change.verdict));
    (text.trim_end().into(), style(state, line, figure, change.verdict))
}

fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::None => "",
        Verdict::NoClearChange => "◇",
        Verdict::Higher => "▲",
        Verdict::Lower => "▼",
    }
}

/// A stack that survives less is never shown as a gain, nor coloured as one.
fn style(state: &State, line: &LedgerLine, figure: &Figure, verdict: Verdict) -> Style {
    let theme = &state.theme;
    let gain = match verdict {
        Verdict::None | Verdict::NoClearChange => return theme.plain,
        Verdict::Higher => figure.more_is_gain,
        Verdict::Lower => !figure.more_is_gain,
    };
    match (gain, line.is_less_safe()) {
        (true, true) => theme.plain,
        (true, false) => theme.good,
        (false, _) => theme.bad,
    }
}

/// Figures one after the other, in as many rows as they need.
fn flow(
    state: &State,
    line: &LedgerLine,
    figures: impl Iterator<Item = &'static Figure>,
    cells: usize,
) -> Vec<Line<'static>> {
    const INDENT: usize = 5;
    const GAP: usize = 3;
    let mut rows: Vec<Vec<Span<'static>>> = Vec::new();
    let mut used = cells;
    for figure in figures {
        let (text, style) = change(state, line, figure);
        let name = format!("{} ", figure.name);
        let wide = width(&name) + width(&text);
        if used + GAP + wide > cells {
            rows.push(vec![Span::raw(" ".repeat(INDENT))]);
            used = INDENT;
        } else if let Some(row) = rows.last_mut() {
            row.push(Span::raw(" ".repeat(GAP)));
            used += GAP;
        }
        used += wide;
        if let Some(row) = rows.last_mut() {
            row.push(span(name, state.theme.dim));
            row.push(span(text, style));
        }
    }
    rows.into_iter().map(Line::from).collect()
}

/// A figure with the smallest and the largest window of both sides, in two rows if one is too short.
fn spread(state: &State, line: &LedgerLine, figure: &Figure, cells: usize) -> Vec<Line<'static>> {
    const NAME_CELLS: usize = 17;
    let change = (figure.of)(line);
    let side = |mean: Option<f64>, range: Option<(f64, f64)>| match (mean, range) {
        (Some(mean), Some((low, high))) => {
            format!("{} ({}–{})", (figure.show)(mean), (figure.show)(low), (figure.show)(high))
        }
        (Some(mean), None) => (figure.show)(mean),
        (None, _) => NONE.into(),
    };
    let bounds = || change.interval.map_or_else(String::new, |interval| format!(" {}", bounds(interval)));
    let by = |word: &str| match (change.before, change.after) {
        (Some(before), Some(after)) if before > 0.0 => signed_percent(after / before - 1.0),
        _ => word.into(),
    };
    let others = || line.cycles_not_judged().filter(|_| figure.name == CYCLES && change.after.is_some());
    let verdict = match change.verdict {
        Verdict::None => others().map_or_else(String::new, |why| format!("  {why}")),
        Verdict::NoClearChange => format!("  ◇ no clear change{}", bounds()),
        Verdict::Higher => format!("  ▲ {}{}", by("higher"), bounds()),
        Verdict::Lower => format!("  ▼ {}{}", by("lower"), bounds()),
    };
    let theme = &state.theme;
    let name = span(left(&format!("     {}", figure.name), NAME_CELLS), theme.dim);
    let before = span(side(change.before, change.before_range), theme.plain);
    let after = span(format!(" → {}", side(change.after, change.after_range)), theme.plain);
    let verdict = span(verdict, style(state, line, figure, change.verdict));
    let all = Line::from(vec![name.clone(), before.clone(), after.clone(), verdict.clone()]);
    if all.width() <= cells {
        return vec![all];
    }
    let indent = Span::raw(" ".repeat(NAME_CELLS - 3));
    // If the words do not fit, only the mark is shown.
    let room = cells.saturating_sub(indent.width() + after.width());
    let short = span(format!("  {}", mark(change.verdict)), verdict.style);
    let verdict = if verdict.width() <= room { verdict } else { short };
    vec![Line::from(vec![name, before]), Line::from(vec![indent, after, verdict])]
}

/// The heading in one row, or with its values in a second one.
fn head_rows(mut head: Vec<Span<'static>>, cells: usize) -> Vec<Line<'static>> {
    let wide: usize = head.iter().map(Span::width).sum();
    if wide <= cells {
        return vec![Line::from(head)];
    }
    let values = head.pop().unwrap_or_default();
    vec![Line::from(head), Line::from(vec![Span::raw(" ".repeat(5)), values])]
}
