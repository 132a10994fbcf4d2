//! Which knob, or line of the ledger, is chosen.

use crate::settings::knobs::{Knob, StackLayer};
use crate::ui::tui::state::{Focus, ListRow, State};
use crate::ui::tui::view;

/// The most that a step scrolls by; a longer one goes to an end of the list.
const PAGE: usize = 10;

/// The knob to turn first in each layer, if it has an effect: others come before it in the list.
const LEADING: [&str; 6] =
    ["scan.depth", "io.interface", "io.buffering", "stack.filesystem", "stack.raid", "queue.scheduler"];

/// Moves the choice by that many knobs (or ledger lines).
pub fn step(state: &mut State, by: isize) {
    if state.focus == Focus::Ledger {
        step_in_ledger(state, by);
        return;
    }
    let rows = &state.listing.rows;
    let knobs: Vec<_> = (0..rows.len()).filter(|&i| matches!(rows[i], ListRow::Knob(_))).collect();
    let Some(last) = knobs.len().checked_sub(1) else { return };
    let at = knobs.iter().position(|&i| i == state.chosen).unwrap_or(0);
    // A single step beyond the end leads into the layer above or below.
    let leaves = (by == -1 && at == 0) || (by == 1 && at == last);
    let beyond = next_layer(state, by.signum());
    if leaves && state.search().is_none() && beyond != state.layer {
        choose_edge(state, beyond, by < 0);
        return;
    }
    choose(state, knobs[at.saturating_add_signed(by).min(last)]);
}

/// Scrolls through the chosen line's figures where its panel has no room for all; then chooses another line.
fn step_in_ledger(state: &mut State, by: isize) {
    let last = state.figures().ledger.len().saturating_sub(1);
    let hidden = view::ledger::hidden(state);
    let top = state.ledger_top.min(hidden);
    let is_far = by.unsigned_abs() > PAGE;
    let scrolled = top.saturating_add_signed(by).min(hidden);
    if !is_far && scrolled != top {
        state.ledger_top = scrolled;
        return;
    }
    state.ledger_chosen = state.ledger_chosen.saturating_add_signed(by).min(last);
    state.ledger_top = 0;
}

/// Chooses a row if it is a knob.
pub fn choose(state: &mut State, row: usize) {
    if let Some(ListRow::Knob(_)) = state.listing.rows.get(row) {
        if state.chosen != row {
            state.passing = None;
        }
        state.chosen = row;
        state.scroll_to_chosen();
    }
}

/// The next layer below, or above if negative, that has knobs; the present one if there is none.
pub fn next_layer(state: &State, by: isize) -> StackLayer {
    let mut layer = state.layer;
    while layer.below(by) != layer {
        layer = layer.below(by);
        if state.has_knobs(layer) {
            return layer;
        }
    }
    state.layer
}

/// Chooses a layer, and its knob to turn first; the first in the list if that one is missing.
pub fn choose_layer(state: &mut State, layer: StackLayer) {
    if state.layer == layer {
        return;
    }
    choose_edge(state, layer, false);
    let is_leading = |row: &ListRow| matches!(row, ListRow::Knob(knob) if LEADING.contains(&&*knob.path));
    if let Some(row) = state.listing.rows.iter().position(is_leading) {
        choose(state, row);
    }
}

/// Chooses a layer, and the first or the last of its knobs in the list.
fn choose_edge(state: &mut State, layer: StackLayer, last: bool) {
    (state.layer, state.passing, state.top) = (layer, None, 0);
    state.list_knobs();
    let is_knob = |row: &ListRow| matches!(row, ListRow::Knob(_));
    let rows = &state.listing.rows;
    let row = if last { rows.iter().rposition(is_knob) } else { rows.iter().position(is_knob) };
    choose(state, row.unwrap_or(0));
}

/// Chooses the knob at a path, in its layer.
pub fn choose_knob(state: &mut State, knob: &'static Knob) {
    if state.layer != knob.layer() {
        (state.layer, state.top) = (knob.layer(), 0);
    }
    // Listed even if it has no effect, because it is chosen.
    state.listing.rows = vec![ListRow::Knob(knob)];
    state.chosen = 0;
    state.list_knobs();
}

/// Chooses the knob that the screen begins with; for another profile, if it lists that.
pub fn choose_first(state: &mut State) {
    let knob = state.first_knob();
    choose_knob(state, knob);
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyCode::{Char, Up};

    use crate::ui::tui::fixture::running;
    use crate::ui::tui::tests::press;

    #[test]
    fn a_layer_begins_at_the_knob_that_is_turned_first() {
        let mut state = running(80, 24);
        let mut seen = Vec::new();
        for key in ['[', '[', ']', ']', ']', ']', ']'] {
            press(&mut state, &[Char(key)]);
            seen.push(state.knob().path.as_str());
        }
        assert_eq!(seen[..4], ["io.interface", "scan.depth", "io.interface", "io.buffering"], "{seen:?}");
        assert_eq!(seen[4..6], ["stack.filesystem", "stack.raid"], "{seen:?}");
        // A step beyond the end of a layer goes on in the list's order.
        press(&mut state, &[Char('['), Char('['), Char('['), Up, Up]);
        assert_eq!(state.layer.name(), "interface");
    }
}
