//! Whole duels in virtual time, on the synthetic series that the ledger is tested on, too.

use std::cell::Cell;
use std::sync::Arc;

use hdrhistogram::Histogram;

use super::*;
use crate::meter::turns::estimate::tests::{
    KINDS, Kind, Series, assert_in_help, assert_in_help_if_whole, is_whole,
};
use crate::meter::turns::recorded_tests::quiet;
use crate::meter::window::Flag;
use crate::runs::duel::report::DuelRow;
use crate::units::SECOND_NS;

fn spec(seed: u64) -> DuelSpec {
    let values = ["64".to_owned(), "128".to_owned()];
    DuelSpec { knob: "scan.depth".into(), values, figure: Figure::Total, margin: 0.05, seed }
}

/// A duel on windows made for a value; `true` if a turn falls into it. Its report, and the seconds that it took.
fn fight(spec: DuelSpec, mut made: impl FnMut(usize, bool) -> Window) -> (Report, u64) {
    let mut course = Course::new(spec, Begins::Turned);
    let (mut value, mut turned) = (0, false);
    for second in 0.. {
        let window = made(value, turned);
        turned = false;
        match course.window(&window) {
            DuelMove::Stay => {}
            DuelMove::Turn(to) => (value, turned) = (to, true),
            DuelMove::Over => return (course.report(), second),
        }
    }
    unreachable!("it ends after 40 pairs")
}

/// A duel whose second value is better by `factor` in the only figure.
fn fought(kind: Kind, seed: u64, factor: f64, change: impl Fn(&mut Window, usize)) -> (Report, u64) {
    let mut series = Series::new(kind, seed);
    fight(spec(seed), |value, turned| {
        let level = if value == 1 { factor } else { 1.0 };
        let mut window = Window { duration_ns: SECOND_NS, turned, ..Window::default() };
        window.total.bytes = (series.next(1e9) * level) as u64;
        change(&mut window, value);
        window
    })
}

/// A window with these figures, in the order of [`Figure::ALL`]; `ios` is the number of I/Os behind each percentile.
fn with_all(levels: [f64; 8], ios: u64, turned: bool) -> Window {
    let [total, scan, point, wal, background, point_p99, wal_p99, cycles] = levels;
    let mut window = Window { duration_ns: SECOND_NS, turned, ..Window::default() };
    window.total.bytes = (total * 1e9) as u64;
    window.total.cycles_per_byte = Some(cycles);
    for (class, rate) in Class::ALL.into_iter().zip([scan, point, wal, background]) {
        window.classes[class.index()].bytes = (rate * 1e9) as u64;
    }
    let histograms = Arc::make_mut(&mut window.histograms);
    for (class, level) in [(Class::Point, point_p99), (Class::Wal, wal_p99)] {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n((level * 1500.0) as u64, ios).unwrap();
        histograms[class.index()].service = Some(histogram);
    }
    window
}

/// A duel of equal values in which all figures exist: each from a series of its own, or alike but for 1%.
fn fought_by_all(kind: Kind, seed: u64, alike: bool) -> Report {
    let own = if alike { KINDS[0] } else { kind };
    let mut all: [Series; 8] = std::array::from_fn(|at| Series::new(own, 9 * seed + at as u64));
    let mut common = Series::new(kind, 9 * seed + 8);
    let made = |_: usize, turned: bool| {
        let rate = if alike { common.next(1.0) } else { 1.0 };
        let levels = std::array::from_fn(|at| {
            let level = if Figure::ALL[at].more_is_better() { rate } else { 1.0 / rate };
            all[at].next(level)
        });
        with_all(levels, 400, turned)
    };
    fight(spec(seed), made).0
}

fn is_called(report: &Report) -> bool {
    !is_open(report) && report.verdict != Verdict::NoDifference
}

/// Whether it ended undecided.
fn is_open(report: &Report) -> bool {
    matches!(report.verdict, Verdict::Unclear | Verdict::NotJudged)
}

