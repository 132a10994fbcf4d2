//! Carries out the operator's actions.

use super::choice::{choose_layer, next_layer, step};
use super::{drives, duel, input, mark, moments, pick, plan, replay, search, shelf, tracing, turn};
use crate::class::Class;
use crate::runs::session::Command;
use crate::runs::session::message::Phase;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::filter::Filter;
use crate::ui::tui::keys::Action;
use crate::ui::tui::layout::{self, Tier, View};
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::{Focus, State};
use crate::ui::tui::theme::Theme;
use crate::ui::tui::typed::Typed;
use crate::ui::tui::view::pages::help_begins_at;

/// Carries out an action.
pub fn act(state: &mut State, action: Action) -> Vec<Effect> {
    if action == Action::Drop && state.focus == Focus::Ledger {
        state.focus = Focus::Knobs;
        return Vec::new();
    }
    match replay::act(state, action) {
        Some(effects) => effects,
        None => act_on_run(state, action),
    }
}

/// The same while no recording is shown, or where that makes no difference.
fn act_on_run(state: &mut State, action: Action) -> Vec<Effect> {
    match action {
        Action::Up => step(state, -1),
        Action::Down => step(state, 1),
        Action::PageUp => step(state, -10),
        Action::PageDown => step(state, 10),
        Action::First => step(state, isize::MIN / 2),
        Action::Last => step(state, isize::MAX / 2),
        Action::TurnUp => return turn::turn(state, true),
        Action::TurnDown => return turn::turn(state, false),
        Action::Enter if !state.collected.is_empty() => return plan::ask(state),
        Action::Enter if pick::has_names(state.knob()) => pick::begin(state),
        Action::Enter if pick::has_drives(state.knob()) => return drives::begin(state),
        Action::Edit | Action::Enter => turn::edit(state),
        Action::Plan => return plan::ask(state),
        Action::Drop => return discard(state),
        Action::Former => return plan::former(state),
        Action::Host => return host(state),
        Action::Believe => state.dialog = Some(Dialog::Believe { top: 0 }),
        Action::Contract => state.dialog = Some(Dialog::Contract { top: 0 }),
        Action::Pause => return pause(state),
        Action::Mute => return mute(state),
        Action::MuteClass(index) => return turn::mute(state, Class::ALL[index]),
        Action::Restart => return turn::restart(state),
        Action::Undo => return undo(state),
        Action::Duel => return duel::ask(state),
        Action::MarkSetting => mark::set(state),
        Action::ToMark => return mark::back(state),
        Action::Save => save(state),
        Action::Open => return open(state),
        Action::Record => return record(state),
        Action::Trace => return tracing::turn(state),
        Action::Recordings => return shelf::open(state),
        Action::LayerUp => choose_layer(state, next_layer(state, -1)),
        Action::LayerDown => choose_layer(state, next_layer(state, 1)),
        Action::ShowInactive => state.show_inactive = !state.show_inactive,
        Action::Search => search::begin(state),
        Action::Palette => state.dialog = Some(Dialog::Palette { input: Typed::default(), chosen: 0 }),
        Action::TailOf => state.tail_of = state.tail_of.next(),
        Action::WholeRun => state.whole_run = !state.whole_run,
        Action::Earlier => moments::beside(state, -1),
        Action::Later => moments::beside(state, 1),
        Action::Peak(by) => moments::peak(state, by),
        Action::Now => state.frozen = None,
        Action::Suspend => return vec![Effect::Suspend],
        Action::Themes => return vec![Effect::ListThemes],
        Action::Theme(name) => state.theme = Theme::named(name),
        Action::Freeze => freeze(state),
        Action::Cumulative => state.cumulative = !state.cumulative,
        Action::Response => state.response = !state.response,
        Action::View => next_view(state),
        Action::Focus => focus(state),
        Action::Help => state.dialog = Some(Dialog::Help { top: help_begins_at(state) }),
        // Only in dialogs, or handled before; or for a recording, when none is shown.
        Action::Quit
        | Action::Replay(_)
        | Action::Mark
        | Action::Compare
        | Action::Close
        | Action::Accept
        | Action::Yes
        | Action::CursorLeft
        | Action::CursorRight
        | Action::Erase
        | Action::EraseAll
        | Action::TakeDown
        | Action::Keep => {}
    }
    Vec::new()
}

