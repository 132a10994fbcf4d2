//! A recording on the screen: opened, read window by window, played.

use std::sync::Arc;
use std::time::Duration;

use super::moments::{no_peak, peak_of};
use super::session;
use crate::runs::session::message::Event;
use crate::ui::tui::beside::Beside;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::{Action, Step};
use crate::ui::tui::message::Effect;
use crate::ui::tui::replay::{NOTHING_RUNS, Replay};
use crate::ui::tui::state::{Focus, State};

const ALONE: &str = "one recording is shown: `stacktune show DIR --screen --with DIR` shows two";

/// Shows a recording from its first window on, with another one beside it if there is one.
pub fn open(state: &mut State, mut replay: Replay, beside: Option<Beside>) {
    let figures = std::mem::take(&mut replay.figures);
    let said = replay.notes.first().cloned();
    (state.status, state.first_steps) = (None, false);
    // As a session reports it, but without the effects that a run would have.
    let _ = session::handle(state, Event::Began);
    state.live = figures;
    state.of_profile = replay.settings().cloned().map(Box::new);
    (state.replay, state.beside) = (Some(Box::new(replay)), beside.map(Box::new));
    go(state, 0);
    match said {
        Some(note) => state.complain(note),
        None => {
            state.say("space plays the recording, ← → read another window, Home and End the first and last");
        }
    }
}

/// What an action does to the recording; none if it does not concern that.
pub fn act(state: &mut State, action: Action) -> Option<Vec<Effect>> {
    state.replay.as_ref()?;
    let last = state.live.kept().saturating_sub(1);
    let at = state.live.at().unwrap_or(0);
    let tenth = (state.live.kept() / 10).max(1);
    let step = match action {
        Action::Replay(step) => step,
        Action::Earlier | Action::Later => {
            beside(state, at, last, action == Action::Later);
            return Some(Vec::new());
        }
        Action::Peak(by) => {
            match state.live.peak(by, state.tail_of) {
                Some((ns, at)) => {
                    go(state, at);
                    state.say(peak_of(by, ns, state.tail_of));
                }
                None => state.say(no_peak(by)),
            }
            return Some(Vec::new());
        }
        Action::Now => Step::LastWindow,
        action if action.needs_run() => {
            state.say(NOTHING_RUNS);
            return Some(Vec::new());
        }
        _ => return None,
    };
    match step {
        Step::Play => play(state, at, last),
        Step::PageEarlier => go(state, at.saturating_sub(tenth)),
        Step::PageLater => go(state, (at + tenth).min(last)),
        Step::FirstWindow => go(state, 0),
        Step::LastWindow => go(state, last),
        Step::NextTurn | Step::TurnBefore => turn(state, step == Step::NextTurn),
        Step::ChosenTurn => chosen_turn(state),
        Step::Other => flip(state),
        Step::Both => both(state),
        Step::Differences => differences(state),
        Step::Faster | Step::Slower => change_speed(state, step == Step::Faster),
    }
    Some(Vec::new())
}

/// Shows the window before or after.
fn beside(state: &mut State, at: usize, last: usize, later: bool) {
    match later {
        true if at == last => state.say("this is the last window"),
        false if at == 0 => state.say("this is the first window"),
        true => go(state, at + 1),
        false => go(state, at - 1),
    }
}

fn stop(state: &mut State) {
    if let Some(replay) = &mut state.replay {
        replay.plays = false;
    }
}

/// Shows the window at that place; playing goes on from there.
fn go(state: &mut State, at: usize) {
    show(state, at);
    let shown = state.live.shown_end_ns();
    if let (Some(replay), Some(shown_end_ns)) = (&mut state.replay, shown) {
        replay.play_from(shown_end_ns);
    }
}

/// Shows the window at that place, and the settings that were in force at its end.
fn show(state: &mut State, at: usize) {
    state.cumulative = false;
    state.live.show(at);
    let shown_end_ns = state.live.shown_end_ns().unwrap_or(0);
    let Some(replay) = &state.replay else { return };
    if let (Some(beside), Some(middle_ns)) = (&mut state.beside, state.live.shown_middle_ns()) {
        beside.go(replay.since_ns(middle_ns));
    }
    let status = replay.state_at(shown_end_ns).cloned();
    if let Some(status) = status
        && state.status.as_ref().is_none_or(|shown| !Arc::ptr_eq(shown, &status))
    {
        let _ = session::handle(state, Event::Status(status));
    }
}

