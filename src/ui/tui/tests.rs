//! Every screen at every size, and random keys on random sizes.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::dialog::Dialog;
use super::fixture::{self, empty, filling, running, tell, troubled, turned};
use super::layout::View;
use super::message::Msg;
use super::state::{Focus, State};
use super::update::update;
use super::{ProfileEntry, view};
use crate::error::Error;
use crate::meter::flag::FlagKind;
use crate::meter::window::{CpuFigures, Verdict};
use crate::runs::session::Event;
use crate::runs::session::message::{Phase, PlanShown};

pub(super) fn drawn(state: &State) -> Buffer {
    let mut buffer = Buffer::empty(state.screen);
    view::draw(state, &mut buffer);
    buffer
}

/// The screen's characters, a line a row.
pub fn shown(state: &State) -> String {
    let buffer = drawn(state);
    let line = |y: u16| {
        let row: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        row.trim_end().to_owned() + "\n"
    };
    (0..buffer.area.height).map(line).collect()
}

pub fn press(state: &mut State, keys: &[KeyCode]) {
    for &key in keys {
        update(state, Msg::Key(KeyEvent::new(key, KeyModifiers::NONE)));
    }
}

fn type_text(state: &mut State, text: &str) {
    press(state, &text.chars().map(KeyCode::Char).collect::<Vec<_>>());
}

/// The sizes at which screens are looked at.
pub const SIZES: [(u16, u16); 4] = [(80, 24), (120, 40), (160, 50), (240, 70)];

fn snapshot(name: &str, make: impl Fn(u16, u16) -> State) {
    for (columns, lines) in SIZES {
        insta::assert_snapshot!(format!("{name}_{columns}x{lines}"), shown(&make(columns, lines)));
    }
}

fn choose(state: &mut State, path: &str) {
    super::update::choose_knob(state, crate::settings::knobs::find(path).expect("a knob of that path"));
}

#[test]
fn opening() {
    snapshot("opening", empty);
}

#[test]
fn no_name_moves_the_cursor_or_turns_the_line_around() {
    let mut state = running(120, 40);
    press(&mut state, &[KeyCode::Char('o')]);
    let evil = "a\u{202e}b\x1b[2J\nc\u{9b}1m\u{2066}d";
    let entry = ProfileEntry { path: Some(evil.into()), ..fixture::profile(evil, evil) };
    update(&mut state, Msg::Listed(vec![entry]));
    update(&mut state, Msg::Session(Event::Notice(evil.into())));
    let screen = shown(&state);
    assert!(screen.contains("ab") && screen.lines().all(crate::printable::is_line), "{screen:?}");
}

#[test]
fn filling_shows_bytes_rate_and_time_left() {
    snapshot("filling", filling);
}

#[test]
fn running_shows_everything() {
    // With all knobs: the one test that sees each that is added.
    snapshot("running", |w, h| {
        let mut state = running(w, h);
        state.listed = |_| true;
        state.list_knobs();
        state
    });
}

#[test]
fn the_charts_end_now_however_few_windows_there_are() {
    for windows in 1..20 {
        let screen = shown(&fixture::running_for(windows, 160, 50));
        assert_eq!(screen.matches(" now").count(), 3, "{windows}: {screen}");
    }
    let screen = shown(&fixture::running_for(9, 160, 50));
    assert!(screen.contains("-8s ─ now"), "{screen}");
}

/// A WAL of 300 commits a second has a p99 over four seconds; the table and the chart say so.
#[test]
fn percentiles_of_several_windows_are_marked_with_their_time() {
    snapshot("slow_wal", |w, h| {
        let mut state = running(w, h);
        for index in 60..66 {
            let window = Arc::new(fixture::slow_wal(index, 300));
            tell(&mut state, Event::Window(window, Arc::new(fixture::totals(index + 1))));
        }
        state
    });
    let mut state = running(200, 50);
    let mut far = fixture::window(60);
    let latency = far.classes[0].latencies.service_ns.as_mut().unwrap();
    (latency.p99999, latency.p999999) = (Some(16_000_000), Some(16_200_000));
    assert!(!shown(&state).contains("p99.999"));
    tell(&mut state, Event::Window(Arc::new(far), Arc::new(fixture::totals(61))));
    let screen = shown(&state);
    assert!(screen.contains("p99.9999") && screen.contains("16.2ms"), "{screen}");
}

