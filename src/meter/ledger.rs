//! The ledger: what each turn of a knob did, as windows before against windows after.
//!
//! Compared are clean windows past their settling time: before, the last ten of the former setting;
//! after, the first five of the new one. A verdict needs three on each side, ranges that do not
//! overlap, and no flag that forbids it.
//!
//! A turn that comes before its predecessor can be judged overtakes it: the windows before the first
//! such turn are then compared with those after the last, and the last one's line says so.

use std::collections::{BTreeMap, VecDeque};

use super::flag::{FlagKind, stem};
use super::window::{Change, Flag, Latency, LedgerLine, State, Verdict, Window};
use crate::class::Class;

/// The most windows before a turn that count.
const BEFORE_WINDOWS: usize = 10;
/// With so many windows after it a line is closed.
const AFTER_WINDOWS: usize = 5;
/// The fewest windows on each side for a verdict.
const VERDICT_WINDOWS: usize = 3;

/// A turn of a knob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// When, on the run's clock.
    pub at_ns: u64,
    /// The knob's path.
    pub knob: String,
    /// Its value before.
    pub from: String,
    /// Its value after.
    pub to: String,
    /// Whether it takes the last turn back.
    pub undo: bool,
    /// What the setting survives before and after it.
    pub survives: (Survival, Survival),
}

/// What a setting survives; of each part more is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survival {
    /// How durable commits are by the WAL's own setting.
    pub commits: u8,
    /// Whether commits survive a power cut.
    pub power_cut: PowerCut,
    /// Drives that may be lost without losing data, whichever they are.
    pub drives_lost: u64,
}

/// Whether commits survive a power cut; the later the better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PowerCut {
    /// They do not.
    No,
    /// Nobody knows.
    #[default]
    Unknown,
    /// They do.
    Yes,
}

impl Survival {
    /// What is survived no longer than before, in words; commits apart, which have a mark of their own.
    fn less_than(self, before: Self) -> Vec<String> {
        let word = |cut| match cut {
            PowerCut::No => "no",
            PowerCut::Unknown => "unknown",
            PowerCut::Yes => "yes",
        };
        let mut less = Vec::new();
        // Commits that are not flushed are lost with the power: that is one thing, not two.
        if self.power_cut < before.power_cut && self.commits >= before.commits {
            let (from, to) = (word(before.power_cut), word(self.power_cut));
            less.push(FlagKind::Survives.text_with(format_args!("a power cut: {from} → {to}")));
        }
        if self.drives_lost < before.drives_lost {
            let (from, to) = (before.drives_lost, self.drives_lost);
            less.push(FlagKind::Survives.text_with(format_args!("the loss of drives: {from} → {to}")));
        }
        less
    }
}

/// The lines so far, and the windows that the next one is compared with.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    lines: Vec<LedgerLine>,
    /// Steady windows since the last turn.
    steady: VecDeque<Sample>,
    /// What the last line still gathers.
    open: Option<Open>,
    turned_at_ns: u64,
}

/// A line that is gathering windows.
#[derive(Debug, Clone)]
struct Open {
    began: Beginning,
    before: Vec<Sample>,
    after: Vec<Sample>,
}

/// The setting that a line's windows before were measured under: that before its turn, or before the
/// first of several that came too quickly to be judged one by one.
#[derive(Debug, Clone)]
struct Beginning {
    /// The number of that turn.
    number: u64,
    /// The only knob that was turned since, and its value then; none where it were several knobs.
    knob: Option<(String, String)>,
    survives: Survival,
}

