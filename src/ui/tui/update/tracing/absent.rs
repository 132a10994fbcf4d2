//! A key that begins a trace, in a build that makes none.

use std::path::PathBuf;

use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;
use crate::ui::tui::tracing::ABSENT;

/// Says how to get it.
pub fn turn(state: &mut State) -> Vec<Effect> {
    state.say(ABSENT);
    Vec::new()
}

/// There is none to announce to a run.
pub fn again(_: &State) -> Vec<Effect> {
    Vec::new()
}

/// There is none to be ended.
pub fn settle(_: &State, _: &[PathBuf]) -> Vec<Effect> {
    Vec::new()
}
