//! The bottom lines: the last message or what the chosen knob does, and the keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::frame::{put, span};
use crate::runs::session::message::Phase;
use crate::ui::text::{fit_middle, percent, width, wrap};
use crate::ui::tui::glyphs::Glyphs;
use crate::ui::tui::keys;
use crate::ui::tui::layout;
use crate::ui::tui::state::{Focus, State};
use crate::ui::tui::update::input::why_ended;
use crate::ui::tui::update::pick::{has_drives, has_names};
use crate::units::{approx_size, approx_span};

/// Draws the last message, the progress of a fill, or what the chosen knob does.
pub fn message(state: &State, buf: &mut Buffer, area: Rect) {
    let cells = usize::from(area.width);
    if let Some(line) = building(state, cells).or_else(|| progress(state, cells)) {
        put(buf, area.x, area.y, area.width, &line);
        if area.height > 1 {
            let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
            text(state, buf, below);
        }
        return;
    }
    text(state, buf, area);
}

fn text(state: &State, buf: &mut Buffer, area: Rect) {
    let (text, style) = said(state);
    let cells = usize::from(area.width).saturating_sub(2);
    let room = usize::from(area.height);
    let mut lines = wrap(&text, cells);
    if lines.len() > room {
        let cut = lines.split_off(room.saturating_sub(1)).join(" ");
        lines.push(crate::ui::text::fit(&cut, cells));
    }
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        put(buf, area.x + 1, y, area.width - 1, &Line::from(span(line, style)));
    }
}

fn said(state: &State) -> (String, Style) {
    let theme = &state.theme;
    let knob = state.knob();
    if let Some(passing) = &state.passing {
        return (format!("{} {} is not available: {}", knob.path, passing.value, passing.reason), theme.warn);
    }
    if let Some(message) = &state.message {
        return (message.text.clone(), if message.wrong { theme.bad } else { theme.plain });
    }
    if state.quitting {
        let left = if state.is_standing() { ", leaving the stack to `stacktune cleanup`" } else { "" };
        return (format!("draining… q again quits at once{left}"), theme.warn);
    }
    if let Some(why) = why_ended(state) {
        return (why, theme.bad);
    }
    if let Some(why) = state.conflict(knob) {
        return (format!("{} conflicts with the other collected changes: {why}", knob.path), theme.warn);
    }
    let settings = state.settings_for(knob);
    let inactive = settings.and_then(|settings| knob.inactive(&settings));
    match inactive {
        Some(why) => (format!("{} has no effect now: {why}. {}", knob.path, knob.spec.help), theme.dim),
        None => (format!("{}: {}", knob.path, knob.spec.help), theme.dim),
    }
}

/// A step of building or tearing down: its number, its progress, and its command, cut in the middle.
fn building(state: &State, cells: usize) -> Option<Line<'static>> {
    const BAR: usize = 10;
    let step = state.step.as_ref().filter(|_| state.phase() != Phase::Running)?;
    let theme = &state.theme;
    let what = if step.undoing { "undoing" } else { "step" };
    let mut spans = vec![span(format!(" {what} {} of {} ", step.step + 1, step.steps), theme.strong)];
    if let Some((done, all)) = step.bytes.filter(|(_, all)| *all > 0) {
        let share = (done as f64 / all as f64).clamp(0.0, 1.0);
        let full = (share * BAR as f64) as usize;
        spans.push(span("█".repeat(full), theme.accent));
        spans.push(span("░".repeat(BAR - full), theme.rule));
        let left = step.left_s.map_or_else(String::new, |s| format!("· {} left ", approx_span(s)));
        let text = format!(" {} · {} of {} {left}", percent(share), approx_size(done), approx_size(all));
        spans.push(span(text, theme.plain));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(span(fit_middle(&format!("· {}", step.command), cells.saturating_sub(used + 1)), theme.plain));
    Some(Line::from(spans))
}

/// A fill: bar, share, bytes, rate, time left.
fn progress(state: &State, cells: usize) -> Option<Line<'static>> {
    let progress = state.progress.as_ref().filter(|_| state.phase() != Phase::Running)?;
    let share = if progress.all_bytes == 0 {
        0.0
    } else {
        (progress.done_bytes as f64 / progress.all_bytes as f64).clamp(0.0, 1.0)
    };
    let left_bytes = progress.all_bytes.saturating_sub(progress.done_bytes);
    let left = if progress.rate_bytes_per_s > 0.0 {
        format!("{} left", approx_span(left_bytes as f64 / progress.rate_bytes_per_s))
    } else {
        "time left unknown".into()
    };
    let text = format!(
        " {} · {} of {} at {:.0} MB/s · {left}",
        percent(share),
        approx_size(progress.done_bytes),
        approx_size(progress.all_bytes),
        progress.rate_bytes_per_s / 1e6,
    );
    let what = format!(" {} ", crate::ui::text::fit(&progress.what, 24));
    let room = cells.saturating_sub(width(&what) + width(&text) + 1).min(40);
    let full = (share * room as f64) as usize;
    Some(Line::from(vec![
        span(what, state.theme.strong),
        span("█".repeat(full), state.theme.accent),
        span("░".repeat(room - full), state.theme.rule),
        span(text, state.theme.plain),
    ]))
}

/// Cells between two keys of the line.
const GAP: usize = 2;

