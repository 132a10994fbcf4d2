//! The table of classes: the least needed columns are left out first, and no figure is cut.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::frame::{panel, put, span};
use crate::class::Class;
use crate::meter::window::{ClassFigures, Latency, State as ClassState};
use crate::runs::session::message::Phase;
use crate::ui::text::{NONE, count, fit, latency, left, mb, right, width};
use crate::ui::tui::layout::{Tier, tier};
use crate::ui::tui::state::State;

/// A column of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    MbPerS,
    Target,
    Iops,
    P50,
    P90,
    P99,
    P999,
    P9999,
    Max,
    Response,
    Errors,
    Missed,
}

impl Column {
    /// Whether it is a figure of the latency that the table shows.
    fn is_of_latency(self) -> bool {
        matches!(self, Self::P50 | Self::P90 | Self::P99 | Self::P999 | Self::P9999 | Self::Max)
    }
}

/// Title, width, and the order in which columns are added while there is room.
const COLUMNS: [(Column, &str, usize, u8); 12] = [
    (Column::MbPerS, "MB/s", 6, 0),
    (Column::Target, "target", 6, 6),
    (Column::Iops, "IOPS", 6, 7),
    (Column::P50, "p50", 6, 3),
    (Column::P90, "p90", 6, 9),
    (Column::P99, "p99", 6, 1),
    (Column::P999, "p99.9", 6, 4),
    (Column::P9999, "p99.99", 6, 11),
    (Column::Max, "max", 6, 5),
    (Column::Response, "resp p99", 8, 8),
    (Column::Errors, "errors", 6, 2),
    (Column::Missed, "missed", 6, 10),
];
const NAME_CELLS: usize = 10;
const FLAGS_CELLS_MIN: usize = 12;

/// The columns that fit, in their order, and the gap between them.
fn columns(cells: usize, response: bool) -> (Vec<(Column, &'static str, usize)>, usize) {
    let gap = if cells >= 110 { 2 } else { 1 };
    let mut room = cells.saturating_sub(NAME_CELLS + FLAGS_CELLS_MIN + gap);
    let mut order = COLUMNS.to_vec();
    order.sort_by_key(|column| column.3);
    let mut taken = Vec::new();
    for (column, _, wide, _) in order {
        // Already shown if the whole table has response times.
        if column == Column::Response && response {
            continue;
        }
        if room < wide + gap {
            break;
        }
        room -= wide + gap;
        taken.push(column);
    }
    let kept = COLUMNS.iter().filter(|c| taken.contains(&c.0)).map(|&(c, title, wide, _)| (c, title, wide));
    (kept.collect(), gap)
}

/// Draws it.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let cells = usize::from(area.width);
    let time = match (state.response, tier(buf.area) == Some(Tier::Large)) {
        (true, true) => "response times; write, flush: service times",
        (true, false) => "response times",
        (false, _) => "service times, wal: commits",
    };
    // First, as a narrow screen cuts the end.
    let frozen = if state.frozen.is_some() { "FROZEN · " } else { "" };
    let inner =
        panel(state, buf, area, "classes", &format!("{frozen}{time} · {}", span_of_time(state)), false);
    let (columns, gap) = columns(cells, state.response);
    let mut lines = vec![titles(state, &columns, gap)];
    for class in Class::ALL {
        lines.push(row(state, class, &columns, gap, cells));
        if class == Class::Wal && tier(buf.area) == Some(Tier::Large) {
            lines.push(wal_part(state, "└ write", &columns, gap, |f| f.latencies.write_ns.as_ref()));
            lines.push(wal_part(state, "└ flush", &columns, gap, |f| f.latencies.flush_ns.as_ref()));
        }
    }
    lines.push(all(state, &columns, gap, cells));
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

/// The time that the figures cover.
fn span_of_time(state: &State) -> String {
    let figures = state.figures();
    match (&figures.window, &figures.totals) {
        (_, Some(totals)) if state.cumulative => {
            format!("whole run, {} windows", totals.windows)
        }
        (Some(window), _) if !state.cumulative => {
            let turned = if window.turned { ", a knob turned in it" } else { "" };
            // Nothing is running: these figures are the previous target's.
            let old = matches!(state.phase(), Phase::Opening | Phase::Building | Phase::Filling);
            let old = if old { ", before this target" } else { "" };
            format!("last {:.1} s{turned}{old}", window.duration_ns as f64 / 1e9)
        }
        _ => "no window yet".into(),
    }
}

fn titles(state: &State, columns: &[(Column, &str, usize)], gap: usize) -> Line<'static> {
    let mut text = left("class", NAME_CELLS);
    for (_, title, wide) in columns {
        text += &" ".repeat(gap);
        text += &right(title, *wide);
    }
    Line::from(span(text + &" ".repeat(gap) + "flags", state.theme.dim))
}

