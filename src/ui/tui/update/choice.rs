//! Which knob, or line of the ledger, is chosen.

use crate::ui::tui::state::{Focus, ListRow, State};

/// Moves the choice by that many knobs (or ledger lines).
pub fn step(state: &mut State, by: isize) {
    if state.focus == Focus::Ledger {
        let last = state.figures().ledger.len().saturating_sub(1);
        state.ledger_chosen = state.ledger_chosen.saturating_add_signed(by).min(last);
        return;
    }
    let rows = state.rows();
    let knobs: Vec<_> = (0..rows.len()).filter(|&i| matches!(rows[i], ListRow::Knob(_))).collect();
    let at = knobs.iter().position(|&i| i == state.chosen).unwrap_or(0);
    choose(state, knobs[at.saturating_add_signed(by).min(knobs.len() - 1)]);
}

/// Chooses a row if it is a knob.
pub fn choose(state: &mut State, row: usize) {
    if let Some(ListRow::Knob(_)) = state.rows().get(row) {
        if state.chosen != row {
            state.passing = None;
        }
        state.chosen = row;
        state.scroll_to_chosen();
    }
}
