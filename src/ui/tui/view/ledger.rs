//! The ledger: what each turn did, the newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::duel;
use super::frame::{has_focus, panel, put, span};
use super::turn::{clear, clear_changes, is_of_survival, own_style, style, unclear_change, verdict};
use crate::meter::window::{Change, FigureUnit, LedgerFigure, LedgerLine, Verdict};
use crate::ui::report::duel::verdict_of_line;
use crate::ui::report::ran::Run;
use crate::ui::text::{NONE, clear_change, fit, interval, ledger_value, left, raw_change, width, wrap};
use crate::ui::tui::layout;
use crate::ui::tui::state::{FIRST_KNOB, Focus, State};
use crate::units::{approx_span, three_digits};

/// Cells of a turn's number, time and values; its verdict follows if there is room.
const TURN_CELLS: usize = 42;
const INDENT: usize = 5;
/// Cells of a figure's name when all of a turn's are shown.
const NAME_CELLS: usize = 19;

/// Draws the panel.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let focused = has_focus(state, Focus::Ledger);
    let ledger = &state.figures().ledger;
    let count = match ledger.len() {
        0 => String::new(),
        1 => "1 turn · ".into(),
        n => format!("{n} turns · "),
    };
    let more = if focused { " · Esc closes its figures" } else { " · tab: its figures" };
    let more = if area.width < 60 || ledger.is_empty() { "" } else { more };
    let remark = if state.shows_first_steps() {
        "Esc hides these lines for good".to_owned()
    } else {
        format!("{count}newest first{more}")
    };
    let inner = panel(state, buf, area, "ledger", &remark, focused);
    let theme = &state.theme;
    if state.shows_first_steps() {
        first_steps(state, buf, inner);
        return;
    }
    let cells = usize::from(inner.width);
    if ledger.is_empty() {
        let none = Line::from(span("no knob has been turned yet", theme.dim));
        for (y, line) in (inner.y..inner.bottom()).zip([none].into_iter().chain(earlier(state, cells))) {
            put(buf, inner.x, y, inner.width, &line);
        }
        return;
    }
    // Unless the ledger has the focus, the newest turn is shown.
    let chosen = if focused { state.ledger_chosen.min(ledger.len() - 1) } else { 0 };
    let mut lines = above(state, cells);
    let room = usize::from(inner.height).saturating_sub(lines.len());
    let newest_first: Vec<_> = ledger.iter().rev().collect();
    let entry = |at: usize| {
        let open = focused && at == chosen;
        let mut rows = entry(state, newest_first[at], open, cells);
        // One that is longer than the panel can be scrolled.
        if open {
            rows.drain(..state.ledger_top.min(rows.len().saturating_sub(room)));
        }
        rows
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
    lines.extend(marked(state, 0));
    lines.extend(earlier(state, cells));
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

/// The turns of earlier runs on this screen, newest first: each run of another target has its own ledger.
fn earlier(state: &State, cells: usize) -> Vec<Line<'static>> {
    let runs = state.ran.runs.iter().rev().skip(1).filter(|run| !run.turns.is_empty());
    let row = |run: &Run| {
        let (many, s) = (run.turns.len(), if run.turns.len() == 1 { "" } else { "s" });
        let profile = crate::printable::line(&run.profile);
        let text = format!("before: {many} turn{s} under {profile}, listed once the screen ends");
        Line::from(span(fit(&text, cells), state.theme.dim))
    };
    runs.map(row).collect()
}

/// A running duel, above the turns.
fn above(state: &State, cells: usize) -> Vec<Line<'static>> {
    state.duel.as_ref().map_or_else(Vec::new, |(_, shown)| duel::rows(state, shown, cells))
}

/// How many rows of the chosen line, once opened, don't fit into the panel.
pub fn hidden(state: &State) -> usize {
    let ledger = &state.figures().ledger;
    let Some(areas) = layout::areas(state.screen, state.view) else { return 0 };
    let Some(line) = ledger.iter().rev().nth(state.ledger_chosen) else { return 0 };
    let cells = usize::from(areas.ledger.width);
    let room = usize::from(areas.ledger.height.saturating_sub(1)).saturating_sub(above(state, cells).len());
    entry(state, line, true, cells).len().saturating_sub(room)
}

/// A new user's first steps, in the ledger's place.
fn first_steps(state: &State, buf: &mut Buffer, inner: Rect) {
    let theme = &state.theme;
    let cells = usize::from(inner.width);
    let first = match state.first_knob().path.as_str() {
        own if cells < 60 && state.knob().path == own => format!("turn {own}, the chosen knob"),
        own if cells < 60 => format!("turn the chosen knob, or {own}"),
        FIRST_KNOB => format!("turn the chosen knob; {FIRST_KNOB} makes the largest difference"),
        own => format!("turn the chosen knob, such as {own}"),
    };
    let verdict = if cells < 60 {
        "the line below says whether it helped"
    } else {
        "the line below says whether it helped, or why that can't be said"
    };
    let steps = [("← →", first.as_str()), ("▶", verdict), ("u", "undoes it; ? explains every key")];
    for (y, (key, text)) in (inner.y..inner.bottom()).zip(steps) {
        let line = Line::from(vec![
            span(format!(" {key:<5}"), theme.accent),
            span(fit(text, cells.saturating_sub(7)), theme.plain),
        ]);
        put(buf, inner.x, y, inner.width, &line);
    }
}

