//! Pages: the help, the host, a failure.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::frame::{centred, put, span, window};
use super::{believe, contract, help};
use crate::host::{Device, Facts};
use crate::printable::Shown as _;
use crate::runs::session::message::Status;
use crate::settings::Named;
use crate::ui::text::{left, width, wrap, wrap_exact};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::layout;
use crate::ui::tui::replay::Replay;
use crate::ui::tui::state::State;

const CELLS_MAX: u16 = 100;
/// Cells and lines of the frame and its margin.
const FRAME: (u16, u16) = (4, 2);

/// A line and its style.
pub type Text = Vec<(String, Style)>;

/// Draws the open page, scrolled by that many lines.
pub fn render(state: &State, top: usize, buf: &mut Buffer, screen: Rect) {
    let Some((title, text)) = page(state, cells(screen)) else { return };
    let (outer, lines) = outer(screen, text.len());
    let inner = window(&state.theme, buf, screen, outer, lines, title);
    let top = top.min(text.len().saturating_sub(usize::from(inner.height)));
    for (y, (line, style)) in (inner.y..inner.bottom()).zip(text.iter().skip(top)) {
        put(buf, inner.x, y, inner.width, &Line::from(span(line.clone(), *style)));
    }
    let seen = (top + usize::from(inner.height)).min(text.len());
    let place = format!(" {}–{seen} of {} ", top + 1, text.len());
    let area = centred(screen, outer, lines);
    put(buf, area.x + 2, area.bottom() - 1, area.width - 4, &Line::from(span(place, state.theme.dim)));
}

/// The width of a line.
fn cells(screen: Rect) -> usize {
    usize::from(CELLS_MAX.min(screen.width.saturating_sub(4)).saturating_sub(FRAME.0))
}

fn outer(screen: Rect, text: usize) -> (u16, u16) {
    let lines = u16::try_from(text).unwrap_or(u16::MAX).saturating_add(FRAME.1);
    (CELLS_MAX.min(screen.width.saturating_sub(4)), lines.min(screen.height.saturating_sub(2)))
}

/// The line where the help opens.
pub fn help_begins_at(state: &State) -> usize {
    help::begins_at(state, cells(state.screen))
}

/// The number of the page's lines, and how many are visible at once.
pub fn size(state: &State) -> (usize, usize) {
    let text = page(state, cells(state.screen)).map_or(0, |(_, text)| text.len());
    let (_, lines) = outer(layout::of_windows(state.screen), text);
    (text, usize::from(lines.saturating_sub(FRAME.1)).max(1))
}

fn page(state: &State, cells: usize) -> Option<(&'static str, Text)> {
    Some(match state.dialog.as_ref()? {
        Dialog::Help { .. } => ("help · Esc closes", help::text(state, cells)),
        Dialog::Host { .. } => ("host · Esc closes", host(state, cells)),
        Dialog::Believe { .. } => ("can I believe it? · Esc closes", believe::text(state, cells)),
        Dialog::Contract { .. } => ("the contract with drives · Esc closes", contract::text(state, cells)),
        Dialog::Failed { .. } => ("the run has failed", failed(state, cells)),
        _ => return None,
    })
}

/// What `stacktune host` prints.
fn host(state: &State, cells: usize) -> Text {
    if let Some(replay) = &state.replay {
        return recorded_host(state, replay, cells);
    }
    let Some(status) = &state.status else {
        return vec![("The host has not been read yet.".into(), state.theme.dim)];
    };
    let read =
        state.host.as_ref().map(|devices| Facts { devices: devices.clone(), ..(*status.facts).clone() });
    let facts = read.as_ref().unwrap_or(&status.facts);
    let text = crate::ui::report::host::describe(facts, None);
    let holds: Vec<_> =
        facts.devices.iter().map(|device| (device.path.shown(), what_lies_on(status, device))).collect();
    let marked = |line: &str| {
        let of = holds
            .iter()
            .find(|(path, _)| line.strip_prefix(&**path).is_some_and(|rest| rest.starts_with(' ')));
        of.and_then(|(_, what)| *what)
    };
    text.lines()
        .flat_map(|line| {
            let what = marked(line);
            let style = if what.is_some() { state.theme.accent } else { state.theme.plain };
            // Before the rest about the device, which may take several lines.
            let lines = what.map_or_else(|| vec![line.to_owned()], |what| said_first(line, what));
            lines.into_iter().flat_map(|line| folded(&line, cells)).map(move |line| (line, style))
        })
        .collect()
}

