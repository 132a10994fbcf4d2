//! Two recordings: flipped at the same position, and compared.

use std::time::Duration;

use crossterm::event::KeyCode;
use ratatui::buffer::{Buffer, Cell};

use super::both;
use super::fixture::{replaying, replaying_two};
use super::message::Msg;
use super::state::State;
use super::tests::{SIZES, press, shown};
use super::update::update;

fn header(state: &State) -> String {
    shown(state).lines().next().unwrap().to_owned()
}

#[test]
fn one_key_flips_between_two_recordings_at_the_same_position() {
    for (columns, lines) in SIZES {
        let mut state = replaying_two(columns, lines);
        press(&mut state, &[KeyCode::PageDown, KeyCode::PageDown]);
        insta::assert_snapshot!(format!("beside_first_{columns}x{lines}"), shown(&state));
        press(&mut state, &[KeyCode::Char('x')]);
        insta::assert_snapshot!(format!("beside_second_{columns}x{lines}"), shown(&state));
    }
    let mut state = replaying_two(80, 24);
    press(&mut state, &[KeyCode::PageDown, KeyCode::Char('x')]);
    assert!(header(&state).contains("RECORDING  B after  5/30 s"), "{}", header(&state));
    press(&mut state, &[KeyCode::Right, KeyCode::Char('x')]);
    assert!(header(&state).contains("RECORDING  A before  6/40 s"), "{}", header(&state));
    // The second one is shorter: its last window stays.
    press(&mut state, &[KeyCode::End, KeyCode::Char('x')]);
    assert!(header(&state).contains("B after  30/30 s"), "{}", header(&state));
}

/// The lines of a terminal with both recordings.
fn drawn(state: &mut State) -> String {
    let mut buffer = Buffer::empty(state.terminal);
    both::draw(state, &mut buffer);
    let line = |cells: &[Cell]| cells.iter().map(Cell::symbol).collect::<String>();
    buffer.content.chunks(usize::from(buffer.area.width)).map(|cells| line(cells) + "\n").collect()
}

#[test]
fn both_are_shown_side_by_side_each_at_its_place() {
    let mut state = replaying_two(200, 30);
    press(&mut state, &[KeyCode::PageDown, KeyCode::Char('|')]);
    let screen = drawn(&mut state);
    insta::assert_snapshot!("beside_both_200x30", screen);
    let first = screen.lines().next().unwrap();
    let at = |name: &str| first.find(name).unwrap_or_else(|| panic!("{name}: {first}"));
    assert!(at("RECORDING  A before  5/40 s") < at("RECORDING  B after  5/30 s"), "{first}");
    // Looking changes nothing, at the end of the shorter one, too.
    press(&mut state, &[KeyCode::End]);
    let first = |state: &mut State| drawn(state).lines().next().unwrap().to_owned();
    for _ in 0..3 {
        assert!(first(&mut state).contains("A before  40/40 s"), "{}", first(&mut state));
    }
    // The keys act on the one on the right, and the mouse finds it there.
    press(&mut state, &[KeyCode::Char('x')]);
    assert!(state.screen.x > 100 && first(&mut state).contains("A before"), "{:?}", state.screen);
    press(&mut state, &[KeyCode::Char('|')]);
    assert_eq!(state.screen, state.terminal);

    let mut narrow = replaying_two(159, 50);
    press(&mut narrow, &[KeyCode::Char('|')]);
    assert!(drawn(&mut narrow).contains("160 columns"));
    update(&mut narrow, Msg::Resize(160, 50));
    assert_eq!(narrow.screen.width, 80);
}

#[test]
fn looking_at_the_other_one_leaves_a_search_as_it_is() {
    let mut state = replaying_two(200, 30);
    press(&mut state, &[KeyCode::Char('|'), KeyCode::Char('/')]);
    press(&mut state, &"depth".chars().map(KeyCode::Char).collect::<Vec<_>>());
    let first = state.knob();
    press(&mut state, &[KeyCode::Down]);
    let (second, layer, rows) = (state.knob(), state.layer, state.listing.rows.len());
    assert_ne!(second.path, first.path);
    for _ in 0..2 {
        let screen = drawn(&mut state);
        assert_eq!((&state.knob().path, state.layer, state.listing.rows.len()), (&second.path, layer, rows));
        assert!(screen.contains("depth"), "{screen}");
    }
}

#[test]
fn flipping_changes_the_figures_and_not_the_scales() {
    let scales = |state: &State| {
        let screen = shown(state);
        let is_scale = |word: &&str| word.starts_with("0–") || word.contains("µs–");
        let of_heat = screen.lines().skip(2).take(10).filter_map(|line| line.get(50..).map(str::trim_start));
        let labels =
            of_heat.filter_map(|line| line.split_whitespace().next()).filter(|word| word.starts_with('1'));
        labels.chain(screen.split_whitespace().filter(is_scale)).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut state = replaying_two(160, 50);
    state.message = None;
    let (first, before) = (scales(&state), shown(&state));
    press(&mut state, &[KeyCode::Char('x')]);
    assert_eq!(scales(&state), first);
    assert_ne!(shown(&state), before);
    press(&mut state, &[KeyCode::Char('x')]);
    assert_eq!(shown(&state), before, "and back");
}

#[test]
fn playing_goes_on_in_the_other_one() {
    let mut state = replaying_two(160, 50);
    press(&mut state, &[KeyCode::Char('+'), KeyCode::Char(' ')]);
    update(&mut state, Msg::Played(Duration::from_secs(3)));
    press(&mut state, &[KeyCode::Char('x')]);
    update(&mut state, Msg::Played(Duration::from_secs(1)));
    assert!(header(&state).contains("B after  9/30 s ▶ 2×"), "{}", header(&state));
}

#[test]
fn the_differences_are_those_of_compare() {
    let mut state = replaying_two(160, 50);
    let changes = state.beside.as_ref().unwrap().changes.clone();
    assert!(changes[0].starts_with("scan MB/s +33% ("), "{changes:?}");
    let screen = shown(&state);
    assert!(screen.contains(&format!("B against A: {}", changes[0])), "{screen}");
    press(&mut state, &[KeyCode::Char('=')]);
    let page = shown(&state);
    let of = |letter: &str, name: &str| page.lines().any(|line| line.contains(&format!("{letter}  {name}")));
    assert!(page.contains("before and after") && page.contains("+33%"), "{page}");
    assert!(of("A", "") && of("B", ""), "{page}");
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(state.dialog, None);

    let mut alone = replaying(160, 50);
    for key in ['x', '='] {
        press(&mut alone, &[KeyCode::Char(key)]);
        assert!(shown(&alone).contains("--with DIR` shows two"), "{}", shown(&alone));
    }
}