/// Says that the setting after that line is marked; none elsewhere.
fn marked(state: &State, line: u64) -> Option<Line<'static>> {
    let mark = state.mark.as_ref().filter(|mark| mark.line == line)?;
    let text = format!("{}◆ marked {}", " ".repeat(INDENT), mark.place());
    Some(Line::from(span(text, state.theme.accent)))
}

/// A turn's rows; if opened, every figure with its spread, and every flag. The mark is above: the newest is on top.
fn entry(state: &State, line: &LedgerLine, open: bool, cells: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<_> = marked(state, line.number).into_iter().collect();
    rows.extend(head(state, line, open, cells));
    if open {
        rows.extend(remarks(state, line, cells));
        let known = line.changes().into_iter().filter(|(_, change)| change.before.is_some());
        rows.extend(known.flat_map(|(figure, change)| spread(state, line, figure, change, cells)));
        let own = line.metrics.iter().filter(|(_, change)| change.before.is_some());
        rows.extend(own.map(|(name, change)| own_spread(state, line, name, change)));
        rows.extend(brackets(state, line, cells));
        return rows;
    }
    rows.extend(changes(state, line, cells));
    rows
}

/// What the brackets mean, if anything is compared.
fn brackets(state: &State, line: &LedgerLine, cells: usize) -> Vec<Line<'static>> {
    const SAID: &str = "(low–high): the lowest and the highest window, or stretch of windows for a percentile; \
                        (low to high%): the range in which the change lies, wrong for at most one turn in twenty";
    let all = line.changes();
    if !all.into_iter().map(|(_, of)| of).chain(line.metrics.values()).any(|of| of.interval.is_some()) {
        return Vec::new();
    }
    let wrapped = wrap(SAID, cells.saturating_sub(INDENT));
    let indented = |text| Line::from(span(format!("{}{text}", " ".repeat(INDENT)), state.theme.dim));
    wrapped.into_iter().map(indented).collect()
}

/// Number, time, the change and the verdict: in one row if there is room.
fn head(state: &State, line: &LedgerLine, chosen: bool, cells: usize) -> Vec<Line<'static>> {
    let theme = &state.theme;
    let undo = if line.undo { "undo " } else { "" };
    let mut knob = vec![
        span(if chosen { "▸" } else { " " }, theme.accent),
        span(format!("{:>3} ", line.number), theme.dim),
        span(format!("{:>7} ", approx_span(line.at_ns as f64 / 1e9)), theme.dim),
    ];
    let verdict = verdict(state, line);
    let mut turns = line.by_knob();
    let Some((first, values)) = turns.pop().filter(|_| turns.is_empty()) else {
        return several(state, line, knob, cells);
    };
    knob.push(span(format!("{undo}{first} "), theme.plain));
    let values = span(values, theme.strong);
    let wide = |spans: &[Span]| spans.iter().map(Span::width).sum::<usize>();
    let [turn, all] = [wide(&knob) + values.width(), wide(&knob) + values.width() + 2 + wide(&verdict)];
    let gap = |from: usize| Span::raw(" ".repeat(TURN_CELLS.saturating_sub(from).max(2)));
    let mut first = knob;
    if turn.max(TURN_CELLS) + 2 + wide(&verdict) <= cells || all <= cells {
        let fits = turn.max(TURN_CELLS) + 2 + wide(&verdict) <= cells;
        first.push(values);
        first.push(if fits { gap(turn) } else { Span::raw("  ") });
        first.extend(verdict);
        return vec![Line::from(first)];
    }
    let indented = |spans: Vec<Span<'static>>| {
        Line::from([Span::raw(" ".repeat(INDENT))].into_iter().chain(spans).collect::<Vec<_>>())
    };
    if turn <= cells {
        first.push(values);
        return vec![Line::from(first), indented(verdict)];
    }
    let mut second = vec![values];
    if second[0].width() + 2 + wide(&verdict) + INDENT <= cells {
        second.push(Span::raw("  "));
        second.extend(verdict);
        return vec![Line::from(first), indented(second)];
    }
    vec![Line::from(first), indented(second), indented(verdict)]
}

/// The same for several knobs turned at once, after the spans before them: each with its values, and as many to a row
/// as fit.
fn several(state: &State, line: &LedgerLine, before: Vec<Span<'static>>, cells: usize) -> Vec<Line<'static>> {
    let theme = &state.theme;
    let turns = line.by_knob();
    let last = turns.len() - 1;
    let mut rows = vec![before];
    let mut push = |spans: Vec<Span<'static>>| {
        let wide = |spans: &[Span]| spans.iter().map(Span::width).sum::<usize>();
        let used = rows.last().map_or(0, |row| wide(row));
        if used + wide(&spans) > cells {
            rows.push(vec![Span::raw(" ".repeat(INDENT))]);
        }
        if let Some(row) = rows.last_mut() {
            row.extend(spans);
        }
    };
    for (at, (knob, values)) in turns.into_iter().enumerate() {
        let undo = if line.undo && at == 0 { "undo " } else { "" };
        let comma = if at < last { ", " } else { "  " };
        push(vec![
            span(format!("{undo}{knob} "), theme.plain),
            span(values, theme.strong),
            span(comma, theme.plain),
        ]);
    }
    push(verdict(state, line));
    rows.into_iter().map(Line::from).collect()
}

