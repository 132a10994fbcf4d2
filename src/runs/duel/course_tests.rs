//! Whole duels in virtual time, on the made series by which the ledger is measured, too.

use super::*;
use crate::meter::estimate::tests::{KINDS, Kind, Series, series};
use crate::meter::window::Flag;
use crate::units::SECOND_NS;

fn spec(seed: u64) -> Spec {
    let values = ["64".to_owned(), "128".to_owned()];
    Spec { knob: "scan.depth".into(), values, figure: Figure::Total, margin: 0.05, seed }
}

/// A duel whose second value is better by `factor`; its report, and the seconds that it took.
fn fought(kind: Kind, seed: u64, factor: f64, change: impl Fn(&mut Window, usize)) -> (Report, u64) {
    let mut course = Course::new(spec(seed));
    let mut series = Series::new(kind, seed);
    let (mut value, mut turned) = (0, false);
    for second in 0.. {
        let level = if value == 1 { factor } else { 1.0 };
        let mut window = Window { duration_ns: SECOND_NS, turned, ..Window::default() };
        window.total.bytes = (series.next(1e9) * level) as u64;
        change(&mut window, value);
        turned = false;
        match course.window(&window) {
            Step::Stay => {}
            Step::Turn(to) => (value, turned) = (to, true),
            Step::Over => return (course.report(), second),
        }
    }
    unreachable!("it ends after 40 pairs")
}

#[test]
fn equal_values_are_called_different_in_one_duel_of_twenty_at_most() {
    let (mut wrong, mut all, duels) = (0, 0, series(250));
    for kind in KINDS {
        let decided = |seed: &u64| {
            let (report, _) = fought(kind, *seed, 1.0, |_, _| {});
            !matches!(report.verdict, Verdict::NoDifference | Verdict::Unclear | Verdict::NotJudged)
        };
        let found = (0..duels).filter(decided).count();
        println!("{:<17} {found} of {duels}", kind.name);
        assert!(found as u64 * 20 <= duels + 10, "{}: {found}", kind.name);
        (wrong, all) = (wrong + found, all + duels);
    }
    println!("all: {wrong} of {all}");
}

#[test]
fn planted_changes_are_found_within_three_minutes() {
    let drift_and_spikes = KINDS[3];
    for (factor, least) in [(1.05, 60), (1.1, 90), (1.2, 98)] {
        let found = (0..100).filter(|seed| {
            let (report, seconds) = fought(drift_and_spikes, *seed, factor, |_, _| {});
            report.verdict == Verdict::Second && seconds <= 180
        });
        let found = found.count();
        println!("{factor}: {found} of 100");
        assert!(found >= least, "{factor}: {found}");
    }
}

#[test]
fn a_flag_leaves_out_the_pair_and_too_many_end_the_duel() {
    let flag = || Flag { text: "cache 97%".into(), why: String::new(), forbids_verdict: true };
    let (report, _) = fought(KINDS[0], 1, 1.2, |window, value| {
        if value == 1 {
            window.flags.push(flag());
        }
    });
    assert_eq!((report.verdict, report.pairs.len()), (Verdict::NotJudged, 0));
    assert_eq!(report.why.as_deref(), Some("6 of 6 pairs do not count: cache 97%"));
    let settling = Flag { text: FlagKind::Settling.text().into(), ..flag() };
    let (report, _) = fought(KINDS[0], 1, 1.2, |window, _| window.flags.push(settling.clone()));
    assert_eq!((report.verdict, report.dropped.len()), (Verdict::Second, 0));
}

#[test]
fn hardly_any_difference_is_a_verdict_and_less_durable_never_wins() {
    assert_eq!(fought(KINDS[0], 3, 1.01, |_, _| {}).0.verdict, Verdict::NoDifference);
    let mut course = Course::new(spec(1));
    course.survives_less(1);
    assert_eq!(course.winner(0.2).0, Verdict::LessDurable);
    assert_eq!(course.winner(-0.2).0, Verdict::First);
    course.spec.figure = Figure::WalP99;
    assert_eq!(course.winner(0.2).0, Verdict::First, "less latency is better");
}

#[test]
fn a_value_that_needs_time_to_settle_gets_it() {
    // After each turn the first two windows are slow: longer than a block settles at first.
    let since = std::cell::Cell::new(0);
    let (report, _) = fought(KINDS[0], 5, 1.0, |window, _| {
        since.set(if window.turned { 0 } else { since.get() + 1 });
        if since.get() <= 2 {
            window.total.bytes = window.total.bytes * 7 / 10;
        }
    });
    assert!(report.block_windows.0 > SETTLING, "{:?}", report.block_windows);
    assert_eq!(report.verdict, Verdict::NoDifference);
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let order = |seed| {
        let (report, _) = fought(KINDS[1], seed, 1.1, |_, _| {});
        report.pairs.iter().map(|pair| pair.first).collect::<Vec<_>>()
    };
    assert_eq!(order(4), order(4));
    assert_ne!(order(4)[..7], order(5)[..7]);
}

#[test]
fn cycles_are_not_fought_over_beside_other_programs() {
    let others = |window: &mut Window| window.flags.push(FlagKind::Others.with_cores(1.84, ""));
    let cycles = |window: &mut Window| window.total.cycles_per_byte = Some(2.0);
    let (report, _) = fought(KINDS[0], 1, 1.2, |window, _| {
        cycles(window);
        others(window);
    });
    assert_eq!((report.verdict, report.dropped.len()), (Verdict::Second, 0), "MB/s are not concerned");
    let row = report.figures.iter().find(|row| row.figure == Figure::CyclesPerByte).unwrap();
    assert_eq!(row.pairs, 0);

    let mut course = Course::new(Spec { figure: Figure::CyclesPerByte, ..spec(1) });
    let mut turned = false;
    loop {
        let mut window = Window { duration_ns: SECOND_NS, turned, ..Window::default() };
        window.total.bytes = 1_000_000;
        cycles(&mut window);
        others(&mut window);
        match course.window(&window) {
            Step::Over => break,
            step => turned = matches!(step, Step::Turn(_)),
        }
    }
    let report = course.report();
    assert_eq!(report.verdict, Verdict::NotJudged);
    let why = report.why.unwrap();
    assert!(why.ends_with("do not count: others used 1.8 cores"), "{why}");
}