#[test]
fn equal_values_differ_clearly_in_any_figure_in_one_duel_of_twenty_at_most() {
    let duels = if is_whole() { 250 } else { 31 };
    let (mut wrong, mut all, mut under_drift) = (0, 0, 0);
    for kind in KINDS {
        let is_wrong = |seed: &u64| {
            let report = fought_by_all(kind, *seed, seed % 2 == 1);
            assert!(report.figures.iter().all(|row| row.pairs > 0), "{:?}", report.figures);
            is_called(&report) || report.figures.iter().any(DuelRow::is_clear)
        };
        let found = (0..duels).filter(is_wrong).count() as u64;
        println!("{:<17} {found} of {duels}", kind.name);
        assert!(found * 20 <= duels + 10, "{}: {found}", kind.name);
        if kind.name == KINDS[3].name {
            under_drift = found;
        }
        (wrong, all) = (wrong + found, all + duels);
    }
    println!("all: {wrong} of {all}");
    assert!(wrong * 20 <= all, "{wrong} of {all}");
    assert_in_help_if_whole(&format!("On synthetic series, {wrong} of {all} duels erred"));
    assert_in_help_if_whole(&format!("(with drift and spikes, {under_drift} of {duels})"));
}

#[test]
fn recorded_windows_under_one_limit_are_called_different_in_one_duel_of_twenty_at_most() {
    let (mut wrong, duels) = (0, 100);
    for (seed, windows) in (0..duels).zip(quiet().iter().cycle()) {
        // Each duel starts at a different second; after the last window comes the first.
        let mut windows = windows.iter().cycle().skip(seed as usize % windows.len());
        let made =
            |_: usize, turned: bool| Window { turned, flags: Vec::new(), ..windows.next().unwrap().clone() };
        let (report, _) = fight(spec(seed), made);
        wrong += u64::from(is_called(&report) || report.figures.iter().any(DuelRow::is_clear));
    }
    println!("{wrong} of {duels}");
    assert!(wrong * 20 <= duels, "{wrong} of {duels}");
}

/// Picks a fifth of the second value's blocks: all those after the third of every five turns to it.
#[derive(Default)]
struct SomeBlocks(usize);

impl SomeBlocks {
    fn has(&mut self, value: usize, turned: bool) -> bool {
        self.0 += usize::from(value == 1 && turned);
        value == 1 && self.0 % 5 == 3
    }
}

#[test]
fn a_value_that_stalls_does_not_win_by_its_other_blocks() {
    for seed in 0..10 {
        let (mut series, mut some) = (Series::new(KINDS[0], seed), SomeBlocks::default());
        let made = |value: usize, turned: bool| {
            let stalls = some.has(value, turned);
            let mut window = Window { duration_ns: SECOND_NS, turned, ..Window::default() };
            let level = [1e9, 1.2e9][value];
            window.total.bytes = if stalls { 0 } else { series.next(level) as u64 };
            window
        };
        let (report, _) = fight(spec(seed), made);
        assert!(is_open(&report) && report.dropped.is_empty(), "{seed}: {:?}", report.verdict);
        assert!(!report.figures[0].is_clear());
    }
    let (report, _) = fought(KINDS[0], 1, 1.2, |window, value| window.total.bytes *= 1 - value as u64);
    assert_eq!(report.verdict, Verdict::First, "it never does anything");
    let (report, _) = fought(KINDS[0], 1, 1.0, |window, _| window.total.bytes = 0);
    assert_eq!(report.why.as_deref(), Some("6 of 6 pairs do not count: no total MB/s in either block"));
}

#[test]
fn a_value_with_too_few_ios_for_a_percentile_in_some_blocks_does_not_win_by_the_others() {
    let by_p99 = |seed, level: f64, few: &dyn Fn(bool) -> bool| {
        let (mut series, mut some) = (Series::new(KINDS[0], seed), SomeBlocks::default());
        let made = |value: usize, turned: bool| {
            let few = few(some.has(value, turned)) && value == 1;
            let p99 = series.next(if value == 1 { level } else { 1.0 });
            with_all([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, p99, 1.0], if few { 100 } else { 400 }, turned)
        };
        fight(DuelSpec { figure: Figure::WalP99, ..spec(seed) }, made).0
    };
    for seed in 0..10 {
        assert_eq!(by_p99(seed, 0.7, &|_| false).verdict, Verdict::Second, "{seed}");
        let better = by_p99(seed, 0.7, &|some| some);
        assert!(is_open(&better) && better.dropped.is_empty(), "{seed}: {:?}", better.verdict);
        let at = better.measured.iter().position(|figure| *figure == Figure::WalP99).unwrap();
        assert!(better.pairs.iter().any(|pair| pair.lacking(at) == Some(1)));
        let equal = by_p99(seed, 1.0, &|some| some);
        assert!(is_open(&equal), "{seed}: {:?}", equal.verdict);
        // Nor do they make the other value win.
        let worse = by_p99(seed, 1.3, &|some| some);
        assert_eq!(worse.verdict, Verdict::First, "{seed}: {:?}", worse.why);
    }
    let never = by_p99(1, 0.7, &|_| true);
    let why = "6 of 6 pairs do not count: no WAL p99 in the block of 128";
    assert_eq!((never.verdict, never.why.as_deref()), (Verdict::NotJudged, Some(why)));
}