/// The flags, and the outcome of a duel of the turn, in words.
fn remarks(state: &State, line: &LedgerLine, cells: usize) -> Vec<Line<'static>> {
    let flags = line.flags.iter().filter(|flag| !is_of_survival(line, flag)).cloned();
    let why = line.why_not_judged().filter(|why| !line.flags.contains(why));
    let duel = state.duels.get(&line.number).cloned();
    let words: Vec<String> = verdict_of_line(line).into_iter().chain(flags).chain(why).chain(duel).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let wrapped = wrap(&words.join(" · "), cells.saturating_sub(INDENT));
    let indented = |text| Line::from(span(format!("{}{text}", " ".repeat(INDENT)), state.theme.warn));
    wrapped.into_iter().map(indented).collect()
}

/// The figures that changed clearly, or all that are known while the line is gathering, in as many rows as they need;
/// or the outcome of a duel.
fn changes(state: &State, line: &LedgerLine, cells: usize) -> Vec<Line<'static>> {
    const GAP: usize = 3;
    let mut rows: Vec<Vec<Span<'static>>> = Vec::new();
    let mut used = cells;
    for (name, text, style) in clear_changes(state, line).into_iter().chain(unclear_change(state, line)) {
        let name = format!("{name} ");
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
    let room = cells.saturating_sub(INDENT);
    let duel = verdict_of_line(line).map(|said| wrap(&said, room)).unwrap_or_default();
    let duel =
        duel.into_iter().map(|text| vec![Span::raw(" ".repeat(INDENT)), span(text, state.theme.plain)]);
    let raw = raw_change(line).zip(line.why_not_judged());
    let raw = raw.map(|(raw, why)| format!("{raw}, can't be judged: {why}"));
    let raw = raw.map(|text| wrap(&text, room)).unwrap_or_default();
    let raw = raw.into_iter().map(|text| vec![Span::raw(" ".repeat(INDENT)), span(text, state.theme.dim)]);
    rows.into_iter().chain(raw).chain(duel).map(Line::from).collect()
}

/// A program's figure on both sides of the turn.
fn own_spread(state: &State, line: &LedgerLine, name: &str, change: &Change) -> Line<'static> {
    let show = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), three_digits);
    let verdict = match clear(change) {
        Some(text) => format!("  {text}"),
        None if change.verdict == Verdict::NoClearChange => format!("  no clear change{}", interval(change)),
        None => String::new(),
    };
    let name = left(&format!("     {}", crate::printable::line(name)), NAME_CELLS);
    let sides = format!("{} → {}", show(change.before), show(change.after));
    Line::from(vec![
        span(name, state.theme.dim),
        span(sides, state.theme.plain),
        span(verdict, own_style(state, line, change)),
    ])
}

/// A figure with the smallest and the largest window of both sides, in two rows if one is too short.
fn spread(
    state: &State,
    line: &LedgerLine,
    figure: LedgerFigure,
    change: &Change,
    cells: usize,
) -> Vec<Line<'static>> {
    let show = |value| ledger_value(figure.unit, value);
    let side = |mean: Option<f64>, range: Option<(f64, f64)>| match (mean, range) {
        (Some(mean), Some((low, high))) => format!("{} ({}–{})", show(mean), show(low), show(high)),
        (Some(mean), None) => show(mean),
        (None, _) => NONE.into(),
    };
    let is_of_cycles = figure.unit == FigureUnit::CyclesPerByte;
    let not_judged = || line.cycles_not_judged().filter(|_| is_of_cycles && change.after.is_some());
    let verdict = match clear_change(figure, change) {
        Some(text) => format!("  {text}"),
        None if change.verdict == Verdict::NoClearChange => format!("  no clear change{}", interval(change)),
        None => not_judged().map_or_else(String::new, |why| format!("  {why}")),
    };
    let theme = &state.theme;
    let name = span(left(&format!("     {figure}"), NAME_CELLS), theme.dim);
    let before = span(side(change.before, change.before_range), theme.plain);
    let after = span(format!(" → {}", side(change.after, change.after_range)), theme.plain);
    let verdict = span(verdict, style(state, line, figure, change));
    let all = Line::from(vec![name.clone(), before.clone(), after.clone(), verdict.clone()]);
    if all.width() <= cells {
        return vec![all];
    }
    let indent = Span::raw(" ".repeat(NAME_CELLS - 3));
    let room = cells.saturating_sub(indent.width() + after.width());
    let verdict = span(fit(&verdict.content, room), verdict.style);
    vec![Line::from(vec![name, before]), Line::from(vec![indent, after, verdict])]
}
