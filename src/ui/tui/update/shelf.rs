//! The list of recordings: browsed, marked, read.

use std::path::PathBuf;

use super::filter::{self, Pressed};
use super::input::scrolled;
use crate::error::Result;
use crate::runs::record::Listed;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::Action;
use crate::ui::tui::layout;
use crate::ui::tui::message::Effect;
use crate::ui::tui::shelf::Shelf;
use crate::ui::tui::state::State;
use crate::ui::tui::view;

/// Opens the list.
pub fn open(state: &mut State) -> Vec<Effect> {
    state.dialog = Some(Dialog::Shelf(Shelf::default()));
    vec![Effect::ListRecordings]
}

/// Takes the list.
pub fn listed(state: &mut State, listed: Result<Vec<Listed>>) {
    if let Some(Dialog::Shelf(shelf)) = &mut state.dialog {
        shelf.listed = Some(listed);
    }
}

/// Handles a key while the list is shown.
pub fn pressed(
    state: &mut State,
    mut shelf: Shelf,
    (action, typed): (Option<Action>, Option<char>),
) -> Vec<Effect> {
    let mut filter = std::mem::take(&mut shelf.filter);
    let pressed = filter::pressed(&mut filter, shelf.chosen, (action, typed), &|filter| shelf.rows(filter));
    shelf.filter = filter;
    match pressed {
        Pressed::Moved(row) => shelf.chosen = row,
        Pressed::Act(Action::Close) => return Vec::new(),
        Pressed::Act(Action::Accept) => {
            let dirs = shelf.chosen().map(|listed| vec![listed.dir.clone()]);
            return report(state, shelf, dirs);
        }
        Pressed::Act(Action::Compare) => {
            let dirs = to_compare(&shelf);
            if dirs.is_none() {
                state.say("space marks a recording: mark two, or mark one and choose another");
            }
            return report(state, shelf, dirs);
        }
        Pressed::Act(Action::Mark) => shelf.mark(),
        Pressed::Act(_) => {}
    }
    state.dialog = Some(Dialog::Shelf(shelf));
    Vec::new()
}

/// The two that are marked, or the one that is and the chosen one.
fn to_compare(shelf: &Shelf) -> Option<Vec<PathBuf>> {
    let mut dirs = shelf.marked.clone();
    if let [one] = &dirs[..] {
        let chosen = &shelf.chosen()?.dir;
        let other = (chosen != one).then(|| chosen.clone())?;
        dirs.push(other);
    }
    (dirs.len() == 2).then_some(dirs)
}

/// Opens the page for these recordings' text, and asks for that.
fn report(state: &mut State, shelf: Shelf, dirs: Option<Vec<PathBuf>>) -> Vec<Effect> {
    let Some(dirs) = dirs else {
        state.dialog = Some(Dialog::Shelf(shelf));
        return Vec::new();
    };
    let name = |dir: &PathBuf| {
        shelf
            .recordings()
            .iter()
            .find(|listed| listed.dir == *dir)
            .map_or_else(String::new, |of| of.name.clone())
    };
    let names: Vec<_> = dirs.iter().map(name).collect();
    let title = names.join(" and ");
    state.dialog = Some(Dialog::Report { title, dirs: dirs.clone(), text: None, top: 0, shelf: Some(shelf) });
    vec![Effect::ReadRecordings(dirs)]
}

/// Takes a text, unless its page was closed meanwhile or waits for another one.
pub fn read(state: &mut State, dirs: &[PathBuf], outcome: Result<String>) {
    if let Some(Dialog::Report { dirs: asked, text, .. }) = &mut state.dialog
        && asked == dirs
    {
        *text = Some(outcome.unwrap_or_else(|error| format!("it can't be read: {error}")));
    }
}

/// Handles a key while a text is shown: scrolls it, or closes it, which leads back to the list.
pub fn turn_page(state: &mut State, report: Dialog, action: Option<Action>) {
    let Dialog::Report { title, dirs, text, top, shelf } = report else { return };
    if action == Some(Action::Close) {
        state.dialog = shelf.map(Dialog::Shelf);
        return;
    }
    let (lines, rows) = view::report::size(text.as_deref(), layout::of_windows(state.screen));
    let top = scrolled(top, action, rows, lines.saturating_sub(rows));
    state.dialog = Some(Dialog::Report { title, dirs, text, top, shelf });
}