/// What a line needs of a window.
#[derive(Debug, Clone, Default)]
struct Sample {
    figures: [Option<f64>; 5],
    forbidding: Vec<String>,
    drifting: Vec<String>,
    /// What is worth knowing and forbids nothing.
    noted: Vec<String>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a line for a turn; the last one is closed with what it has. Returns the lines that
    /// changed, the new one last.
    pub fn turn(&mut self, turn: Turn) -> Vec<LedgerLine> {
        let number = self.lines.len() as u64 + 1;
        let steady: Vec<_> = self.steady.drain(..).collect();
        let (overtaken, judged): (Option<Open>, _) = match self.open.take() {
            Some(open) if open.is_early() && !open.before.is_empty() => (Some(open), None),
            judged => (None, judged),
        };
        let closed = match &overtaken {
            Some(_) => self.close_with(Some(FlagKind::Overtaken.text_with(number))),
            None => judged
                .and_then(|open| self.close_with(open.is_early().then(|| FlagKind::TooShort.text().into()))),
        };
        let own = Beginning {
            number,
            knob: Some((turn.knob.clone(), turn.from.clone())),
            survives: turn.survives.0,
        };
        let open = match overtaken {
            Some(open) => Open { began: open.began.and(own), before: open.before, after: Vec::new() },
            None if steady.len() < VERDICT_WINDOWS => Open { began: own, before: vec![], after: vec![] },
            None => Open { began: own, before: steady, after: Vec::new() },
        };
        self.turned_at_ns = turn.at_ns;
        let mut line = LedgerLine {
            number,
            at_ns: turn.at_ns,
            from: open.began.knob.as_ref().map_or(turn.from, |(_, from)| from.clone()),
            knob: turn.knob,
            to: turn.to,
            undo: turn.undo,
            less_durable: turn.survives.1.commits < open.began.survives.commits,
            survives_less: turn.survives.1.less_than(open.began.survives),
            open: true,
            ..LedgerLine::default()
        };
        compare(&mut line, &open);
        self.open = Some(open);
        self.lines.push(line.clone());
        closed.into_iter().chain([line]).collect()
    }

    /// Takes a window; returns the lines that changed.
    pub fn window(&mut self, window: &Window) -> Vec<LedgerLine> {
        let settled = !window.flags.iter().any(|flag| flag.is(FlagKind::Settling));
        if !window.is_clean() || !settled || window.start_ns < self.turned_at_ns {
            return Vec::new();
        }
        let sample = Sample::of(window);
        if self.steady.len() == BEFORE_WINDOWS {
            self.steady.pop_front();
        }
        self.steady.push_back(sample.clone());
        let (Some(open), Some(line)) = (&mut self.open, self.lines.last_mut()) else {
            return Vec::new();
        };
        open.after.push(sample);
        compare(line, open);
        line.open = open.after.len() < AFTER_WINDOWS;
        if !line.open {
            self.open = None;
        }
        vec![line.clone()]
    }

    /// Closes the open line, as at the end of a run. Returns it where there was one.
    pub fn close(&mut self) -> Option<LedgerLine> {
        let open = self.open.take()?;
        self.close_with(open.is_early().then(|| FlagKind::TooShort.text().into()))
    }

    /// All lines, in order.
    pub fn lines(&self) -> &[LedgerLine] {
        &self.lines
    }

    fn close_with(&mut self, flag: Option<String>) -> Option<LedgerLine> {
        let line = self.lines.last_mut()?;
        line.open = false;
        line.flags.extend(flag);
        Some(line.clone())
    }
}

impl Open {
    /// Whether too few windows have come for a verdict.
    fn is_early(&self) -> bool {
        self.after.len() < VERDICT_WINDOWS
    }
}

impl Beginning {
    /// The beginning of both, where `next` follows at once.
    fn and(self, next: Self) -> Self {
        let one = self.knob.zip(next.knob).filter(|((knob, _), (next, _))| knob == next);
        Self { knob: one.map(|(first, _)| first), ..self }
    }
}

