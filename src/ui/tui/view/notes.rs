//! Notes: why classes stopped, errors, flags with their meaning, fallbacks, notes, notices.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::frame::{panel, put, span};
use crate::class::Class;
use crate::meter::price;
use crate::meter::window::{ClassState, Flag};
use crate::ui::report::stack_properties;
use crate::ui::text::wrap;
use crate::ui::tui::state::State;
use crate::units::three_digits;

/// Draws the panel.
pub fn render(state: &State, buf: &mut Buffer, area: Rect) {
    let inner = panel(state, buf, area, "notes", "", false);
    let notes = gather(state);
    let cells = usize::from(inner.width).saturating_sub(2);
    let mut lines = Vec::new();
    for (text, style) in &notes {
        for (i, part) in wrap(text, cells).into_iter().enumerate() {
            lines.push(Line::from(span(format!("{}{part}", if i == 0 { "· " } else { "  " }), *style)));
        }
    }
    if lines.is_empty() {
        lines.push(Line::from(span("nothing to note", state.theme.dim)));
    }
    let room = usize::from(inner.height);
    if lines.len() > room && room > 0 {
        let rest = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(Line::from(span(format!("  {rest} more: ? has them"), state.theme.dim)));
    }
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

/// Every note, the most important first.
pub fn gather(state: &State) -> Vec<(String, Style)> {
    let theme = &state.theme;
    let mut notes = Vec::new();
    if let Some(Err(error)) = &state.ended {
        notes.push((error.one_line(), theme.bad));
        if state.former.is_some() {
            notes.push(("b rebuilds the previous stack".into(), theme.strong));
        }
    }
    // A recording's notes are in its status, if its settings can be read.
    if let (Some(replay), None) = (&state.replay, &state.status) {
        notes.extend(replay.notes.iter().map(|text| (text.clone(), theme.plain)));
    }
    let figures = state.figures();
    if let Some(window) = &figures.window {
        for class in Class::ALL {
            let (ended, why) = match &window.class(class).state {
                ClassState::Stopped(why) => ("stopped", why),
                ClassState::Failed(why) => ("failed", why),
                _ => continue,
            };
            let again = if state.replay.is_some() { "" } else { " (R starts it again)" };
            notes.push((format!("{class} {ended}: {why}{again}"), theme.bad));
        }
    }
    if let Some(totals) = &figures.totals {
        for class in Class::ALL {
            let errnos = &totals.classes[class.index()].errnos;
            let list: Vec<_> = errnos.iter().map(|(name, n)| format!("{n} {name}")).collect();
            if !list.is_empty() {
                notes.push((format!("{class} errors so far: {}", list.join(", ")), theme.bad));
            }
        }
    }
    if let Some(status) = &state.status {
        notes.extend(status.fallbacks.iter().map(|text| (format!("fallback: {text}"), theme.warn)));
        let stack = status.properties.as_ref().map(stack_properties::properties).unwrap_or_default();
        notes.extend(stack.into_iter().map(|text| (text, theme.plain)));
        notes.extend(cost(state).map(|text| (text, theme.plain)));
        notes.extend(status.notes.iter().map(|text| (text.clone(), theme.plain)));
    }
    notes.extend(flags(state).into_iter().map(|text| (text, theme.plain)));
    // A fallback is announced as well as listed.
    let listed = |text: &String| state.status.as_ref().is_some_and(|status| status.fallbacks.contains(text));
    notes.extend(
        state.notices.iter().rev().filter(|text| !listed(text)).map(|text| (text.clone(), theme.dim)),
    );
    notes
}

/// The price of the scan's throughput, if the drives' price is known and something is scanned.
fn cost(state: &State) -> Option<String> {
    let price = state.status.as_ref()?.settings.price()?;
    let figures = state.figures();
    let (classes, of) = match (&figures.window, &figures.totals) {
        (_, Some(totals)) if state.cumulative => (&totals.classes, "so far"),
        (Some(window), _) => (&window.classes, "in the last window"),
        _ => return None,
    };
    let per = price::price_per_scan_gb_per_s(price, classes[Class::Scan.index()].mb_per_s)?;
    Some(format!("price: ${} per GB/s of scan {of}", three_digits(per)))
}

/// Each flag once, with its classes and its meaning.
fn flags(state: &State) -> Vec<String> {
    let figures = state.figures();
    let (classes, whole) = match (&figures.window, &figures.totals) {
        (_, Some(totals)) if state.cumulative => (&totals.classes, &totals.flags),
        (Some(window), _) if !state.cumulative => (&window.classes, &window.flags),
        _ => return Vec::new(),
    };
    let mut seen: Vec<(&Flag, Vec<&str>)> = whole.iter().map(|flag| (flag, Vec::new())).collect();
    for class in Class::ALL {
        for flag in &classes[class.index()].flags {
            match seen.iter_mut().find(|(known, of)| *known == flag && !of.is_empty()) {
                Some((_, of)) => of.push(class.name()),
                None => seen.push((flag, vec![class.name()])),
            }
        }
    }
    seen.into_iter()
        .map(|(flag, of)| {
            let of = if of.is_empty() { String::new() } else { format!("{}: ", of.join(", ")) };
            format!("{of}{} – {}", flag.text, flag.why)
        })
        .collect()
}
