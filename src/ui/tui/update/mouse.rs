//! The mouse: it chooses, turns and scrolls.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::Action;
use crate::ui::tui::layout;
use crate::ui::tui::message::Effect;
use crate::ui::tui::state::{Focus, State};
use crate::ui::tui::update::choice::{choose, choose_layer, step};
use crate::ui::tui::update::{dialogs, turn};
use crate::ui::tui::view::knobs::{Hit, hit};
use crate::ui::tui::view::stack;

/// Rows that one notch of the wheel scrolls.
const NOTCH: usize = 3;

/// Handles a click or a notch of the wheel.
pub fn mouse(state: &mut State, event: MouseEvent) -> Vec<Effect> {
    let Some(areas) = layout::areas(state.screen, state.view) else { return Vec::new() };
    let at = Position::new(event.column, event.row);
    let wheel = match event.kind {
        MouseEventKind::ScrollUp => Some(true),
        MouseEventKind::ScrollDown => Some(false),
        MouseEventKind::Down(MouseButton::Left) => None,
        _ => return Vec::new(),
    };
    if state.dialog.is_some() {
        return dialog(state, wheel);
    }
    state.message = None;
    if areas.stack.contains(at) && wheel.is_none() {
        if let Some(layer) = stack::hit(areas.stack, at) {
            state.focus = Focus::Knobs;
            choose_layer(state, layer);
        }
        return Vec::new();
    }
    if areas.knobs.contains(at) {
        return knobs(state, areas.knobs, at, wheel);
    }
    if areas.ledger.contains(at) {
        state.focus = Focus::Ledger;
        match wheel {
            Some(true) => step(state, -1),
            Some(false) => step(state, 1),
            None => {}
        }
    }
    Vec::new()
}

/// In a dialog the wheel scrolls; a click never confirms.
fn dialog(state: &mut State, wheel: Option<bool>) -> Vec<Effect> {
    let scrolls = matches!(
        state.dialog,
        Some(
            Dialog::Help { .. }
                | Dialog::Host { .. }
                | Dialog::Believe { .. }
                | Dialog::Contract { .. }
                | Dialog::Failed { .. }
                | Dialog::Open { .. }
                | Dialog::Shelf(_)
                | Dialog::Report { .. }
                | Dialog::Consent(_)
                | Dialog::Plan(_)
        )
    );
    match wheel {
        Some(up) if scrolls => {
            dialogs::pressed(state, Some(if up { Action::Up } else { Action::Down }), None)
        }
        _ => Vec::new(),
    }
}

fn knobs(state: &mut State, area: ratatui::layout::Rect, at: Position, wheel: Option<bool>) -> Vec<Effect> {
    let hit = hit(state, area, at);
    match (wheel, hit) {
        // It only scrolls: a notch too many must turn nothing under a load.
        (Some(up), _) => {
            let last = state.listing.rows.len().saturating_sub(layout::knobs_shown(area));
            state.top = if up { state.top.saturating_sub(NOTCH) } else { (state.top + NOTCH).min(last) };
            Vec::new()
        }
        (None, Some(Hit::TurnDown)) => turn::turn(state, false),
        (None, Some(Hit::TurnUp)) => turn::turn(state, true),
        (None, Some(Hit::Other(row))) => {
            state.focus = Focus::Knobs;
            choose(state, row);
            Vec::new()
        }
        (None, Some(Hit::Chosen) | None) => {
            state.focus = Focus::Knobs;
            Vec::new()
        }
    }
}
