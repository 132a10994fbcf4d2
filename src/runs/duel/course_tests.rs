//! Whole duels in virtual time, on the made series by which the ledger is measured, too.

use super::*;
use crate::meter::programs::program::{MetricFigures, ProgramFigures};
use crate::meter::turns::estimate::tests::{KINDS, Kind, Series, series};
use crate::meter::window::Flag;
use crate::runs::duel::figures::ReportedFigure;
use crate::settings::Better;
use crate::units::SECOND_NS;

fn spec(seed: u64) -> DuelSpec {
    let values = ["64".to_owned(), "128".to_owned()];
    DuelSpec { knob: "scan.depth".into(), values, figure: Figure::Total, margin: 0.05, seed }
}

/// A duel whose second value is better by `factor`; its report, and the seconds that it took.
fn fought(kind: Kind, seed: u64, factor: f64, change: impl Fn(&mut Window, usize)) -> (Report, u64) {
    let mut course = Course::new(spec(seed), Begins::Turned);
    let mut series = Series::new(kind, seed);
    let (mut value, mut turned) = (0, false);
    for second in 0.. {
        let level = if value == 1 { factor } else { 1.0 };
        let mut window = Window { duration_ns: SECOND_NS, turned, ..Window::default() };
        window.total.bytes = (series.next(1e9) * level) as u64;
        change(&mut window, value);
        turned = false;
        match course.window(&window) {
            DuelMove::Stay => {}
            DuelMove::Turn(to) => (value, turned) = (to, true),
            DuelMove::Over => return (course.report(), second),
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
    assert_eq!(fought(KINDS[0], 3, 1.001, |_, _| {}).0.verdict, Verdict::NoDifference);
    let mut course = Course::new(spec(1), Begins::Turned);
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

    let mut course = Course::new(DuelSpec { figure: Figure::CyclesPerByte, ..spec(1) }, Begins::Turned);
    let mut turned = false;
    loop {
        let mut window = Window { duration_ns: SECOND_NS, turned, ..Window::default() };
        window.total.bytes = 1_000_000;
        cycles(&mut window);
        others(&mut window);
        match course.window(&window) {
            DuelMove::Over => break,
            step => turned = matches!(step, DuelMove::Turn(_)),
        }
    }
    let report = course.report();
    assert_eq!(report.verdict, Verdict::NotJudged);
    let why = report.why.unwrap();
    assert!(why.ends_with("do not count: others used 1.8 cores"), "{why}");
}

/// A window of that many MB.
fn window(mb: u64) -> Window {
    let mut window = Window { duration_ns: SECOND_NS, ..Window::default() };
    window.total.bytes = mb * 1_000_000;
    window
}

/// Fights on storage that is built for each block: `block` returns its windows' MB, or why it is lost.
fn built(
    seed: u64,
    block: impl Fn(usize, usize) -> std::result::Result<u64, &'static str>,
) -> (Report, usize) {
    let mut course = Course::new(spec(seed), Begins::Built);
    for number in 0.. {
        if course.is_over() {
            return (course.report(), number);
        }
        let value = course.begin_block();
        match block(number, value) {
            Err(why) => course.lose_block(why.to_owned()),
            Ok(mb) => {
                // The first window on what was built is not clean.
                assert_eq!(course.window(&Window { warmup: true, ..window(mb) }), DuelMove::Stay);
                let windows = (1..100).find(|_| course.window(&window(mb)) != DuelMove::Stay).unwrap();
                assert_eq!(windows, BUILT_SETTLING + BUILT_MEASURED);
            }
        }
    }
    unreachable!()
}

#[test]
fn seven_pairs_of_builds_may_be_enough_and_fewer_never_are() {
    let (report, blocks) = built(3, |_, value| Ok(if value == 1 { 130 } else { 100 }));
    // One more, where all differ by as much.
    assert_eq!(
        (report.verdict, report.pairs.len(), blocks),
        (Verdict::Second, PAIRS_MIN + 1, 2 * PAIRS_MIN + 2)
    );
    assert_eq!(report.begins, Begins::Built);
    let growing: [u64; PAIRS_MIN] = [10_100, 10_300, 10_600, 11_700, 14_800, 26_600, 114_800];
    let (report, _) = built(3, |number, value| Ok(if value == 1 { growing[number / 2] } else { 10_000 }));
    assert_eq!((report.verdict, report.pairs.len()), (Verdict::Second, PAIRS_MIN));
    // Nothing is bet more on than the boldest gambler bets on what is four times the median.
    let boldest = |pairs: i32| 5.0 / 10.0 * 2.0_f64.powi(pairs);
    assert!(boldest(PAIRS_MIN as i32) >= ENOUGH && boldest(PAIRS_MIN as i32 - 1) < ENOUGH);
}

#[test]
fn a_lost_block_takes_its_whole_pair_along() {
    // The second block of the second pair, and the first of the third, which then has no other.
    let lost = |number: usize, value: usize| match number {
        3 | 4 => Err("the drive is gone"),
        _ => Ok(if value == 1 { 130 } else { 100 }),
    };
    let (report, blocks) = built(3, lost);
    assert_eq!((report.verdict, report.pairs.len()), (Verdict::Second, PAIRS_MIN + 1));
    assert_eq!(report.dropped, ["the drive is gone"; 2]);
    assert_eq!(blocks, 2 * report.pairs.len() + 3);
    let (report, blocks) = built(3, |_, _| Err("no"));
    assert_eq!((report.verdict, blocks), (Verdict::NotJudged, DROPPED_FROM));
    assert_eq!(report.why.as_deref(), Some("6 of 6 pairs do not count: no"));
}

#[test]
fn the_page_cache_is_emptied_before_each_block_whichever_value_was_before() {
    let mut course = Course::new(spec(2), Begins::Uncached);
    let mut turns = Vec::new();
    while !course.is_over() {
        if let DuelMove::Turn(value) = course.window(&window(100 + 30 * *turns.last().unwrap_or(&0) as u64)) {
            turns.push(value);
        }
    }
    let report = course.report();
    assert_eq!(turns.len(), 2 * report.pairs.len());
    assert!(turns.windows(2).any(|two| two[0] == two[1]), "{turns:?}");
    assert!(turns.chunks(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
}

#[test]
fn forty_pairs_end_it_however_often_blocks_settled_for_longer() {
    // Never settles: each block rises from its first window to its last.
    let mut course = Course::new(DuelSpec { margin: 0.01, ..spec(6) }, Begins::Turned);
    let mut random = SmallRng::seed_from_u64(1);
    let (mut windows, mut turned) = (0, false);
    while !course.is_over() {
        windows += 1;
        let noise = random.random_range(0..40);
        let since = if turned { 0 } else { 20 * (windows % 3) };
        let step = course.window(&Window { turned, ..window(100 + since + noise) });
        turned = matches!(step, DuelMove::Turn(_));
    }
    let report = course.report();
    assert!(course.pairs() <= PAIRS_MAX, "{}", course.pairs());
    assert!(report.unsettled.len() <= DOUBLED_MAX as usize);
    let stopped = {
        let mut course = Course::new(spec(1), Begins::Built);
        course.stop("run.max_writes is 1GiB".into());
        course.report()
    };
    assert_eq!((stopped.verdict, stopped.pairs.len()), (Verdict::Unclear, 0));
}

#[test]
fn where_each_value_survives_less_in_some_respect_neither_wins() {
    let mut course = Course::new(spec(1), Begins::Turned);
    course.survives_less(0);
    course.survives_less(1);
    for change in [0.2, -0.2] {
        assert_eq!(course.winner(change).0, Verdict::LessDurable);
    }
}

/// A program's figure, of which less is better.
fn reported() -> Figure {
    Figure::Reported(ReportedFigure { name: "lat".into(), better: Some(Better::Lower) })
}

/// Windows in which a program reports that latency; none where it reports nothing.
fn reports(latency: Option<f64>) -> Window {
    let metrics = latency.map(|latency| ("lat".to_owned(), MetricFigures::of(latency, "ms")));
    let program = ProgramFigures { metrics: metrics.into_iter().collect(), ..ProgramFigures::default() };
    Window { program: Some(program), ..window(100) }
}

/// Fights over what a program reports, `latency` being that of a value in the window so far after its turn.
fn fought_by_program(seed: u64, latency: impl Fn(usize, usize) -> Option<f64>) -> Report {
    let spec = DuelSpec { figure: reported(), ..spec(seed) };
    let other = Figure::Reported(ReportedFigure { name: "load".into(), better: None });
    let mut course = Course::of_program(spec, Begins::Turned, vec![other, reported()]);
    let (mut value, mut since) = (0, 0);
    loop {
        let window = Window { turned: since == 0, ..reports(latency(value, since)) };
        since += 1;
        match course.window(&window) {
            DuelMove::Stay => {}
            DuelMove::Turn(to) => (value, since) = (to, 0),
            DuelMove::Over => return course.report(),
        }
    }
}

#[test]
fn what_a_program_reports_decides_by_its_better_side() {
    let mut random = SmallRng::seed_from_u64(7);
    let noise: Vec<f64> = (0..1000).map(|_| random.random_range(0.97..1.03)).collect();
    let at = std::cell::Cell::new(0);
    let next = || noise[at.replace((at.get() + 1) % noise.len())];
    // What is reported first is of the time before the turn.
    let report = fought_by_program(1, |value, since| {
        let slow = if since < 2 { 1 - value } else { value };
        Some(next() * if slow == 1 { 5.0 } else { 4.0 })
    });
    assert_eq!((report.verdict, report.block_windows.0), (Verdict::First, REPORTED_SETTLING), "{report:?}");
    assert_eq!((report.figures[0].figure.clone(), report.figures[1].pairs), (reported(), 0));
    let change = report.figures[0].change.unwrap();
    assert!((change - 0.25).abs() < 0.03, "{change}");
    assert_eq!(report.differences().len(), report.pairs.len());
    let text = serde_json::to_value(&report).unwrap();
    assert_eq!((&text["figure"], &text["measured"]), (&"lat".into(), &serde_json::json!(["load", "lat"])));

    let equal = fought_by_program(2, |_, _| Some(next() * 4.0));
    assert!(matches!(equal.verdict, Verdict::NoDifference | Verdict::Unclear), "{equal:?}");
}

#[test]
fn blocks_in_which_a_program_reports_nothing_do_not_count() {
    let report = fought_by_program(1, |value, _| (value == 0).then_some(4.0));
    assert_eq!((report.verdict, report.pairs.len()), (Verdict::NotJudged, 0));
    assert!(report.why.unwrap().ends_with("no lat in a block"));
}
