//! Ctrl-Z: the load is paused, the program stops, and both go on later.

use crate::runs::session::Command;
use crate::runs::session::message::Phase;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;

/// Stops, if a shell would continue the program. A stopped program can't serve a load, so that is paused first.
pub fn suspend(state: &mut State, may: bool) -> Vec<Effect> {
    if !may {
        state
            .complain("no shell waits for stacktune, so nothing would continue it: Ctrl-Z does nothing here");
        return Vec::new();
    }
    match state.phase() {
        _ if state.ended.is_some() || state.replay.is_some() => vec![Effect::Stop],
        Phase::Running if !state.quitting => {
            state.suspending = true;
            state.say("pausing the load before returning to the shell…");
            vec![Effect::Send(Command::Pause(true))]
        }
        Phase::Building => not_now(state, "the stack is being built"),
        Phase::Ending | Phase::Running => not_now(state, "the I/O under way drains"),
        Phase::Opening | Phase::Filling | Phase::Paused => vec![Effect::Stop],
    }
}

fn not_now(state: &mut State, why: &str) -> Vec<Effect> {
    state.say(format!("Ctrl-Z does nothing now: {why}"));
    Vec::new()
}

/// The run has reported its state: once the load is paused, the program stops.
pub fn reported(state: &State) -> Vec<Effect> {
    if state.suspending && state.phase() == Phase::Paused { vec![Effect::Stop] } else { Vec::new() }
}

/// The program goes on, and so does the load if it was paused for this.
pub fn resumed(state: &mut State) -> Vec<Effect> {
    state.message = None;
    if std::mem::take(&mut state.suspending) {
        state.say("continued: the load was paused meanwhile");
        return vec![Effect::Send(Command::Pause(false))];
    }
    Vec::new()
}
