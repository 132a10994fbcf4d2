//! Traces: begun and ended by a key, and the page that shows how the rules are kept.

use std::sync::Arc;

use crossterm::event::KeyCode;

use super::tests::{letter, said};
use crate::error::Error;
use crate::meter::context::ByTrace;
use crate::meter::window::Window;
use crate::runs::session::message::{Command, Phase};
use crate::runs::session::{Event, Tap};
use crate::settings::Interface;
use crate::trace::contract::{ContractSpec, score};
use crate::trace::{Live, LostEvents, read_bytes};
use crate::ui::tui::fixture::{self, running, tell};
use crate::ui::tui::message::{Effect, Msg};
use crate::ui::tui::state::State;
use crate::ui::tui::tests::{SIZES, press, shown};
use crate::ui::tui::tracing::{Said, Wanted};
use crate::ui::tui::update::update;

/// Handles news of a trace, and checks that the run learns whether one is under way.
fn hear(state: &mut State, said: Said) {
    let told = match &said {
        Said::Began(_, tap) => vec![Effect::Send(Command::Traced(Some(tap.clone())))],
        Said::Live(_) => Vec::new(),
        Said::Ended(_) => vec![Effect::Send(Command::Traced(None))],
    };
    assert_eq!(update(state, Msg::Traced(said)), told);
}

/// The same 4 MiB 60 times, in pieces of 128 KiB, and a second drive without any I/O.
fn live(lost: u64) -> Live {
    let lost = LostEvents::unknown(lost);
    let line = |at: u64| {
        let (offset, from, to) = (at % 32 * (128 << 10), 20 * at, 20 * at + 10);
        format!("7 D write {offset} 131072 0.{from:09} 0 True\n0 C write {offset} 131072 0.{to:09} 0 True\n")
    };
    let text: String = (0..32 * 60).map(line).collect();
    let mut trace = read_bytes(text.as_bytes(), "x").unwrap();
    trace.lost = lost;
    let scores = score(&trace, &ContractSpec::default()).unwrap();
    let other = Err("nothing was issued to it".to_owned());
    Live { events: 1_234_567, is_full: false, scored_max: 200_000, lost, scores: vec![Ok(scores), other] }
}

fn begun() -> State {
    let mut state = running(120, 40);
    let drives = vec!["/sys/class/block/nvme0n1".into()];
    let cpus = fixture::facts().cpu.online;
    assert_eq!(letter(&mut state, 'T'), [Effect::Trace(Wanted::Begin(drives, cpus))]);
    assert!(!shown(&state).contains("TRACE"));
    hear(&mut state, Said::Began(vec!["nvme0n1".into(), "nvme1n1".into()], Tap::of(|_| ByTrace::default())));
    assert!(said(&state).starts_with("tracing nvme0n1, nvme1n1: C shows"), "{}", said(&state));
    state
}

#[test]
fn a_trace_is_begun_and_ended_and_says_where_it_is() {
    let mut state = begun();
    assert!(shown(&state).contains("TRACE"));
    let name = fixture::settings().name;
    assert_eq!(letter(&mut state, 'T'), [Effect::Trace(Wanted::End(None, name.clone()))]);
    hear(&mut state, Said::Ended(Ok("traced 5 I/Os, 0 events lost: /x".into())));
    assert!(said(&state).contains("0 events lost: /x") && !shown(&state).contains("TRACE"));

    // Into the recording, if one is being made; errors are shown.
    let mut state = begun();
    state.recording = Some("/rec".into());
    assert_eq!(letter(&mut state, 'T'), [Effect::Trace(Wanted::End(Some("/rec".into()), name.clone()))]);
    hear(&mut state, Said::Ended(Err(Error::failed("no space"))));
    assert!(said(&state).contains("no space") && !state.tracing.is_on);

    // A target on other drives ends it.
    let mut state = begun();
    let other = |drives: &[&str]| {
        let drives = drives.iter().map(Into::into).collect();
        let status = crate::runs::session::message::Status { drives, ..fixture::status(Phase::Running) };
        Msg::Session(Event::Status(Arc::new(status)))
    };
    assert_eq!(update(&mut state, other(&["/sys/class/block/nvme0n1"])), []);
    assert_eq!(
        update(&mut state, other(&["/sys/class/block/sda"])),
        [Effect::Trace(Wanted::End(None, name.clone()))]
    );

    // So does an interface whose I/O it can't see, and a trace that is full.
    let mut state = begun();
    let mut status = fixture::status(Phase::Running);
    status.settings.classes[0].interface = Some(Interface::NvmePassthrough);
    let passthrough = Msg::Session(Event::Status(Arc::new(status)));
    let ends = [Effect::Trace(Wanted::End(None, name))];
    assert_eq!(update(&mut state, passthrough), ends);
    let mut state = begun();
    let full = Live { is_full: true, ..live(0) };
    assert_eq!(update(&mut state, Msg::Traced(Said::Live(Arc::new(full)))), ends);
}

