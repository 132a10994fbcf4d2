//! The table of classes: the least needed columns are left out first, and no figure is cut.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::frame::{panel, put, span};
use crate::class::Class;
use crate::meter::flag::{FlagKind, stem};
use crate::meter::latencies::pooled::{Pooled, PooledLatencies, PooledLatency};
use crate::meter::window::{ClassFigures, ClassState, Latencies, Latency};
use crate::runs::session::message::Phase;
use crate::short_list;
use crate::ui::text::{NONE, count, fit, latency, left, mb, right, width, windows_span};
use crate::ui::tui::layout::{Tier, tier};
use crate::ui::tui::state::State;
use crate::units::approx_span;

/// A column of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    MbPerS,
    Target,
    Iops,
    /// A figure of the latency that the table shows.
    Of(Part),
    Response,
    Errors,
    Missed,
}

/// A figure of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    P50,
    P90,
    P99,
    P999,
    P9999,
    P99999,
    P999999,
    Max,
}

impl Part {
    /// The value pooled over the last windows if this window has too few samples; else the window's own.
    fn of(self, latency: Option<&Latency>, pooled: PooledLatency) -> Option<u64> {
        let of = |own: fn(&Latency) -> Option<u64>| latency.and_then(own);
        let own = match self {
            Self::P50 => of(|latency| latency.p50),
            Self::P90 => of(|latency| latency.p90),
            Self::P99 => of(|latency| latency.p99),
            Self::P999 => of(|latency| latency.p999),
            Self::P9999 => of(|latency| latency.p9999),
            Self::P99999 => of(|latency| latency.p99999),
            Self::P999999 => of(|latency| latency.p999999),
            Self::Max => of(|latency| latency.max),
        };
        self.of_several(pooled).map(|pooled| pooled.ns).or(own)
    }

    /// The value pooled over several windows, where the window's own is not enough.
    fn of_several(self, pooled: PooledLatency) -> Option<Pooled> {
        match self {
            Self::P50 => pooled.p50,
            Self::P90 => pooled.p90,
            Self::P99 => pooled.p99,
            Self::Max => pooled.max,
            _ => None,
        }
    }

    /// Whether its column is left out if no class has it.
    fn is_rare(self) -> bool {
        matches!(self, Self::P99999 | Self::P999999)
    }
}

/// Title, width, and the order in which columns are added while there is room.
const COLUMNS: [(Column, &str, usize, u8); 14] = [
    (Column::MbPerS, "MB/s", 6, 0),
    (Column::Target, "target", 6, 7),
    (Column::Iops, "IOPS", 6, 6),
    (Column::Of(Part::P50), "p50", 6, 3),
    (Column::Of(Part::P90), "p90", 6, 10),
    (Column::Of(Part::P99), "p99", 6, 1),
    (Column::Of(Part::P999), "p99.9", 6, 4),
    (Column::Of(Part::P9999), "p99.99", 6, 12),
    (Column::Of(Part::P99999), "p99.999", 7, 13),
    (Column::Of(Part::P999999), "p99.9999", 8, 14),
    (Column::Of(Part::Max), "max", 6, 5),
    (Column::Response, "resp p99", 8, 9),
    (Column::Errors, "errors", 6, 2),
    (Column::Missed, "missed", 6, 11),
];
const NAME_CELLS: usize = 10;
/// Cells of the panel's title and its frame.
const TITLE_CELLS: usize = 13;
/// The fewest cells for flags, and those for when the first flag of a class is longer.
const FLAGS_CELLS: [usize; 2] = [12, 20];

