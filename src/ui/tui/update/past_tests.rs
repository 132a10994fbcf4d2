//! Windows of the past, and keys that do nothing.

use std::sync::Arc;

use crossterm::event::KeyCode;

use crate::meter::window::Window;
use crate::runs::session::Event;
use crate::runs::session::message::Phase;
use crate::settings::knobs::{StackLayer, find};
use crate::ui::tui::fixture::{running, status, tell, totals, window};
use crate::ui::tui::stack::layer;
use crate::ui::tui::state::State;
use crate::ui::tui::tests::{press, shown};
use crate::ui::tui::update::choose_knob;

#[test]
fn a_window_of_the_past_is_shown_with_the_settings_of_then() {
    let mut state = running(80, 24);
    let last = state.live.window.as_ref().map_or(0, |window| window.index);
    let before = layer(&state, StackLayer::PageCache).setting;
    let mut turned = status(Phase::Running);
    turned.settings.io.buffering = crate::settings::Buffering::Cached;
    turned.settings.classes.iter_mut().for_each(|class| class.buffering = None);
    tell(&mut state, Event::Status(Arc::new(turned)));
    for index in last + 1..last + 4 {
        tell(&mut state, Event::Window(Arc::new(window(index)), Arc::new(totals(index))));
    }
    assert_eq!(layer(&state, StackLayer::PageCache).setting, "cached");
    press(&mut state, &[KeyCode::Char(','); 2]);
    assert_eq!(layer(&state, StackLayer::PageCache).setting, "cached", "still after the turn");
    press(&mut state, &[KeyCode::Char(','); 2]);
    assert_eq!(layer(&state, StackLayer::PageCache).setting, before);
    press(&mut state, &[KeyCode::Char('0')]);
    assert_eq!(layer(&state, StackLayer::PageCache).setting, "cached");
}

#[test]
fn the_moments_of_the_tail_are_said_and_so_is_a_key_that_does_nothing() {
    let mut state = running(120, 40);
    for _ in 0..2 {
        press(&mut state, &[KeyCode::Char('L')]);
        assert!(shown(&state).contains("the longest I/O of all classes is "), "{}", shown(&state));
        press(&mut state, &[KeyCode::Char('P')]);
        assert!(shown(&state).contains("the highest p99 of all I/Os together is "), "{}", shown(&state));
    }
    press(&mut state, &[KeyCode::Char('K')]);
    assert!(shown(&state).contains("K does nothing here: ? lists the keys"), "{}", shown(&state));
}

#[test]
fn a_value_that_can_not_be_gives_way_to_the_one_in_force() {
    let mut state = running(80, 24);
    choose_knob(&mut state, find("io.interface").unwrap());
    while state.passing.is_none() {
        press(&mut state, &[KeyCode::Right]);
    }
    let last = state.live.window.as_ref().map_or(0, |window| window.index);
    for index in last + 1..last + 20 {
        assert_eq!(state.passing.is_some(), index <= last + 16, "{index}");
        tell(&mut state, Event::Window(Arc::new(window(index)), Arc::new(totals(index))));
    }
    assert!(shown(&state).contains("◂io_uring▸"), "{}", shown(&state));
}

#[test]
fn that_nothing_can_be_turned_yet_is_said_until_the_load_runs() {
    let mut state = running(80, 24);
    tell(&mut state, Event::Status(Arc::new(status(Phase::Opening))));
    press(&mut state, &[KeyCode::Right]);
    assert!(shown(&state).contains("not yet: the target is being opened"), "{}", shown(&state));
    tell(&mut state, Event::Status(Arc::new(status(Phase::Running))));
    assert!(!shown(&state).contains("not yet:"), "{}", shown(&state));
}

#[test]
fn a_search_that_finds_nothing_goes_back_to_where_it_began() {
    let mut state = running(80, 24);
    choose_knob(&mut state, find("scan.depth").unwrap());
    press(&mut state, &"/qqqq".chars().map(KeyCode::Char).collect::<Vec<_>>());
    press(&mut state, &[KeyCode::Enter]);
    assert_eq!(state.knob().path, "scan.depth");
}

#[test]
fn that_writers_stop_soon_is_said_in_time() {
    let mut state = running(80, 24);
    assert!(!shown(&state).contains("writers stop"), "{}", shown(&state));
    let mut near = status(Phase::Running);
    let written = state.live.written_bytes_per_s().unwrap() as u64;
    near.settings.run.max_writes_bytes = Some(state.written_bytes + 30 * written);
    near.written_bytes = state.written_bytes;
    tell(&mut state, Event::Status(Arc::new(near)));
    assert!(shown(&state).contains("writers stop in 30s"), "{}", shown(&state));
    // What a rebuild filled meanwhile does not count as the writers' rate.
    let mut after = window(state.live.window.as_ref().unwrap().index + 1);
    after.start_ns += 20 * after.duration_ns;
    after.written_bytes_total += 100 * written;
    let next = Window {
        index: after.index + 1,
        start_ns: after.start_ns + after.duration_ns,
        written_bytes_total: after.written_bytes_total + written,
        ..after.clone()
    };
    for window in [after, next] {
        tell(&mut state, Event::Window(Arc::new(window), Arc::new(totals(80))));
    }
    assert_eq!(state.live.written_bytes_per_s().map(|rate| rate as u64), Some(written));
}

#[test]
fn esc_pressed_twice_out_of_a_list_hides_no_first_steps() {
    let mut state = State { first_steps: true, ..running(80, 24) };
    for open in [KeyCode::Char('o'), KeyCode::Char('?'), KeyCode::Char('/')] {
        press(&mut state, &[open, KeyCode::Esc, KeyCode::Esc]);
        assert!(state.first_steps, "{open:?}");
    }
    press(&mut state, &[KeyCode::Esc]);
    assert!(!state.first_steps);
}

#[test]
fn hours_ago_are_a_few_keys_away() {
    let mut state = running(160, 50);
    (70..5000).for_each(|index| state.live.window(Arc::new(window(index)), Arc::default()));
    press(&mut state, &[KeyCode::Char('Z')]);
    press(&mut state, &[KeyCode::Char(','); 60]);
    assert_eq!(state.figures().at(), Some(4999 - 60 * 50));
    press(&mut state, &[KeyCode::Char('Z'), KeyCode::Char('.')]);
    assert_eq!(state.figures().at(), Some(5000 - 60 * 50));
    let screen = shown(&state);
    assert!(screen.contains("33m 21s, 49m 59s ago"), "{screen}");
    press(&mut state, &[KeyCode::Char('0')]);
    assert_eq!(state.figures().ago_ns(), None);
}
