//! The knobs with their values.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::frame::{has_focus, panel, put, span};
use super::help;
use crate::class::Class;
use crate::settings::knobs::{Knob, Scope, Value};
use crate::ui::text::{NONE, fit, fit_end, left, width};
use crate::ui::tui::layout::{self, Tier};
use crate::ui::tui::state::{Focus, ListRow, State};

/// Values begin after the longest listed key, but not before the first of these cells, nor after the second.
const KEY_CELLS: [usize; 2] = [13, 20];

/// The fewest cells for a value and its marks beside a knob's path.
const VALUE_CELLS: usize = 11;

/// From this width on, the title says in words what is not listed.
const WITH_WORDS_CELLS: u16 = 40;

/// From this many rows below the list on, they describe the chosen knob.
const ABOUT_ROWS_MIN: usize = 8;

/// What is under the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// A row other than the chosen one.
    Other(usize),
    /// The chosen row.
    Chosen,
    /// The mark that turns the chosen knob down.
    TurnDown,
    /// The mark that turns it up.
    TurnUp,
}

/// A knob's row as text.
struct Parts {
    key: String,
    value: String,
    /// The remark after the value.
    tag: &'static str,
    /// Inherited or without effect.
    faint: bool,
}

/// Draws the panel.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let rows = &state.listing.rows;
    let below = rows.len().saturating_sub(state.top + layout::knobs_shown(area));
    let more = match (state.top > 0, below > 0) {
        (true, true) => "↑↓ more",
        (true, false) => "↑ more",
        (false, true) => "↓ more",
        (false, false) => "",
    };
    let hidden = state.listing.inactive.min(if state.show_inactive { 0 } else { usize::MAX });
    let remarks = [
        if state.collected.is_empty() { String::new() } else { format!("{} to plan", state.collected.len()) },
        match hidden {
            0 => String::new(),
            _ if area.width < WITH_WORDS_CELLS => format!("i: +{hidden}"),
            _ => format!("i: {hidden} inactive"),
        },
        more.to_owned(),
    ];
    let remarks: Vec<_> = remarks.into_iter().filter(|remark| !remark.is_empty()).collect();
    let title = match state.search() {
        Some(words) => {
            let (before, behind) = words.around();
            format!("/{before}▏{behind}")
        }
        None => format!("knobs of {}", state.layer.name()),
    };
    let focused = has_focus(state, Focus::Knobs) || state.search().is_some();
    let inner = panel(state, buf, area, &title, &remarks.join(" · "), focused);
    if rows.is_empty() {
        put(buf, inner.x, inner.y, inner.width, &Line::from(span("no knob matches", state.theme.dim)));
    }
    let columns = layout::knob_columns(area);
    let places = columns.iter().flat_map(|column| (column.y..column.bottom()).map(|y| (*column, y)));
    for ((column, y), (at, row)) in places.zip(rows.iter().enumerate().skip(state.top)) {
        let line = match row {
            ListRow::Heading(table) => heading(state, table),
            ListRow::Knob(knob) => line(state, knob, at == state.chosen, usize::from(column.width)),
        };
        put(buf, column.x, y, column.width, &line);
        if at == state.chosen {
            buf.set_style(Rect::new(column.x, y, column.width, 1), state.theme.chosen);
        }
    }
    about(state, buf, &columns);
}

/// What the chosen knob does and accepts, if the list leaves room for it: in a column, or on a large screen below the
/// list.
fn about(state: &State, buf: &mut Buffer, columns: &[Rect]) {
    let listed = state.listing.rows.len();
    let is_small = matches!(layout::tier(state.screen), None | Some(Tier::Small));
    let area = match *columns {
        [first, second] if listed <= usize::from(first.height) => second,
        [only] if !is_small && listed + ABOUT_ROWS_MIN < usize::from(only.height) => {
            let above = listed as u16 + 1;
            Rect { y: only.y + above, height: only.height - above, ..only }
        }
        _ => return,
    };
    let mut lines = help::chosen(state, usize::from(area.width));
    let room = usize::from(area.height);
    if lines.len() > room {
        lines.truncate(room - 1);
        lines.push((" … ? has the rest".into(), state.theme.dim));
    }
    for (y, (text, style)) in (area.y..area.bottom()).zip(lines) {
        put(buf, area.x, y, area.width, &Line::from(span(text, style)));
    }
}

fn heading(state: &State, table: &str) -> Line<'static> {
    let theme = &state.theme;
    let class = Class::ALL.into_iter().find(|class| class.name() == table);
    let style = class.map_or(theme.strong, |class| theme.class(class).add_modifier(Modifier::BOLD));
    let mut spans = vec![span(table.to_owned(), style)];
    if let Some(class) = class {
        let on = state.status_shown().is_none_or(|s| s.settings.classes[class.index()].enabled);
        if !on {
            spans.push(span("  off", theme.dim));
        }
    }
    if matches!(table, "target" | "stack" | "sim" | "load" | "kv") {
        spans.push(span("  needs a rebuild", theme.dim));
    }
    Line::from(spans)
}