#[test]
fn turns_are_marked() {
    snapshot("turned", turned);
}

#[test]
fn paused() {
    snapshot("paused", |w, h| {
        let mut state = turned(w, h);
        tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Paused))));
        state
    });
}

#[test]
fn frozen() {
    snapshot("frozen", |w, h| {
        let mut state = turned(w, h);
        press(&mut state, &[KeyCode::Char('f')]);
        tell(&mut state, Event::Window(Arc::new(fixture::window(90)), Arc::new(fixture::totals(91))));
        state
    });
}

#[test]
fn errors_and_flags() {
    snapshot("troubled", |w, h| {
        let mut state = troubled(w, h);
        state.view = View::Notes;
        state
    });
}

#[test]
fn ledger_with_a_line_opened() {
    snapshot("ledger", |w, h| {
        let mut state = turned(w, h);
        press(&mut state, &[KeyCode::Tab, KeyCode::Down, KeyCode::Down]);
        state
    });
}

#[test]
fn a_duel_is_shown_pair_by_pair() {
    snapshot("duel", |w, h| {
        let mut state = turned(w, h);
        tell(&mut state, Event::Duel(Arc::new(fixture::duel(8))));
        state
    });
    snapshot("duel_asked", |w, h| {
        let mut state = turned(w, h);
        press(&mut state, &[KeyCode::Char('D')]);
        state
    });
}

#[test]
fn cpu_and_members() {
    snapshot("system", |w, h| {
        let mut state = turned(w, h);
        state.view = View::System;
        press(&mut state, &[KeyCode::Char('c'), KeyCode::Char('t')]);
        state
    });
}

#[test]
fn another_program_beside_the_load() {
    snapshot("others", |w, h| {
        let mut state = turned(w, h);
        let mut window = fixture::window(70);
        window.cpu = CpuFigures { busy: 1.0, others_cores: Some(1.85), own_cores: 0.09, ..window.cpu };
        window.total.cycles_per_byte = Some(10.7);
        window.total.attributable_cycles_per_byte = Some(0.81);
        window.flags =
            vec![FlagKind::Others.with_cores(1.85, "Other programs used 1.9 of the 2.0 busy cores.")];
        tell(&mut state, Event::Window(Arc::new(window), Arc::new(fixture::totals(71))));
        let mut line = fixture::ledger().remove(0);
        (line.number, line.flags) = (5, vec!["others 1.9 cores".into()]);
        line.cycles_per_byte = fixture::change(1.37, 10.7, Verdict::None);
        tell(&mut state, Event::Ledger(Arc::new(line)));
        if w > 100 {
            press(&mut state, &[KeyCode::Tab]);
        } else {
            state.view = View::System;
        }
        state
    });
}

#[test]
fn help() {
    snapshot("help", |w, h| {
        let mut state = running(w, h);
        press(&mut state, &[KeyCode::Char('?')]);
        state
    });
}

#[test]
fn dialogs() {
    snapshot("save", |w, h| {
        let mut state = running(w, h);
        press(&mut state, &[KeyCode::Char('s')]);
        state
    });
    snapshot("replace", |w, h| {
        let mut state = running(w, h);
        update(&mut state, Msg::Saved("demo".into(), Err(Error::refused("exists"))));
        state
    });
    snapshot("open", |w, h| {
        let mut state = running(w, h);
        press(&mut state, &[KeyCode::Char('o')]);
        let list = vec![
            fixture::profile("demo", "Four small files"),
            fixture::profile("paper-1", "Threads and the page cache"),
        ];
        update(&mut state, Msg::Listed(list));
        press(&mut state, &[KeyCode::Down]);
        state
    });
    snapshot("edit", |w, h| {
        let mut state = running(w, h);
        choose(&mut state, "scan.page_size");
        press(&mut state, &[KeyCode::Enter]);
        type_text(&mut state, "24KiB");
        press(&mut state, &[KeyCode::Enter]);
        state
    });
    snapshot("consent", |w, h| {
        let mut state = filling(w, h);
        tell(&mut state, Event::ConsentWanted(vec![fixture::wanted(), fixture::wanted()]));
        type_text(&mut state, "S4EWNX");
        press(&mut state, &[KeyCode::Enter]);
        state
    });
}