/// Shows the other recording, at the same time from its beginning.
fn flip(state: &mut State) {
    let (Some(replay), Some(beside)) = (&mut state.replay, &mut state.beside) else {
        state.say(ALONE);
        return;
    };
    beside.other.keep_playing_as(replay);
    exchange(state);
    (state.status, state.ledger_chosen) = (None, 0);
    let at = state.live.at().unwrap_or(0);
    go(state, at);
}

/// Puts the other recording in the place of the one shown.
fn exchange(state: &mut State) {
    let (Some(replay), Some(beside)) = (&mut state.replay, &mut state.beside) else { return };
    replay.figures = std::mem::replace(&mut state.live, std::mem::take(&mut beside.other.figures));
    std::mem::swap(&mut **replay, &mut beside.other);
    beside.is_first = !beside.is_first;
    state.of_profile = replay.settings().cloned().map(Box::new);
    state.take_place();
}

/// Lets `look` see the other recording in its place, as if it were the one shown; changes nothing.
pub fn with_other(state: &mut State, look: impl FnOnce(&State)) {
    let kept = (state.status.take(), state.dialog.take(), state.message.take(), state.ledger_chosen);
    let list = (state.layer, state.listing.clone(), state.chosen, state.top, state.passing.take());
    exchange(state);
    let shown_end_ns = state.live.shown_end_ns().unwrap_or(0);
    state.status = state.replay.as_ref().and_then(|replay| replay.state_at(shown_end_ns).cloned());
    state.ledger_chosen = 0;
    state.list_knobs();
    look(state);
    exchange(state);
    (state.status, state.dialog, state.message, state.ledger_chosen) = kept;
    (state.layer, state.listing, state.chosen, state.top, state.passing) = list;
}

fn both(state: &mut State) {
    let Some(beside) = &mut state.beside else {
        state.say(ALONE);
        return;
    };
    beside.both = !beside.both;
    if beside.both && state.halves().is_none() {
        state.say("side by side needs at least 160 columns");
    }
    state.take_place();
}

/// Shows what `compare` says of both.
fn differences(state: &mut State) {
    let (Some(replay), Some(beside)) = (&state.replay, &state.beside) else {
        state.say(ALONE);
        return;
    };
    let names = [&replay.name, &beside.other.name];
    let [first, second] = if beside.is_first { [names[1], names[0]] } else { names };
    state.dialog = Some(Dialog::Report {
        title: format!("{first} and {second}"),
        dirs: Vec::new(),
        text: Some(beside.comparison.clone()),
        top: 0,
        shelf: None,
    });
}

fn play(state: &mut State, at: usize, last: usize) {
    if at == last {
        go(state, 0);
    }
    let Some(replay) = &mut state.replay else { return };
    replay.plays = !replay.plays;
}

/// Plays on for that long; stops at the end.
pub fn play_on(state: &mut State, elapsed: Duration) {
    let Some(replay) = state.replay.as_mut().filter(|replay| replay.plays) else { return };
    let reached_ns = replay.play(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
    let at = state.live.place_of(reached_ns);
    if Some(at) != state.live.at() {
        show(state, at);
    }
    if at + 1 == state.live.kept() {
        stop(state);
    }
}

fn change_speed(state: &mut State, faster: bool) {
    let Some(replay) = &mut state.replay else { return };
    let changed = replay.change_speed(faster);
    let times = replay.times();
    state.say(match (changed, faster) {
        (true, _) => format!("plays {times} times as fast as it was recorded"),
        (false, true) => format!("it plays at its fastest: {times} times"),
        (false, false) => "it plays at its slowest: as fast as it was recorded".into(),
    });
}

/// Goes to the window of the next turn, or of the one before.
fn turn(state: &mut State, next: bool) {
    let at = state.live.at();
    let places = state.live.ledger.iter().map(|line| state.live.place_of(line.at_ns));
    let found = if next {
        places.filter(|place| Some(*place) > at).min()
    } else {
        places.filter(|place| Some(*place) < at).max()
    };
    match found {
        Some(place) => go(state, place),
        None if next => state.say("no knob is turned after this window"),
        None => state.say("no knob was turned before this window"),
    }
}

fn chosen_turn(state: &mut State) {
    if state.focus != Focus::Ledger {
        state.say("tab leads to the ledger, where Enter goes to the window of the chosen turn");
        return;
    }
    let lines = &state.live.ledger;
    if let Some(line) = lines.iter().rev().nth(state.ledger_chosen.min(lines.len().saturating_sub(1))) {
        let place = state.live.place_of(line.at_ns);
        go(state, place);
    }
}
