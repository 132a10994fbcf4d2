//! The list of profiles, and opening one that was read.

use super::filter::{self, Pressed};
use crate::runs::session::Command;
use crate::runs::session::message::Phase;
use crate::settings::Settings;
use crate::settings::knobs::Conditions;
use crate::settings::profile::{Profile, check, is_demo};
use crate::ui::tui::ProfileEntry;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::filter::Filter;
use crate::ui::tui::keys::Action;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;

/// The rows that the filter lets through: by name, description, and why one can't be opened.
pub fn rows(entries: &[ProfileEntry], filter: &Filter) -> Vec<usize> {
    let text = |row: usize| {
        let ProfileEntry { name, about, refused, .. } = &entries[row];
        format!("{name} {about} {}", refused.as_deref().unwrap_or_default())
    };
    filter.rows(entries.len(), &text)
}

/// Handles a key while the list is shown. A profile that can't be opened stays in it, with its reason.
pub fn pressed(
    state: &mut State,
    entries: Option<Vec<ProfileEntry>>,
    (mut chosen, mut filter): (usize, Filter),
    (action, typed): (Option<Action>, Option<char>),
) -> Vec<Effect> {
    let found = |filter: &Filter| rows(entries.as_deref().unwrap_or_default(), filter);
    match filter::pressed(&mut filter, chosen, (action, typed), &found) {
        Pressed::Moved(row) => chosen = row,
        Pressed::Act(Action::Close) => return Vec::new(),
        Pressed::Act(Action::Accept) => {
            let entry = entries.as_ref().and_then(|list| list.get(chosen));
            if let Some(entry) = entry.filter(|entry| entry.refused.is_none()) {
                return vec![Effect::Load(entry.name.clone())];
            }
        }
        Pressed::Act(_) => {}
    }
    state.dialog = Some(Dialog::Open { entries, chosen, filter });
    Vec::new()
}

/// Opens a profile, unless it can't run here while a load is running, which then goes on.
pub fn opened(state: &mut State, profile: Profile) -> Vec<Effect> {
    let name = profile.settings.name.clone();
    if let Some(why) = refused(state, &profile.settings) {
        state.complain(format!("{name} can't run here, and the load goes on: {why}"));
        return Vec::new();
    }
    state.say_until_running(format!("opening {name}"));
    state.asked.clear();
    state.collected.clear();
    state.is_set_apart = false;
    let unused_steps = profile.steps();
    vec![Effect::Send(Command::Open { settings: Box::new(profile.settings), unused_steps })]
}

/// Takes the list, and adds to each profile that can't run here why not.
pub fn listed(state: &mut State, mut found: Vec<ProfileEntry>) {
    // Drives that have left the kernel come back first.
    let away = state.status.as_ref().is_some_and(|status| status.settings.leaves_kernel());
    for entry in &mut found {
        let absent = entry.absent.take().filter(|_| !away);
        if let Some(settings) = entry.settings.take() {
            entry.refused = entry.refused.take().or_else(|| cannot_run(state, &settings)).or(absent);
        }
    }
    if let Some(Dialog::Open { entries, .. }) = &mut state.dialog {
        *entries = Some(found);
    }
}

/// Why not to open it; not asked if no load would be lost.
fn refused(state: &State, settings: &Settings) -> Option<String> {
    let runs = state.ended.is_none() && matches!(state.phase(), Phase::Running | Phase::Paused);
    if runs { cannot_run(state, settings) } else { None }
}

/// Why it can't run here; not asked for the demo, which does without what is missing.
fn cannot_run(state: &State, settings: &Settings) -> Option<String> {
    let status = state.status.as_ref().filter(|_| !is_demo(settings))?;
    if settings.program.is_some() && !status.runs_programs {
        return Some("its load is a program: `stacktune run` runs it".to_owned());
    }
    let problems = check(settings, Conditions { facts: &status.facts, target: None });
    let more = match problems.len() {
        0 | 1 => String::new(),
        many => format!(" (and {} more)", many - 1),
    };
    problems.first().map(|problem| format!("{problem}{more}"))
}