#[test]
fn a_value_that_cannot_be_chosen_is_shown_with_the_reason() {
    snapshot("passing", |w, h| {
        let mut state = running(w, h);
        choose(&mut state, "io.buffering");
        press(&mut state, &[KeyCode::Right]);
        state
    });
}

#[test]
fn quitting_and_ended() {
    snapshot("ended", |w, h| {
        let mut state = running(w, h);
        tell(&mut state, Event::Ended(Err(Error::failed("data-0 vanished").hint("put it back"))));
        state
    });
}

fn planned(state: &mut State, plan: PlanShown) {
    tell(state, Event::Planned(Ok(Arc::new(plan))));
}

#[test]
fn plans() {
    snapshot("plan_short", |w, h| {
        let mut state = running(w, h);
        planned(&mut state, fixture::plan_short());
        state
    });
    snapshot("plan_long", |w, h| {
        let mut state = running(w, h);
        planned(&mut state, fixture::plan_long());
        state
    });
    snapshot("plan_destroying", |w, h| {
        let mut state = running(w, h);
        planned(&mut state, fixture::plan_destroying());
        state
    });
    snapshot("plan_typed", |w, h| {
        let mut state = running(w, h);
        planned(&mut state, fixture::plan_destroying());
        press(&mut state, &[KeyCode::End]);
        type_text(&mut state, "S4EWNX0R123451");
        press(&mut state, &[KeyCode::Enter]);
        type_text(&mut state, "S4EW");
        press(&mut state, &[KeyCode::Enter]);
        state
    });
}

/// Scrolling from its beginning to its end shows every character of the plan.
#[test]
fn a_plan_scrolled_to_its_end_was_shown_whole_at_every_size() {
    for (columns, lines) in [(80, 24), (97, 30), (120, 40), (160, 50)] {
        let mut state = running(columns, lines);
        planned(&mut state, fixture::plan_destroying());
        let mut seen = std::collections::BTreeSet::new();
        loop {
            let buffer = drawn(&state);
            // Between the dialog's borders: it is centred, and other panels have rules of their own.
            let cells = (columns - 4).min(100);
            let left = (columns - cells) / 2;
            let within = left + 1..left + cells - 1;
            let row = |y: u16| within.clone().map(|x| buffer[(x, y)].symbol()).collect::<String>();
            seen.extend((0..lines).map(|y| row(y).trim().to_owned()));
            if matches!(&state.dialog, Some(Dialog::Plan(asked)) if asked.read) {
                break;
            }
            press(&mut state, &[KeyCode::PageDown]);
        }
        let Some(Dialog::Plan(asked)) = &state.dialog else { panic!("{:?}", state.dialog) };
        let cells = usize::from(columns - 4).min(100) - 4;
        for (line, _) in asked.lines(cells) {
            assert!(seen.contains(line.trim()), "{line} at {columns}×{lines}");
        }
    }
}

#[test]
fn knobs_collected_for_a_plan_are_marked() {
    snapshot("collected", |w, h| {
        let mut state = running(w, h);
        choose(&mut state, "stack.raid");
        press(&mut state, &[KeyCode::Right, KeyCode::Right]);
        choose(&mut state, "stack.filesystem");
        press(&mut state, &[KeyCode::Right]);
        state
    });
}

#[test]
fn building_and_its_failure() {
    snapshot("building", fixture::building);
    snapshot("build_failed", fixture::failed);
}

#[test]
fn quitting_asks_whether_to_keep_the_stack() {
    snapshot("leave", |w, h| {
        let mut state = fixture::standing(w, h);
        press(&mut state, &[KeyCode::Char('q')]);
        state
    });
}

#[test]
fn the_host_has_a_page() {
    snapshot("host", |w, h| {
        let mut state = running(w, h);
        press(&mut state, &[KeyCode::Char('H')]);
        state
    });
}

