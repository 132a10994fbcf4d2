//! Keys of a list that can be narrowed down.

use super::input::{PAGE, scrolled, type_into};
use crate::ui::tui::filter::Filter;
use crate::ui::tui::keys::Action;
use crate::ui::tui::typed::Typed;

/// What a key did.
pub enum Pressed {
    /// It changed the filter or moved in the list: the chosen row.
    Moved(usize),
    /// What the list is to do.
    Act(Action),
}

/// Handles a key in a list whose rows are found by `rows`.
pub fn pressed(
    filter: &mut Filter,
    chosen: usize,
    (action, typed): (Option<Action>, Option<char>),
    rows: &dyn Fn(&Filter) -> Vec<usize>,
) -> Pressed {
    let found = rows(filter);
    let place = found.iter().position(|row| *row == chosen);
    match (action, &mut filter.0) {
        (Some(Action::Search), None) => {
            filter.0 = Some(Typed::default());
            return Pressed::Moved(chosen);
        }
        (Some(Action::Close), Some(_)) => {
            filter.0 = None;
            return Pressed::Moved(chosen);
        }
        (Some(Action::Erase), Some(input)) if input.is_empty() => {
            filter.0 = None;
            return Pressed::Moved(chosen);
        }
        // Nothing out of sight is chosen.
        (Some(Action::Accept | Action::Mark), _) if place.is_none() => return Pressed::Moved(chosen),
        (Some(act @ (Action::Accept | Action::Mark | Action::Compare | Action::Edit | Action::Close)), _) => {
            return Pressed::Act(act);
        }
        (_, Some(input)) => {
            if type_into(input, action, typed) {
                return Pressed::Moved(rows(filter).first().copied().unwrap_or(chosen));
            }
            // They move the cursor.
            if matches!(action, Some(Action::First | Action::Last)) {
                return Pressed::Moved(chosen);
            }
        }
        _ => {}
    }
    let place = scrolled(place.unwrap_or(0), action, PAGE, found.len().saturating_sub(1));
    Pressed::Moved(found.get(place).copied().unwrap_or(chosen))
}
