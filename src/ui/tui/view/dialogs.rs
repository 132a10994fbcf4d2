//! The dialogs.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::frame::{dialog_cells, inner_cells_max, put, span, window};
use crate::printable::Shown as _;
use crate::runs::duel::WINDOWS_MAX;
use crate::settings::knobs::{Knob, Scope};
use crate::ui::text::{fit, fit_end, left, width, wrap};
use crate::ui::tui::consent::{Consent, word_kind};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::filter::Filter;
use crate::ui::tui::profiles::ProfileEntry;
use crate::ui::tui::state::State;
use crate::ui::tui::typed::Typed;
use crate::ui::tui::update::{duel, profile};
use crate::ui::tui::writers;
use crate::units::approx_span;

/// Lines for the reason why a profile can't be opened.
const REASON: usize = 3;
/// Lines of the consent dialog that are not about the device: frame, warning, question, input, keys.
const CONSENT_FRAME: u16 = 11;

/// Draws any dialog except the plan and pages.
pub fn render(state: &State, dialog: &Dialog, buf: &mut Buffer, screen: Rect) {
    match dialog {
        Dialog::Edit { knob, input, error } => edit(state, knob, input, error.as_deref(), buf, screen),
        Dialog::Save { input, error } => {
            let what = if state.collected.is_empty() { "" } else { ", with the collected changes," };
            let keeps = kept(input, "name");
            let mut lines = vec![
                text(format!("The settings in force{what} are saved under this name:"), state.theme.plain),
                Line::default(),
                typed(state, input, inner_cells_max(screen)),
            ];
            // The reason stands at its end.
            let why = wrap(error.as_deref().unwrap_or_default(), inner_cells_max(screen));
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
        Dialog::Open { entries, chosen, filter } => {
            open(state, entries.as_deref(), (*chosen, filter), buf, screen);
        }
        Dialog::Consent(asked) => consent(state, asked, buf, screen),
        Dialog::Duel { knob, values, chosen, .. } => asks_duel(state, knob, values, *chosen, buf, screen),
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

fn text(text: impl Into<String>, style: Style) -> Line<'static> {
    Line::from(span(text, style))
}

/// The keys that replace or keep a suggestion.
fn kept(input: &Typed, what: &str) -> String {
    if input.is_suggested() { format!("Typing replaces the {what}, End keeps it · ") } else { String::new() }
}

/// An input line: the cursor is always visible, and as much as fits of what is before it. A suggestion is shown as
/// selected text.
pub fn typed(state: &State, input: &Typed, cells: usize) -> Line<'static> {
    let (before, behind) = input.around();
    let room = cells.saturating_sub(3);
    let before = fit_end(before, room);
    let behind = fit(behind, room - width(&before));
    Line::from(vec![
        span("› ", state.theme.accent),
        span(before, if input.is_suggested() { state.theme.chosen } else { state.theme.strong }),
        span("▏", state.theme.accent),
        span(behind, state.theme.strong),
    ])
}

fn wrong(state: &State, error: Option<&str>, screen: Rect) -> Line<'static> {
    text(error.map_or_else(String::new, |error| fit(error, inner_cells_max(screen))), state.theme.bad)
}

/// Draws a dialog as wide as its longest line.
fn show(state: &State, buf: &mut Buffer, screen: Rect, title: &str, lines: &[Line]) {
    let longest = lines.iter().map(Line::width).max().unwrap_or(0);
    framed(state, buf, screen, dialog_cells(screen, longest), title, lines);
}

fn framed(state: &State, buf: &mut Buffer, screen: Rect, cells: u16, title: &str, lines: &[Line]) {
    let inner = window(&state.theme, buf, screen, cells, lines.len() as u16 + 2, title);
    for (y, line) in (inner.y..inner.bottom()).zip(lines) {
        put(buf, inner.x, y, inner.width, line);
    }
}

