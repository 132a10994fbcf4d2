//! Choosing a theme: the screen shows the chosen one at once.

use super::filter::{self, Pressed};
use crate::error::Result;
use crate::ui::theme_name::ThemeName;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::filter::Filter;
use crate::ui::tui::keys::Action;
use crate::ui::tui::state::State;
use crate::ui::tui::theme::Theme;
use crate::ui::tui::themes::ThemeEntry;
use crate::ui::tui::view::themes::rows;

/// Opens the list with the folder's themes; if the folder can't be read, says why.
pub fn listed(state: &mut State, listed: Result<Vec<ThemeEntry>>) {
    let built_in = |name: ThemeName| ThemeEntry { name: name.name().into(), theme: Ok(Theme::named(name)) };
    let mut entries: Vec<_> = ThemeName::ALL.into_iter().map(built_in).collect();
    match listed {
        Ok(files) => entries.extend(files),
        Err(error) => state.complain(error.one_line()),
    }
    let before = state.theme.clone();
    let chosen = entries.iter().position(|entry| entry.theme.as_ref() == Ok(&before)).unwrap_or(0);
    state.dialog = Some(Dialog::Themes { entries, chosen, filter: Filter::default(), before });
}

/// Handles a key: the list, and the palette from before.
pub fn pressed(
    state: &mut State,
    (entries, before): (Vec<ThemeEntry>, Theme),
    (mut chosen, mut filter): (usize, Filter),
    (action, typed): (Option<Action>, Option<char>),
) {
    match filter::pressed(&mut filter, chosen, (action, typed), &|filter| rows(&entries, filter)) {
        Pressed::Moved(row) => chosen = row,
        Pressed::Act(Action::Close) => {
            state.theme = before;
            return;
        }
        // One that is not understood can't be taken.
        Pressed::Act(Action::Accept) if entries.get(chosen).is_some_and(|entry| entry.theme.is_ok()) => {
            return;
        }
        Pressed::Act(_) => {}
    }
    let shown = entries.get(chosen).and_then(|entry| entry.theme.as_ref().ok());
    state.theme = shown.unwrap_or(&before).clone();
    state.dialog = Some(Dialog::Themes { entries, chosen, filter, before });
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyCode;
    use ratatui::layout::Rect;

    use super::*;
    use crate::error::Error;
    use crate::ui::tui::fixture::running;
    use crate::ui::tui::message::{Effect, Msg};
    use crate::ui::tui::tests::{SIZES, press, shown};
    use crate::ui::tui::themes::parse;
    use crate::ui::tui::update::tests::{key, letter, typed};
    use crate::ui::tui::update::update;

    #[test]
    fn a_theme_is_chosen_by_the_palette_and_seen_at_once() {
        let mut state = running(80, 24);
        letter(&mut state, ':');
        typed(&mut state, "theme");
        assert_eq!(key(&mut state, KeyCode::Enter), [Effect::ListThemes]);
        let nord = parse(b"theme[main_fg]=\"#d8dee9\"\ntheme[main_bg]=\"#2e3440\"").unwrap();
        let of = |name: &str, theme| ThemeEntry { name: name.into(), theme };
        let files = || {
            let broken = Err("line 1: main_fg must be a colour".to_owned());
            vec![of("broken", broken), of("nord", Ok(nord.clone()))]
        };
        update(&mut state, Msg::ThemesListed(Ok(files())));
        assert!(shown(&state).contains("▸ mono"), "{}", shown(&state));
        press(&mut state, &[KeyCode::End]);
        assert_eq!(state.theme, nord);
        press(&mut state, &[KeyCode::Up]);
        assert_eq!(state.theme, Theme::mono(), "that file is not understood");
        press(&mut state, &[KeyCode::Enter]);
        for (columns, lines) in SIZES {
            state.screen = Rect::new(0, 0, columns, lines);
            insta::assert_snapshot!(format!("themes_{columns}x{lines}"), shown(&state));
        }
        press(&mut state, &[KeyCode::Down, KeyCode::Enter]);
        assert!(state.theme == nord && state.dialog.is_none());

        // Esc goes back.
        update(&mut state, Msg::ThemesListed(Ok(files())));
        press(&mut state, &[KeyCode::Home]);
        assert_eq!(state.theme, Theme::dark());
        press(&mut state, &[KeyCode::Esc]);
        assert_eq!(state.theme, nord);

        // A theme is found by its name and shown as soon as it is; the first Esc shows the whole list again.
        update(&mut state, Msg::ThemesListed(Ok(files())));
        typed(&mut state, "/NO");
        let screen = shown(&state);
        assert!(
            screen.contains("theme /NO▏") && screen.contains("▸ mono") && screen.contains("nord"),
            "{screen}"
        );
        typed(&mut state, "r");
        assert!(state.theme == nord && !shown(&state).contains("broken"), "{}", shown(&state));
        typed(&mut state, "x");
        assert!(shown(&state).contains("no theme matches"), "{}", shown(&state));
        press(&mut state, &[KeyCode::Enter]);
        assert!(state.dialog.is_some(), "nothing is chosen that is not in sight");
        press(&mut state, &[KeyCode::Esc]);
        assert!(shown(&state).contains("broken") && state.theme == nord, "{}", shown(&state));
        typed(&mut state, "/dark");
        press(&mut state, &[KeyCode::Enter]);
        assert!(state.theme == Theme::dark() && state.dialog.is_none());

        // If the folder can't be read, the built-in ones remain.
        update(&mut state, Msg::ThemesListed(Err(Error::failed("cannot read the themes"))));
        assert!(matches!(&state.dialog, Some(Dialog::Themes { entries, .. }) if entries.len() == 4));
    }
}