#[test]
fn what_a_stack_survives_is_noted() {
    snapshot("standing", |w, h| {
        let mut state = fixture::standing(w, h);
        state.view = View::Notes;
        state
    });
}

#[test]
fn too_small() {
    for (columns, lines) in [(60, 20), (12, 6)] {
        insta::assert_snapshot!(format!("too_small_{columns}x{lines}"), shown(&running(columns, lines)));
    }
}

/// Colours only add: without any, the characters are the same.
#[test]
fn nothing_is_shown_by_colour_alone() {
    let mut state = troubled(160, 50);
    // The heat map has shades where it has no colours.
    let heat = super::layout::areas(state.screen, state.view).unwrap().heat;
    let elsewhere = |state: &State| {
        let mut buffer = drawn(state);
        heat.positions().for_each(|at| _ = buffer[at].set_symbol(" "));
        buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect::<Vec<_>>()
    };
    let (without, shades) = (elsewhere(&state), shown(&state));
    assert!(["░", "▒", "█"].iter().all(|shade| shades.contains(shade)), "{shades}");
    state.theme = super::theme::Theme::light();
    assert_eq!(elsewhere(&state), without);
}

#[test]
fn a_figure_is_never_cut() {
    for width in 80..=200 {
        let text = shown(&turned(width, 24));
        assert!(!text.contains('#'), "at {width}:\n{text}");
        for figure in ["2449", "7.34ms", "not held"] {
            assert!(text.contains(figure), "{figure} at {width}:\n{text}");
        }
    }
}

pub fn any_key() -> impl Strategy<Value = Msg> {
    let key = prop_oneof![
        "[ -~]".prop_map(|s| KeyCode::Char(s.chars().next().unwrap_or(' '))),
        prop::sample::select(vec![
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::Backspace,
            KeyCode::PageUp,
            KeyCode::PageDown,
            KeyCode::Home,
            KeyCode::End,
        ]),
    ];
    let mouse = (0u16..200, 0u16..60, 0usize..3).prop_map(|(column, row, kind)| {
        let kinds =
            [MouseEventKind::Down(MouseButton::Left), MouseEventKind::ScrollUp, MouseEventKind::ScrollDown];
        Msg::Mouse(MouseEvent { kind: kinds[kind], column, row, modifiers: KeyModifiers::NONE })
    });
    prop_oneof![
        8 => key.prop_map(|code| Msg::Key(KeyEvent::new(code, KeyModifiers::NONE))),
        2 => mouse,
        1 => (1u16..220, 1u16..70).prop_map(|(w, h)| Msg::Resize(w, h)),
        1 => Just(Msg::Session(Event::ConsentWanted(vec![fixture::wanted()]))),
        1 => prop::sample::select(vec![
            Event::Planned(Ok(Arc::new(fixture::plan_destroying()))),
            Event::Planned(Ok(Arc::new(PlanShown { number: 0, ..fixture::plan_long() }))),
            Event::Planned(Ok(Arc::new(fixture::plan_short()))),
            Event::Status(Arc::new(fixture::standing_status())),
            Event::Duel(Arc::new(fixture::duel(3))),
            Event::Former(Box::new(fixture::settings())),
            Event::Ended(Err(fixture::build_error())),
        ])
        .prop_map(Msg::Session),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_keys_at_any_size_panics(
        messages in prop::collection::vec(any_key(), 1..60),
        (columns, lines) in (1u16..220, 1u16..70),
    ) {
        let mut state = troubled(columns, lines);
        for msg in messages {
            for effect in update(&mut state, msg) {
                if let super::message::Effect::List = effect {
                    update(&mut state, Msg::Listed(Vec::new()));
                }
            }
            let mut buffer = Buffer::empty(Rect { ..state.screen });
            view::draw(&state, &mut buffer);
            prop_assert!(state.focus == Focus::Knobs || state.focus == Focus::Ledger);
            prop_assert!(!matches!(&state.dialog, Some(Dialog::Consent(c)) if c.device().is_none()));
        }
    }
}
