//! How often equal settings differ clearly, and different ones do, in the lines of a whole run.

use super::*;
use crate::class::Class;
use crate::meter::flag::FlagKind;
use crate::meter::turns::estimate::TURN_CHANGE_MIN;
use crate::meter::turns::estimate::tests::{KINDS, Kind, Series, assert_in_help, series};
use crate::meter::turns::ledger::{Ledger, Turn};
use crate::meter::window::Window;
use crate::units::SECOND_NS;

/// Windows from one turn to the next, and how many of them hold the turn or settle after it.
const WINDOWS: usize = 20;
const SETTLING: usize = 3;
/// The number of lines before enough pseudo-turns have been seen.
const LEARNING: usize = TURNS_MIN;

/// A window with these rates; the scan's is the first.
fn window([total, wal]: [f64; 2]) -> Window {
    let mut window = Window::default();
    window.total.mb_per_s = total;
    window.classes[Class::Scan.index()].mb_per_s = total;
    window.classes[Class::Wal.index()].mb_per_s = wal;
    window
}

/// The windows of a run with this many turns, each of which changes the level by the factor, or back.
fn made(kind: Kind, seed: u64, turns: usize, factor: f64) -> Vec<Window> {
    let mut figures = [0, 1].map(|figure| Series::new(kind, 2 * seed + figure));
    let level = |at: usize| 100.0 * if at / WINDOWS % 2 == 1 { factor } else { 1.0 };
    (0..turns * WINDOWS).map(|at| window(figures.each_mut().map(|series| series.next(level(at))))).collect()
}

/// What a loop device did under equal settings in windows of a quarter of a second, in MB/s, a line for each setting: its
/// level jumps by a tenth and more, at turns no more than elsewhere.
fn recorded() -> Vec<f64> {
    let text = include_str!("../../../tests/recordings/equal-turns.txt");
    text.split_whitespace().map(|rate| rate.parse().unwrap()).collect()
}

/// The lines of a run with a turn every [`WINDOWS`], from the first that knows how far the run wanders.
fn lines(windows: impl IntoIterator<Item = Window>) -> Vec<LedgerLine> {
    all_lines(windows).split_off(LEARNING)
}

fn all_lines(windows: impl IntoIterator<Item = Window>) -> Vec<LedgerLine> {
    let mut ledger = Ledger::default();
    for (second, mut window) in (0_u64..).zip(windows) {
        window.start_ns = second * SECOND_NS;
        window.duration_ns = SECOND_NS;
        let place = second as usize % WINDOWS;
        if place == 0 {
            let to = (second / WINDOWS as u64 % 2).to_string();
            let knob = "run.slow_log".to_owned();
            ledger.turn(Turn { at_ns: window.start_ns, knob, to, ..Turn::default() });
        }
        window.turned = place < SETTLING;
        ledger.window(&window);
    }
    ledger.lines().to_vec()
}

fn clear(lines: &[LedgerLine]) -> usize {
    let is_clear = |line: &&LedgerLine| line.changes().iter().any(|(_, change)| change.verdict.is_clear());
    lines.iter().filter(is_clear).count()
}

#[test]
fn equal_settings_differ_clearly_in_one_line_of_twenty_at_most_whatever_the_level_does() {
    let runs = series(40);
    let mut made_lines = (0, 0);
    for kind in KINDS {
        let (mut found, mut all) = (0, 0);
        for seed in 0..runs {
            let lines = lines(made(kind, seed, 60, 1.0));
            (found, all) = (found + clear(&lines), all + lines.len());
        }
        println!("{:<17} {found} of {all} lines", kind.name);
        assert!(found * 20 <= all, "{}: {found} of {all}", kind.name);
        made_lines = (made_lines.0 + found, made_lines.1 + all);
    }
    let (found, all) = made_lines;
    println!("all: {found} of {all} lines");
    assert!(found * 100 <= all, "{found} of {all} lines of all kinds");
}

