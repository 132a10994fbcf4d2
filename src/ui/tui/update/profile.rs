//! Opening a profile that was read.

use crate::runs::session::Command;
use crate::runs::session::message::Phase;
use crate::settings::Settings;
use crate::settings::knobs::Conditions;
use crate::settings::profile::{Profile, check, is_demo};
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;

/// Opens it, unless it can't run here while a load does: that goes on then.
pub fn opened(state: &mut State, profile: Profile) -> Vec<Effect> {
    let name = profile.settings.name.clone();
    if let Some(why) = refused(state, &profile.settings) {
        state.complain(format!("{name} can't run here, and the load goes on: {why}"));
        return Vec::new();
    }
    state.say_until_running(format!("opening {name}"));
    state.asked.clear();
    state.collected.clear();
    let unused_steps = profile.steps();
    vec![Effect::Send(Command::Open { settings: Box::new(profile.settings), unused_steps })]
}

/// Why it can't run here; not asked where no load would be lost, nor of the demo, which does without what is missing.
fn refused(state: &State, settings: &Settings) -> Option<String> {
    let status = state.status.as_ref().filter(|_| state.ended.is_none())?;
    if !matches!(status.phase, Phase::Running | Phase::Paused) || is_demo(settings) {
        return None;
    }
    let problems = check(settings, Conditions { facts: &status.facts, target: None });
    let more = match problems.len() {
        0 | 1 => String::new(),
        many => format!(" (and {} more)", many - 1),
    };
    problems.first().map(|problem| format!("{problem}{more}"))
}
