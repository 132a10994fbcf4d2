//! Keys of a list that can be narrowed down.

use super::input::{PAGE, scrolled, type_into};
use crate::ui::tui::filter::Filter;
use crate::ui::tui::keys::Action;
use crate::ui::tui::typed::Typed;

/// Handles a key that is about the filter, or moves in the list, whose rows are found by `rows`. Returns the chosen row
/// then; none for what the list has to do.
pub fn pressed(
    filter: &mut Filter,
    chosen: usize,
    (action, typed): (Option<Action>, Option<char>),
    rows: &dyn Fn(&Filter) -> Vec<usize>,
) -> Option<usize> {
    let found = rows(filter);
    let place = found.iter().position(|row| *row == chosen);
    match (action, &mut filter.0) {
        (Some(Action::Search), None) => {
            filter.0 = Some(Typed::default());
            return Some(chosen);
        }
        (Some(Action::Close), Some(_)) => {
            filter.0 = None;
            return Some(chosen);
        }
        (Some(Action::Erase), Some(input)) if input.is_empty() => {
            filter.0 = None;
            return Some(chosen);
        }
        // Nothing is chosen that is not in sight.
        (Some(Action::Accept | Action::Mark), _) if place.is_none() => return Some(chosen),
        (Some(Action::Accept | Action::Mark | Action::Compare | Action::Edit | Action::Close), _) => {
            return None;
        }
        (_, Some(input)) => {
            if type_into(input, action, typed) {
                return Some(rows(filter).first().copied().unwrap_or(chosen));
            }
            // They move the cursor.
            if matches!(action, Some(Action::First | Action::Last)) {
                return Some(chosen);
            }
        }
        _ => {}
    }
    let place = scrolled(place.unwrap_or(0), action, PAGE, found.len().saturating_sub(1));
    Some(found.get(place).copied().unwrap_or(chosen))
}
