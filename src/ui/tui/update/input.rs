//! What dialogs and knobs share: typing, scrolling, and whether anything can be turned now.

use crate::runs::session::message::Phase;
use crate::ui::tui::keys::Action;
use crate::ui::tui::replay::NOTHING_RUNS;
use crate::ui::tui::state::State;
use crate::ui::tui::typed::Typed;

/// Whether nothing can be turned now; shows why.
pub fn blocked(state: &mut State) -> bool {
    if state.replay.is_some() {
        state.say(NOTHING_RUNS);
    } else if let Some(why) = why_ended(state) {
        state.complain(why);
    } else if state.ended.is_some() {
        state.complain("the run has ended: o opens a profile, q quits");
    } else if state.quitting {
        state.say("quitting: the I/O under way drains");
    } else {
        match state.phase() {
            Phase::Running | Phase::Paused => return false,
            Phase::Opening => state.say_until_running("not yet: the target is being opened"),
            Phase::Building => state.say_until_running("not yet: the stack is being built"),
            Phase::Filling => state.say_until_running("not yet: the target is being filled"),
            Phase::Ending => state.say("quitting: the I/O under way drains"),
        }
    }
    true
}

/// Why the run has failed, and what to do; none if it has not. It stays on the screen until another message comes.
pub fn why_ended(state: &State) -> Option<String> {
    let Some(Err(error)) = &state.ended else { return None };
    let former = "b rebuilds the previous stack, o opens a profile, q quits: ";
    let former = if state.former.is_some() { former } else { "" };
    Some(format!("{former}{}", error.one_line()))
}

/// Types, erases, or moves the cursor; returns whether that changed the input.
pub fn type_into(input: &mut Typed, action: Option<Action>, typed: Option<char>) -> bool {
    match (action, typed) {
        (Some(Action::Erase), _) => return input.erase(),
        (Some(Action::EraseAll), _) => return input.clear(),
        (None, Some(c)) => return input.insert(c),
        (Some(Action::CursorLeft), _) => input.left(),
        (Some(Action::CursorRight), _) => input.right(),
        (Some(Action::First), _) => input.first(),
        (Some(Action::Last), _) => input.last(),
        _ => {}
    }
    false
}

/// Rows that a page key moves in a list.
pub const PAGE: usize = 10;

/// The first line shown, or the chosen row, after a key; `last` is its maximum.
pub fn scrolled(top: usize, action: Option<Action>, rows: usize, last: usize) -> usize {
    let top = match action {
        Some(Action::Up) => top.saturating_sub(1),
        Some(Action::Down) => top + 1,
        Some(Action::PageUp) => top.saturating_sub(rows),
        Some(Action::PageDown) => top + rows,
        Some(Action::First) => 0,
        Some(Action::Last) => last,
        _ => top,
    };
    top.min(last)
}
