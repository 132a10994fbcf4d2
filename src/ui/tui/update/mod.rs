//! How messages change the state. Pure: what is to be done outside is returned as effects.

mod dialogs;
mod input;
mod mouse;
pub mod plan;
mod session;
mod turn;

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use ratatui::layout::Rect;

use super::dialog::Dialog;
use super::keys::{self, Action};
use super::layout::{self, Tier, View};
use super::message::{Effect, Msg};
use super::state::{Focus, Row, State};
use crate::error::{Error, Kind};
use crate::runs::session::Command;
use crate::runs::session::message::Phase;

/// Handles a message.
pub fn update(state: &mut State, msg: Msg) -> Vec<Effect> {
    let effects = take(state, msg);
    state.list_knobs();
    effects
}

fn take(state: &mut State, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) if key.kind != KeyEventKind::Release => key_pressed(state, &key),
        Msg::Key(_) => Vec::new(),
        Msg::Mouse(event) => mouse::mouse(state, event),
        Msg::Resize(columns, lines) => {
            state.screen = Rect::new(0, 0, columns, lines);
            state.scroll_to_chosen();
            Vec::new()
        }
        Msg::Session(event) => session::handle(state, event),
        Msg::SessionGone => session::gone(state),
        Msg::Listed(found) => {
            if let Some(Dialog::Open { entries, .. }) = &mut state.dialog {
                *entries = Some(found);
            }
            Vec::new()
        }
        Msg::Loaded(Ok(profile)) => {
            state.say(format!("opening {}", profile.settings.name));
            state.asked.clear();
            state.collected.clear();
            let unused_steps = profile.steps();
            vec![Effect::Send(Command::Open { settings: Box::new(profile.settings), unused_steps })]
        }
        Msg::Loaded(Err(error)) => {
            state.complain(error.one_line());
            Vec::new()
        }
        Msg::Saved(name, outcome) => {
            saved(state, name, outcome);
            Vec::new()
        }
    }
}

fn saved(state: &mut State, name: String, outcome: Result<PathBuf, Error>) {
    match outcome {
        Ok(path) => state.say(format!("saved as {}", path.display())),
        Err(error) if error.kind == Kind::Refused && state.dialog.is_none() => {
            state.dialog = Some(Dialog::Replace { name });
        }
        Err(error) => state.complain(error.one_line()),
    }
}

fn key_pressed(state: &mut State, key: &KeyEvent) -> Vec<Effect> {
    let action = keys::action(state.contexts(), key);
    if action == Some(Action::Quit) {
        return quit(state);
    }
    let outlives = state.dialog.as_ref().is_some_and(Dialog::outlives_small_screens);
    if layout::tier(state.screen).is_none() && !outlives {
        return Vec::new(); // nothing invisible is turned
    }
    if state.dialog.is_some() {
        let typed = match key.code {
            KeyCode::Char(c) if action.is_none() && key.modifiers.difference(SHIFT).is_empty() => Some(c),
            _ => None,
        };
        return dialogs::pressed(state, action, typed);
    }
    let Some(action) = action else { return Vec::new() };
    state.message = None;
    if !matches!(action, Action::TurnUp | Action::TurnDown) {
        state.passing = None;
    }
    act(state, action)
}

const SHIFT: crossterm::event::KeyModifiers = crossterm::event::KeyModifiers::SHIFT;

fn act(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::Up => step(state, -1),
        Action::Down => step(state, 1),
        Action::PageUp => step(state, -10),
        Action::PageDown => step(state, 10),
        Action::First => step(state, isize::MIN / 2),
        Action::Last => step(state, isize::MAX / 2),
        Action::TurnUp => return turn::turn(state, true),
        Action::TurnDown => return turn::turn(state, false),
        Action::Enter if !state.collected.is_empty() => return plan::ask(state),
        Action::Edit | Action::Enter => turn::edit(state),
        Action::Plan => return plan::ask(state),
        Action::Drop => plan::drop_collected(state),
        Action::Former => return plan::former(state),
        Action::Host => state.dialog = Some(Dialog::Host { top: 0 }),
        Action::Believe => state.dialog = Some(Dialog::Believe { top: 0 }),
        Action::Pause => return pause(state),
        Action::Mute => match state.knob().class {
            Some(class) => return turn::mute(state, class),
            None => {
                state
                    .say("m switches the class of the chosen knob: choose one of its knobs, or press 1 to 4");
            }
        },
        Action::MuteClass(index) => return turn::mute(state, crate::class::Class::ALL[index]),
        Action::Restart => return turn::restart(state),
        Action::Undo => return undo(state),
        Action::Save => save(state),
        Action::Open => {
            state.dialog = Some(Dialog::Open { entries: None, chosen: 0 });
            return vec![Effect::List];
        }
        Action::Record => return record(state),
        Action::Freeze => freeze(state),
        Action::Cumulative => state.cumulative = !state.cumulative,
        Action::Response => state.response = !state.response,
        Action::View => next_view(state),
        Action::Focus => focus(state),
        Action::Help => state.dialog = Some(Dialog::Help { top: 0 }),
        // Only in dialogs, or handled before.
        Action::Quit
        | Action::Close
        | Action::Accept
        | Action::Yes
        | Action::Erase
        | Action::EraseAll
        | Action::TakeDown
        | Action::Keep => {}
    }
    Vec::new()
}

