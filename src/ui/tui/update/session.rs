//! Events from the run.

use std::sync::Arc;

use crate::error::Error;
use crate::printable::Shown as _;
use crate::runs::session::message::{Event, Phase, Status};
use crate::settings::Settings;
use crate::settings::knobs::find_of;
use crate::ui::text::wrap;
use crate::ui::tui::consent::Consent;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::figures::Figures;
use crate::ui::tui::layout;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::{Focus, Passing, State};
use crate::ui::tui::update::choice::choose_first;
use crate::ui::tui::update::{duel, plan, suspend, tracing};

/// For how many windows an unavailable value is shown: long enough to read why; then the one in force is back.
const PASSING_WINDOWS: u32 = 15;

/// Handles an event.
pub fn handle(state: &mut State, event: Event) -> Vec<Effect> {
    match event {
        Event::Began => {
            begin(state);
            // This run does not know of a trace that began in the one before.
            return tracing::again(state);
        }
        Event::Status(status) => return take_status(state, status),
        Event::Progress(progress) => state.progress = Some(progress),
        Event::Window(window, totals) => {
            state.ran.now().until_ns = window.start_ns + window.duration_ns;
            state.live.window(window, totals);
            let passing = state.passing.take().filter(|passing| passing.windows < PASSING_WINDOWS);
            state.passing = passing.map(|passing| Passing { windows: passing.windows + 1, ..passing });
        }
        Event::Written(bytes) => state.written_bytes = bytes,
        Event::Printed(lines) => state.printed = lines,
        Event::Ledger(line) => return take_ledger(state, line),
        Event::Turned { knob, outcome: Ok(true) } => {
            // Drop the requested value: the run may have changed it.
            state.asked.retain(|path, _| *path != knob);
        }
        Event::Turned { knob, outcome: Err(reason) } => {
            state.asked.retain(|path, _| *path != knob);
            state.complain(format!("{knob} was not turned: {reason}"));
        }
        Event::Notice(text) => {
            state.say(text.clone());
            state.notice(text);
        }
        Event::ConsentWanted(wanted) if !wanted.is_empty() && !state.quitting => {
            state.dialog = Some(Dialog::Consent(Consent::new(wanted)));
        }
        // After an acknowledgement the settings follow; until then the requested value is shown.
        Event::ConsentWanted(_) | Event::Turned { outcome: Ok(false), .. } => {}
        Event::Duel(shown) => duel::shown(state, shown),
        Event::Planned(planned) => plan::planned(state, planned),
        Event::Step(advance) => {
            state.progress = None;
            state.step = Some(advance);
        }
        Event::Retained(commands) => state.kept = commands,
        Event::Former(settings) => state.former = Some(settings),
        Event::Recording(folder) => take_recording(state, folder),
        Event::Ended(outcome) => return ended(state, outcome),
    }
    Vec::new()
}

/// A new run: the previous one's figures were counted by another clock.
fn begin(state: &mut State) {
    state.live = Figures::default();
    (state.former_states, state.printed) = Default::default();
    (state.frozen, state.ledger_chosen, state.duel) = (None, 0, None);
    state.of_former = state.of_profile.take().or(state.of_former.take());
    (state.saved_as, state.mark, state.ledger_top) = (None, None, 0);
    state.ran.begin();
    choose_first(state);
    state.duels.clear();
}

fn take_status(state: &mut State, status: Arc<Status>) -> Vec<Effect> {
    state.asked.retain(|path, value| {
        find_of(&status.settings, path).is_some_and(|knob| knob.get(&status.settings) != *value)
    });
    if status.phase != Phase::Filling && status.phase != Phase::Opening {
        state.progress = None;
    }
    if !matches!(status.phase, Phase::Building | Phase::Ending) {
        state.step = None;
    }
    if status.phase != Phase::Ending {
        state.ended = None; // another profile was opened after the last one failed
        if matches!(state.dialog, Some(Dialog::Failed { .. })) {
            state.dialog = None;
        }
    }
    if matches!(status.phase, Phase::Running | Phase::Paused) {
        // Back in the former run, its profile is what it was.
        let is_back = state.former.take().is_some_and(|former| *former == status.settings);
        let kept = state.of_former.take().filter(|_| is_back);
        state.of_profile.get_or_insert_with(|| kept.unwrap_or_else(|| Box::new(status.settings.clone())));
        state.message = state.message.take().filter(|message| !message.until_running);
    }
    set_recording(state, status.recording.clone());
    state.written_bytes = status.written_bytes;
    let run = state.ran.now();
    run.profile.clone_from(&status.settings.name);
    run.files = plain_files(&status.settings);
    // Forget the previous target's fallbacks, which were announced.
    let former = state.status.as_ref().map_or(&[][..], |former| &former.fallbacks);
    let is_gone = |text: &String| former.contains(text) && !status.fallbacks.contains(text);
    state.notices.retain(|text| !is_gone(text));
    if let Some(before) = state.status.clone().filter(|before| before.settings != status.settings) {
        state.remember(before);
    }
    let before = state.status.replace(status);
    let ended = before.map_or_else(Vec::new, |before| tracing::settle(state, &before.drives));
    plan::settle(state);
    // Whether the value shown is available may have changed with the target.
    if let Some(passing) = state.passing.take() {
        let reason = state.unavailable(state.knob(), &passing.value);
        state.passing = reason.map(|reason| Passing { reason, ..passing });
    }
    ended.into_iter().chain(suspend::reported(state)).collect()
}

