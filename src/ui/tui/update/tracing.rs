//! A trace of the target's drives, begun and ended by a key.

use std::path::PathBuf;

use super::input::blocked;
use crate::runs::session::message::Command;
use crate::settings::Named as _;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;
use crate::ui::tui::tracing::{Said, Tracing, Wanted};

/// Begins a trace, or ends the one that is under way.
pub fn turn(state: &mut State) -> Vec<Effect> {
    if state.tracing.is_on {
        return vec![end(state)];
    }
    if blocked(state) {
        return Vec::new();
    }
    let Some(status) = &state.status else { return Vec::new() };
    if let Some(interface) = status.settings.past_block_layer() {
        state.say(format!("no trace: I/O by {} bypasses the kernel's block layer", interface.name()));
        return Vec::new();
    }
    if status.drives.is_empty() {
        state.say("no trace: no drive is below the target");
        return Vec::new();
    }
    vec![Effect::Trace(Wanted::Begin(status.drives.clone(), status.facts.cpu.online.clone()))]
}

fn end(state: &State) -> Effect {
    let name = state.status.as_ref().map_or_else(String::new, |status| status.settings.name.clone());
    Effect::Trace(Wanted::End(state.recording.clone(), name))
}

/// Ends a trace whose drives are no longer the target's, or that no longer sees all of the load's I/O.
pub fn settle(state: &State, before: &[PathBuf]) -> Vec<Effect> {
    let status = state.status.as_ref();
    let moved =
        status.is_some_and(|status| status.drives != before || status.settings.past_block_layer().is_some());
    if moved && state.tracing.is_on { vec![end(state)] } else { Vec::new() }
}

/// Tells a run about a trace that began in the previous one.
pub fn again(state: &State) -> Vec<Effect> {
    let tap = state.tracing.tap.clone();
    tap.map(|tap| Effect::Send(Command::Traced(Some(tap)))).into_iter().collect()
}

/// Takes news of a trace; tells the run whether one is under way, so that its windows say so.
pub fn said(state: &mut State, said: Said) -> Vec<Effect> {
    let tap = match said {
        Said::Began(drives, tap) => {
            let text = format!("tracing {}: C shows the contract's rules, T ends it", drives.join(", "));
            state.say(text);
            state.tracing = Tracing { is_on: true, tap: Some(tap.clone()), drives, live: None };
            Some(tap)
        }
        Said::Live(live) => {
            let ends = live.is_full && state.tracing.is_on;
            state.tracing.live = Some(live);
            return if ends { vec![end(state)] } else { Vec::new() };
        }
        Said::Ended(outcome) => {
            (state.tracing.is_on, state.tracing.tap) = (false, None);
            match outcome {
                Ok(text) => {
                    state.say(text.clone());
                    state.notice(text);
                }
                Err(error) => {
                    state.complain(error.one_line());
                    state.notice(error.one_line());
                }
            }
            None
        }
    };
    vec![Effect::Send(Command::Traced(tap))]
}