/// Discards the collected changes; without any, hides the first steps for good, but not for an extra Esc after
/// leaving a list, which did not mean them.
fn discard(state: &mut State) -> Vec<Effect> {
    if state.collected.is_empty() && state.shows_first_steps() && !state.has_left {
        state.first_steps = false;
        return vec![Effect::DropFirstSteps];
    }
    plan::drop_collected(state);
    Vec::new()
}

fn mute(state: &mut State) -> Vec<Effect> {
    if let Some(class) = state.knob().class {
        return turn::mute(state, class);
    }
    state.say(match &state.status {
        Some(status) if status.settings.program.is_some() => "m switches a class, and a program is the load",
        _ => "m switches the class of the chosen knob: choose one of its knobs, or press 1 to 4",
    });
    Vec::new()
}

fn open(state: &mut State) -> Vec<Effect> {
    state.dialog = Some(Dialog::Open { entries: None, chosen: 0, filter: Filter::default() });
    vec![Effect::List]
}

fn pause(state: &mut State) -> Vec<Effect> {
    match state.phase() {
        _ if state.quitting || state.ended.is_some() => Vec::new(),
        Phase::Running => vec![Effect::Send(Command::Pause(true))],
        Phase::Paused => vec![Effect::Send(Command::Pause(false))],
        Phase::Opening | Phase::Building | Phase::Filling | Phase::Ending => {
            state.say("nothing to pause: the load is not running");
            Vec::new()
        }
    }
}

/// Opens the host's page and has its drives read again; a recording has its own host.
fn host(state: &mut State) -> Vec<Effect> {
    state.dialog = Some(Dialog::Host { top: 0 });
    if state.replay.is_some() { Vec::new() } else { vec![Effect::ReadDevices] }
}

fn undo(state: &mut State) -> Vec<Effect> {
    if input::blocked(state) {
        return Vec::new();
    }
    state.asked.clear();
    vec![Effect::Send(Command::Undo)]
}

fn save(state: &mut State) {
    match state.profile() {
        Some(name) => {
            let input = Typed::suggested(name.to_owned());
            state.dialog = Some(Dialog::Save { input, error: None });
        }
        None => state.say("nothing to save yet: the target is being opened"),
    }
}

fn record(state: &mut State) -> Vec<Effect> {
    if state.recording.is_some() {
        return vec![Effect::Send(Command::Record(None))];
    }
    if input::blocked(state) {
        return Vec::new();
    }
    state.profile().map(|name| Effect::StartRecording(name.to_owned())).into_iter().collect()
}

fn freeze(state: &mut State) {
    state.frozen = match state.frozen {
        Some(_) => None,
        None => Some(Box::new(state.live.clone())),
    };
}

fn next_view(state: &mut State) {
    match layout::tier(state.screen) {
        Some(Tier::Large | Tier::Wide) => state.say("everything fits on the screen: there is no other view"),
        Some(tier) => state.view = state.view.next(tier),
        None => {}
    }
    // The focus is never on a panel that is not shown.
    if layout::areas(state.screen, state.view).is_some_and(|areas| areas.ledger.is_empty()) {
        state.focus = Focus::Knobs;
    }
    state.scroll_to_chosen();
}

fn focus(state: &mut State) {
    state.ledger_top = 0;
    state.focus = match state.focus {
        Focus::Ledger => Focus::Knobs,
        Focus::Knobs => {
            if layout::areas(state.screen, state.view).is_some_and(|areas| areas.ledger.is_empty()) {
                state.view = View::Ledger;
            }
            Focus::Ledger
        }
    };
}

/// Drains and quits. Asks first if a stack is in place (if asked again, it is torn down); quits at once if
/// there is nothing to drain, or if asked again.
pub fn quit(state: &mut State) -> Vec<Effect> {
    if state.replay.is_some() {
        state.ended = Some(Ok(()));
        return vec![Effect::Exit];
    }
    if state.quitting {
        return vec![Effect::Exit];
    }
    if state.ended.is_some() {
        state.quitting = true;
        return vec![Effect::Send(Command::Quit), Effect::Exit];
    }
    let standing = state.status.as_ref().is_some_and(|status| status.standing);
    let asked = matches!(state.dialog, Some(Dialog::Leave));
    if standing && !asked && !state.dialog.as_ref().is_some_and(Dialog::is_awaited) {
        state.dialog = Some(Dialog::Leave);
        return Vec::new();
    }
    leave(state, Command::Quit)
}

/// Drains and ends with the given command.
pub fn leave(state: &mut State, way: Command) -> Vec<Effect> {
    state.quitting = true;
    state.dialog = None;
    vec![Effect::Send(way)]
}
