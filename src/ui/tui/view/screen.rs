//! The whole screen: its panels, and the dialog above them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{
    ascii, charts, classes, cpu, dialogs, drives, header, heat, hints, knobs, ledger, members, notes, pages,
    palette, pick, plan, report, shelf, stack, strip, themes, too_small,
};
use crate::printable::{is_line, is_obeyed};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::glyphs::Glyphs;
use crate::ui::tui::layout;
use crate::ui::tui::state::State;

/// Draws a panel into its place.
type Render = fn(&State, &mut Buffer, Rect);

/// Draws the whole screen.
pub fn draw(state: &State, buf: &mut Buffer) {
    let screen = if state.halves().is_some() { state.screen } else { buf.area };
    buf.set_style(screen, state.theme.plain);
    let Some(areas) = layout::areas(screen, state.view) else {
        too_small::render(state, buf, screen);
        return;
    };
    header::render(state, buf, areas.header);
    knobs::render(state, buf, areas.knobs);
    #[cfg(feature = "programs")]
    let is_program = super::program::render(state, buf, &areas);
    #[cfg(not(feature = "programs"))]
    let is_program = false;
    let areas = if is_program { areas.without_tails() } else { areas };
    if !is_program {
        classes::render(state, buf, areas.classes);
        let panels: [(Rect, Render); 2] = [(areas.heat, heat::render), (areas.charts, charts::render)];
        panels
            .into_iter()
            .filter(|(area, _)| !area.is_empty())
            .for_each(|(area, render)| render(state, buf, area));
        heat::of_classes(state, buf, &areas.tails);
    }
    let panels: [(Rect, Render); 5] = [
        (areas.stack, stack::render),
        (areas.cpu, cpu::render),
        (areas.members, members::render),
        (areas.notes, notes::render),
        (areas.ledger, ledger::render),
    ];
    for (area, render) in panels {
        if !area.is_empty() {
            render(state, buf, area);
        }
    }
    strip::render(state, buf, areas.strip);
    hints::message(state, buf, areas.message);
    hints::keys(state, buf, areas.hints);
    over(state, buf, layout::of_windows(screen));
    drop_obeyed(buf);
    if state.glyphs == Glyphs::Ascii {
        ascii::render(buf);
    }
}

/// Draws the dialog over the panels.
fn over(state: &State, buf: &mut Buffer, screen: Rect) {
    match &state.dialog {
        // A search is drawn in the list of knobs.
        None | Some(Dialog::Search { .. }) => {}
        Some(
            Dialog::Help { top }
            | Dialog::Host { top }
            | Dialog::Believe { top }
            | Dialog::Contract { top }
            | Dialog::Failed { top },
        ) => {
            pages::render(state, *top, buf, screen);
        }
        Some(Dialog::Palette { input, chosen }) => palette::render(state, input, *chosen, buf, screen),
        Some(Dialog::Pick { knob, chosen, filter }) => {
            pick::render(state, knob, (*chosen, filter), buf, screen);
        }
        Some(Dialog::Drives { found, ticked, chosen, filter }) => {
            drives::render(state, (found.as_deref(), &ticked[..]), (*chosen, filter), buf, screen);
        }
        Some(Dialog::Themes { entries, chosen, filter, .. }) => {
            themes::render(state, entries, (*chosen, filter), buf, screen);
        }
        Some(Dialog::Shelf(listed)) => shelf::render(state, listed, buf, screen),
        Some(Dialog::Report { title, text, top, .. }) => {
            report::render(state, (title, text.as_deref()), *top, buf, screen);
        }
        Some(Dialog::Plan(asked)) => plan::render(state, asked, buf, screen),
        Some(dialog) => dialogs::render(state, dialog, buf, screen),
    }
}

/// The areas whose columns move left with each window.
pub fn plots(state: &State) -> Vec<Rect> {
    let Some(areas) = layout::areas(state.screen, state.view) else { return Vec::new() };
    let tails = areas.tails.into_iter().map(heat::plot);
    let plots = charts::plots(areas.charts).chain([heat::plot(areas.heat)]).chain(tails);
    plots.filter(|area| !area.is_empty()).collect()
}

/// Removes from the cells what a terminal would obey: ratatui only drops control characters.
fn drop_obeyed(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if !is_line(cell.symbol()) {
            let symbol = cell.symbol().replace(is_obeyed, "");
            cell.set_symbol(if symbol.is_empty() { " " } else { &symbol });
        }
    }
}
