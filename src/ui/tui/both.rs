//! The whole terminal: what is shown, with a second recording beside it if both are asked for.

use ratatui::buffer::Buffer;

use super::glyphs::Glyphs;
use super::state::State;
use super::update::with_other;
use super::view;

/// Draws the terminal.
pub fn draw(state: &mut State, buf: &mut Buffer) {
    view::draw(state, buf);
    let Some([left, right]) = state.halves() else { return };
    with_other(state, |other| view::draw(other, buf));
    let line = if state.glyphs == Glyphs::Ascii { "|" } else { "│" };
    for y in left.y..left.bottom() {
        for x in left.right()..right.x {
            buf.set_string(x, y, if x + 1 == right.x { line } else { " " }, state.theme.dim);
        }
    }
}