#[test]
fn cycles_of_windows_without_a_byte_count() {
    let window = |bytes: u64, cycles: f64| {
        let mut window = Window { duration_ns: SECOND_NS, ..Window::default() };
        window.total.bytes = bytes;
        window.total.cycles_per_byte = (bytes > 0).then(|| cycles / bytes as f64);
        window.cpu.cycles = cycles;
        window
    };
    let of = |windows: &[Window]| Figure::CyclesPerByte.of(windows);
    assert_eq!(of(&[window(1000, 2000.0), window(0, 1000.0), window(2000, 3000.0)]), Some(2.0));
    assert_eq!(of(&[window(0, 1000.0)]), None);
    assert_eq!(of(&[window(1000, 2000.0), window(0, 0.0)]), None, "unknown");
}

#[test]
fn planted_changes_are_found_within_three_minutes() {
    let drift_and_spikes = KINDS[3];
    let found = [(1.05, 60), (1.1, 90), (1.2, 98)].map(|(factor, least)| {
        let found = (0..100).filter(|seed| {
            let (report, seconds) = fought(drift_and_spikes, *seed, factor, |_, _| {});
            report.verdict == Verdict::Second && seconds <= 180
        });
        let found = found.count();
        println!("{factor}: {found} of 100");
        assert!(found >= least, "{factor}: {found}");
        found
    });
    let [five, ten, twenty] = found;
    assert_in_help(&format!(
        "5, 10 or 20% under drift and spikes was found within three minutes in {five}, {ten} and {twenty} of 100 duels"
    ));
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
    // After each turn the first two windows are slow: longer than a block initially settles.
    let since = Cell::new(0);
    let settled_late = |factor: f64| {
        let (report, _) = fought(KINDS[0], 5, factor, |window, _| {
            since.set(if window.turned { 0 } else { since.get() + 1 });
            if since.get() <= 2 {
                window.total.bytes = window.total.bytes * 7 / 10;
            }
        });
        assert!(report.block_windows.0 > SETTLING, "{:?}", report.block_windows);
        report
    };
    assert_eq!(settled_late(1.0).verdict, Verdict::NoDifference);

    // However much evidence came before, the change is that of the settled blocks, and must be evident from them.
    let report = settled_late(1.6);
    assert_eq!(report.verdict, Verdict::Second);
    assert!(report.pairs.len() >= 6 && !report.unsettled.is_empty(), "{report:?}");
    let (low, high) = report.figures[0].interval.unwrap();
    assert!(low > 0.3 && high < 0.9, "{low} {high}");
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

/// A duel on storage built for each block: `block` returns its windows' MB, or why it is lost.
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
                // The first window on new storage is not clean.
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
    // One pair more if all differ by the same factor.
    assert_eq!(
        (report.verdict, report.pairs.len(), blocks),
        (Verdict::Second, PAIRS_MIN + 1, 2 * PAIRS_MIN + 2)
    );
    assert_eq!(report.begins, Begins::Built);
    let growing: [u64; PAIRS_MIN] = [10_100, 10_300, 10_600, 11_700, 14_800, 26_600, 114_800];
    let (report, _) = built(3, |number, value| Ok(if value == 1 { growing[number / 2] } else { 10_000 }));
    assert_eq!((report.verdict, report.pairs.len()), (Verdict::Second, PAIRS_MIN));
    // The largest bet is that of the boldest gambler on a difference of four times the median.
    let boldest = |pairs: i32| 5.0 / 10.0 * 2.0_f64.powi(pairs);
    assert!(boldest(PAIRS_MIN as i32) >= ENOUGH && boldest(PAIRS_MIN as i32 - 1) < ENOUGH);
}

#[test]
fn a_lost_block_takes_its_whole_pair_along() {
    // The second block of the second pair, and the first of the third, which then gets no second block.
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
