//! The dialogs.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::frame::{put, span, window};
use crate::printable::Shown as _;
use crate::runs::duel::Figure;
use crate::settings::knobs::{Knob, Scope};
use crate::ui::text::{fit, fit_end, left, width, wrap};
use crate::ui::tui::consent::{Consent, word_kind};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::profiles::ProfileEntry;
use crate::ui::tui::state::State;
use crate::ui::tui::typed::Typed;

const CELLS: u16 = 76;
/// Lines for the reason why a profile can't be opened.
const REASON: usize = 3;
/// Lines of the consent dialog that are not about the device: frame, warning, question, input, keys.
const CONSENT_FRAME: u16 = 11;

/// Draws any dialog except the plan and pages.
pub fn render(state: &State, dialog: &Dialog, buf: &mut Buffer, screen: Rect) {
    match dialog {
        Dialog::Edit { knob, input, error } => edit(state, knob, input, error.as_deref(), buf, screen),
        Dialog::Save { input, selected, error } => {
            let what = if state.collected.is_empty() { "" } else { ", with the collected changes," };
            let keeps = if *selected { "Typing replaces the name, End keeps it · " } else { "" };
            let mut lines = vec![
                text(format!("The settings in force{what} are saved under this name:"), state.theme.plain),
                Line::default(),
                name_typed(state, input, *selected),
            ];
            // The reason stands at its end.
            let why = wrap(error.as_deref().unwrap_or_default(), inner_cells());
            lines.extend(why.into_iter().take(4).map(|line| text(line, state.theme.bad)));
            lines.push(text(format!("{keeps}Enter saves · Esc cancels"), state.theme.dim));
            show(state, buf, screen, "save as a profile", &lines);
        }
        Dialog::Replace { name } => {
            let lines = vec![
                text(format!("A profile named {} exists already.", fit(name, 40)), state.theme.warn),
                Line::default(),
                text("y replaces it · n or Esc keeps it", state.theme.plain),
            ];
            show(state, buf, screen, "replace?", &lines);
        }
        Dialog::Open { entries, chosen } => open(state, entries.as_deref(), *chosen, buf, screen),
        Dialog::Consent(asked) => consent(state, asked, buf, screen),
        Dialog::Duel { knob, values, chosen, .. } => duel(state, knob, values, *chosen, buf, screen),
        Dialog::Leave => leave(state, buf, screen),
        // Drawn by their own files.
        Dialog::Plan(_)
        | Dialog::Pick { .. }
        | Dialog::Drives { .. }
        | Dialog::Themes { .. }
        | Dialog::Shelf(_)
        | Dialog::Report { .. }
        | Dialog::Search { .. }
        | Dialog::Palette { .. }
        | Dialog::Failed { .. }
        | Dialog::Help { .. }
        | Dialog::Host { .. }
        | Dialog::Believe { .. }
        | Dialog::Contract { .. } => {}
    }
}

fn inner_cells() -> usize {
    usize::from(CELLS) - 4
}

fn text(text: impl Into<String>, style: Style) -> Line<'static> {
    Line::from(span(text, style))
}

/// An input line; the cursor is always visible, and what is before it as far as it fits.
pub fn typed(state: &State, input: &Typed, cells: usize) -> Line<'static> {
    let (before, behind) = input.around();
    let room = cells.saturating_sub(3);
    let before = fit_end(before, room);
    let behind = fit(behind, room - width(&before));
    Line::from(vec![
        span("› ", state.theme.accent),
        span(before, state.theme.strong),
        span("▏", state.theme.accent),
        span(behind, state.theme.strong),
    ])
}

/// A name; one that typing replaces is shown as selected text.
fn name_typed(state: &State, input: &Typed, selected: bool) -> Line<'static> {
    let mut line = typed(state, input, inner_cells());
    if selected {
        line.spans[1].style = state.theme.chosen;
    }
    line
}

fn wrong(state: &State, error: Option<&str>) -> Line<'static> {
    text(error.map_or_else(String::new, |error| fit(error, inner_cells())), state.theme.bad)
}

