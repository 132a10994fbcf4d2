//! Duels over a program's reported figures, in virtual time.

use super::*;
use crate::meter::programs::program::{MetricFigures, ProgramFigures};
use crate::runs::duel::figures::ReportedFigure;
use crate::settings::Better;
use crate::units::SECOND_NS;

/// A deciding figure of a program.
fn reported(better: Better) -> Figure {
    Figure::Reported(ReportedFigure { name: "own".into(), better: Some(better) })
}

/// A window in which a program reports this value, or nothing.
fn reports(value: Option<f64>) -> Window {
    let metrics = value.map(|value| ("own".to_owned(), MetricFigures::of(value, "")));
    let program = ProgramFigures { metrics: metrics.into_iter().collect(), ..ProgramFigures::default() };
    Window { program: Some(program), duration_ns: SECOND_NS, ..Window::default() }
}

/// A duel over a program's report, `of` a value in the given window since its turn.
fn fought(seed: u64, better: Better, mut of: impl FnMut(usize, usize) -> Option<f64>) -> Report {
    let values = ["64".to_owned(), "128".to_owned()];
    let spec = DuelSpec { knob: "command.sync".into(), values, figure: reported(better), margin: 0.05, seed };
    let other = Figure::Reported(ReportedFigure { name: "load".into(), better: None });
    let mut course = Course::of_program(spec, Begins::Turned, vec![other, reported(better)]);
    let (mut value, mut since) = (0, 0);
    loop {
        let window = Window { turned: since == 0, ..reports(of(value, since)) };
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
    let mut next = noise(7);
    // The first report is about the time before the turn.
    let report = fought(1, Better::Lower, |value, since| {
        let slow = if since < 2 { 1 - value } else { value };
        Some(next() * if slow == 1 { 5.0 } else { 4.0 })
    });
    assert_eq!((report.verdict, report.block_windows.0), (Verdict::First, REPORTED_SETTLING), "{report:?}");
    assert_eq!((report.figures[0].figure.clone(), report.figures[1].pairs), (reported(Better::Lower), 0));
    let change = report.figures[0].change.unwrap();
    assert!((change - 0.25).abs() < 0.03, "{change}");
    assert_eq!(report.differences().len(), report.pairs.len());
    let text = serde_json::to_value(&report).unwrap();
    assert_eq!((&text["figure"], &text["measured"]), (&"own".into(), &serde_json::json!(["load", "own"])));

    let equal = fought(2, Better::Lower, |_, _| Some(next() * 4.0));
    assert!(matches!(equal.verdict, Verdict::NoDifference | Verdict::Unclear), "{equal:?}");
}

#[test]
fn what_a_program_reports_on_what_was_built_settles_as_long_as_the_classes_do() {
    let values = ["ext4".to_owned(), "xfs".to_owned()];
    let figure = reported(Better::Higher);
    let spec =
        DuelSpec { knob: "stack.filesystem".into(), values, figure: figure.clone(), margin: 0.05, seed: 1 };
    let course = Course::of_program(spec, Begins::Built, vec![figure]);
    assert_eq!(course.report().block_windows, (BUILT_SETTLING, BUILT_MEASURED));
}

/// Factors of noise.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut random = SmallRng::seed_from_u64(seed);
    move || random.random_range(0.97..1.03)
}

/// Picks a fifth of the second value's blocks; asked in each window.
#[derive(Default)]
struct SomeBlocks(usize);

impl SomeBlocks {
    fn has(&mut self, value: usize, since: usize) -> bool {
        self.0 += usize::from(value == 1 && since == 0);
        value == 1 && self.0 % 5 == 3
    }
}

fn is_open(report: &Report) -> bool {
    matches!(report.verdict, Verdict::Unclear | Verdict::NotJudged)
}

#[test]
fn a_value_under_which_a_program_is_silent_in_some_blocks_does_not_win_by_the_others() {
    for (better, good, bad) in [(Better::Lower, 3.0, 5.0), (Better::Higher, 5.0, 3.0)] {
        for seed in 0..5 {
            let by = |level: f64, silent: bool| {
                let (mut next, mut some) = (noise(seed), SomeBlocks::default());
                fought(seed, better, |value, since| {
                    let is_silent = some.has(value, since) && silent;
                    let value = next() * if value == 1 { level } else { 4.0 };
                    (!is_silent).then_some(value)
                })
            };
            assert_eq!(by(good, false).verdict, Verdict::Second, "{better:?} {seed}");
            let report = by(good, true);
            assert!(is_open(&report) && report.lacking() > 0, "{better:?} {seed}: {:?}", report.verdict);
            assert!(report.dropped.is_empty() && !report.figures[0].is_clear());
            assert!(is_open(&by(4.0, true)), "{better:?} {seed}");
            assert_eq!(
                by(bad, true).verdict,
                Verdict::First,
                "{better:?} {seed}: worse where it reports, too"
            );
        }
    }
    let never = fought(1, Better::Lower, |value, _| (value == 0).then_some(4.0));
    let why = "6 of 6 pairs do not count: no own in the block of 128";
    assert_eq!((never.verdict, never.why.as_deref(), never.lacking()), (Verdict::NotJudged, Some(why), 6));
    let neither = fought(1, Better::Lower, |_, _| None);
    let why = "6 of 6 pairs do not count: no own in either block";
    assert_eq!((neither.why.as_deref(), neither.pairs.len()), (Some(why), 0));
}

#[test]
fn a_programs_rate_of_zero_is_that_of_a_stall_and_its_latency_of_zero_is_none() {
    let mut some = SomeBlocks::default();
    let mut next = noise(1);
    let stalls = fought(1, Better::Higher, |value, since| {
        let stalls = some.has(value, since);
        let rate = next() * [4.0, 5.0][value];
        Some(if stalls { 0.0 } else { rate })
    });
    assert!(is_open(&stalls) && stalls.lacking() == 0, "{:?}", stalls.verdict);
    let mut next = noise(2);
    let never = fought(1, Better::Higher, |value, _| Some(if value == 1 { 0.0 } else { next() }));
    assert_eq!(never.verdict, Verdict::First);
    // Likewise for a server that answers nothing.
    let none = fought(1, Better::Lower, |value, _| Some(if value == 1 { 0.0 } else { 4.0 }));
    assert_eq!((none.verdict, none.lacking()), (Verdict::NotJudged, 6));
}

#[test]
fn what_a_silent_block_would_have_been_is_unknown_of_a_figure_without_a_better_side() {
    let pair =
        |at: usize, [one, other]: [Option<f64>; 2]| Pair { first: at % 2, figures: [vec![one], vec![other]] };
    let of = |silent: usize| -> Vec<Pair> {
        let mut next = noise(3);
        let mut of = |at: usize| pair(at, [Some(next()), (at % 5 != 3 || silent == 0).then(|| 1.3 * next())]);
        (0..20).map(&mut of).collect()
    };
    let load = [Figure::Reported(ReportedFigure { name: "load".into(), better: None })];
    let is_clear = |pairs: &[Pair]| row(&[], pairs, &load, (0, 0)).is_clear();
    assert!(is_clear(&of(0)));
    assert!(!is_clear(&of(1)));
}