/// A row with a name, with another sentence before its own.
fn said_first(row: &str, sentence: &str) -> Vec<String> {
    let name = row.split(' ').next().unwrap_or_default();
    let value = row[name.len()..].trim_start();
    let indent = width(row) - width(value);
    vec![left(name, indent) + sentence, " ".repeat(indent) + value]
}

/// Says that the target lies on the device, as a whole or on parts of it, if it does.
fn what_lies_on(status: &Status, device: &Device) -> Option<&'static str> {
    let name = device.path.file_name()?.to_str()?;
    // `nvme0n1p2` of `nvme0n1`, `sda1` of `sda`, by their folders in sysfs.
    let is_part = |other: &str| {
        let rest = other.strip_prefix(name)?;
        let number =
            if name.ends_with(|last: char| last.is_ascii_digit()) { rest.strip_prefix('p')? } else { rest };
        Some(!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let names = status.drives.iter().filter_map(|drive| drive.file_name()?.to_str());
    let is_below = |other: &str| other == name || is_part(other) == Some(true);
    names.into_iter().any(is_below).then_some("the target lies on it")
}

/// What a recording says of its host.
fn recorded_host(state: &State, replay: &Replay, cells: usize) -> Text {
    let rows = replay.host_facts.iter().map(|(what, text)| format!("{what:<16}{text}"));
    let lines = rows.flat_map(|row| folded(&row, cells));
    let note = "As the recording has it: this host was not examined.".to_owned();
    lines.map(|line| (line, state.theme.plain)).chain([(note, state.theme.dim)]).collect()
}

/// A line with a name and its value, wrapped; the value continues below its beginning.
fn folded(line: &str, cells: usize) -> Vec<String> {
    if width(line) <= cells {
        return vec![line.to_owned()];
    }
    let name = line.len() - line.trim_start().len();
    let value = line[name..].find("  ").map_or(name, |at| {
        let gap = name + at;
        gap + line[gap..].len() - line[gap..].trim_start().len()
    });
    let indent = width(&line[..value]).min(cells / 2);
    let parts = wrap_exact(&line[value..], cells - indent);
    let mut lines: Vec<_> = parts.iter().map(|part| format!("{}{part}", " ".repeat(indent))).collect();
    if let (Some(first), Some(part)) = (lines.first_mut(), parts.first()) {
        *first = format!("{}{part}", &line[..value]);
    }
    lines
}

/// The whole error with the tools' messages, and what can be done.
fn failed(state: &State, cells: usize) -> Text {
    let theme = &state.theme;
    let Some(Err(error)) = &state.ended else { return Vec::new() };
    let mut text = Vec::new();
    let mut add = |part: &str, style: Style| {
        for line in part.lines() {
            text.extend(wrap(line, cells).into_iter().map(|part| (part, style)));
        }
    };
    add(&error.what, theme.bad);
    if let Some(hint) = &error.hint {
        add(" ", theme.plain);
        add(hint, theme.plain);
    }
    add(" ", theme.plain);
    if let Some(former) = &state.former {
        let stack = &former.stack;
        let what = if stack.is_built() {
            format!("raid {}, file system {}", stack.raid.name(), stack.filesystem.name())
        } else {
            "it needs no stack".to_owned()
        };
        add(&format!("b rebuilds the previous stack of {} ({what}).", former.name), theme.strong);
    }
    add("o opens a profile, q quits, Esc closes; the message stays in the notes.", theme.strong);
    text
}