#[test]
fn what_cannot_be_traced_says_why() {
    let mut state = running(120, 40);
    let mut status = fixture::status(Phase::Running);
    status.drives.clear();
    tell(&mut state, Event::Status(Arc::new(status)));
    assert_eq!(letter(&mut state, 'T'), []);
    assert!(said(&state).contains("no drive is below the target"), "{}", said(&state));
    let mut status = fixture::status(Phase::Running);
    status.settings.io.interface = Interface::Vfio;
    tell(&mut state, Event::Status(Arc::new(status)));
    assert_eq!(letter(&mut state, 'T'), []);
    assert!(said(&state).contains("I/O by vfio bypasses"), "{}", said(&state));
    let mut state = running(120, 40);
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Filling))));
    assert_eq!(letter(&mut state, 'T'), []);
    assert!(said(&state).contains("not yet"), "{}", said(&state));
}

#[test]
fn the_page_shows_the_rules_as_they_are_kept() {
    let mut state = running(120, 40);
    letter(&mut state, 'C');
    assert!(shown(&state).contains("Nothing has been traced yet"), "{}", shown(&state));
    press(&mut state, &[KeyCode::Esc]);
    for (columns, lines) in SIZES {
        let mut state = begun();
        state.screen = ratatui::layout::Rect::new(0, 0, columns, lines);
        letter(&mut state, 'C');
        assert!(shown(&state).contains("scores follow after one second of I/O"), "{}", shown(&state));
        hear(&mut state, Said::Live(Arc::new(live(0))));
        insta::assert_snapshot!(format!("contract_{columns}x{lines}"), shown(&state));
        hear(&mut state, Said::Live(Arc::new(live(7))));
        let screen = shown(&state);
        assert!(
            screen.contains("7 events are missing") && screen.matches("events lost").count() == 5,
            "{screen}"
        );
    }
}

/// The screen after a window with that p99 from a trace.
fn after(state: &mut State, index: u64, p99_ns: Option<u64>) -> String {
    let window = Window { traced_p99_ns: p99_ns, ..fixture::window(index) };
    tell(state, Event::Window(Arc::new(window), Arc::new(fixture::totals(index))));
    shown(state)
}

#[test]
fn the_drives_have_a_p99_where_the_trace_has_one_of_the_window() {
    for (columns, lines, text) in [
        (80, 24, "drives      p99T 412µs"),
        (120, 40, "drives      p99T 412µs"),
        (160, 50, "p99 412µs, traced · on nvme0n1"),
    ] {
        let mut state = running(columns, lines);
        assert!(!after(&mut state, 80, None).contains("p99T") && !shown(&state).contains("traced"));
        let screen = after(&mut state, 81, Some(412_000));
        assert!(screen.contains(text), "{columns}x{lines}: {screen}");
        // It is of its window: the next one has none, and the one before still has it.
        let next = after(&mut state, 82, None);
        assert!(!next.contains(text) && next.contains("4 files"), "{columns}x{lines}: {next}");
        letter(&mut state, ',');
        assert!(shown(&state).contains(text), "{columns}x{lines}: {}", shown(&state));
    }
    let mut state = begun();
    hear(&mut state, Said::Live(Arc::new(live(0))));
    after(&mut state, 80, Some(412_000));
    letter(&mut state, 'C');
    assert!(shown(&state).contains("in this window, from issue to completion: 412µs."), "{}", shown(&state));
}
