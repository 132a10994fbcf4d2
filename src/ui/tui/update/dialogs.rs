//! Keys while a dialog is open.

use crate::runs::session::Command;
use crate::settings::Settings;
use crate::ui::tui::consent::Consented;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::Action;
use crate::ui::tui::layout;
use crate::ui::tui::mark::Mark;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::State;
use crate::ui::tui::typed::Typed;
use crate::ui::tui::update::act::{act, leave};
use crate::ui::tui::update::input::{scrolled, type_into};
use crate::ui::tui::update::{drives, duel, palette, pick, plan, profile, search, shelf, themes, turn};
use crate::ui::tui::view;

/// Handles a key, given its action here or the character that it types.
pub fn pressed(state: &mut State, action: Option<Action>, typed: Option<char>) -> Vec<Effect> {
    let Some(dialog) = state.dialog.take() else { return Vec::new() };
    let key = (action, typed);
    match dialog {
        Dialog::Edit { knob, input, error } => return edit(state, (knob, input, error), key),
        Dialog::Pick { knob, chosen, filter } => return pick::pressed(state, knob, (chosen, filter), key),
        Dialog::Drives { found, ticked, chosen, filter } => {
            return drives::pressed(state, (found, ticked), (chosen, filter), key);
        }
        Dialog::Themes { entries, chosen, filter, before } => {
            themes::pressed(state, (entries, before), (chosen, filter), key);
        }
        Dialog::Save { mut input, error } => match action {
            Some(Action::Close) => {}
            Some(Action::Accept) => return save(state, input),
            _ => {
                let changed = type_into(&mut input, action, typed);
                let error = error.filter(|_| !changed);
                state.dialog = Some(Dialog::Save { input, error });
            }
        },
        Dialog::Replace { name } => match action {
            Some(Action::Yes) => return save_effect(state, name, true),
            Some(Action::Close) => state.say("not saved"),
            _ => state.dialog = Some(Dialog::Replace { name }),
        },
        Dialog::Open { entries, chosen, filter } => {
            return profile::pressed(state, entries, (chosen, filter), key);
        }
        Dialog::Duel { line, knob, values, chosen } => {
            return duel::pressed(state, (line, knob, values), chosen, action);
        }
        Dialog::Search { input, before } => search::searched(state, (input, before), action, typed),
        Dialog::Palette { input, chosen } => return palette::pressed(state, (input, chosen), action, typed),
        Dialog::Consent(_) => {
            state.dialog = Some(dialog);
            return consent(state, action, typed);
        }
        Dialog::Shelf(shelf) => return shelf::pressed(state, shelf, key),
        Dialog::Report { .. } => shelf::turn_page(state, dialog, action),
        Dialog::Plan(asked) => return plan::pressed(state, asked, action, typed),
        Dialog::Leave => return leaving(state, action),
        Dialog::Failed { top } => match action {
            Some(Action::Former) => return plan::former(state),
            Some(Action::Open) => return act(state, Action::Open),
            _ => page(state, |top| Dialog::Failed { top }, top, action),
        },
        Dialog::Help { top } => page(state, |top| Dialog::Help { top }, top, action),
        Dialog::Host { top } => page(state, |top| Dialog::Host { top }, top, action),
        Dialog::Believe { top } => page(state, |top| Dialog::Believe { top }, top, action),
        Dialog::Contract { top } => page(state, |top| Dialog::Contract { top }, top, action),
    }
    Vec::new()
}

