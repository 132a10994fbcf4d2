//! The stack from the application down to the drives: each layer's setting and throughput.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::frame::{panel, put, span};
use crate::settings::knobs::StackLayer;
use crate::ui::text::{NONE, fit, latency, left, mb, right, width};
use crate::ui::tui::stack::{LayerShown, layer};
use crate::ui::tui::state::State;

const NAME_CELLS: usize = 12;
/// From these widths on, amplification and cycles have a column each. On narrower panels, amplification takes the
/// place of MB/s for a layer without any.
const WITH_AMPLIFICATION_CELLS: usize = 44;
const WITH_CYCLES_CELLS: usize = 50;

/// A column: its title, its width, and the figure of a layer.
type Column = (&'static str, usize, fn(&LayerShown) -> String);

/// Draws the panel: a line for each layer, or two if there is room.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let cells = usize::from(area.width);
    let inner = panel(state, buf, area, "stack", "", false);
    let titles = titles(cells);
    let at = area.right().saturating_sub(u16::try_from(width(&titles)).unwrap_or(0));
    put(buf, at, area.y, area.right() - at, &Line::from(span(titles, state.theme.dim)));
    let each = rows_each(area);
    for (n, of) in StackLayer::ALL.into_iter().enumerate() {
        let y = inner.y + n as u16 * each;
        if y >= inner.bottom() {
            break;
        }
        let shown = layer(state, of);
        let chosen = state.layer == of;
        put(buf, inner.x, y, inner.width, &figures(state, of, &shown, each > 1, cells));
        if chosen {
            buf.set_style(Rect::new(inner.x, y, inner.width, 1), state.theme.chosen);
        }
        if each > 1 && y + 1 < inner.bottom() {
            put(buf, inner.x, y + 1, inner.width, &detail(state, of, &shown, cells));
        }
    }
}

fn rows_each(area: Rect) -> u16 {
    if area.height > StackLayer::ALL.len() as u16 * 2 { 2 } else { 1 }
}

/// The layer at a position.
pub fn hit(area: Rect, at: Position) -> Option<StackLayer> {
    let row = at.y.checked_sub(area.y + 1)?;
    StackLayer::ALL.get(usize::from(row / rows_each(area))).copied()
}

fn titles(cells: usize) -> String {
    let titles = columns(cells).into_iter().map(|(title, wide, _)| right(title, wide));
    titles.fold(" ".to_owned(), |text, title| text + &title)
}

/// The columns that fit.
fn columns(cells: usize) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![
        ("MB/s", 6, if cells < WITH_AMPLIFICATION_CELLS { mb_or_amplification } else { mb_per_s }),
        ("adds", 8, |shown| match shown.bracket {
            "" => latency(shown.mean_ns.map(|ns| ns as u64)),
            part => part.to_owned(),
        }),
    ];
    if cells >= WITH_AMPLIFICATION_CELLS {
        columns.push(("WA", 6, |shown| {
            shown.amplification.map_or_else(|| NONE.into(), |wa| format!("{wa:.2}"))
        }));
    }
    if cells >= WITH_CYCLES_CELLS {
        // No way to attribute them to a layer is built yet.
        columns.push(("cyc/B", 6, |_| NONE.into()));
    }
    columns
}

fn mb_per_s(shown: &LayerShown) -> String {
    shown.mb_per_s.map_or_else(|| NONE.into(), mb)
}

fn mb_or_amplification(shown: &LayerShown) -> String {
    match (shown.mb_per_s, shown.amplification) {
        (None, Some(wa)) => in_short(wa),
        _ => mb_per_s(shown),
    }
}

/// Amplification, if it has neither a column nor the place of MB/s.
fn amplification_without_column(shown: &LayerShown, cells: usize) -> Option<String> {
    let has_no_place = cells < WITH_AMPLIFICATION_CELLS && shown.mb_per_s.is_some();
    shown.amplification.filter(|_| has_no_place).map(in_short)
}

/// Amplification in six cells.
fn in_short(wa: f64) -> String {
    let decimals = match wa {
        wa if wa < 9.995 => 2,
        wa if wa < 99.95 => 1,
        _ => 0,
    };
    format!("WA{wa:.decimals$}")
}

