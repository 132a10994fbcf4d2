//! Dispatches each message to its handler.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;

use super::act::{act, quit};
#[cfg(feature = "trace")]
use super::tracing;
use super::{dialogs, drives, mouse, profile, replay, session, shelf, suspend, themes};
use crate::error::{Error, Kind};
use crate::printable::Shown as _;
use crate::runs::session::Command;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::{self, Action};
use crate::ui::tui::layout;
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::state::{Focus, State};

/// Handles a message.
pub fn update(state: &mut State, msg: Msg) -> Vec<Effect> {
    let effects = take(state, msg);
    let turns = |effect: &Effect| matches!(effect, Effect::Send(Command::Turn { .. } | Command::Undo));
    if state.frozen.is_some() && effects.iter().any(turns) {
        state.frozen = None;
        state.say("the figures are live again, so that you see what this turn does");
    }
    state.list_knobs();
    effects
}

fn take(state: &mut State, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) if key.kind != KeyEventKind::Release => key_pressed(state, &key),
        Msg::Key(_) => Vec::new(),
        Msg::Mouse(event) => mouse::mouse(state, event),
        Msg::Resize(columns, lines) => {
            state.terminal = Rect::new(0, 0, columns, lines);
            state.take_place();
            Vec::new()
        }
        Msg::Session(event) => session::handle(state, event),
        Msg::SessionGone => session::gone(state),
        Msg::Played(elapsed) => {
            replay::play_on(state, elapsed);
            Vec::new()
        }
        Msg::StopAsked => act(state, Action::Suspend),
        Msg::MayStop(may) => suspend::suspend(state, may),
        Msg::Resumed => suspend::resumed(state),
        Msg::Listed(found) => {
            profile::listed(state, found);
            Vec::new()
        }
        Msg::DevicesRead(devices) => {
            state.host = Some(devices);
            Vec::new()
        }
        Msg::DrivesExamined(candidates) => {
            drives::examined(state, candidates);
            Vec::new()
        }
        Msg::ThemesListed(listed) => {
            themes::listed(state, listed);
            Vec::new()
        }
        Msg::RecordingsListed(listed) => {
            shelf::listed(state, listed);
            Vec::new()
        }
        Msg::RecordingsRead(dirs, outcome) => {
            shelf::read(state, &dirs, outcome);
            Vec::new()
        }
        Msg::Loaded(Ok(profile)) => profile::opened(state, *profile),
        Msg::Loaded(Err(error)) | Msg::NotRead(error) => {
            state.complain(error.one_line());
            Vec::new()
        }
        Msg::NotKept(error) => {
            state.notice(format!("it can't be kept for next time: {}", error.one_line()));
            Vec::new()
        }
        #[cfg(feature = "trace")]
        Msg::Traced(said) => tracing::said(state, said),
        Msg::Saved(name, outcome) => {
            saved(state, name, outcome);
            Vec::new()
        }
    }
}

fn saved(state: &mut State, name: String, outcome: Result<PathBuf, Error>) {
    match outcome {
        Ok(path) => {
            state.say(format!("saved as {}", path.shown()));
            state.of_profile = state.settings_asked().map(Box::new);
            state.is_set_apart = false;
            state.saved_as = Some(name);
            state.ran.saved(path);
        }
        Err(error) if error.kind == Kind::Refused && state.dialog.is_none() => {
            state.dialog = Some(Dialog::Replace { name });
        }
        // Keep the name that was typed.
        Err(error) if state.dialog.is_none() => {
            let error = Some(error.one_line());
            state.dialog = Some(Dialog::Save { input: name.into(), error });
        }
        Err(error) => state.complain(error.one_line()),
    }
}

fn key_pressed(state: &mut State, key: &KeyEvent) -> Vec<Effect> {
    let leaves = key.code == KeyCode::Esc && (state.dialog.is_some() || state.focus == Focus::Ledger);
    let effects = acted_on(state, key);
    state.has_left = leaves;
    effects
}

fn acted_on(state: &mut State, key: &KeyEvent) -> Vec<Effect> {
    let action = keys::action(state.contexts(), key);
    if action == Some(Action::Quit) {
        return quit(state);
    }
    if action == Some(Action::Suspend) {
        return act(state, Action::Suspend);
    }
    let outlives = state.dialog.as_ref().is_some_and(Dialog::outlives_small_screens);
    if layout::tier(state.screen).is_none() && !outlives {
        return Vec::new(); // nothing invisible is turned
    }
    if state.dialog.is_some() {
        let typed = match key.code {
            KeyCode::Char(c)
                if action.is_none() && key.modifiers.difference(KeyModifiers::SHIFT).is_empty() =>
            {
                Some(c)
            }
            _ => None,
        };
        return dialogs::pressed(state, action, typed);
    }
    let Some(action) = action else {
        if let (KeyCode::Char(c), true) = (key.code, key.modifiers.difference(KeyModifiers::SHIFT).is_empty())
        {
            state.say(format!("{c} does nothing here: ? lists the keys, : the commands"));
        }
        return Vec::new();
    };
    state.message = None;
    if !matches!(action, Action::TurnUp | Action::TurnDown) {
        state.passing = None;
    }
    act(state, action)
}