/// The columns that fit, in their order, and the gap between them.
fn columns(
    cells: usize,
    flags_cells: usize,
    response: bool,
    has: impl Fn(Part) -> bool,
    has_errors: bool,
) -> (Vec<(Column, &'static str, usize)>, usize) {
    let gap = if cells >= 110 { 2 } else { 1 };
    let mut room = cells.saturating_sub(NAME_CELLS + flags_cells + gap);
    let mut order = COLUMNS.to_vec();
    // Without errors, which the first line counts as well, their column comes after the target.
    let rank = |of: &(Column, &str, usize, u8)| if of.0 == Column::Errors && !has_errors { 8 } else { of.3 };
    short_list::sort_by_key(&mut order, rank);
    let mut taken = Vec::new();
    for (column, _, wide, _) in order {
        // Already shown if the whole table has response times.
        if column == Column::Response && response {
            continue;
        }
        if matches!(column, Column::Of(part) if part.is_rare() && !has(part)) {
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

/// Draws the table.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let cells = usize::from(area.width);
    let has_parts = matches!(tier(buf.area), Some(Tier::Large | Tier::Wide));
    let time = match (state.response, has_parts) {
        (true, true) => "response times; write, flush: service times",
        (true, false) => "response times",
        (false, _) => "service times, wal: commits",
    };
    // First, as a narrow screen cuts the end.
    let frozen = if state.frozen.is_some() { "FROZEN · " } else { "" };
    let span = span_of_time(state);
    let whole = format!("{frozen}{time} · {span}");
    // For a past window, when it was matters more than which latencies these are.
    let remark = if width(&whole) + TITLE_CELLS <= cells || frozen.is_empty() {
        whole
    } else {
        frozen.to_owned() + &span
    };
    let inner = panel(state, buf, area, "classes", &remark, false);
    let has = |part: Part| {
        let mut all = Class::ALL.into_iter().filter_map(|class| figures(state, class));
        all.any(|figures| part.of(shown(state, figures), PooledLatency::default()).is_some())
    };
    let has_errors = Class::ALL.into_iter().filter_map(|class| figures(state, class)).any(|of| of.errors > 0);
    let (columns, gap) = columns(cells, flags_cells(state), state.response, has, has_errors);
    let mut lines = vec![titles(state, &columns, gap)];
    for class in Class::ALL {
        lines.push(row(state, class, &columns, gap, cells));
        if class == Class::Wal && has_parts {
            let pooled = pooled(state, class);
            let of = figures(state, class).map(|figures| &figures.latencies);
            let write = of.and_then(|of| of.write_ns.as_ref());
            let flush = of.and_then(|of| of.flush_ns.as_ref());
            lines.push(wal_part(state, "└ write", &columns, (gap, cells), (write, pooled.write)));
            lines.push(wal_part(state, "└ flush", &columns, (gap, cells), (flush, pooled.flush)));
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
            let turned = match (window.paused, window.turned) {
                (true, _) => ", paused in it",
                (false, true) => ", a knob turned in it",
                (false, false) => "",
            };
            let seconds = window.duration_ns as f64 / 1e9;
            if state.replay.is_some() {
                let (at, all) = (figures.at().unwrap_or(0) + 1, figures.kept());
                let warmup = if window.warmup { ", warm-up" } else { "" };
                return format!("window {at} of {all}, {seconds:.1} s{turned}{warmup}");
            }
            // There are newer windows.
            let [shown, newest] = [figures, &state.live].map(|figures| figures.shown_end_ns().unwrap_or(0));
            if newest > shown {
                let [at, ago] = [shown, newest - shown].map(|ns| approx_span(ns as f64 / 1e9));
                return format!("{seconds:.1} s at {at}, {ago} ago{turned}");
            }
            // Nothing is running: these figures are the previous target's.
            let old = matches!(state.phase(), Phase::Opening | Phase::Building | Phase::Filling);
            let old = if old { ", before this target" } else { "" };
            format!("last {seconds:.1} s{turned}{old}")
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

/// Pooled percentiles, for which the class has too few I/Os in the window.
fn pooled(state: &State, class: Class) -> PooledLatencies {
    if state.cumulative { PooledLatencies::default() } else { state.figures().pooled[class.index()] }
}

/// The latency that the table shows.
fn shown<'a>(state: &State, figures: &'a ClassFigures) -> Option<&'a Latency> {
    let Latencies { response_ns, service_ns, .. } = &figures.latencies;
    if state.response { response_ns.as_ref().filter(|_| !figures.not_held) } else { service_ns.as_ref() }
}

/// Which percentiles are pooled over several windows, and over how long: `p99 over 4s`, or just `over 4s` where that
/// does not fit.
fn time_spans(pooled: PooledLatency, cells: usize) -> String {
    let mut spans: Vec<(u64, Vec<&str>)> = Vec::new();
    let parts = [("p50", pooled.p50), ("p90", pooled.p90), ("p99", pooled.p99), ("max", pooled.max)];
    for (name, pooled) in parts {
        let Some(Pooled { span_ns, .. }) = pooled else { continue };
        match spans.last_mut().filter(|last| last.0 == span_ns) {
            Some(last) => last.1.push(name),
            None => spans.push((span_ns, vec![name])),
        }
    }
    let (mut long, mut short) = (String::new(), String::new());
    for (ns, names) in spans {
        let comma = if long.is_empty() { "" } else { ", " };
        let over = format!("over {}", windows_span(ns));
        long += &[comma, &names.join(" "), " ", &over].concat();
        short += &[comma, &over].concat();
    }
    [long, short].into_iter().find(|text| width(text) <= cells).unwrap_or_default()
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
        if state.response && figures.not_held && matches!(column, Column::Of(_)) {
            // One text for all of these adjacent columns.
            if !columns.get(n + 1).is_some_and(|next| matches!(next.0, Column::Of(_))) {
                let of: Vec<_> = columns.iter().filter(|column| matches!(column.0, Column::Of(_))).collect();
                let wide: usize = of.iter().map(|column| column.2 + gap).sum();
                spans.push(span(right("not held", wide), theme.warn));
            }
            continue;
        }
        let (text, style) = cell(state, figures, &pooled(state, class), column);
        // Only the figure is underlined.
        let text = right(&text, wide);
        let figure = text.trim_start();
        spans.push(Span::raw(" ".repeat(gap + width(&text) - width(figure))));
        spans.push(span(figure.to_owned(), style));
    }
    let used: usize = spans.iter().map(Span::width).sum::<usize>() + gap;
    let of = pooled(state, class);
    let of = if state.response { of.response } else { of.service };
    let (text, style) = flags(state, figures, of, cells.saturating_sub(used));
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(span(text, style));
    Line::from(spans)
}

fn cell(state: &State, figures: &ClassFigures, pooled: &PooledLatencies, column: Column) -> (String, Style) {
    let theme = &state.theme;
    let held = !figures.not_held;
    let response = figures.latencies.response_ns.as_ref().filter(|_| held);
    let of = if state.response { pooled.response } else { pooled.service };
    let text = match column {
        Column::MbPerS => return (mb(figures.mb_per_s), theme.strong),
        Column::Target => figures.target_mb_per_s.map_or_else(|| NONE.into(), mb),
        Column::Iops => count(figures.iops),
        Column::Of(part) if part.of_several(of).is_some() => {
            let text = latency(part.of(shown(state, figures), of));
            return (text, theme.plain.add_modifier(Modifier::UNDERLINED));
        }
        Column::Of(part) => latency(part.of(shown(state, figures), of)),
        Column::Response if !held => return ("not held".into(), theme.warn),
        Column::Response => latency(Part::P99.of(response, pooled.response)),
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

/// The cells for flags: more if the first flag of a class does not fit into the fewest.
fn flags_cells(state: &State) -> usize {
    let [few, more] = FLAGS_CELLS;
    let is_long = |class| {
        let words = figures(state, class).map_or_else(Vec::new, words);
        words.first().is_some_and(|first| width(&with_rest(first, words.len() - 1)) > few)
    };
    if Class::ALL.into_iter().any(is_long) { more } else { few }
}

/// The state of a class if it is not running, and its flags.
fn words(figures: &ClassFigures) -> Vec<String> {
    let state = match &figures.state {
        ClassState::Running => None,
        ClassState::Off => Some("off"),
        ClassState::Paused => Some("paused"),
        ClassState::Draining => Some("draining"),
        ClassState::Stopped(_) => Some("STOPPED"),
        ClassState::Failed(_) => Some("FAILED"),
    };
    let mut words: Vec<String> = state.into_iter().map(str::to_owned).collect();
    if figures.not_held {
        words.push("not held".into());
    }
    if figures.slow_ios > 0 {
        words.push(format!("{} slow", count(figures.slow_ios as f64)));
    }
    for flag in &figures.flags {
        if !flag.is(FlagKind::Draining) || figures.state != ClassState::Draining {
            words.push(flag.text.clone());
        }
    }
    words
}

/// A class's flags, as far as they fit, then the time that its percentiles cover if there is room; and the style.
fn flags(state: &State, figures: &ClassFigures, of: PooledLatency, cells: usize) -> (String, Style) {
    let theme = &state.theme;
    let words = words(figures);
    let style = match &figures.state {
        ClassState::Stopped(_) | ClassState::Failed(_) => theme.bad,
        _ if words.is_empty() || words == ["off"] || words == ["paused"] => theme.dim,
        _ => theme.warn,
    };
    let mut text = folded(&words, cells);
    let comma = if text.is_empty() { "" } else { ", " };
    let over = time_spans(of, cells.saturating_sub(width(&text) + comma.len()));
    if !over.is_empty() {
        text += comma;
        text += &over;
    }
    (text, style)
}

/// As many whole words as fit, from the first on; else any one that fits, if need be without its figure; then the
/// number of the others. If none fits, just how many there are.
fn folded(words: &[String], cells: usize) -> String {
    let fits = |text: &String| width(text) <= cells;
    let leading = |shown: usize| with_rest(&words[..shown].join(", "), words.len() - shown);
    let one = |of: fn(&str) -> &str| {
        words.iter().map(|word| with_rest(of(word), words.len() - 1)).find(|text| fits(text))
    };
    let many = match words.len() {
        0 => return String::new(),
        1 => "1 flag".to_owned(),
        many => format!("{many} flags"),
    };
    let leading = (1..=words.len()).rev().map(leading).find(fits);
    leading.or_else(|| one(|word| word)).or_else(|| one(stem)).unwrap_or_else(|| fit(&many, cells))
}

/// Some words, and the number of the others.
fn with_rest(words: &str, others: usize) -> String {
    if others > 0 { format!("{words} +{others}") } else { words.to_owned() }
}

/// A part of the commit, with its percentiles.
fn wal_part(
    state: &State,
    name: &str,
    columns: &[(Column, &str, usize)],
    (gap, cells): (usize, usize),
    (figures, pooled): (Option<&Latency>, PooledLatency),
) -> Line<'static> {
    let mut text = left(name, NAME_CELLS);
    for (column, _, wide) in columns {
        let shown = match column {
            Column::Of(part) => latency(part.of(figures, pooled)),
            _ => String::new(),
        };
        text += &" ".repeat(gap);
        text += &right(&shown, *wide);
    }
    text += &" ".repeat(gap);
    text += &time_spans(pooled, cells.saturating_sub(width(&text)));
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
    let words: Vec<_> = flags.iter().map(|flag| flag.text.clone()).collect();
    let words = folded(&words, cells.saturating_sub(width(&text)));
    Line::from(vec![span(text, theme.dim), span(words, theme.warn)])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::runs::session::Event;
    use crate::ui::tui::fixture::{self, running, tell};
    use crate::ui::tui::tests::shown;

    #[test]
    fn a_long_flag_gets_the_room_of_the_least_needed_columns() {
        for (columns, lines) in [(80, 24), (120, 40), (160, 50)] {
            let mut state = running(columns, lines);
            let mut window = fixture::window(70);
            let buffered = FlagKind::QuietlyBuffered.flag("The file system does.");
            let cached = FlagKind::Cache.with_share(0.97, "Reads were served.");
            window.classes[0].flags = vec![buffered, cached];
            window.flags = vec![FlagKind::Others.with_cores(1.85, "Others ran.")];
            tell(&mut state, Event::Window(Arc::new(window), Arc::new(fixture::totals(71))));
            let screen = shown(&state);
            let table: Vec<_> = screen.lines().skip_while(|line| !line.contains("─ classes ")).collect();
            insta::assert_snapshot!(format!("flags_{columns}x{lines}"), table[..7].join("\n"));
        }
    }

    #[test]
    fn flags_are_folded_by_whole_words() {
        let of = |words: &[&str], cells| {
            let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
            folded(&words, cells)
        };
        let several = ["quietly buffered", "cache 97%", "simulated"];
        assert_eq!(of(&several, 40), "quietly buffered, cache 97%, simulated");
        assert_eq!(of(&several, 38), "quietly buffered, cache 97%, simulated");
        assert_eq!(of(&several, 37), "quietly buffered, cache 97% +1");
        assert_eq!(of(&several, 19), "quietly buffered +2");
        assert_eq!(of(&several, 12), "cache 97% +2");
        assert_eq!(of(&several, 8), "cache +2", "without its figure");
        assert_eq!(of(&several, 7), "3 flags");
        assert_eq!(of(&["data fits memory"], 13), "1 flag");
        assert_eq!(of(&["others 1.8 cores", "late"], 12), "late +1");
        assert_eq!(of(&["others 1.8 cores"], 12), "others");
        assert_eq!(of(&[], 12), "");
    }
}
