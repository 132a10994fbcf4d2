//! What first-time users of the screen meet, most of it on a small one.

use std::sync::Arc;

use crossterm::event::KeyCode::{self, Char, Down, Esc, Tab, Up};

use super::fixture::{self, running, tell, turned};
use super::glyphs::Glyphs;
use super::layout;
use super::message::{Effect, Msg};
use super::state::{Focus, State};
use super::tests::{drawn, press, shown};
use super::theme::Theme;
use super::update::update;
use crate::host::Device;
use crate::meter::flag::FlagKind;
use crate::meter::window::LedgerLine;
use crate::runs::session::Event;
use crate::runs::session::message::{Phase, Status};

/// The next window, with these flags.
fn window(state: &mut State, index: u64, flags: &[FlagKind]) {
    let flags = flags.iter().map(|kind| kind.flag("why")).collect();
    let window = crate::meter::window::Window { flags, ..fixture::window(index) };
    tell(state, Event::Window(Arc::new(window), Arc::new(fixture::totals(index + 1))));
}

fn line_of(state: &State, part: &str) -> String {
    let screen = shown(state);
    screen.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {screen}")).to_owned()
}

#[test]
fn that_there_are_flags_stays_on_a_small_screen() {
    let mut state = running(80, 24);
    let fallbacks = vec!["io.interface is libaio instead of io_uring: it is forbidden".to_owned()];
    tell(&mut state, Event::Status(Arc::new(Status { fallbacks, ..fixture::status(Phase::Running) })));
    window(&mut state, 100, &[FlagKind::ProcessorsFull, FlagKind::Mounted]);
    let header = shown(&state).lines().next().unwrap().to_owned();
    assert!(header.contains('⚑') && header.contains("1 fallback"), "{header}");
    let header = {
        let mut marked = running(80, 24);
        window(&mut marked, 100, &[FlagKind::ProcessorsFull, FlagKind::Mounted]);
        press(&mut marked, &[Char('f')]);
        let fallbacks = vec!["a".to_owned(), "b".to_owned()];
        tell(&mut marked, Event::Status(Arc::new(Status { fallbacks, ..fixture::status(Phase::Running) })));
        marked.recording = Some("/r".into());
        shown(&marked).lines().next().unwrap().to_owned()
    };
    assert!(header.contains("⚑2") && header.contains("2 fallbacks"), "{header}");
    assert!(header.contains("written") && !header.contains("of 20GiB"), "{header}");
}

#[test]
fn a_line_that_is_longer_than_its_panel_scrolls() {
    let mut state = turned(80, 24);
    press(&mut state, &[Char('v'), Char('v'), Char('v'), Tab]);
    while state.ledger_chosen < 2 {
        press(&mut state, &[Down]);
    }
    let mut seen = shown(&state);
    assert!(seen.contains("wal.sync fdatasync → none") && !seen.contains("missed starts"), "{seen}");
    let chosen = state.ledger_chosen;
    for _ in 0..20 {
        if state.ledger_chosen != chosen {
            break;
        }
        seen += &shown(&state);
        press(&mut state, &[Down]);
    }
    for (figure, _) in
        state.live.ledger[1].changes().into_iter().filter(|(_, change)| change.before.is_some())
    {
        assert!(seen.contains(figure.name), "{figure}: {seen}");
    }
    assert_ne!(state.ledger_chosen, chosen, "after the last row comes the next line");
    press(&mut state, &[Up]);
    assert_eq!((state.ledger_chosen, state.ledger_top), (chosen, 0));
    press(&mut state, &[Esc]);
    assert_eq!(state.focus, Focus::Knobs, "Esc closes the figures");
}

#[test]
fn why_no_turn_can_be_judged_does_not_flicker_and_names_the_way_out() {
    let mut state = running(80, 24);
    assert!(line_of(&state, " ▶ ").contains("ready"), "{}", shown(&state));
    window(&mut state, 100, &[FlagKind::ProcessorsFull]);
    for index in 101..=109 {
        let strip = line_of(&state, " ▶ ");
        assert!(strip.contains("not now") && strip.contains("turn a knob, then D"), "{index}: {strip}");
        window(&mut state, index, &[]);
    }
    window(&mut state, 110, &[]);
    assert!(line_of(&state, " ▶ ").contains("ready"), "{}", shown(&state));
    window(&mut state, 111, &[FlagKind::OthersIo]);
    let strip = line_of(&state, " ▶ ");
    assert!(strip.contains("not now") && !strip.contains("then D"), "{strip}");
}

#[test]
fn a_frozen_screen_says_when_and_how_to_go_on() {
    for (columns, lines) in [(80, 24), (120, 40), (160, 50)] {
        let mut state = running(columns, lines);
        assert!(!shown(&state).contains("0 live"));
        press(&mut state, &[Char(','), Char(','), Char(',')]);
        let (screen, keys) = (shown(&state), line_of(&state, "q quit"));
        assert!(screen.contains(" ago"), "{columns}: {screen}");
        assert!(keys.contains("0 live") && keys.contains(", . window"), "{columns}: {keys}");
        press(&mut state, &[Char('0')]);
        assert!(!shown(&state).contains("0 live"));
    }
}

#[test]
fn turns_under_another_profile_are_not_forgotten() {
    let mut state = turned(80, 24);
    tell(&mut state, Event::Began);
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Running))));
    let (none, before) =
        (line_of(&state, "no knob has been turned"), line_of(&state, "before: 4 turns under"));
    assert!(!none.is_empty() && before.contains("demo"), "{before}");
    tell(&mut state, Event::Ledger(Arc::new(LedgerLine { number: 1, ..LedgerLine::default() })));
    assert!(line_of(&state, "before: 4 turns").contains("demo"));
}

