//! A recording on the screen: read, played, and unable to touch anything.

use std::path::Path;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::buffer::Buffer;

use super::fixture::{self, empty, replaying};
use super::message::{Effect, Msg};
use super::replay::{NOTHING_RUNS, Replay};
use super::state::State;
use super::tests::{SIZES, press, shown};
use super::update::{replay, update};
use super::view;
use crate::error::Kind;
use crate::meter::window::LedgerLine;
use crate::runs::record::Recording;
use crate::settings::knobs::find;

fn snapshot(name: &str, make: impl Fn(u16, u16) -> State) {
    for (columns, lines) in SIZES {
        insta::assert_snapshot!(format!("{name}_{columns}x{lines}"), shown(&make(columns, lines)));
    }
}

fn value(state: &State, path: &str) -> String {
    let status = state.status.as_ref().expect("the settings");
    find(path).unwrap().get(&status.settings).to_string()
}

fn position(state: &State) -> usize {
    state.live.at().unwrap() + 1
}

fn pressed(state: &mut State, key: char) {
    press(state, &[KeyCode::Char(key)]);
}

#[test]
fn a_recording_opens_at_its_first_window() {
    snapshot("recording", replaying);
}

#[test]
fn a_window_is_read_with_the_settings_that_were_in_force() {
    snapshot("recording_turned", |w, h| {
        let mut state = replaying(w, h);
        press(&mut state, &[KeyCode::Char('n'), KeyCode::Right]);
        state
    });
    let mut state = replaying(160, 50);
    assert_eq!((value(&state, "scan.depth"), state.is_changed()), ("128".into(), false));
    pressed(&mut state, 'n');
    assert_eq!((position(&state), value(&state, "scan.depth")), (21, "256".into()));
    assert!(shown(&state).contains("▶ turn 1: scan.depth 128 → 256"));
    pressed(&mut state, 'n');
    assert_eq!((position(&state), value(&state, "wal.sync")), (41, "none".into()));
    pressed(&mut state, 'n');
    assert!(shown(&state).contains("no knob is turned after this window"));
    pressed(&mut state, 'N');
    assert_eq!((position(&state), value(&state, "wal.sync")), (21, "fdatasync".into()));
    press(&mut state, &[KeyCode::Left]);
    assert_eq!((position(&state), value(&state, "scan.depth")), (20, "128".into()));
    assert!(shown(&state).contains("no turn yet; turn 1: scan.depth 128 → 256  at 21s"), "{}", shown(&state));
    press(&mut state, &[KeyCode::Tab, KeyCode::Down, KeyCode::Enter]);
    assert_eq!(position(&state), 21, "the ledger's chosen turn");
}

#[test]
fn it_is_read_by_windows_tenths_and_ends() {
    let mut state = replaying(80, 24);
    let at = |state: &mut State, key| {
        press(state, &[key]);
        position(state)
    };
    let keys = [
        (KeyCode::Left, 1),
        (KeyCode::Right, 2),
        (KeyCode::Char('.'), 3),
        (KeyCode::Char(','), 2),
        (KeyCode::PageDown, 8),
        (KeyCode::PageUp, 2),
        (KeyCode::PageUp, 1),
        (KeyCode::End, 60),
        (KeyCode::Right, 60),
        (KeyCode::Home, 1),
        (KeyCode::Char('0'), 60),
    ];
    for (key, expected) in keys {
        assert_eq!(at(&mut state, key), expected, "{key:?}");
    }
    let shift = KeyEvent::new(KeyCode::Left, KeyModifiers::SHIFT);
    update(&mut state, Msg::Key(shift));
    assert_eq!(position(&state), 59);
    assert!(
        shown(&state).lines().next().unwrap().contains("RECORDING  before  59/60 s"),
        "{}",
        shown(&state)
    );
}

