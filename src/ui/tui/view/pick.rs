//! The list of a knob's values: what can't be chosen is faint, with its reason.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::frame::{put, span, window};
use crate::settings::knobs::{Kind, Knob, Value};
use crate::ui::text::{fit, left, width, wrap};
use crate::ui::tui::state::State;
use crate::ui::tui::update::pick::values;

const CELLS: u16 = 76;
/// Lines below the list that the reason or the meaning takes.
const BELOW: usize = 3;

/// Draws it.
pub fn render(state: &State, path: &str, chosen: usize, buf: &mut Buffer, screen: Rect) {
    let Some(knob) = state.find(path) else { return };
    let theme = &state.theme;
    let cells = usize::from(CELLS) - 4;
    let values = values(state, knob);
    let names: Vec<_> = values.iter().map(ToString::to_string).collect();
    let wide = names.iter().map(|name| width(name)).max().unwrap_or(0) + 2;
    let now = state.settings_for(knob).map(|settings| knob.get(&settings));
    let help = wrap(knob.spec.help, cells);
    let room = usize::from(screen.height).saturating_sub(help.len() + BELOW + 6).max(1);
    let first = chosen.saturating_sub(room - 1);
    let mut lines: Vec<_> = help.into_iter().map(|line| Line::from(span(line, theme.plain))).collect();
    lines.push(Line::default());
    for (at, value) in values.iter().enumerate().skip(first).take(room) {
        let refused = state.unavailable(knob, value);
        let style = match (&refused, at == chosen) {
            (Some(_), _) => theme.dim,
            (None, true) => theme.strong,
            (None, false) => theme.plain,
        };
        let beside = match &refused {
            Some(reason) => format!("can't: {reason}"),
            None => meaning(knob, value).to_owned(),
        };
        let mark = if Some(value) == now.as_ref() { "● " } else { "  " };
        lines.push(Line::from(vec![
            span(if at == chosen { "▸ " } else { "  " }, theme.accent),
            span(mark, theme.good),
            span(left(&names[at], wide), style),
            span(fit(&beside, cells.saturating_sub(wide + 4)), theme.dim),
        ]));
    }
    lines.push(Line::default());
    // In full, for what does not fit beside its name.
    let refused = values.get(chosen).and_then(|value| state.unavailable(knob, value));
    let (text, style) = match refused {
        Some(reason) => (format!("{} can't be chosen: {reason}", names[chosen]), theme.warn),
        None => (values.get(chosen).map_or("", |value| meaning(knob, value)).to_owned(), theme.plain),
    };
    let mut below = wrap(&text, cells);
    below.resize(BELOW, String::new());
    lines.extend(below.into_iter().map(|line| Line::from(span(line, style))));
    let inner = window(theme, buf, screen, CELLS, lines.len() as u16 + 2, path);
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

/// What a value means.
fn meaning(knob: &Knob, value: &Value) -> &'static str {
    let Kind::Choice(choices) = knob.spec.kind else { return "" };
    match value {
        Value::Choice(name) => choices.iter().find(|(known, _)| known == name).map_or("", |choice| choice.1),
        _ => "the value of all classes, in io",
    }
}
