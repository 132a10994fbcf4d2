//! The marked setting: set, gone back to, and compared with the present one.

use super::input::blocked;
use crate::runs::session::Command;
use crate::ui::tui::mark::{Difference, Mark};
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;

/// Knobs named in a sentence; the others are counted.
const NAMED_MAX: usize = 3;

/// Marks the setting in force; if that is marked already, clears the mark.
pub fn set(state: &mut State) {
    if blocked(state) || is_in_duel(state) {
        return;
    }
    let Some(settings) = state.settings_now() else { return };
    if state.mark.as_ref().is_some_and(|mark| mark.differences(&settings).is_empty()) {
        state.mark = None;
        state.say("the mark is gone: D compares the values of a turn again");
        return;
    }
    let line = state.live.ledger.back().map_or(0, |line| line.number);
    let mark = Mark::new(settings, line);
    state
        .say(format!("marked {}: ' goes back to this setting, D compares it with a later one", mark.place()));
    state.mark = Some(mark);
}

/// Turns back every knob turned since the mark.
pub fn back(state: &mut State) -> Vec<Effect> {
    if blocked(state) || is_in_duel(state) {
        return Vec::new();
    }
    let Some(turned) = since(state) else {
        state.say("no setting is marked: a marks the one in force");
        return Vec::new();
    };
    if turned.is_empty() {
        state.say("the marked setting is in force");
        return Vec::new();
    }
    state.asked.clear();
    state.say(format!("back to the mark: {}", named(&turned)));
    let turns = turned.into_iter().map(|one| (one.knob.path.clone(), one.marked)).collect();
    vec![Effect::Send(Command::TurnBack(turns))]
}

/// The one knob turned since the mark, or why a duel can't compare both settings; none if no setting is marked.
pub fn to_compare(state: &State) -> Option<Result<Difference, String>> {
    let mut turned = since(state)?;
    Some(match (turned.pop(), turned.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err("the marked setting is in force: turn a knob, and D compares both".into()),
        (Some(last), _) => {
            turned.push(last);
            let (many, names) = (turned.len(), named(&turned));
            Err(format!("a duel turns one knob, but {many} differ from the marked setting: {names}"))
        }
    })
}

/// Whether a duel is turning a knob back and forth, so that no setting is the operator's; says so.
fn is_in_duel(state: &mut State) -> bool {
    if state.duel.is_some() {
        state.say("a duel is turning its knob back and forth: D ends it");
    }
    state.duel.is_some()
}

/// The knobs turned since the mark; none if no setting is marked.
fn since(state: &State) -> Option<Vec<Difference>> {
    Some(state.mark.as_ref()?.differences(&state.settings_now()?))
}

/// The first few with their values.
fn named(turned: &[Difference]) -> String {
    let one = |it: &Difference| format!("{} {} → {}", it.knob.path, it.now, it.marked);
    let mut names: Vec<_> = turned.iter().take(NAMED_MAX).map(one).collect();
    if turned.len() > NAMED_MAX {
        names.push(format!("{} more", turned.len() - NAMED_MAX));
    }
    names.join(", ")
}