/// Moves the choice by that many knobs (or ledger lines).
fn step(state: &mut State, by: isize) {
    if state.focus == Focus::Ledger {
        let last = state.figures().ledger.len().saturating_sub(1);
        state.ledger_chosen = state.ledger_chosen.saturating_add_signed(by).min(last);
        return;
    }
    let rows = state.rows();
    let knobs: Vec<_> = (0..rows.len()).filter(|&i| matches!(rows[i], Row::Knob(_))).collect();
    let at = knobs.iter().position(|&i| i == state.chosen).unwrap_or(0);
    choose(state, knobs[at.saturating_add_signed(by).min(knobs.len() - 1)]);
}

/// Chooses a row if it is a knob.
fn choose(state: &mut State, row: usize) {
    if let Some(Row::Knob(_)) = state.rows().get(row) {
        if state.chosen != row {
            state.passing = None;
        }
        state.chosen = row;
        state.scroll_to_chosen();
    }
}

fn pause(state: &mut State) -> Vec<Effect> {
    match state.phase() {
        _ if state.quitting || state.ended.is_some() => Vec::new(),
        Phase::Running => vec![Effect::Send(Command::Pause(true))],
        Phase::Paused => vec![Effect::Send(Command::Pause(false))],
        Phase::Opening | Phase::Building | Phase::Filling | Phase::Ending => {
            state.say("nothing to pause: the load is not running");
            Vec::new()
        }
    }
}

fn undo(state: &mut State) -> Vec<Effect> {
    if input::blocked(state) {
        return Vec::new();
    }
    state.asked.clear();
    vec![Effect::Send(Command::Undo)]
}

fn save(state: &mut State) {
    match &state.status {
        Some(status) => {
            let input = status.settings.name.clone();
            state.dialog = Some(Dialog::Save { input, selected: true, error: None });
        }
        None => state.say("nothing to save yet: the profile is being opened"),
    }
}

fn record(state: &mut State) -> Vec<Effect> {
    if state.recording.is_some() {
        return vec![Effect::Send(Command::Record(None))];
    }
    if input::blocked(state) {
        return Vec::new();
    }
    match &state.status {
        Some(status) => vec![Effect::StartRecording(status.settings.name.clone())],
        None => Vec::new(),
    }
}

fn freeze(state: &mut State) {
    state.frozen = match state.frozen {
        Some(_) => None,
        None => Some(Box::new(state.live.clone())),
    };
}

fn next_view(state: &mut State) {
    match layout::tier(state.screen) {
        Some(Tier::Large) => state.say("everything fits on the screen: there is no other view"),
        Some(tier) => state.view = state.view.next(tier),
        None => {}
    }
    // The focus is never on a panel that is not shown.
    if layout::areas(state.screen, state.view).is_some_and(|areas| areas.ledger.is_empty()) {
        state.focus = Focus::Knobs;
    }
    state.scroll_to_chosen();
}

fn focus(state: &mut State) {
    state.focus = match state.focus {
        Focus::Ledger => Focus::Knobs,
        Focus::Knobs => {
            if layout::areas(state.screen, state.view).is_some_and(|areas| areas.ledger.is_empty()) {
                state.view = View::Ledger;
            }
            Focus::Ledger
        }
    };
}

/// Drains and quits. Asks first if a stack is in place (if asked again, it is torn down); quits at once if
/// there is nothing to drain, or if asked again.
fn quit(state: &mut State) -> Vec<Effect> {
    if state.quitting {
        return vec![Effect::Exit];
    }
    if state.ended.is_some() {
        state.quitting = true;
        return vec![Effect::Send(Command::Quit), Effect::Exit];
    }
    let standing = state.status.as_ref().is_some_and(|status| status.standing);
    let asked = matches!(state.dialog, Some(Dialog::Leave));
    if standing && !asked && !state.dialog.as_ref().is_some_and(Dialog::is_awaited) {
        state.dialog = Some(Dialog::Leave);
        return Vec::new();
    }
    leave(state, Command::Quit)
}

/// Drains and ends with the given command.
fn leave(state: &mut State, way: Command) -> Vec<Effect> {
    state.quitting = true;
    state.dialog = None;
    vec![Effect::Send(way)]
}

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod tests;