#[test]
fn it_plays_at_the_chosen_speed_and_stops_at_its_end() {
    let mut state = replaying(160, 50);
    let play = |state: &mut State, ms| update(state, Msg::Played(Duration::from_millis(ms)));
    play(&mut state, 5000);
    assert_eq!(position(&state), 1, "it does not play yet");
    pressed(&mut state, ' ');
    (0..25).for_each(|_| _ = play(&mut state, 100));
    assert_eq!(position(&state), 4, "two seconds and a half are in the fourth");
    let header = |state: &State| shown(state).lines().next().unwrap().to_owned();
    assert!(header(&state).contains("4/60 s ▶"), "{}", header(&state));
    pressed(&mut state, ' ');
    play(&mut state, 5000);
    assert_eq!(position(&state), 4, "it stopped");
    (0..3).for_each(|_| pressed(&mut state, '+'));
    pressed(&mut state, '-');
    pressed(&mut state, ' ');
    assert!(header(&state).contains("4/60 s ▶ 5×"), "{}", header(&state));
    play(&mut state, 1000);
    assert_eq!(position(&state), 9);
    // A key while it plays goes on from there.
    press(&mut state, &[KeyCode::PageDown]);
    play(&mut state, 1000);
    assert_eq!(position(&state), 20);
    play(&mut state, 3_600_000);
    assert_eq!((position(&state), state.replay.as_ref().unwrap().plays), (60, false));
    pressed(&mut state, ' ');
    assert_eq!((position(&state), state.replay.as_ref().unwrap().plays), (1, true), "again");
    (0..9).for_each(|_| pressed(&mut state, '+'));
    assert!(shown(&state).contains("it plays at its fastest: 60 times"), "{}", shown(&state));
}

/// Effects that are not a recording's.
fn beyond(effects: Vec<Effect>) -> Vec<Effect> {
    effects.into_iter().filter(|effect| !effect.suits_recording()).collect()
}

#[test]
fn keys_that_act_on_a_run_say_that_this_is_a_recording() {
    for key in "euDmsorfpbR1234".chars().map(KeyCode::Char).chain([KeyCode::Esc]) {
        let mut state = replaying(160, 50);
        let effects = update(&mut state, Msg::Key(KeyEvent::new(key, KeyModifiers::NONE)));
        assert_eq!(beyond(effects), [], "{key:?}");
        assert!(shown(&state).contains(NOTHING_RUNS), "{key:?}: {}", shown(&state));
    }
    let mut state = replaying(160, 50);
    let effects = update(&mut state, Msg::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE)));
    assert_eq!(effects, [Effect::Exit]);
    assert_eq!(state.ended, Some(Ok(())));
}

#[test]
fn the_palette_has_what_a_recording_can_do() {
    let mut state = replaying(160, 50);
    pressed(&mut state, ':');
    let all = shown(&state);
    assert!(all.contains("forward 10%") && !all.contains("turn up"), "{all}");
    "last window".chars().for_each(|c| pressed(&mut state, c));
    press(&mut state, &[KeyCode::Enter]);
    assert_eq!(position(&state), 60);
}

#[test]
fn its_pages_are_about_the_recording() {
    let mut state = replaying(160, 50);
    pressed(&mut state, 'H');
    let host = shown(&state);
    for part in ["alder", "Model 7", "performance", "this host was not examined"] {
        assert!(host.contains(part), "{part}: {host}");
    }
    press(&mut state, &[KeyCode::Esc, KeyCode::Char('B')]);
    let believe = shown(&state);
    assert!(believe.contains("run length") && believe.contains("Throughput"), "{believe}");
    state.replay.as_mut().unwrap().pitfalls.clear();
    assert!(shown(&state).contains("doesn't say how far"), "{}", shown(&state));
    press(&mut state, &[KeyCode::Esc, KeyCode::Char('c')]);
    assert!(shown(&state).contains("whole run, 55 windows"), "{}", shown(&state));
}

#[test]
fn recordings_of_earlier_versions_open() {
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/earlier");
    for name in ["run", "other", "sweep/01-scan.depth=1-r1"] {
        let recording = Recording::open(&earlier.join(name)).unwrap();
        let windows = recording.windows.len();
        let mut state = empty(160, 50);
        replay::open(&mut state, Replay::of(recording).unwrap(), None);
        state.list_knobs();
        let screen = shown(&state);
        assert!(screen.contains("RECORDING") && screen.contains("on vm"), "{name}: {screen}");
        assert!(screen.contains("2026-11-") && screen.contains("scan"), "{name}: {screen}");
        assert!(!screen.contains("the recording has none of it"), "{name}: {screen}");
        assert_eq!(state.live.kept(), windows);
    }
}