impl Sample {
    fn of(window: &Window) -> Self {
        let running =
            |class: Class| Some(window.class(class)).filter(|figures| figures.state == State::Running);
        let p99 = |class: Class| {
            let latency: Option<&Latency> = running(class)?.latencies.service_ns.as_ref();
            latency?.p99.map(|ns| ns as f64)
        };
        let mut sample = Self::default();
        let of_classes = Class::ALL
            .into_iter()
            .flat_map(|class| window.class(class).flags.iter().map(move |flag| (Some(class), flag)));
        for (class, flag) in window.flags.iter().map(|flag| (None, flag)).chain(of_classes) {
            let text = class.map_or(flag.text.clone(), |class| format!("{class} {}", flag.text));
            match flag {
                _ if flag.is(FlagKind::Drifting) => sample.drifting.push(text),
                Flag { forbids_verdict: true, .. } => sample.forbidding.push(text),
                Flag { forbids_verdict: false, .. } => sample.noted.push(text),
            }
        }
        let failed = Class::ALL.into_iter().filter(|class| window.class(*class).errors > 0);
        sample.noted.extend(failed.map(|class| format!("{class} {}", FlagKind::Errors.text())));
        sample.figures = [
            running(Class::Scan).map(|scan| scan.mb_per_s),
            p99(Class::Point),
            p99(Class::Wal),
            Some(window.total.mb_per_s),
            window.total.cycles_per_byte.filter(|_| !window.cpu.coarse),
        ];
        sample
    }
}

/// Fills in all that a line says of the windows on both sides.
fn compare(line: &mut LedgerLine, open: &Open) {
    let Open { began, before, after } = open;
    let both = || before.iter().chain(after);
    // A trend matters where it leads up to the turn, or goes on at the end.
    let ends = [before.last(), after.last()].into_iter().flatten();
    let drifting = ends.flat_map(|sample| &sample.drifting);
    line.windows = (before.len() as u64, after.len() as u64);
    line.flags = once(both().flat_map(|sample| &sample.forbidding).chain(drifting));
    let judged = line.flags.is_empty();
    line.flags.extend(once(both().flat_map(|sample| &sample.noted)));
    if began.number < line.number {
        line.flags
            .push(FlagKind::Together.text_with(format_args!("{}–{} together", began.number, line.number)));
    }
    if line.less_durable {
        line.flags.push(FlagKind::LessDurable.text().into());
    }
    line.flags.extend(line.survives_less.iter().cloned());
    let changes = [
        &mut line.scan_mb_per_s,
        &mut line.point_p99_ns,
        &mut line.wal_p99_ns,
        &mut line.total_mb_per_s,
        &mut line.cycles_per_byte,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let values =
            |samples: &[Sample]| samples.iter().filter_map(|sample| sample.figures[at]).collect::<Vec<_>>();
        *change = changed(&values(before), &values(after), judged);
    }
}

/// Each stem of a flag once, in the words of the last window that had it.
fn once<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let by_kind: BTreeMap<_, _> = texts.map(|text| (stem(text), text)).collect();
    by_kind.into_values().cloned().collect()
}

