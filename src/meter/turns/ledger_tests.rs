use std::sync::Arc;

use hdrhistogram::Histogram;

use super::*;
use crate::host::FlashSource;
use crate::meter::turns::outcome::TurnOutcome;
use crate::meter::window::{Change, ClassHistograms, ClassState, Verdict};
use crate::units::SECOND_NS;

struct Run {
    ledger: Ledger,
    second: u64,
}

impl Run {
    fn new() -> Self {
        Self { ledger: Ledger::default(), second: 0 }
    }

    /// Windows of one second with these scan rates, changed by a function.
    fn windows_with(&mut self, rates: &[f64], change: impl Fn(&mut Window)) -> Vec<LedgerLine> {
        let mut changed = Vec::new();
        for rate in rates {
            let mut window =
                Window { start_ns: self.second * SECOND_NS, duration_ns: SECOND_NS, ..Window::default() };
            window.classes[0].mb_per_s = *rate;
            window.total.mb_per_s = rate + 50.0;
            window.total.cycles_per_byte = Some(2.0);
            record(&mut window, Class::Point, std::iter::repeat_n(90_000, 1000));
            change(&mut window);
            changed.extend(self.ledger.window(&window));
            self.second += 1;
        }
        changed
    }

    fn windows(&mut self, rates: &[f64]) -> Vec<LedgerLine> {
        self.windows_with(rates, |_| {})
    }

    fn turn(&mut self) -> Vec<LedgerLine> {
        self.turn_of(Turn { knob: "scan.depth".into(), ..Turn::default() })
    }

    /// A turn between these values.
    fn turn_from(&mut self, from: &str, to: &str) -> Vec<LedgerLine> {
        let knob = "scan.depth".into();
        self.turn_of(Turn { knob, from: from.into(), to: to.into(), ..Turn::default() })
    }

    fn turn_of(&mut self, turn: Turn) -> Vec<LedgerLine> {
        let changed = self.ledger.turn(Turn { at_ns: self.second * SECOND_NS, ..turn });
        self.windows_with(&[1.0], |window| window.turned = true);
        self.windows_with(&[1.0; 2], |window| window.flags.push(flag(FlagKind::Settling.text())));
        changed
    }

    fn last(&self) -> &LedgerLine {
        self.ledger.lines.last().unwrap()
    }
}

/// Gives a class these latencies.
fn record(window: &mut Window, class: Class, latencies_ns: impl IntoIterator<Item = u64>) {
    let mut histogram = Histogram::new(3).unwrap();
    latencies_ns.into_iter().for_each(|ns| histogram.record(ns).unwrap());
    let histograms = ClassHistograms { service: Some(histogram), ..ClassHistograms::default() };
    Arc::make_mut(&mut window.histograms)[class.index()] = histograms;
}

fn flag(text: &str) -> Flag {
    Flag { text: text.into(), why: String::new(), forbids_verdict: true }
}

#[test]
fn a_turn_is_measured_by_settled_windows_on_both_sides() {
    let mut run = Run::new();
    run.windows(&[9.0, 100.0, 101.0, 102.0, 100.0, 101.0, 102.0, 100.0, 101.0, 102.0, 99.0]);
    let begun = run.turn();
    assert_eq!((begun[0].number, begun[0].open, begun[0].windows), (1, true, (10, 0)));
    let changed = run.windows(&[110.0, 111.0, 112.0, 113.0, 114.0, 500.0]);
    assert_eq!(changed.len(), 5, "the sixth changes nothing");
    assert_eq!(changed.iter().map(|line| line.open).collect::<Vec<_>>(), [true, true, true, true, false]);
    let verdicts: Vec<_> = changed.iter().map(|line| line.scan_mb_per_s.verdict).collect();
    assert_eq!(verdicts[1..3], [Verdict::None, Verdict::Higher]);
    let line = run.last();
    assert_eq!(line.scan_mb_per_s.before_range, Some((99.0, 102.0)));
    assert_eq!(line.scan_mb_per_s.after, Some(112.0));
    assert_eq!((line.windows, &line.flags[..]), ((10, 5), &[][..]));
    assert_eq!(line.point_p99_ns.verdict, Verdict::NoClearChange);
    assert_eq!(line.wal_p99_ns, Change::default(), "nothing was measured");
}