#[test]
fn a_recorded_level_that_jumps_differs_clearly_in_one_line_of_fifty_at_most() {
    let rates = recorded();
    let (mut found, mut all, mut ignorant) = (0, 0, 0);
    for from in 0..WINDOWS {
        let windows: Vec<_> = rates[from..].iter().map(|rate| window([*rate, 0.0])).collect();
        let lines = lines(windows.iter().cloned());
        (found, all) = (found + clear(&lines), all + lines.len());
        // The same turns, each in a run that has seen nothing but the setting before it.
        let before = (LEARNING - 1..).map(|turn| &windows[(turn * WINDOWS).min(windows.len())..]);
        let pairs = before.take(lines.len()).map(|windows| windows.iter().take(2 * WINDOWS).cloned());
        ignorant += pairs.filter(|pair| clear(&all_lines(pair.clone())[1..]) > 0).count();
    }
    assert!(all > 900 && found * 50 <= all, "{found} of {all}");
    assert_in_help(&format!(" {found} of {all} lines"));
    assert_in_help(&format!("without this rule, {ignorant} had"));
}

#[test]
fn changes_that_are_larger_than_the_level_wanders_are_clear() {
    let runs = series(8);
    for (kind, factor, per_cent) in [(0, 1.1, 99), (1, 1.2, 90), (2, 1.5, 90), (3, 1.5, 90)] {
        let (mut found, mut all) = (0, 0);
        for seed in 0..runs {
            let lines = lines(made(KINDS[kind], seed, 60, factor));
            (found, all) = (found + clear(&lines), all + lines.len());
        }
        println!("{:<17} by {factor}: {found} of {all} lines", KINDS[kind].name);
        assert!(found * 100 >= all * per_cent, "{}, {factor}: {found} of {all}", KINDS[kind].name);
    }
}

/// Whether a change of three tenths in throughput, and in cycles, is clear after windows of one setting that
/// went back and forth as far, changed by a function, and then a minute of quiet ones.
fn is_clear_after(change: impl Fn(&mut Window)) -> [bool; 2] {
    const JUMPING: u64 = 120;
    let (mut ledger, mut second) = (Ledger::default(), 0);
    let mut take = |ledger: &mut Ledger, level: f64, change: &dyn Fn(&mut Window)| {
        let mut window = window([100.0 * level, 0.0]);
        window.total.cycles_per_byte = Some(2.0 * level);
        (window.start_ns, window.duration_ns) = (second * SECOND_NS, SECOND_NS);
        change(&mut window);
        ledger.window(&window);
        second += 1;
        second
    };
    for at in 0..JUMPING {
        take(&mut ledger, if at / 8 % 2 == 1 { 1.3 } else { 1.0 }, &change);
    }
    let mut now = 0;
    for at in 0..61 {
        now = take(&mut ledger, 1.0 + f64::from(at % 3) / 1000.0, &|_| {});
    }
    ledger.turn(Turn { at_ns: now * SECOND_NS, knob: "scan.depth".into(), ..Turn::default() });
    (0..5).for_each(|at| _ = take(&mut ledger, 1.3 + f64::from(at % 3) / 1000.0, &|_| {}));
    let line = ledger.lines().last().unwrap();
    [&line.total_mb_per_s, &line.cycles_per_byte].map(|change| change.verdict.is_clear())
}

#[test]
fn what_no_turn_is_judged_by_teaches_nothing() {
    assert_eq!(is_clear_after(|_| {}), [false, false], "it went as far by itself");
    let drifting = |window: &mut Window| window.flags.push(FlagKind::Drifting.flag(""));
    assert_eq!(is_clear_after(drifting), [true, true]);
    let others = |window: &mut Window| window.flags.push(FlagKind::Others.with_cores(1.8, ""));
    assert_eq!(is_clear_after(others), [false, true], "cycles alone are not judged beside others");
}

#[test]
fn few_pseudo_turns_say_nothing_and_a_single_stall_does_not_hide_every_change_after_it() {
    let together = Together { figures: 1, gap: 3, change_min: TURN_CHANGE_MIN };
    let mut wander = Wander::default();
    let mut take = |before, after| {
        let mut line = LedgerLine::default();
        (line.total_mb_per_s.before, line.total_mb_per_s.after) = (Some(before), Some(after));
        wander.take(&line);
        wander.reach("total MB/s", together)
    };
    let few: Vec<_> = (1..TURNS_MIN).map(|turn| take(100.0, 99.0 + (turn % 3) as f64)).collect();
    assert!(few.iter().all(Option::is_none));
    let quiet = take(100.0, 100.0).unwrap();
    assert!(quiet > 0.01 && quiet < 0.04, "{quiet}");
    let stalled = take(100.0, 0.0).unwrap();
    assert!(stalled < 3.0 * quiet, "{stalled}, {quiet} before");
    assert_eq!(take(0.0, 0.0), Some(stalled), "nothing is not a change");
}