fn edit(state: &State, path: &str, input: &Typed, error: Option<&str>, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let mut lines = Vec::new();
    if let Some(knob) = state.find(path) {
        lines.extend(
            wrap(knob.spec.help, inner_cells_max(screen)).into_iter().map(|part| text(part, theme.plain)),
        );
        let default = if knob.spec.inherits { ", or default" } else { "" };
        let expected = format!("Takes {}{default}.", knob.spec.kind.expected());
        lines.extend(wrap(&expected, inner_cells_max(screen)).into_iter().map(|part| text(part, theme.dim)));
    }
    lines.push(Line::default());
    lines.push(typed(state, input, inner_cells_max(screen)));
    match error {
        Some(error) => {
            lines.extend(wrap(error, inner_cells_max(screen)).into_iter().map(|part| text(part, theme.bad)));
        }
        None => lines.push(Line::default()),
    }
    let scope = |knob: &Knob| knob.parse(input).map_or(knob.spec.scope, |value| state.scope_of(knob, &value));
    let planned = state.find(path).is_some_and(|knob| scope(knob) == Scope::Rebuild);
    let enter = if planned { "Enter adds it to the plan" } else { "Enter sets it" };
    let erases = if input.is_suggested() { "" } else { " · Ctrl-U erases all" };
    let keys = format!("{}{enter}{erases} · Esc cancels", kept(input, "value"));
    lines.extend(wrap(&keys, inner_cells_max(screen)).into_iter().map(|part| text(part, theme.dim)));
    show(state, buf, screen, path, &lines);
}

/// The text beside a profile's name: why it can't be opened, or its description.
fn beside(entry: &ProfileEntry) -> String {
    entry.refused.as_ref().map_or_else(|| entry.about.clone(), |why| format!("can't: {why}"))
}

fn open(
    state: &State,
    entries: Option<&[ProfileEntry]>,
    (chosen, filter): (usize, &Filter),
    buf: &mut Buffer,
    screen: Rect,
) {
    let theme = &state.theme;
    let room = usize::from(screen.height).saturating_sub(8 + REASON).min(20);
    let title = filter.titled("open a profile");
    let Some(entries) = entries else {
        show(state, buf, screen, &title, &[text("reading…", theme.dim)]);
        return;
    };
    let (mut names, mut longest) = (4, 0);
    for entry in entries {
        names = names.max(width(&entry.name).min(24));
        longest = longest.max(width(&beside(entry)));
    }
    let outer = dialog_cells(screen, names + 4 + longest);
    let cells = usize::from(outer) - 4;
    let found = profile::rows(entries, filter);
    let place = found.iter().position(|row| *row == chosen);
    let first = place.unwrap_or(0).saturating_sub(room.saturating_sub(1));
    let mut lines = Vec::new();
    for &at in found.iter().skip(first).take(room) {
        let entry = &entries[at];
        let style = match (&entry.refused, at == chosen) {
            (Some(_), _) => theme.dim,
            (None, true) => theme.strong,
            (None, false) => theme.plain,
        };
        lines.push(Line::from(vec![
            span(if at == chosen { "▸ " } else { "  " }, theme.accent),
            span(left(&entry.name, names + 2), style),
            span(fit(&beside(entry), cells.saturating_sub(names + 4)), theme.dim),
        ]));
    }
    if found.is_empty() {
        lines.push(text(if entries.is_empty() { "no profiles" } else { "no profile matches" }, theme.dim));
    }
    // Narrowing the list down doesn't move the lines below it.
    lines.resize(entries.len().min(room).max(1), Line::default());
    lines.push(Line::default());
    lines.extend(below_profiles(state, entries, place.map(|_| chosen), cells));
    let enter = match place.map(|_| &entries[chosen]) {
        Some(entry) if entry.refused.is_some() => "it can't be opened here: see the reason above",
        _ if state.is_changed() => "Enter opens it; the settings in force are not saved: s saves them",
        _ => "Enter opens it (the target is rebuilt if it differs)",
    };
    let place = place.map_or(0, |place| place + 1);
    lines.push(text(format!("{place}/{}  {enter}", found.len()), theme.dim));
    framed(state, buf, screen, outer, &title, &lines);
}