#[test]
fn ranges_that_overlap_are_no_clear_change() {
    let mut run = Run::new();
    run.windows(&[100.0, 105.0, 110.0]);
    run.turn();
    run.windows(&[110.0, 115.0, 120.0]);
    assert_eq!(run.last().scan_mb_per_s.verdict, Verdict::NoClearChange);
    run.turn();
    run.windows(&[40.0, 41.0, 42.0]);
    assert_eq!(run.last().scan_mb_per_s.verdict, Verdict::Lower);
    assert!(!run.ledger.lines[0].open);
    assert_eq!(run.last().windows, (3, 3));
}

#[test]
fn quick_turns_of_one_knob_are_judged_from_first_to_last_value() {
    let mut run = Run::new();
    run.windows(&[100.0; 5]);
    run.turn_from("128", "64");
    run.windows(&[200.0; 2]);
    let changed = run.turn_from("64", "32");
    assert_eq!(changed.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((changed[0].open, &changed[0].flags[..]), (false, &["overtaken by turn 2".to_owned()][..]));
    assert_eq!(changed[0].scan_mb_per_s.verdict, Verdict::None);
    let changed = run.turn_from("32", "16");
    assert_eq!(changed[0].flags, ["turns 1–2 together", "overtaken by turn 3"]);
    run.windows(&[300.0; 5]);
    let line = run.last();
    assert_eq!((line.from.as_str(), line.to.as_str(), line.windows), ("128", "16", (5, 5)));
    assert_eq!(
        line.scan_mb_per_s.before_range,
        Some((100.0, 100.0)),
        "that of the values between is left out"
    );
    assert_eq!(
        (line.scan_mb_per_s.verdict, &line.flags[..]),
        (Verdict::Higher, &["turns 1–3 together".to_owned()][..])
    );
    // The next one has its own windows before it.
    run.turn_from("16", "8");
    run.windows(&[200.0; 5]);
    let line = run.last();
    assert_eq!(
        (line.from.as_str(), line.windows, line.scan_mb_per_s.verdict),
        ("16", (5, 5), Verdict::Lower)
    );
    assert_eq!(line.flags, [""; 0]);
}

#[test]
fn a_quick_undo_cancels_the_turn() {
    let mut run = Run::new();
    run.windows(&[100.0, 102.0, 101.0]);
    run.turn_from("128", "64");
    let knob = "scan.depth".into();
    run.turn_of(Turn { knob, from: "64".into(), to: "128".into(), undo: true, ..Turn::default() });
    run.windows(&[101.0; 3]);
    let line = run.last();
    assert_eq!((line.from.as_str(), line.to.as_str(), line.undo), ("64", "128", true));
    assert_eq!((&line.flags[..], line.windows), (&["back before turn 1".to_owned()][..], (3, 3)));
    assert_eq!(
        (line.outcome(), line.why_not_judged().as_deref()),
        (TurnOutcome::NotJudged, Some("back before turn 1")),
        "both sides have the same setting"
    );
    // A turn made right after it is compared with the windows before all three.
    let mut run = Run::new();
    run.windows(&[100.0, 102.0, 101.0]);
    run.turn_from("128", "64");
    run.turn_from("64", "128");
    run.turn_from("128", "32");
    run.windows(&[50.0; 3]);
    let line = run.last();
    assert_eq!((line.from.as_str(), line.to.as_str()), ("128", "32"));
    assert_eq!((line.scan_mb_per_s.verdict, &line.flags[0]), (Verdict::Lower, &"turns 1–3 together".into()));
}

#[test]
fn quick_turns_of_several_knobs_keep_their_values_and_are_named_together() {
    let mut run = Run::new();
    run.windows(&[100.0; 3]);
    run.turn_from("128", "64");
    let knob = "scan.batch".to_owned();
    run.turn_of(Turn { knob: knob.clone(), from: "32".into(), to: "8".into(), ..Turn::default() });
    run.turn_of(Turn { knob, from: "8".into(), to: "4".into(), ..Turn::default() });
    run.windows(&[50.0; 3]);
    let line = run.last();
    assert_eq!((line.from.as_str(), line.to.as_str()), ("8", "4"), "it is not what batch alone did");
    assert_eq!(
        (line.scan_mb_per_s.verdict, &line.flags[..]),
        (Verdict::Lower, &["turns 1–3 together".to_owned()][..])
    );
}

#[test]
fn quick_turns_compare_the_durability_before_the_first_and_after_the_last() {
    let commits = |commits| Survival { commits, ..Survival::default() };
    let of = |(before, after)| Turn {
        knob: "wal.sync".into(),
        survives: (commits(before), commits(after)),
        ..Turn::default()
    };
    let mut run = Run::new();
    run.windows(&[100.0; 3]);
    assert!(run.turn_of(of((1, 0)))[0].less_durable);
    let changed = run.turn_of(Turn { knob: "scan.depth".into(), ..of((0, 0)) });
    assert!(changed[1].less_durable, "what it is compared with was more durable");
    run.windows(&[100.0; 2]);
    assert_eq!(run.last().flags, ["turns 1–2 together", FlagKind::LessDurable.text()]);
    let changed = run.turn_of(of((0, 1)));
    assert!(changed[0].less_durable && !changed[1].less_durable);
    assert!(!changed[1].more_durable, "nor more than before the first");
    run.windows(&[100.0; 5]);
    assert!(!run.turn_of(of((1, 1)))[0].less_durable);
    run.windows(&[100.0; 5]);
    assert!(run.turn_of(of((0, 1))).last().unwrap().more_durable);
}

#[test]
fn each_knob_of_a_programs_own_is_held_against_its_own_values() {
    let of = |own: &[u8]| {
        let mut all = Survival::default();
        all.own[..own.len()].copy_from_slice(own);
        all
    };
    let turn = |before: &[u8], after: &[u8]| Turn {
        knob: "command.sync".into(),
        survives: (of(before), of(after)),
        ..Turn::default()
    };
    let mut run = Run::new();
    run.windows(&[100.0; 3]);
    assert!(run.turn_of(turn(&[9, 9], &[8, 9]))[0].less_durable);
    // Turned back while another becomes less durable: together they are less durable, too.
    let changed = run.turn_of(turn(&[8, 9], &[9, 7]));
    assert!(changed[1].less_durable && changed[1].is_less_safe());
    run.windows(&[100.0; 5]);
    assert!(!run.turn_of(turn(&[9, 7], &[9, 9]))[0].less_durable);
}

#[test]
fn a_turn_that_reduces_what_is_survived_is_marked() {
    let of = |power_cut, drives_lost| Survival { commits: 1, power_cut, drives_lost, ..Survival::default() };
    let turned = |before, after| {
        let turn = Turn { knob: "stack.raid".into(), survives: (before, after), ..Turn::default() };
        let line = Run::new().turn_of(turn).remove(0);
        assert!(line.flags.ends_with(&line.survives_less) && !line.less_durable, "{line:?}");
        line.survives_less
    };
    let mirror = of(PowerCut::Yes, 1);
    assert_eq!(turned(mirror, of(PowerCut::Yes, 0)), ["survives the loss of drives: 1 → 0"]);
    let both = ["survives a power cut: yes → unknown", "survives the loss of drives: 1 → 0"];
    assert_eq!(turned(mirror, of(PowerCut::Unknown, 0)), both);
    assert_eq!(turned(of(PowerCut::Unknown, 0), mirror), [""; 0]);
    let unflushed = Survival { commits: 0, ..of(PowerCut::No, 1) };
    assert_eq!(unflushed.less_than(mirror), [""; 0], "less durable covers it");
}

#[test]
fn without_windows_before_the_first_turn_there_is_no_verdict() {
    let mut run = Run::new();
    run.windows(&[100.0; 2]);
    run.turn_from("128", "64");
    let changed = run.turn_from("64", "32");
    assert_eq!(changed[0].flags, [FlagKind::TooShort.text()]);
    run.windows(&[300.0; 5]);
    let line = run.last();
    assert_eq!((line.from.as_str(), line.windows, line.scan_mb_per_s.verdict), ("64", (0, 5), Verdict::None));
    run.turn();
    assert_eq!(run.ledger.close().unwrap().flags, [FlagKind::TooShort.text()]);
    assert!(run.ledger.close().is_none());
}

#[test]
fn a_flag_on_either_side_forbids_all_verdicts_and_is_named_once() {
    let mut run = Run::new();
    run.windows(&[100.0; 3]);
    run.turn();
    run.windows_with(&[200.0], |window| window.classes[0].flags.push(flag("cache 40%")));
    run.windows_with(&[200.0], |window| window.classes[0].flags.push(flag("cache 50%")));
    run.windows_with(&[200.0], |window| window.flags.push(flag("steal 9%")));
    assert_eq!(run.last().flags, ["scan cache 50%", "steal 9%"]);
    assert_eq!(run.last().scan_mb_per_s.verdict, Verdict::None);
    assert_eq!(run.last().scan_mb_per_s.after, Some(200.0), "the figures are still shown");
}

#[test]
fn flags_that_forbid_nothing_are_named_and_leave_the_verdict() {
    let mut run = Run::new();
    run.windows(&[100.0; 3]);
    run.turn();
    run.windows_with(&[200.0; 3], |window| {
        window.classes[2].flags.push(Flag { forbids_verdict: false, ..flag("not durable") });
        window.classes[3].errors = 1;
    });
    assert_eq!(run.last().flags, ["background errors", "wal not durable"]);
    assert_eq!(run.last().scan_mb_per_s.verdict, Verdict::Higher);
}

#[test]
fn nothing_is_compared_across_a_change_that_others_make() {
    let changed = |window: &mut Window| {
        window.flags.push(FlagKind::OthersChanged.named("queue.scheduler", "Why."));
        window.flags.push(FlagKind::Settling.flag("It takes part on neither side."));
    };
    let mut run = Run::new();
    run.windows(&[100.0; 3]);
    run.turn();
    run.windows_with(&[150.0], changed);
    run.windows(&[200.0; 5]);
    assert_eq!(run.last().flags, ["others changed queue.scheduler"]);
    assert_eq!((run.last().windows, run.last().scan_mb_per_s.verdict), ((3, 5), Verdict::None));
    // Before the next turn as well; what follows is compared again.
    run.windows_with(&[150.0], changed);
    run.windows(&[100.0; 3]);
    run.turn();
    run.windows(&[200.0; 3]);
    assert!(run.last().flags.is_empty(), "{:?}", run.last().flags);
    assert_eq!((run.last().windows, run.last().scan_mb_per_s.verdict), ((3, 3), Verdict::Higher));
}

#[test]
fn a_trend_counts_if_it_leads_up_to_the_turn() {
    let drifting = |window: &mut Window| window.classes[0].flags.push(flag(FlagKind::Drifting.text()));
    let mut run = Run::new();
    run.windows_with(&[100.0], drifting);
    run.windows(&[100.0; 3]);
    run.turn();
    run.windows(&[200.0; 5]);
    assert_eq!(run.last().scan_mb_per_s.verdict, Verdict::Higher, "it had ended before");
    run.windows_with(&[200.0], drifting);
    run.turn();
    run.windows(&[300.0; 5]);
    assert_eq!(
        (run.last().scan_mb_per_s.verdict, &run.last().flags[..]),
        (Verdict::None, &["scan drifting".to_owned()][..])
    );
}

#[test]
fn unclean_windows_and_stopped_classes_are_left_out() {
    let mut run = Run::new();
    run.windows(&[100.0; 3]);
    run.windows_with(&[1.0; 3], |window| window.paused = true);
    run.windows_with(&[1.0; 3], |window| window.warmup = true);
    run.turn();
    run.windows_with(&[0.0; 5], |window| {
        window.classes[0].state = ClassState::Off;
        window.cpu.coarse = true;
    });
    let line = run.last();
    assert_eq!(line.windows, (3, 5));
    assert_eq!((line.scan_mb_per_s.after, line.scan_mb_per_s.verdict), (None, Verdict::None));
    assert_eq!((line.cycles_per_byte.after, line.total_mb_per_s.verdict), (None, Verdict::Lower));
}

/// A window's commits: `count` of about this latency, with a tail of seven times it.
fn commits(window: &mut Window, count: u64, ns: u64) {
    let spread = |n: u64| ns * (90 + (n * 37 + window.index * 11) % 21) / 100;
    record(
        window,
        Class::Wal,
        (0..count).map(|n| spread(n) * if n % 60 == 59 { 7 } else { 1 }).collect::<Vec<_>>(),
    );
    window.classes[Class::Wal.index()].mb_per_s = count as f64 * 4096.0 / 1e6;
}

/// Turning `wal.sync` from `fdatasync` to `none`: no window before it has a p99 of its own.
#[test]
fn a_slow_wal_that_becomes_fast_is_a_clear_change() {
    let mut run = Run::new();
    run.windows_with(&[100.0; 10], |window| {
        commits(window, 560 + window.start_ns / SECOND_NS % 7, 1_750_000);
    });
    run.turn_of(Turn { knob: "wal.sync".into(), ..Turn::default() });
    let changed = run.windows_with(&[100.0; 5], |window| commits(window, 36_000, 27_000));
    let line = changed.last().unwrap();
    let verdicts = [&line.wal_mb_per_s, &line.wal_p50_ns, &line.wal_p99_ns].map(|change| change.verdict);
    assert_eq!(verdicts, [Verdict::Higher, Verdict::Lower, Verdict::Lower], "{line:#?}");
    let p99 = &line.wal_p99_ns;
    assert!(p99.before.unwrap() > 10e6 && p99.after.unwrap() < 0.3e6, "{p99:?}");
    assert!((1.7e6..1.8e6).contains(&line.wal_p50_ns.before.unwrap()));
    // And back.
    run.windows_with(&[100.0; 8], |window| commits(window, 36_000, 27_000));
    run.turn_of(Turn { knob: "wal.sync".into(), ..Turn::default() });
    let changed = run.windows_with(&[100.0; 5], |window| commits(window, 560, 1_750_000));
    let line = changed.last().unwrap();
    let verdicts = [&line.wal_mb_per_s, &line.wal_p50_ns, &line.wal_p99_ns].map(|change| change.verdict);
    assert_eq!(
        (verdicts, line.open),
        ([Verdict::Lower, Verdict::Higher, Verdict::Higher], false),
        "{line:#?}"
    );
}

/// A hundred commits a second need ten windows for a p99.
#[test]
fn a_line_takes_the_windows_that_a_p99_needs() {
    let mut run = Run::new();
    run.windows_with(&[100.0; 14], |window| commits(window, 100, 2_000_000));
    run.turn();
    let changed = run.windows_with(&[100.0; 12], |window| commits(window, 100, 9_000_000));
    assert_eq!((changed.len(), run.last().windows, run.last().open), (10, (10, 10), false));
    assert_eq!(
        (run.last().wal_p50_ns.verdict, run.last().wal_p99_ns.verdict),
        (Verdict::Higher, Verdict::Higher)
    );
    assert_eq!((changed[4].wal_p50_ns.verdict, changed[4].wal_p99_ns.after), (Verdict::Higher, None));
    // With too few commits for any p99, the line does not wait for one.
    run.turn();
    run.windows_with(&[100.0; 20], |window| commits(window, 20, 9_000_000));
    assert_eq!((run.last().windows.1, run.last().wal_p99_ns.after), (5, None));
}

#[test]
fn missed_starts_are_a_share_of_those_intended() {
    let mut run = Run::new();
    let intend = |missed: u64| {
        move |window: &mut Window| {
            (window.classes[1].intended, window.classes[1].missed) = (1000, missed);
        }
    };
    run.windows_with(&[100.0; 5], intend(0));
    run.turn();
    run.windows_with(&[100.0; 5], intend(250));
    let change = &run.last().missed_share;
    assert_eq!((change.before, change.after, change.verdict), (Some(0.0), Some(0.25), Verdict::Higher));
}

/// With another program beside the load, cycles get no verdict, but the other figures do.
#[test]
fn cycles_are_not_judged_beside_other_programs() {
    let cycles = |cycles: f64, others: bool| {
        move |window: &mut Window| {
            window.total.cycles_per_byte = Some(cycles);
            window.flags.extend(others.then(|| FlagKind::Others.with_cores(1.84, "")));
        }
    };
    for (before, after) in [(false, false), (true, false), (false, true)] {
        let mut run = Run::new();
        run.windows_with(&[100.0; 8], cycles(2.0, before));
        run.turn();
        run.windows_with(&[50.0; 5], cycles(4.0, after));
        let line = run.last();
        let (verdict, why) = (line.cycles_per_byte.verdict, line.cycles_not_judged());
        let judged = !before && !after;
        assert_eq!(verdict, if judged { Verdict::Higher } else { Verdict::None });
        assert_eq!(why.as_deref(), (!judged).then_some("not judged: others used 1.8 cores"));
        assert_eq!((line.cycles_per_byte.after, line.scan_mb_per_s.verdict), (Some(4.0), Verdict::Lower));
    }
}

#[test]
fn what_a_trace_has_of_the_windows_is_compared() {
    let mut run = Run::new();
    let traced = |kib: &'static [f64]| {
        move |window: &mut Window| {
            let kib = kib[(window.start_ns / SECOND_NS) as usize % kib.len()];
            window.traced.insert("write p50 KiB".into(), kib);
        }
    };
    run.windows_with(&[100.0; 5], traced(&[4.0, 4.25, 4.5]));
    run.turn();
    run.windows_with(&[100.0; 5], traced(&[16.0, 17.0, 18.0]));
    let line = run.last();
    let change = &line.metrics["write p50 KiB"];
    assert_eq!(
        (change.before, change.verdict),
        (Some((4.0 + 4.25 + 4.5 + 4.0 + 4.25) / 5.0), Verdict::Higher)
    );
}

#[test]
fn a_turn_that_lowers_wa_d_is_better_for_drives_by_model_alone() {
    for (source, outcome) in
        [(FlashSource::Model, TurnOutcome::Better), (FlashSource::Ocp, TurnOutcome::NoClearChange)]
    {
        let mut run = Run::new();
        let amplified = |by: u64| {
            move |window: &mut Window| {
                let written = &mut window.written;
                (written.host_bytes, written.flash_bytes) = (Some(1_000_000), Some(by * 1_000_000));
                (written.flash_unit_bytes, written.flash_source) = (Some(1), Some(source));
            }
        };
        run.windows_with(&[100.0; 10], amplified(6));
        run.turn();
        run.windows_with(&[100.0; 8], amplified(4));
        let line = run.last();
        assert_eq!(line.outcome(), outcome, "{line:?}");
        assert_eq!(
            line.metrics.get("WA-D").map(|change| change.after),
            match source {
                FlashSource::Model => Some(Some(4.0)),
                _ => None,
            }
        );
    }
}

#[path = "ledger_duel_tests.rs"]
mod duels;