#[test]
fn what_is_missing_in_a_recording_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let recording = |spoil: &dyn Fn(&mut Recording)| {
        let dir = dir.path().join(next_name());
        let windows = fixture::minute();
        let mut recording = fixture::recorded(&dir, &windows[..7], &[]);
        spoil(&mut recording);
        Replay::of(recording)
    };
    let open = |replay: Replay| {
        let mut state = empty(160, 50);
        replay::open(&mut state, replay, None);
        state.list_knobs();
        shown(&state)
    };
    let none = recording(&|recording| recording.windows.clear()).unwrap_err();
    assert!(none.kind == Kind::Input && none.what.contains("has no window yet"), "{none:?}");

    let screen = open(recording(&|recording| recording.profile_toml = "name = ".into()).unwrap());
    assert!(screen.contains("Its settings can't be read") && screen.contains("RECORDING"), "{screen}");
    assert!(!screen.contains("opening"), "{screen}");

    let screen = open(recording(&|recording| recording.windows[6].setting = 3).unwrap());
    assert!(screen.contains("Its ledger lacks turns"), "{screen}");

    let screen = open(
        recording(&|recording| std::fs::remove_file(recording.dir.join("latency.hlog")).unwrap()).unwrap(),
    );
    assert!(screen.contains("the recording has none of it"), "{screen}");

    let backwards = recording(&|recording| recording.windows.reverse()).unwrap();
    assert_eq!(backwards.length_ns(), 7_000_000_000);
    let unknown = fixture::turns().remove(0);
    let turned = |recording: &mut Recording| {
        recording.windows[6].setting = 1;
        recording.ledger.push(LedgerLine {
            at_ns: 6_500_000_000,
            knob: "scan.of_old".into(),
            ..unknown.clone()
        });
    };
    let mut state = empty(160, 50);
    replay::open(&mut state, recording(&turned).unwrap(), None);
    press(&mut state, &[KeyCode::End]);
    let notes = &state.status.as_ref().unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("without turn 1 (scan.of_old to 256)")), "{notes:?}");
}

#[test]
fn a_duel_is_one_line_and_its_turns_are_in_force_one_after_the_other() {
    let turns = [(1_500_000_000, "64"), (3_500_000_000, "256"), (5_500_000_000, "128")];
    let duel = LedgerLine {
        number: 1,
        at_ns: turns[0].0,
        knob: "scan.depth".into(),
        from: "64".into(),
        to: "256".into(),
        duel: turns.map(|(at_ns, to)| (at_ns, to.to_owned())).into(),
        flags: vec!["duel of 3 turns".into()],
        ..LedgerLine::default()
    };
    let mut windows = fixture::minute();
    windows.truncate(7);
    for (window, setting) in windows.iter_mut().zip([0, 1, 1, 2, 2, 3, 3]) {
        window.setting = setting;
    }
    let dir = tempfile::tempdir().unwrap();
    let recording = fixture::recorded(dir.path(), &windows, &[duel]);
    let mut state = empty(160, 50);
    replay::open(&mut state, Replay::of(recording).unwrap(), None);
    state.list_knobs();
    press(&mut state, &[KeyCode::Home]);
    let mut depths = Vec::new();
    for _ in 0..windows.len() {
        depths.push(value(&state, "scan.depth"));
        press(&mut state, &[KeyCode::Right]);
    }
    assert_eq!(depths, ["128", "64", "64", "256", "256", "128", "128"]);
    let screen = shown(&state);
    assert!(screen.contains("▶ duel of scan.depth, 64 against 256: it had no verdict"), "{screen}");
    assert!(!screen.contains("lacks turns") && !screen.contains("can't be judged"), "{screen}");
}

/// A name that no other folder of this test has.
fn next_name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

#[test]
fn positions_have_the_unit_that_suits_the_length() {
    let replay = fixture::replay();
    assert_eq!(replay.position(12_000_000_000), "12/60 s");
    let of = |windows: &[crate::meter::window::Window]| {
        let dir = tempfile::tempdir().unwrap();
        Replay::of(fixture::recorded(dir.path(), windows, &[])).unwrap()
    };
    let mut windows = fixture::minute();
    windows.truncate(3);
    assert_eq!(of(&windows[1..]).position(2_000_000_000), "1.0/2.0 s");
    windows[2].start_ns = 3_599_000_000_000;
    assert_eq!(of(&windows).position(723_000_000_000), "12m 03s/1h 00m");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_keys_acts_on_anything(
        keys in prop::collection::vec(super::tests::any_key(), 1..60),
        (columns, lines) in (1u16..220, 1u16..70),
    ) {
        let mut state = replaying(columns, lines);
        for msg in keys {
            if matches!(msg, Msg::Session(_)) {
                continue; // there is no session
            }
            let effects = update(&mut state, msg);
            prop_assert_eq!(beyond(effects), vec![]);
            update(&mut state, Msg::Played(Duration::from_millis(700)));
            let mut buffer = Buffer::empty(state.screen);
            view::draw(&state, &mut buffer);
            prop_assert!(state.live.at().is_some_and(|at| at < 60));
        }
    }
}