fn figures(state: &State, of: StackLayer, shown: &LayerShown, two_rows: bool, cells: usize) -> Line<'static> {
    let theme = &state.theme;
    let chosen = state.layer == of;
    let columns = columns(cells);
    let taken: usize = columns.iter().map(|(_, wide, _)| wide).sum();
    let room = cells.saturating_sub(1 + NAME_CELLS + taken);
    let style = if shown.is_absent { theme.dim } else { theme.strong };
    let keyed = state.status_shown().is_some_and(|status| status.settings.is_keyed());
    let name = if of == StackLayer::Interface && keyed { "engine" } else { of.name() };
    let texts: Vec<_> = columns.iter().map(|(_, wide, figure)| (*wide, figure(shown))).collect();
    let has_none = texts.iter().all(|(_, text)| text == NONE);
    let drives_in_one = of == StackLayer::Drives && !two_rows;
    let amplification = amplification_without_column(shown, cells);
    let setting = if drives_in_one {
        in_one_row(shown, amplification.as_ref(), room, !has_none)
    } else {
        shown.setting.clone()
    };
    let mut spans = vec![
        span(if chosen { "▸" } else { " " }, theme.accent),
        span(left(name, NAME_CELLS), if chosen { theme.accent } else { theme.plain }),
        span(left(&fit(&setting, room.saturating_sub(1)), room), style),
    ];
    // With one row per layer, what the drives lie on goes where there is no figure.
    if drives_in_one && has_none && !shown.detail.is_empty() {
        spans.push(span(fit(&shown.detail, taken), theme.dim));
        return Line::from(spans);
    }
    for (wide, text) in texts {
        let style = if text == NONE { theme.dim } else { theme.plain };
        spans.push(span(right(&text, wide), style));
    }
    Line::from(spans)
}

/// The drives with one row per layer: with their amplification, if that has no other place, and what they lie on, if
/// it fits; a trace's p99 takes the place of both if need be. With `squeezed`, what they lie on stays even if their
/// kind has no room, and comes before their amplification.
fn in_one_row(shown: &LayerShown, amplification: Option<&String>, room: usize, squeezed: bool) -> String {
    let traced = shown.traced_p99_ns.map(|ns| format!("p99T {}", latency(Some(ns))));
    let setting = &shown.setting;
    let texts = [Some(setting), amplification, Some(&shown.detail), traced.as_ref()].into_iter();
    let texts = texts.flatten().filter(|text| !text.is_empty());
    let all = texts.map(String::as_str).collect::<Vec<_>>().join(" ");
    let alone = traced.iter().flat_map(|traced| [format!("{setting} {traced}"), traced.clone()]);
    // Their number and what they lie on, or only that: the profile says what kind they are.
    let number = setting.split(' ').next().unwrap_or_default();
    let amplified =
        amplification.into_iter().flat_map(|wa| [format!("{setting} {wa}"), format!("{number} {wa}")]);
    let below = shown.detail.strip_prefix("on ").filter(|_| squeezed && traced.is_none());
    let below = below.into_iter().flat_map(|below| [format!("{number} on {below}"), format!("on {below}")]);
    let mut choices = std::iter::once(all).chain(alone).chain(below).chain(amplified);
    choices.find(|text| width(text) < room).unwrap_or_else(|| setting.clone())
}

fn detail(state: &State, of: StackLayer, shown: &LayerShown, cells: usize) -> Line<'static> {
    let theme = &state.theme;
    let rail = if of == StackLayer::Drives { "  " } else { " │" };
    let traced = shown.traced_p99_ns.map(|ns| format!("p99 {}, traced", latency(Some(ns))));
    let amplification = amplification_without_column(shown, cells);
    let texts = amplification.into_iter().chain(traced).chain([shown.detail.clone()]);
    let texts = texts.filter(|text| !text.is_empty());
    let text = fit(&texts.collect::<Vec<_>>().join(" · "), cells.saturating_sub(NAME_CELLS + 1));
    Line::from(vec![span(rail, theme.rule), Span::raw(" ".repeat(NAME_CELLS - 1)), span(text, theme.dim)])
}