fn show(state: &State, buf: &mut Buffer, screen: Rect, title: &str, lines: &[Line]) {
    let inner = window(&state.theme, buf, screen, CELLS, lines.len() as u16 + 2, title);
    for (y, line) in (inner.y..inner.bottom()).zip(lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

fn edit(state: &State, path: &str, input: &Typed, error: Option<&str>, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let mut lines = Vec::new();
    if let Some(knob) = state.find(path) {
        lines.extend(wrap(knob.spec.help, inner_cells()).into_iter().map(|part| text(part, theme.plain)));
        let default = if knob.spec.inherits { ", or default" } else { "" };
        let expected = format!("Takes {}{default}.", knob.spec.kind.expected());
        lines.extend(wrap(&expected, inner_cells()).into_iter().map(|part| text(part, theme.dim)));
    }
    lines.push(Line::default());
    lines.push(typed(state, input, inner_cells()));
    match error {
        Some(error) => lines.extend(wrap(error, inner_cells()).into_iter().map(|part| text(part, theme.bad))),
        None => lines.push(Line::default()),
    }
    let scope = |knob: &Knob| knob.parse(input).map_or(knob.spec.scope, |value| state.scope_of(knob, &value));
    let planned = state.find(path).is_some_and(|knob| scope(knob) == Scope::Rebuild);
    let enter = if planned { "Enter adds it to the plan" } else { "Enter sets it" };
    lines.push(text(format!("{enter} · Ctrl-U erases all · Esc cancels"), theme.dim));
    show(state, buf, screen, path, &lines);
}

fn open(state: &State, entries: Option<&[ProfileEntry]>, chosen: usize, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let room = usize::from(screen.height).saturating_sub(8 + REASON).min(20);
    let Some(entries) = entries else {
        show(state, buf, screen, "open a profile", &[text("reading…", theme.dim)]);
        return;
    };
    let first = chosen.saturating_sub(room.saturating_sub(1));
    let names =
        entries.iter().map(|entry| crate::ui::text::width(&entry.name)).max().unwrap_or(0).clamp(4, 24);
    let mut lines = Vec::new();
    for (at, entry) in entries.iter().enumerate().skip(first).take(room) {
        let mark = if at == chosen { "▸ " } else { "  " };
        let (about, style) = match &entry.refused {
            Some(why) => (format!("can't: {why}"), theme.dim),
            None => (entry.about.clone(), if at == chosen { theme.strong } else { theme.plain }),
        };
        lines.push(Line::from(vec![
            span(mark, theme.accent),
            span(left(&entry.name, names + 2), style),
            span(fit(&about, inner_cells().saturating_sub(names + 4)), theme.dim),
        ]));
    }
    if entries.is_empty() {
        lines.push(text("no profiles", theme.dim));
    }
    lines.push(Line::default());
    let place = match entries.get(chosen).map(|entry| &entry.path) {
        Some(Some(path)) => fit_end(&path.shown(), inner_cells()),
        Some(None) => "built in".into(),
        None => String::new(),
    };
    lines.push(text(place, theme.dim));
    if entries.iter().any(|entry| entry.refused.is_some()) {
        let refused = entries.get(chosen).and_then(|entry| entry.refused.as_deref()).unwrap_or_default();
        let mut why = wrap(refused, inner_cells());
        why.resize(REASON, String::new());
        lines.extend(why.into_iter().map(|line| text(line, theme.warn)));
    }
    lines.push(Line::from(vec![
        span(format!("{}/{}  ", (chosen + 1).min(entries.len()), entries.len()), theme.dim),
        span("Enter opens it (the target is rebuilt if it differs)", theme.dim),
    ]));
    show(state, buf, screen, "open a profile", &lines);
}

/// Which figure a duel is to be about, and what it does.
fn duel(state: &State, knob: &str, values: &[String; 2], chosen: usize, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let what = format!(
        "The load goes on while {knob} is turned between {} (A) and {} (B) in random order, in at most 40 \
         pairs of blocks; then it returns to its present value. Which figure decides?",
        fit(&values[0], 30),
        fit(&values[1], 30)
    );
    let mut lines: Vec<_> =
        wrap(&what, inner_cells()).into_iter().map(|part| text(part, theme.plain)).collect();
    lines.push(Line::default());
    for (at, figure) in Figure::ALL.iter().enumerate() {
        let (mark, style) = if at == chosen { ("▸ ", theme.strong) } else { ("  ", theme.plain) };
        lines.push(Line::from(vec![span(mark, theme.accent), span(figure.name(), style)]));
    }
    lines.push(Line::default());
    lines.push(text("Enter begins · Esc cancels · D ends a duel that goes on", theme.dim));
    show(state, buf, screen, "duel", &lines);
}

/// The question when quitting with a stack in place.
fn leave(state: &State, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let mut lines =
        vec![text("The stack built for this run is still in place.", theme.warn), Line::default()];
    for (key, what) in [
        ("t", "tear it down and quit: all data on it is lost, nothing is left behind"),
        ("k", "keep it and quit; the commands that remove it are printed"),
        ("Esc", "cancel"),
    ] {
        for (i, part) in wrap(what, inner_cells() - 5).into_iter().enumerate() {
            let key = if i == 0 { key } else { "" };
            lines.push(Line::from(vec![span(left(key, 5), theme.accent), span(part, theme.plain)]));
        }
    }
    show(state, buf, screen, "quit", &lines);
}

/// Rows for the description of the device on this screen.
fn consent_rows(screen: Rect) -> usize {
    usize::from(screen.height.saturating_sub(CONSENT_FRAME)).max(1)
}

/// How far the consent dialog can be scrolled on this screen.
pub fn consent_overhang(consent: &Consent, screen: Rect) -> usize {
    consent.lines(inner_cells()).len().saturating_sub(consent_rows(screen))
}

fn consent(state: &State, asked: &Consent, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let Some(device) = asked.device() else { return };
    let what = word_kind(device);
    let about = asked.lines(inner_cells());
    let rows = consent_rows(screen);
    let top = asked.top.min(consent_overhang(asked, screen));
    let mut lines = vec![
        text("Everything on this device will be destroyed.", theme.bad),
        text(format!("device {} of {}", asked.typed.len() + 1, asked.wanted.len()), theme.dim),
    ];
    lines.extend(about.iter().skip(top).take(rows).map(|line| text(line.clone(), theme.plain)));
    let hidden = about.len().saturating_sub(rows);
    lines.push(text(
        if hidden > 0 {
            format!("↑↓ scroll: {} of {} lines above", top, about.len())
        } else {
            String::new()
        },
        theme.warn,
    ));
    lines.push(Line::from(vec![
        span(format!("Type its {what} in full to confirm, then Enter: "), theme.plain),
        Span::styled(
            if device.typed.chars().count() <= 20 { device.typed.clone() } else { String::new() },
            theme.strong,
        ),
    ]));
    lines.push(typed(state, &asked.input, inner_cells()));
    lines.push(wrong(state, asked.error.as_deref()));
    lines.push(text("Esc cancel: the device stays as it is.", theme.dim));
    show(state, buf, screen, "this destroys data", &lines);
}