/// Handles a key while a knob's value is typed.
fn edit(
    state: &mut State,
    (knob, mut input, error): (&'static str, Typed, Option<String>),
    (action, typed): (Option<Action>, Option<char>),
) -> Vec<Effect> {
    match action {
        Some(Action::Close) => {}
        Some(Action::Accept) => match turn::typed(state, knob, &input) {
            Ok(effects) => return effects,
            Err(error) => state.dialog = Some(Dialog::Edit { knob, input, error: Some(error) }),
        },
        _ => {
            let changed = type_into(&mut input, action, typed);
            let error = error.filter(|_| !changed);
            state.dialog = Some(Dialog::Edit { knob, input, error });
        }
    }
    Vec::new()
}

fn leaving(state: &mut State, action: Option<Action>) -> Vec<Effect> {
    match action {
        Some(Action::TakeDown) => return leave(state, Command::Quit),
        Some(Action::Keep) => return leave(state, Command::QuitKeeping),
        Some(Action::Close) => {}
        _ => state.dialog = Some(Dialog::Leave),
    }
    Vec::new()
}

fn save(state: &mut State, input: Typed) -> Vec<Effect> {
    let name = input.trim().to_owned();
    let fits = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(fits) {
        let error = Some("a name of letters, digits, - _ and . is expected".into());
        state.dialog = Some(Dialog::Save { input, error });
        return Vec::new();
    }
    save_effect(state, name, false)
}

fn save_effect(state: &State, name: String, replace: bool) -> Vec<Effect> {
    let (Some(mut settings), Some(status)) = (state.settings_asked(), &state.status) else {
        return Vec::new();
    };
    if let Some(about) = state.of_profile.as_ref().and_then(|of| about_changes(of, &settings)) {
        settings.about = about;
    }
    vec![Effect::Save { settings: Box::new(settings), facts: status.facts.clone(), name, replace }]
}

/// The description of a profile saved after turns: what it was, and what was turned. None without a turn.
fn about_changes(of_profile: &Settings, settings: &Settings) -> Option<String> {
    const NAMED_MAX: usize = 3;
    let turned = Mark::new(of_profile.clone(), 0).differences(settings);
    let named = turned.iter().take(NAMED_MAX).map(|turn| format!("{} {}", turn.knob.path, turn.now));
    let mut parts: Vec<_> = named.collect();
    if turned.len() > NAMED_MAX {
        parts.push(format!("{} more", turned.len() - NAMED_MAX));
    }
    let about = || format!("{} with {}.", of_profile.name, parts.join(", "));
    (!turned.is_empty()).then(about)
}

fn consent(state: &mut State, action: Option<Action>, typed: Option<char>) -> Vec<Effect> {
    let visible = layout::tier(state.screen).is_some();
    let place = layout::of_windows(state.screen);
    let Some(Dialog::Consent(consent)) = &mut state.dialog else { return Vec::new() };
    match action {
        Some(Action::Close) => {
            state.dialog = None;
            state.say("declined: nothing is destroyed");
            // An empty list allows nothing; the run then reports the consequence.
            return vec![Effect::Send(Command::Consent(Vec::new()))];
        }
        // What can't be read can't be confirmed.
        _ if !visible => {}
        Some(Action::Accept) if consent.top < view::dialogs::consent_overhang(consent, place) => {
            consent.error = Some("Scroll to the end of what it holds first.".into());
        }
        Some(Action::Accept) => {
            if let Consented::Fully(typed) = consent.accept() {
                state.dialog = None;
                return vec![Effect::Send(Command::Consent(typed))];
            }
        }
        Some(Action::Up) => consent.top = consent.top.saturating_sub(1),
        Some(Action::Down) => {
            consent.top = (consent.top + 1).min(view::dialogs::consent_overhang(consent, place));
        }
        _ => {
            if type_into(&mut consent.input, action, typed) {
                consent.error = None;
            }
        }
    }
    Vec::new()
}

/// Scrolls or closes a page.
fn page(state: &mut State, dialog: fn(usize) -> Dialog, top: usize, action: Option<Action>) {
    if action == Some(Action::Close) {
        return;
    }
    state.dialog = Some(dialog(top));
    let (lines, rows) = view::pages::size(state);
    state.dialog = Some(dialog(scrolled(top, action, rows, lines.saturating_sub(rows))));
}
