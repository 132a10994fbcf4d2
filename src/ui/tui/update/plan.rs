//! Rebuilding the target: changes are collected, the plan is requested, read and confirmed.

use std::sync::Arc;

use crate::runs::session::Command;
use crate::runs::session::message::PlanShown;
use crate::settings::knobs::{Knob, Scope, Value, find_of};
use crate::ui::tui::consent::Consented;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::Action;
use crate::ui::tui::layout;
use crate::ui::tui::message::Effect;
use crate::ui::tui::planned::Agreement;
use crate::ui::tui::state::State;
use crate::ui::tui::update::input::{blocked, scrolled, type_into};
use crate::ui::tui::view;

/// Collects a value for the plan; the one in force needs no plan.
pub fn collect(state: &mut State, knob: &'static Knob, value: Value) {
    let in_force = state.status.as_ref().map(|status| knob.get(&status.settings));
    if in_force.as_ref() == Some(&value) {
        state.collected.remove(knob.path.as_str());
        state.say(format!("{} stays {value}", knob.path));
        return;
    }
    state.collected.insert(&knob.path, value);
    state.say(format!("{} needs a rebuild: Enter shows the plan, Esc discards it", knob.path));
}

/// Requests the plan for rebuilding the target with the collected changes.
pub fn ask(state: &mut State) -> Vec<Effect> {
    if blocked(state) {
        return Vec::new();
    }
    state.say("planning…");
    let turns = state.collected.iter().map(|(path, value)| ((*path).to_owned(), value.clone())).collect();
    vec![Effect::Send(Command::Plan(turns))]
}

/// Discards the collected changes.
pub fn drop_collected(state: &mut State) {
    if state.collected.is_empty() {
        return;
    }
    let paths: Vec<_> = std::mem::take(&mut state.collected).into_keys().collect();
    state.say(format!("discarded: {}", paths.join(", ")));
}

/// Shows a plan; unless the run is waiting for it, it never interrupts typing.
pub fn planned(state: &mut State, plan: Result<Arc<PlanShown>, String>) {
    if state.quitting {
        return;
    }
    match plan {
        Ok(plan) => {
            let live = plan.live;
            if live {
                // It is turned only once the plan is agreed to.
                state.asked.retain(|path, _| plan.turns.iter().all(|(turned, ..)| turned != path));
            }
            let mut asked = Agreement::new(plan);
            let busy = state.dialog.as_ref().is_some_and(|d| d.is_awaited() || !matches!(d, Dialog::Plan(_)));
            if busy && !asked.is_awaited() {
                state.say(if live {
                    "that turn destroys data: turn it again to see its plan"
                } else {
                    "the plan is ready: p shows it"
                });
                return;
            }
            state.message = None;
            look(&mut asked, state);
            state.dialog = Some(Dialog::Plan(asked));
        }
        Err(why) => state.complain(format!("no plan: {why}")),
    }
}

/// Notes whether the plan's end is on the screen.
fn look(asked: &mut Agreement, state: &State) {
    let visible = layout::tier(state.screen).is_some();
    let place = layout::of_windows(state.screen);
    if !asked.read && visible && asked.top >= view::plan::overhang(asked, place) {
        asked.read = true;
        // The request to scroll first is obsolete.
        asked.consent.error = None;
    }
}

/// Handles a key while the plan is shown.
pub fn pressed(
    state: &mut State,
    mut asked: Agreement,
    action: Option<Action>,
    typed: Option<char>,
) -> Vec<Effect> {
    if action == Some(Action::Close) {
        return declined(state, &asked);
    }
    // What can't be read can't be confirmed.
    if layout::tier(state.screen).is_none() {
        state.dialog = Some(Dialog::Plan(asked));
        return Vec::new();
    }
    let place = layout::of_windows(state.screen);
    let (rows, last) = (view::plan::rows(&asked, place), view::plan::overhang(&asked, place));
    look(&mut asked, state);
    let agreed = agree(&mut asked, action, typed);
    asked.top = scrolled(asked.top, action, rows, last);
    look(&mut asked, state);
    if let Some(typed) = agreed {
        if asked.plan.live {
            state.say("turning…");
        } else {
            state.say_until_running("building…");
        }
        return vec![Effect::Send(Command::Build { plan: asked.plan.number, typed })];
    }
    state.dialog = Some(Dialog::Plan(asked));
    Vec::new()
}

/// What was typed, once everything was confirmed.
fn agree(asked: &mut Agreement, action: Option<Action>, typed: Option<char>) -> Option<Vec<String>> {
    if !asked.destroys() {
        return (action == Some(Action::Yes) && asked.read).then(Vec::new);
    }
    if !asked.read {
        if typed.is_some() || action == Some(Action::Accept) {
            asked.consent.error = Some("Scroll to the end of the plan first.".into());
        }
        return None;
    }
    if action == Some(Action::Accept) {
        return match asked.consent.accept() {
            Consented::Fully(typed) => Some(typed),
            Consented::Not => None,
        };
    }
    // Home and End scroll.
    let action = action.filter(|action| !matches!(action, Action::First | Action::Last));
    if type_into(&mut asked.consent.input, action, typed) {
        asked.consent.error = None;
    }
    None
}

fn declined(state: &mut State, asked: &Agreement) -> Vec<Effect> {
    if asked.is_awaited() {
        state.say("declined: nothing is destroyed");
        // An empty list allows nothing; the run then reports the consequence.
        return vec![Effect::Send(Command::Consent(Vec::new()))];
    }
    state.say(if asked.plan.live {
        "cancelled: nothing is destroyed, and the load goes on as before"
    } else if state.collected.is_empty() {
        "cancelled: nothing is built"
    } else {
        "cancelled: nothing is built, the collected changes are kept (Enter plans again, Esc discards them)"
    });
    Vec::new()
}

/// Rebuilds the stack that ran before the failure.
pub fn former(state: &mut State) -> Vec<Effect> {
    let failed = matches!(state.ended, Some(Err(_)));
    let Some(former) = state.former.clone().filter(|_| failed) else {
        state.say("b rebuilds the previous stack after a failed build; nothing has failed");
        return Vec::new();
    };
    state.say_until_running(format!("rebuilding the previous stack of {}", former.name));
    state.asked.clear();
    state.collected.clear();
    // The session knows the steps of a profile that ran before.
    vec![Effect::Send(Command::Open { settings: former, unused_steps: 0 })]
}

/// Drops collected changes that are now in force, or whose knob no longer needs a rebuild.
pub fn settle(state: &mut State) {
    let Some(status) = state.status.clone() else { return };
    state.collected.retain(|path, value| {
        find_of(&status.settings, path).is_some_and(|knob| {
            knob.scope_of(value, &status.settings) == Scope::Rebuild && knob.get(&status.settings) != *value
        })
    });
}