/// The figures of a class to show.
fn figures(state: &State, class: Class) -> Option<&ClassFigures> {
    let figures = state.figures();
    if state.cumulative {
        return figures.totals.as_ref().map(|totals| &totals.classes[class.index()]);
    }
    figures.window.as_ref().map(|window| window.class(class))
}

fn row(
    state: &State,
    class: Class,
    columns: &[(Column, &'static str, usize)],
    gap: usize,
    cells: usize,
) -> Line<'static> {
    let theme = &state.theme;
    let mut spans = vec![span(left(class.name(), NAME_CELLS), theme.class(class))];
    let Some(figures) = figures(state, class) else { return Line::from(spans) };
    for (n, &(column, _, wide)) in columns.iter().enumerate() {
        if state.response && figures.not_held && column.is_of_latency() {
            // One text for all of these adjacent columns.
            if !columns.get(n + 1).is_some_and(|next| next.0.is_of_latency()) {
                let of: Vec<_> = columns.iter().filter(|column| column.0.is_of_latency()).collect();
                let wide: usize = of.iter().map(|column| column.2 + gap).sum();
                spans.push(span(right("not held", wide), theme.warn));
            }
            continue;
        }
        let (text, style) = cell(state, figures, column);
        spans.push(span(" ".repeat(gap) + &right(&text, wide), style));
    }
    let used: usize = spans.iter().map(Span::width).sum::<usize>() + gap;
    let (text, style) = flags(state, figures, cells.saturating_sub(used));
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(span(text, style));
    Line::from(spans)
}

fn cell(state: &State, figures: &ClassFigures, column: Column) -> (String, Style) {
    let theme = &state.theme;
    let held = !figures.not_held;
    let response = figures.latencies.response_ns.as_ref().filter(|_| held);
    let shown = if state.response { response } else { figures.latencies.service_ns.as_ref() };
    let of = |pick: fn(&Latency) -> Option<u64>| latency(shown.and_then(pick));
    let text = match column {
        Column::MbPerS => return (mb(figures.mb_per_s), theme.strong),
        Column::Target => figures.target_mb_per_s.map_or_else(|| NONE.into(), mb),
        Column::Iops => count(figures.iops),
        Column::P50 => of(|l| l.p50),
        Column::P90 => of(|l| l.p90),
        Column::P99 => of(|l| l.p99),
        Column::P999 => of(|l| l.p999),
        Column::P9999 => of(|l| l.p9999),
        Column::Max => of(|l| l.max),
        Column::Response if !held => return ("not held".into(), theme.warn),
        Column::Response => latency(response.and_then(|l| l.p99)),
        Column::Errors if figures.errors > 0 => return (count(figures.errors as f64), theme.bad),
        Column::Errors => "0".into(),
        Column::Missed if figures.missed > 0 => return (count(figures.missed as f64), theme.warn),
        Column::Missed => {
            if figures.target_mb_per_s.is_some() {
                "0".into()
            } else {
                NONE.into()
            }
        }
    };
    let faint = text == NONE || text == "0";
    (text, if faint { theme.dim } else { theme.plain })
}

/// The state if it is not running, and the flags that fit, with the number of the others.
fn flags(state: &State, figures: &ClassFigures, cells: usize) -> (String, Style) {
    let theme = &state.theme;
    let mut words: Vec<&str> = Vec::new();
    let mut style = theme.warn;
    match &figures.state {
        ClassState::Running => {}
        ClassState::Off => words.push("off"),
        ClassState::Paused => words.push("paused"),
        ClassState::Draining => words.push("draining"),
        ClassState::Stopped(_) => {
            words.push("STOPPED");
            style = theme.bad;
        }
        ClassState::Failed(_) => {
            words.push("FAILED");
            style = theme.bad;
        }
    }
    if figures.not_held {
        words.push("not held");
    }
    words.extend(
        figures
            .flags
            .iter()
            .map(|flag| flag.text.as_str())
            .filter(|text| *text != "draining" || figures.state != ClassState::Draining),
    );
    if words.is_empty() {
        return (String::new(), theme.plain);
    }
    if words == ["off"] || words == ["paused"] {
        style = theme.dim;
    }
    (fit_words(&words, cells), style)
}

/// As many words as fit, and the number of the others.
fn fit_words(words: &[&str], cells: usize) -> String {
    let mut shown = words.len();
    loop {
        let rest = words.len() - shown;
        let more = if rest > 0 { format!(" +{rest}") } else { String::new() };
        let text = words[..shown].join(", ") + &more;
        if width(&text) <= cells || shown <= 1 {
            return fit(&text, cells);
        }
        shown -= 1;
    }
}

/// A part of the commit, with its percentiles.
fn wal_part(
    state: &State,
    name: &str,
    columns: &[(Column, &str, usize)],
    gap: usize,
    part: fn(&ClassFigures) -> Option<&Latency>,
) -> Line<'static> {
    let mut text = left(name, NAME_CELLS);
    let figures = figures(state, Class::Wal).and_then(part);
    for (column, _, wide) in columns {
        let shown = match column {
            Column::P50 => latency(figures.and_then(|l| l.p50)),
            Column::P90 => latency(figures.and_then(|l| l.p90)),
            Column::P99 => latency(figures.and_then(|l| l.p99)),
            Column::P999 => latency(figures.and_then(|l| l.p999)),
            Column::P9999 => latency(figures.and_then(|l| l.p9999)),
            Column::Max => latency(figures.and_then(|l| l.max)),
            _ => String::new(),
        };
        text += &" ".repeat(gap);
        text += &right(&shown, *wide);
    }
    Line::from(span(text, state.theme.dim))
}

/// All classes together, and what makes the whole window untrustworthy.
fn all(state: &State, columns: &[(Column, &str, usize)], gap: usize, cells: usize) -> Line<'static> {
    let figures = state.figures();
    let (total, classes, flags) = match (&figures.window, &figures.totals) {
        (_, Some(totals)) if state.cumulative => (&totals.total, &totals.classes, &totals.flags),
        (Some(window), _) if !state.cumulative => (&window.total, &window.classes, &window.flags),
        _ => return Line::default(),
    };
    let theme = &state.theme;
    let mut text = left("all", NAME_CELLS);
    for (column, _, wide) in columns {
        let shown = match column {
            Column::MbPerS => mb(total.mb_per_s),
            Column::Iops => count(classes.iter().map(|c| c.iops).sum()),
            Column::Errors => count(classes.iter().map(|c| c.errors as f64).sum()),
            _ => String::new(),
        };
        text += &" ".repeat(gap);
        text += &right(&shown, *wide);
    }
    text += &" ".repeat(gap);
    let words: Vec<_> = flags.iter().map(|flag| flag.text.as_str()).collect();
    let words = fit_words(&words, cells.saturating_sub(width(&text)));
    Line::from(vec![span(text, theme.dim), span(words, theme.warn)])
}