#[test]
fn several_knobs_of_a_rebuild_have_their_own_values() {
    for (columns, lines) in [(80, 24), (120, 40), (160, 50)] {
        let mut state = running(columns, lines);
        let line = LedgerLine {
            number: 1,
            knob: "stack.filesystem, target.files.count".into(),
            from: "none, 4".into(),
            to: "ext4, 1".into(),
            ..LedgerLine::default()
        };
        tell(&mut state, Event::Ledger(Arc::new(line)));
        let screen = shown(&state);
        assert!(screen.matches("target.files.count 4 → 1").count() >= 1, "{columns}: {screen}");
        // On a narrow screen the strip has the reason for no verdict instead.
        let times = if columns < 160 { 1 } else { 2 };
        assert!(screen.matches("stack.filesystem none → ext4").count() >= times, "{columns}: {screen}");
    }
}

#[test]
fn the_hosts_page_is_read_anew_and_shows_where_the_target_lies() {
    let mut state = running(160, 50);
    let drives = vec!["/sys/class/block/nvme0n1p2".into(), "/sys/class/block/loop7".into()];
    tell(&mut state, Event::Status(Arc::new(Status { drives, ..fixture::status(Phase::Running) })));
    let key = crossterm::event::KeyEvent::new(KeyCode::Char('H'), crossterm::event::KeyModifiers::NONE);
    assert_eq!(update(&mut state, Msg::Key(key)), [Effect::ReadDevices]);
    let known = crate::runs::record::fixture::facts().devices[0].clone();
    let device = |path: &str| Device { path: path.into(), ..known.clone() };
    let devices = ["/dev/loop7", "/dev/loop70", "/dev/nvme0n1", "/dev/sda"].map(device).to_vec();
    update(&mut state, Msg::DevicesRead(devices));
    press(&mut state, &[KeyCode::End]);
    for (path, lies) in
        [("/dev/loop7 ", true), ("/dev/loop70 ", false), ("/dev/nvme0n1 ", true), ("/dev/sda ", false)]
    {
        assert_eq!(line_of(&state, path).contains("the target lies on it"), lies, "{path}");
    }
    let screen = shown(&state);
    let row = screen.lines().skip_while(|line| !line.contains("/dev/loop7 ")).nth(1).unwrap();
    let size = line_of(&state, "/dev/loop70 ").find("TiB").unwrap();
    assert_eq!(
        row.find("TiB"),
        Some(size),
        "what else is said stands below, where it does elsewhere: {screen}"
    );
}

#[test]
fn what_another_target_fell_back_to_is_no_note_of_this_one() {
    let mut state = running(160, 50);
    let text = "the files are 192MiB each instead of 1GiB, as this drive writes 127 MB/s".to_owned();
    let with = Status { fallbacks: vec![text.clone()], ..fixture::status(Phase::Running) };
    tell(&mut state, Event::Notice(text.clone()));
    tell(&mut state, Event::Status(Arc::new(with)));
    assert!(state.notices.contains(&text));
    tell(&mut state, Event::Status(Arc::new(fixture::status(Phase::Opening))));
    assert!(!state.notices.contains(&text), "{:?}", state.notices);
}

#[test]
fn the_help_begins_with_the_keys_of_what_has_the_focus() {
    let mut state = turned(120, 40);
    press(&mut state, &[Char('?')]);
    assert!(shown(&state).contains("The chosen knob"), "{}", shown(&state));
    press(&mut state, &[Esc, Tab, Char('?')]);
    let screen = shown(&state);
    assert!(screen.contains("Keys for the ledger") && !screen.contains("The chosen knob"), "{screen}");
}

#[test]
fn a_turn_is_kept_as_it_is_made_and_with_its_verdict() {
    let mut state = running(80, 24);
    let mut kept = |open| {
        let line = LedgerLine { number: 9, open, ..LedgerLine::default() };
        update(&mut state, Msg::Session(Event::Ledger(Arc::new(line)))).len()
    };
    assert_eq!([true, true, false].map(&mut kept), [1, 0, 1]);
}

#[test]
fn in_octants_the_cells_of_the_past_stay_as_they_are_until_the_map_moves_by_one() {
    let mut state = State { glyphs: Glyphs::Octants, theme: Theme::dark(), ..running(80, 24) };
    let heat = layout::areas(state.screen, state.view).unwrap().heat;
    let mut columns = |index| {
        window(&mut state, index, &[]);
        let buffer = drawn(&state);
        let column = |x| {
            let rows = heat.y + 1..heat.bottom() - 1;
            rows.map(|y| buffer[(x, y)].clone()).collect::<Vec<_>>()
        };
        (heat.x + 6..heat.right()).map(column).collect::<Vec<_>>()
    };
    let screens = [200, 201, 202].map(&mut columns);
    let [filled, moved]: [Vec<bool>; 2] = [0, 1].map(|at| {
        let [before, after] = [&screens[at], &screens[at + 1]];
        let last = before.len() - 1;
        // The first cell loses a window, and the last gains one, or is new.
        vec![before[1..last] == after[1..last], before[2..last] == after[1..last - 1]]
    });
    assert!(filled != moved && filled.contains(&true) && moved.contains(&true), "{filled:?} {moved:?}");
}
