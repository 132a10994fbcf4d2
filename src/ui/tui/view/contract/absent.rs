//! The page of the contract with drives, in a build that makes no traces.

use ratatui::style::Style;

use crate::ui::tui::state::State;
use crate::ui::tui::tracing::ABSENT;

/// How to get it.
pub fn text(state: &State, _: usize) -> Vec<(String, Style)> {
    vec![(ABSENT.into(), state.theme.dim)]
}