fn changed(before: &[f64], after: &[f64], judged: bool) -> Change {
    let mean =
        |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let range = |values: &[f64]| {
        values.iter().copied().map(|value| (value, value)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    };
    let enough = before.len().min(after.len()) >= VERDICT_WINDOWS;
    let verdict = match (range(before), range(after)) {
        (Some(before), Some(after)) if enough && judged => {
            if after.0 > before.1 {
                Verdict::Higher
            } else if after.1 < before.0 {
                Verdict::Lower
            } else {
                Verdict::NoClearChange
            }
        }
        _ => Verdict::None,
    };
    Change {
        before: mean(before),
        before_range: range(before),
        after: mean(after),
        after_range: range(after),
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SECOND_NS;

    struct Run {
        ledger: Ledger,
        second: u64,
    }

    impl Run {
        fn new() -> Self {
            Self { ledger: Ledger::new(), second: 0 }
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
                window.classes[1].latencies.service_ns =
                    Some(Latency { p99: Some(90_000), ..Latency::default() });
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

        /// A turn from and to these values.
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
            self.ledger.lines().last().unwrap()
        }
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
        run.windows(&[90.0, 91.0, 92.0]);
        assert_eq!(run.last().scan_mb_per_s.verdict, Verdict::Lower);
        assert!(!run.ledger.lines()[0].open);
        assert_eq!(run.last().windows, (3, 3));
    }

    #[test]
    fn quick_turns_of_one_knob_are_judged_from_the_first_value_to_the_last() {
        let mut run = Run::new();
        run.windows(&[100.0; 5]);
        run.turn_from("128", "64");
        run.windows(&[200.0; 2]);
        let changed = run.turn_from("64", "32");
        assert_eq!(changed.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            (changed[0].open, &changed[0].flags[..]),
            (false, &["overtaken by turn 2".to_owned()][..])
        );
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
        // The next one has windows of its own before it.
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
    fn a_quick_undo_is_judged_as_no_turn_at_all() {
        let mut run = Run::new();
        run.windows(&[100.0, 102.0, 101.0]);
        run.turn_from("128", "64");
        let knob = "scan.depth".into();
        run.turn_of(Turn { knob, from: "64".into(), to: "128".into(), undo: true, ..Turn::default() });
        run.windows(&[101.0; 3]);
        let line = run.last();
        assert_eq!((line.from.as_str(), line.to.as_str(), line.undo), ("128", "128", true));
        assert_eq!(line.scan_mb_per_s.verdict, Verdict::NoClearChange);
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
    fn durability_is_that_before_the_first_and_after_the_last_of_quick_turns() {
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
        run.windows(&[100.0; 5]);
        assert!(!run.turn_of(of((1, 1)))[0].less_durable);
    }

    #[test]
    fn a_turn_after_which_less_is_survived_says_so() {
        let of = |power_cut, drives_lost| Survival { commits: 1, power_cut, drives_lost };
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
        assert_eq!(unflushed.less_than(mirror), [""; 0], "less durable says it all");
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
        assert_eq!(
            (line.from.as_str(), line.windows, line.scan_mb_per_s.verdict),
            ("64", (0, 5), Verdict::None)
        );
        run.turn();
        assert_eq!(run.ledger.close().unwrap().flags, [FlagKind::TooShort.text()]);
        assert!(run.ledger.close().is_none());
    }

    #[test]
    fn a_flag_on_either_side_forbids_every_verdict_and_is_named_once() {
        let mut run = Run::new();
        run.windows(&[100.0; 3]);
        run.turn();
        run.windows_with(&[200.0], |window| window.classes[0].flags.push(flag("cache 40%")));
        run.windows_with(&[200.0], |window| window.classes[0].flags.push(flag("cache 50%")));
        run.windows_with(&[200.0], |window| window.flags.push(flag("steal 9%")));
        assert_eq!(run.last().flags, ["scan cache 50%", "steal 9%"]);
        assert_eq!(run.last().scan_mb_per_s.verdict, Verdict::None);
        assert_eq!(run.last().scan_mb_per_s.after, Some(200.0), "the figures are still told");
    }

    #[test]
    fn what_is_only_worth_knowing_is_named_and_leaves_the_verdict() {
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
    fn a_trend_counts_where_it_leads_up_to_the_turn() {
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
    fn unclean_windows_and_classes_that_do_not_run_are_left_out() {
        let mut run = Run::new();
        run.windows(&[100.0; 3]);
        run.windows_with(&[1.0; 3], |window| window.paused = true);
        run.windows_with(&[1.0; 3], |window| window.warmup = true);
        run.turn();
        run.windows_with(&[0.0; 5], |window| {
            window.classes[0].state = State::Off;
            window.cpu.coarse = true;
        });
        let line = run.last();
        assert_eq!(line.windows, (3, 5));
        assert_eq!((line.scan_mb_per_s.after, line.scan_mb_per_s.verdict), (None, Verdict::None));
        assert_eq!((line.cycles_per_byte.after, line.total_mb_per_s.verdict), (None, Verdict::Lower));
    }
}