/// The folder of the run's files and their number; none if it has devices, builds a stack or keeps none.
fn plain_files(settings: &Settings) -> Option<(String, u64)> {
    let target = &settings.target;
    let is_plain = settings.touches_storage() && target.devices.is_empty() && !settings.stack.is_built();
    is_plain.then(|| (target.dir.clone(), target.count))
}

fn take_ledger(state: &mut State, line: Arc<crate::meter::window::LedgerLine>) -> Vec<Effect> {
    let is_new = state.ran.turn(Arc::clone(&line));
    // Whoever has turned a knob knows how; next time, the file with this ledger tells.
    state.first_steps = false;
    // Kept once when made, in case we are killed before it can be judged, and once with its verdict.
    let kept = if line.open && !is_new { Vec::new() } else { vec![Effect::Keep(state.ran.json(&line))] };
    let before = state.live.ledger.len();
    state.live.ledger(line);
    // A new line on top must not move what the operator reads.
    let grown = state.live.ledger.len() > before;
    if grown && state.ledger_chosen == 0 {
        state.ledger_top = 0;
    }
    if grown && state.ledger_chosen > 0 && state.focus == Focus::Ledger && state.frozen.is_none() {
        state.ledger_chosen += 1;
    }
    kept
}

fn take_recording(state: &mut State, folder: Option<std::path::PathBuf>) {
    match (&folder, &state.recording) {
        (Some(folder), _) => {
            state.say(format!("recording into {}", folder.shown()));
            state.ran.recordings.push(folder.clone());
        }
        (None, Some(folder)) => state.say(format!("recorded in {}", folder.shown())),
        (None, None) => state.say("the recording has ended"),
    }
    set_recording(state, folder);
}

fn set_recording(state: &mut State, folder: Option<std::path::PathBuf>) {
    let now_ns = state.live.shown_end_ns().unwrap_or(0);
    state.recording_since_ns = folder.as_ref().map(|_| state.recording_since_ns.unwrap_or(now_ns));
    state.recording = folder;
}

fn ended(state: &mut State, outcome: Result<(), Error>) -> Vec<Effect> {
    let leave = state.quitting || outcome.is_ok();
    if let Err(error) = &outcome {
        state.complain(error.one_line());
        state.notice(error.one_line());
    }
    if matches!(
        state.dialog,
        Some(
            Dialog::Consent(_)
                | Dialog::Plan(_)
                | Dialog::Leave
                | Dialog::Edit { .. }
                | Dialog::Pick { .. }
                | Dialog::Drives { .. }
                | Dialog::Duel { .. }
        )
    ) {
        state.dialog = None;
    }
    (state.progress, state.step, state.duel) = (None, None, None);
    // A tool's error message is shown in full, but does not close another dialog.
    // So is the error of a run that never showed figures, which is otherwise easily overlooked.
    let never_ran = state.live.window.is_none();
    let in_full = outcome
        .as_ref()
        .err()
        .is_some_and(|error| state.former.is_some() || never_ran || is_long(state, error));
    if in_full && state.dialog.is_none() {
        state.dialog = Some(Dialog::Failed { top: 0 });
    }
    state.ended = Some(outcome);
    if leave { vec![Effect::Exit] } else { Vec::new() }
}

/// Whether an error is too long for the message line.
fn is_long(state: &State, error: &Error) -> bool {
    let Some(areas) = layout::areas(state.screen, state.view) else { return false };
    let cells = usize::from(areas.message.width).saturating_sub(2);
    error.what.contains('\n') || wrap(&error.one_line(), cells).len() > usize::from(areas.message.height)
}

/// The session's thread is gone.
pub fn gone(state: &mut State) -> Vec<Effect> {
    if state.ended.is_some() {
        return Vec::new();
    }
    ended(
        state,
        Err(Error::failed("the thread of the run ended unexpectedly").hint("this is a bug: please report it")),
    )
}
