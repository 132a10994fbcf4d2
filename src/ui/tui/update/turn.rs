//! Turning knobs by a step or to an exact value, and switching classes.

use crate::class::Class;
use crate::meter::window::ClassState;
use crate::runs::session::Command;
use crate::settings::knobs::{Kind, Knob, Scope, Value, find};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::{Passing, State, conditions};
use crate::ui::tui::typed::Typed;
use crate::ui::tui::update::input::blocked;
use crate::ui::tui::update::plan;

/// Turns the chosen knob by one step.
pub fn turn(state: &mut State, up: bool) -> Vec<Effect> {
    let knob = state.knob();
    if blocked(state) {
        return Vec::new();
    }
    let (Some(status), Some(mut from)) = (state.status.clone(), state.settings_for(knob)) else {
        return Vec::new();
    };
    if let Some(passing) = &state.passing {
        knob.set(&mut from, passing.value.clone());
    }
    let conditions = conditions(&status, knob.spec.scope);
    if knob.steps(conditions).is_empty() {
        state.say(format!("{} has no preset values: press {} to type one", knob.path, typing(state)));
        return Vec::new();
    }
    if let Some(value) = knob.step(&from, conditions, up) {
        return offer(state, knob, value);
    }
    state.say(match &knob.spec.kind {
        Kind::Choice(_) | Kind::Bool => {
            format!("{} has no further value: {} lists them", knob.path, typing(state))
        }
        _ => {
            let end = if up { "highest" } else { "lowest" };
            format!("{} is at its {end} preset value: press {} to type another", knob.path, typing(state))
        }
    });
    Vec::new()
}

/// The key that types a value: while changes are collected, Enter shows the plan.
fn typing(state: &State) -> &'static str {
    if state.collected.is_empty() { "Enter" } else { "e" }
}

/// Sends a value that this host supports, or collects it if it needs a rebuild; shows one that it does not
/// support, with the reason.
fn offer(state: &mut State, knob: &'static Knob, value: Value) -> Vec<Effect> {
    let Some(settings) = state.settings_for(knob) else { return Vec::new() };
    state.passing = None;
    if value == knob.get(&settings) {
        return Vec::new(); // back from an unavailable value
    }
    if let Some(reason) = state.unavailable(knob, &value) {
        state.passing = Some(Passing { value, reason, windows: 0 });
        return Vec::new();
    }
    let in_force = state.status.as_ref().is_some_and(|status| knob.get(&status.settings) == value);
    let back = in_force && state.collected.contains_key(knob.path.as_str());
    if state.scope_of(knob, &value) == Scope::Rebuild || back {
        plan::collect(state, knob, value);
        return Vec::new();
    }
    // An earlier collected value is no longer wanted.
    state.collected.remove(knob.path.as_str());
    if let Some(why) = knob.inactive(&settings) {
        state.say(format!("{} is set, but has no effect now: {why}", knob.path));
    }
    state.asked.insert(&knob.path, value.clone());
    vec![Effect::Send(Command::Turn { knob: knob.path.clone(), value })]
}

/// Turns a knob to a value that was picked.
pub fn picked(state: &mut State, knob: &'static Knob, value: Value) -> Vec<Effect> {
    if blocked(state) { Vec::new() } else { offer(state, knob, value) }
}

/// Opens the line in which the chosen knob's value is typed.
pub fn edit(state: &mut State) {
    let knob = state.knob();
    if blocked(state) {
        return;
    }
    if let Some(settings) = state.settings_for(knob) {
        let input = Typed::suggested(knob.get(&settings).to_string());
        state.dialog = Some(Dialog::Edit { knob: &knob.path, input, error: None });
    }
}

/// Accepts a typed value, or returns what is wrong with it.
pub fn typed(state: &mut State, path: &str, text: &str) -> Result<Vec<Effect>, String> {
    let knob = state.find(path).ok_or_else(|| format!("there is no knob `{path}`"))?;
    let value = knob.parse(text).map_err(|_| format!("`{}` is not {}", text.trim(), knob.expected()))?;
    if blocked(state) {
        let why = state.message.take().map(|message| message.text);
        return Err(why.unwrap_or_default());
    }
    let effects = offer(state, knob, value);
    match state.passing.take() {
        Some(passing) => Err(passing.reason),
        None => Ok(effects),
    }
}

/// Switches a class off or on.
pub fn mute(state: &mut State, class: Class) -> Vec<Effect> {
    if blocked(state) {
        return Vec::new();
    }
    let (Some(settings), Some(knob)) = (state.settings_asked(), find(&format!("{class}.enabled"))) else {
        return Vec::new();
    };
    let on = !settings.classes[class.index()].enabled;
    let effects = offer(state, knob, Value::Bool(on));
    if let Some(passing) = state.passing.take() {
        state.complain(format!("{} can't be switched on: {}", class, passing.reason));
    }
    effects
}

/// Restarts the classes that were stopped by errors, or failed.
pub fn restart(state: &mut State) -> Vec<Effect> {
    if blocked(state) {
        return Vec::new();
    }
    let window = state.live.window.clone();
    let stopped = |class: &Class| {
        window
            .as_ref()
            .is_some_and(|w| matches!(w.class(*class).state, ClassState::Stopped(_) | ClassState::Failed(_)))
    };
    let effects: Vec<_> =
        Class::ALL.into_iter().filter(stopped).map(|c| Effect::Send(Command::Restart(c))).collect();
    if effects.is_empty() {
        state.say("no class was stopped");
    }
    effects
}
