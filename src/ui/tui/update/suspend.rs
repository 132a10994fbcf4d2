//! Ctrl-Z: the load is paused, the program stops, and both resume later.

use crate::runs::session::Command;
use crate::runs::session::message::Phase;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;

/// Stops the program, if a shell would continue it. Stopped, it can't serve a load, so that is paused first.
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

/// Resumes after a stop, and with it the load, if it was paused for this.
pub fn resumed(state: &mut State) -> Vec<Effect> {
    state.message = None;
    if std::mem::take(&mut state.suspending) {
        state.say("continued: the load was paused meanwhile");
        return vec![Effect::Send(Command::Pause(false))];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use crate::runs::session::message::Phase;
    use crate::runs::session::{Command, Event};
    use crate::ui::tui::fixture::{self, running, tell};
    use crate::ui::tui::message::{Effect, Msg};
    use crate::ui::tui::update::tests::{letter, said};
    use crate::ui::tui::update::update;

    #[test]
    fn ctrl_z_stops_once_the_load_is_paused_and_resumes_it_afterwards() {
        let ctrl_z = || Msg::Key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL));
        let mut state = running(80, 24);
        assert_eq!(update(&mut state, ctrl_z()), [Effect::Suspend]);
        assert_eq!(update(&mut state, Msg::MayStop(true)), [Effect::Send(Command::Pause(true))]);
        assert!(said(&state).contains("pausing the load"), "{}", said(&state));
        let report = |phase| Msg::Session(Event::Status(Arc::new(fixture::status(phase))));
        assert_eq!(update(&mut state, report(Phase::Running)), [], "not yet");
        assert_eq!(update(&mut state, report(Phase::Paused)), [Effect::Stop]);
        assert_eq!(update(&mut state, Msg::Resumed), [Effect::Send(Command::Pause(false))]);
        assert_eq!(update(&mut state, report(Phase::Paused)), [], "it stops once");
        // A load that was paused before stays so.
        assert_eq!(update(&mut state, Msg::StopAsked), [Effect::Suspend]);
        assert_eq!(update(&mut state, Msg::MayStop(true)), [Effect::Stop]);
        assert_eq!(update(&mut state, Msg::Resumed), []);
        // It works with a dialog open and on a screen that is too small, too.
        letter(&mut state, ':');
        assert_eq!(update(&mut state, ctrl_z()), [Effect::Suspend]);
        let _ = update(&mut state, Msg::Resize(40, 10));
        assert_eq!(update(&mut state, ctrl_z()), [Effect::Suspend]);
    }

    #[test]
    fn ctrl_z_does_nothing_without_a_shell_or_while_a_stack_is_built() {
        let mut state = running(80, 24);
        assert_eq!(update(&mut state, Msg::MayStop(false)), []);
        assert!(said(&state).contains("no shell waits"), "{}", said(&state));
        tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Building))));
        assert_eq!(update(&mut state, Msg::MayStop(true)), []);
        assert!(said(&state).contains("the stack is being built"), "{}", said(&state));
    }
}