/// A knob's name, and the cells that names take. In the results of a search it is the path, which says whose knob it
/// is, if that leaves room for the value.
fn key(state: &State, knob: &'static Knob, cells: usize) -> (&'static str, usize) {
    let is_search = state.search().is_some();
    let mut widest = 0;
    for row in &state.listing.rows {
        if let ListRow::Knob(found) = row {
            widest = widest.max(width(if is_search { &found.path } else { found.spec.key }) + 1);
        }
    }
    let [least, most] = KEY_CELLS;
    if !is_search {
        return (knob.spec.key, widest.clamp(least, most));
    }
    let room = cells.saturating_sub(VALUE_CELLS);
    let fits = width(&knob.path) < room;
    (if fits { &knob.path } else { knob.spec.key }, widest.max(least).min(room))
}

fn parts(state: &State, knob: &'static Knob, chosen: bool, cells: usize) -> Parts {
    let (key, key_cells) = key(state, knob, cells);
    let Some(status) = state.status_shown() else {
        return Parts {
            key: fit(key, key_cells.saturating_sub(1)),
            value: String::new(),
            tag: "",
            faint: true,
        };
    };
    let settings = &status.settings;
    let asked = state.asked.get(knob.path.as_str());
    let collected = state.collected.get(knob.path.as_str());
    let passing = state.passing.as_ref().filter(|_| chosen);
    let own = passing.map(|p| &p.value).or(collected).or(asked);
    let own = own.cloned().unwrap_or_else(|| knob.get(settings));
    let planned = state.settings_for(knob);
    let inactive = knob.inactive(planned.as_ref().unwrap_or(settings)).is_some();
    let tag = match () {
        () if passing.is_some() || state.conflict(knob).is_some() => "can't",
        () if collected.is_some() => "plan",
        () if status.draining.contains(&knob.path) => "draining…",
        () if asked.is_some() => "turning…",
        () if inactive => "inactive",
        () if knob.spec.scope == Scope::Rebuild => "rebuild",
        () if knob.spec.scope == Scope::Reopen => "reopen",
        () => "",
    };
    let tag_cells = if tag.is_empty() { 0 } else { tag.len().min(9) + 1 };
    let key = left(key, key_cells.saturating_sub(1)) + " ";
    let room = cells.saturating_sub(1 + width(&key) + 2 + tag_cells).max(4);
    let now = knob.get(settings).to_string();
    let value = match &own {
        // A collected value is shown beside the one in force if there is room.
        own if collected.is_some() => {
            let full = format!("{now} → {own}");
            let short = || format!("→ {}", fit_end(&own.to_string(), room.saturating_sub(2)));
            if width(&full) <= room { full } else { short() }
        }
        // `default` is shown with the value that it stands for.
        Value::Inherit => {
            let full = format!("{} (default)", knob.effective(settings));
            if width(&full) <= room { full } else { format!("{} (def.)", knob.effective(settings)) }
        }
        own => match own.to_string() {
            nothing if nothing.is_empty() => NONE.to_owned(),
            text if matches!(own, Value::Text(_) | Value::List(_)) => fit_end(&text, room),
            text => text,
        },
    };
    Parts { key, value: fit(&value, room), tag, faint: own == Value::Inherit || inactive }
}

fn line(state: &State, knob: &'static Knob, chosen: bool, cells: usize) -> Line<'static> {
    let theme = &state.theme;
    let Parts { key, value, tag, faint } = parts(state, knob, chosen, cells);
    let style = if faint { theme.dim } else { theme.plain };
    let turned = matches!(tag, "draining…" | "turning…" | "plan" | "can't");
    let mut spans = vec![
        span(if chosen { "▸" } else { " " }, theme.accent),
        span(key, theme.dim),
        span(if chosen { "◂" } else { " " }, theme.accent),
        span(value, if turned { theme.warn } else { style }),
        span(if chosen { "▸" } else { " " }, theme.accent),
    ];
    let used: usize = spans.iter().map(Span::width).sum();
    let room = cells.saturating_sub(used);
    if !tag.is_empty() && width(tag) <= room {
        spans.push(Span::raw(" ".repeat(room - width(tag))));
        spans.push(span(tag, if turned { theme.warn } else { theme.dim }));
    }
    Line::from(spans)
}

/// What is at a position in the panel.
pub fn hit(state: &State, area: Rect, at: Position) -> Option<Hit> {
    let columns = layout::knob_columns(area);
    let before = columns.iter().position(|column| column.contains(at))?;
    let area = columns[before];
    let row = state.top + before * usize::from(area.height) + usize::from(at.y - area.y);
    let ListRow::Knob(knob) = state.listing.rows.get(row)? else { return None };
    if row != state.chosen {
        return Some(Hit::Other(row));
    }
    let parts = parts(state, knob, true, usize::from(area.width));
    let down = usize::from(area.x) + 1 + width(&parts.key);
    let up = down + 1 + width(&parts.value);
    Some(match usize::from(at.x) {
        x if x == down => Hit::TurnDown,
        x if x == up => Hit::TurnUp,
        _ => Hit::Chosen,
    })
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyCode;

    use crate::ui::tui::fixture::running;
    use crate::ui::tui::tests::{press, shown};

    #[test]
    fn what_a_search_finds_says_whose_it_is() {
        for (columns, lines) in [(80, 24), (120, 40)] {
            let mut state = running(columns, lines);
            press(&mut state, &"/depth".chars().map(KeyCode::Char).collect::<Vec<_>>());
            let screen = shown(&state);
            for knob in ["scan.depth", "point.depth"] {
                assert!(screen.contains(knob), "{knob}: {screen}");
            }
            press(&mut state, &[KeyCode::Enter]);
            assert!(shown(&state).contains("▸depth "), "{}", shown(&state));
        }
    }
}