/// Draws the keys of the context, as many as fit; its help, quit, search and list of all actions are never left
/// out.
pub fn keys(state: &State, buf: &mut Buffer, area: Rect) {
    let theme = &state.theme;
    let cells = usize::from(area.width);
    let rows: Vec<_> = keys::hints(state.contexts()).filter(|row| is_of_use(state, row)).collect();
    let wide = |row: &&keys::Binding| width(label(state, row)) + 1 + width(hint(state, row)) + GAP;
    let kept = |row: &&keys::Binding| match row.action {
        // Along with the way back from a past window.
        keys::Action::Help
        | keys::Action::Palette
        | keys::Action::Quit
        | keys::Action::Now
        | keys::Action::Earlier => true,
        keys::Action::Search => state.replay.is_none() && state.frozen.is_none(),
        // What can be done after the end, and in a pause.
        keys::Action::Open => state.ended.is_some(),
        keys::Action::Pause => state.phase() == Phase::Paused,
        keys::Action::Duel => state.duel.is_some(),
        _ => false,
    };
    // Nothing follows the last one.
    let mut room = (cells + GAP).saturating_sub(1 + rows.iter().filter(|r| kept(r)).map(wide).sum::<usize>());
    let mut spans = vec![Span::raw(" ")];
    for row in &rows {
        if !kept(row) {
            if wide(row) > room {
                continue;
            }
            room -= wide(row);
        }
        spans.push(span(label(state, row), theme.accent));
        spans.push(span(format!(" {}  ", hint(state, row)), theme.dim));
    }
    put(buf, area.x, area.y, area.width, &Line::from(spans));
}

/// Whether a key does anything now.
fn is_of_use(state: &State, row: &keys::Binding) -> bool {
    match row.action {
        keys::Action::Replay(keys::Step::Other | keys::Step::Differences) => state.beside.is_some(),
        keys::Action::Replay(keys::Step::Both) => {
            state.beside.is_some() && layout::halves(state.terminal).is_some()
        }
        keys::Action::Drop if leaves_ledger(state) => true,
        action if state.replay.is_some() && state.dialog.is_none() && action.needs_run() => false,
        action if state.dialog.is_none() && !state.can_turn() && needs_load(state, action) => false,
        keys::Action::Mute => state.knob().class.is_some(),
        keys::Action::Now | keys::Action::Earlier => state.frozen.is_some(),
        keys::Action::Undo => !state.live.ledger.is_empty(),
        keys::Action::Duel => !state.live.ledger.is_empty() || state.mark.is_some() || state.duel.is_some(),
        keys::Action::Edit if matches!(row.context, keys::Context::Pick | keys::Context::Drives) => true,
        keys::Action::Edit | keys::Action::Drop => !state.collected.is_empty(),
        keys::Action::View => {
            !matches!(layout::tier(state.screen), Some(layout::Tier::Large | layout::Tier::Wide))
        }
        keys::Action::ToMark => state.turned_since_mark().is_some_and(|many| many > 0),
        keys::Action::Former => state.former.is_some() && state.ended.is_some(),
        _ => true,
    }
}

fn leaves_ledger(state: &State) -> bool {
    state.focus == Focus::Ledger && state.dialog.is_none()
}

/// Whether it acts on a load that runs or is paused. Without a load nothing can be turned, and a recording can only be
/// ended.
fn needs_load(state: &State, action: keys::Action) -> bool {
    use keys::Action::{
        Duel, Edit, Enter, MarkSetting, Mute, MuteClass, Pause, Plan, Record, Restart, ToMark, TurnDown,
        TurnUp, Undo,
    };
    match action {
        Record => state.recording.is_none(),
        Duel | Edit | Enter | MarkSetting | Mute | MuteClass(_) | Pause | Plan | Restart | ToMark
        | TurnDown | TurnUp | Undo => true,
        _ => false,
    }
}

/// A glyph that only a word can stand for.
const ENTER: &str = "⏎";

/// The keys of a row, with their opposite if one row stands for both.
pub fn label(state: &State, row: &keys::Binding) -> &'static str {
    match row.action {
        _ if state.glyphs == Glyphs::Ascii && row.label == ENTER => "Enter",
        keys::Action::TurnUp => "←→",
        keys::Action::Later if row.context == keys::Context::Replay => "←→",
        keys::Action::Earlier => ", .",
        keys::Action::Down => "↑↓",
        keys::Action::LayerDown => "[ ]",
        _ => row.label,
    }
}

/// What a key does now.
fn hint(state: &State, row: &keys::Binding) -> &'static str {
    match row.action {
        keys::Action::Enter if !state.collected.is_empty() => "plan",
        keys::Action::Drop if leaves_ledger(state) => "close",
        keys::Action::Enter if has_names(state.knob()) || has_drives(state.knob()) => "pick",
        keys::Action::Pause if state.phase() == Phase::Paused => "resume",
        keys::Action::Replay(keys::Step::Play) if state.replay.as_ref().is_some_and(|r| r.plays) => "stop",
        keys::Action::Duel if state.duel.is_some() => "end duel",
        keys::Action::Freeze if state.frozen.is_some() => "thaw",
        keys::Action::Record if state.recording.is_some() => "stop rec",
        keys::Action::Cumulative if state.cumulative => "window",
        _ => row.hint,
    }
}