/// Where the chosen profile is stored; if any can't be opened, also lines for the reason.
fn below_profiles(
    state: &State,
    entries: &[ProfileEntry],
    chosen: Option<usize>,
    cells: usize,
) -> Vec<Line<'static>> {
    let chosen = chosen.map(|at| &entries[at]);
    let place = match chosen.map(|entry| &entry.path) {
        Some(Some(path)) => fit_end(&path.shown(), cells),
        Some(None) => "built in".into(),
        None => String::new(),
    };
    let mut lines = vec![text(place, state.theme.dim)];
    if entries.iter().any(|entry| entry.refused.is_some()) {
        let refused = chosen.and_then(|entry| entry.refused.as_deref()).unwrap_or_default();
        let mut why = wrap(refused, cells);
        why.resize(REASON, String::new());
        lines.extend(why.into_iter().map(|line| text(line, state.theme.warn)));
    }
    lines
}

/// Asks which figure is to decide a duel, and says what a duel does.
fn asks_duel(state: &State, knob: &str, values: &[String; 2], chosen: usize, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let what = format!(
        "The load goes on while {knob} is turned between {} (A) and {} (B) in random order, in at most 40 \
         pairs of blocks; then it returns to its present value. Which figure decides?",
        fit(&values[0], 30),
        fit(&values[1], 30)
    );
    let mut lines: Vec<_> =
        wrap(&what, inner_cells_max(screen)).into_iter().map(|part| text(part, theme.plain)).collect();
    if let Some(left_s) = writers::end_in_s(state).filter(|left_s| *left_s < duel_s_max(state)) {
        let left = approx_span(left_s);
        let warning =
            format!("Writers stop in about {left}, and the duel with them: raise run.max_writes first.");
        lines.extend(wrap(&warning, inner_cells_max(screen)).into_iter().map(|part| text(part, theme.warn)));
    }
    lines.push(Line::default());
    let figures = duel::figures(state);
    // Frame, the line after the list, and the line of keys.
    let rows = usize::from(screen.height).saturating_sub(lines.len() + 4).max(1);
    let first = (chosen + 1).saturating_sub(rows).min(figures.len().saturating_sub(rows));
    for (at, figure) in figures.iter().enumerate().skip(first).take(rows) {
        let (mark, style) = if at == chosen { ("▸ ", theme.strong) } else { ("  ", theme.plain) };
        lines.push(Line::from(vec![span(mark, theme.accent), span(figure.name(), style)]));
    }
    lines.push(Line::default());
    lines.push(text("Enter begins · Esc cancels · D ends a duel that goes on", theme.dim));
    show(state, buf, screen, "duel", &lines);
}

/// The longest that a duel can take, in seconds.
fn duel_s_max(state: &State) -> f64 {
    let window = state.status.as_ref().map_or(Duration::ZERO, |status| status.settings.run.window);
    WINDOWS_MAX as f64 * window.as_secs_f64()
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
        for (i, part) in wrap(what, inner_cells_max(screen) - 5).into_iter().enumerate() {
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
    consent.lines(inner_cells_max(screen)).len().saturating_sub(consent_rows(screen))
}

fn consent(state: &State, asked: &Consent, buf: &mut Buffer, screen: Rect) {
    let theme = &state.theme;
    let Some(device) = asked.device() else { return };
    let what = word_kind(device);
    let about = asked.lines(inner_cells_max(screen));
    let rows = consent_rows(screen);
    let top = asked.top.min(consent_overhang(asked, screen));
    let mut lines = vec![
        text("Everything on this device will be destroyed.", theme.bad),
        text(format!("device {} of {}", asked.typed.len() + 1, asked.wanted.len()), theme.dim),
    ];
    lines.extend(about.iter().skip(top).take(rows).map(|line| text(line.clone(), theme.plain)));
    let below = about.len().saturating_sub(top + rows);
    let scroll = match (top, below) {
        (0, 0) => String::new(),
        (_, 0) => "↑ scrolls back".into(),
        _ => format!("{below} more below: ↓ to read on"),
    };
    lines.push(text(scroll, theme.warn));
    lines.push(Line::from(vec![
        span(format!("Type its {what} in full to confirm, then Enter: "), theme.plain),
        Span::styled(
            if device.typed.chars().count() <= 20 { device.typed.clone() } else { String::new() },
            theme.strong,
        ),
    ]));
    lines.push(typed(state, &asked.input, inner_cells_max(screen)));
    lines.push(wrong(state, asked.error.as_deref(), screen));
    lines.push(text("Esc cancel: the device stays as it is.", theme.dim));
    show(state, buf, screen, "this destroys data", &lines);
}
