//! How often the ledger and duels call a turn that changes nothing a change, and find one that changes
//! something, on a loop device: a part of the soak.
//!
//! `TURNS=60/10/3`: turns of equal settings, duels of equal settings, planted changes of each kind.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stacktune::testing::host::Facts;
use stacktune::testing::meter::window::LedgerLine;
use stacktune::testing::runs::duel::{DuelRow, DuelSpec, Figure, Report, Verdict};
use stacktune::testing::runs::session::{Duel, Event, Options, Session};
use stacktune::testing::settings::Settings;
use stacktune::testing::settings::knobs::find;
use tempfile::TempDir;

use crate::adjust::Nobody;
use crate::common::devices::Loops;
use crate::common::program::Outcome;
use crate::common::{LEFT_TO_SOAK, remark, skip, this_test};

const AMOUNTS: &str = "TURNS";
const DEVICE: &str = "STACKTUNE_TEST_DEVICE";
const WINDOW: Duration = Duration::from_millis(250);
/// Windows from a line's end to the next turn, whose ten baseline windows thus include some of the line's.
const BETWEEN: usize = 6;
/// Restarts the classes like any other turn, but changes nothing that is measured.
const EQUAL: (&str, [&str; 2]) = ("run.slow_log", ["59s", "60s"]);
/// Planted changes, and the figure that they lower: the scan's depth halved, and its rate cut by a tenth.
const PLANTED: [(&str, [&str; 2], Figure); 2] =
    [("scan.depth", ["4", "2"], Figure::Scan), ("scan.rate", ["20MB/s", "18MB/s"], Figure::Scan)];
/// One in twenty may be called different; a rule that calls one in ten must be found out.
pub const ALLOWED: f64 = 0.05;
const FOUND_OUT: f64 = 0.1;

#[test]
fn equal_settings_are_seldom_called_different_and_planted_changes_are_found() {
    let name = "equal_settings_are_seldom_called_different_and_planted_changes_are_found";
    let Ok(amounts) = std::env::var(AMOUNTS) else { return skip(name, LEFT_TO_SOAK) };
    if let Ok(device) = std::env::var(DEVICE) {
        return on_device(&device, &amounts);
    }
    let Some(loops) = Loops::alone(name) else { return };
    let (home, device) = (TempDir::new().unwrap(), loops.blank(256));
    let mut command = this_test(module_path!(), name);
    command.env(DEVICE, &device.path).env("XDG_STATE_HOME", home.path());
    let ran = Outcome::of(&command.output().unwrap());
    println!("{}", ran.stdout);
    assert_eq!(ran.status, Some(0), "{ran:?}");
}

/// Runs in a process of its own, whose environment sets the place of the journals.
fn on_device(device: &str, amounts: &str) {
    let amounts: Vec<u64> = amounts.split('/').map(|amount| amount.parse().unwrap()).collect();
    let [turns, duels, planted] = amounts[..] else { panic!("TURNS=60/10/3, not {amounts:?}") };
    let mut run = Run::on(device);
    let (mut lines, mut fought) = (Share::default(), Share::default());
    for turn in 0..turns {
        let line = run.turn(EQUAL.0, EQUAL.1[(turn % 2) as usize]);
        lines.add(judged(&line), any_clear(&line));
        for (figure, change) in line.changes().into_iter().filter(|(_, change)| change.verdict.is_clear()) {
            println!("{} after {:?} windows: {change:?}", figure.name, line.windows);
        }
    }
    if turns > 0 {
        remark(&format!("equal turns called different: {lines}"));
    }
    for _ in 0..duels {
        let report = run.duel(EQUAL.0, EQUAL.1, Figure::Total);
        let clear = called(&report) || report.figures.iter().any(DuelRow::is_clear);
        fought.add(report.verdict != Verdict::NotJudged, clear);
    }
    if duels > 0 {
        remark(&format!("equal duels called different: {fought}"));
    }
    for (knob, [from, to], figure) in PLANTED.into_iter().filter(|_| planted > 0) {
        let (mut by_ledger, mut by_duel) = (Share::default(), Share::default());
        for _ in 0..planted {
            run.begin_with(knob, from);
            let line = run.turn(knob, to);
            by_ledger.add(judged(&line), line.scan_mb_per_s.verdict.is_clear());
            let report = run.duel(knob, [from, to], figure.clone());
            println!(
                "{knob}: {:?} by the ledger, {:?} by the duel after {} pairs",
                line.scan_mb_per_s,
                report.verdict,
                report.pairs.len()
            );
            by_duel.add(report.verdict != Verdict::NotJudged, report.verdict == Verdict::First);
        }
        let of = |share: &Share| format!("{} of {}", share.called, share.judged);
        let (found, by_ledger) = (of(&by_duel), of(&by_ledger));
        remark(&format!("{knob} {from} → {to} found by duels {found}, by the ledger {by_ledger}"));
        assert!(by_duel.called * 2 > planted, "{knob}: found by duels {found}");
        run.begin_with(knob, if knob == "scan.rate" { "none" } else { from });
    }
    run.session.dismantle(false, &mut |_| true).unwrap();
    for (what, share) in [("turns", &lines), ("duels", &fought)] {
        if share.is_above(ALLOWED) {
            remark(&format!("more equal {what} than one in twenty were called different: {share}"));
        }
    }
    for share in [&lines, &fought] {
        let most = called_most(share.judged);
        assert!(share.called <= most, "{share}: {most} may be");
    }
}

/// The most that may be called different. One more fails the test, which more often than not happens to a
/// rule that calls one in ten. A single one proves nothing.
pub fn called_most(judged: u64) -> u64 {
    let most = (0..judged).take_while(|called| at_most(*called, judged, FOUND_OUT) < 0.5).last();
    most.unwrap_or(0).max(1)
}

/// How many of those judged were called different.
#[derive(Default)]
pub struct Share {
    pub called: u64,
    pub judged: u64,
    not_judged: u64,
}

impl Share {
    pub fn add(&mut self, judged: bool, called: bool) {
        if judged {
            self.judged += 1;
            self.called += u64::from(called);
        } else {
            self.not_judged += 1;
        }
    }

    pub fn is_above(&self, share: f64) -> bool {
        self.called as f64 > share * self.judged as f64
    }

    /// 95%, by Clopper and Pearson 1934.
    fn interval(&self) -> (f64, f64) {
        let (called, all) = (self.called, self.judged);
        let low = if called == 0 { 0.0 } else { root(|p| 1.0 - at_most(called - 1, all, p), 0.025) };
        let high = if called == all { 1.0 } else { root(|p| -at_most(called, all, p), -0.025) };
        (low, high)
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self { called, judged, not_judged } = self;
        let (low, high) = self.interval();
        let share = *called as f64 / (*judged).max(1) as f64 * 100.0;
        let bounds = format!("{:.1} to {:.1}% by Clopper-Pearson", low * 100.0, high * 100.0);
        write!(f, "{called} of {judged}, {share:.1}% (95%: {bounds})")?;
        if *not_judged > 0 { write!(f, ", {not_judged} not judged") } else { Ok(()) }
    }
}

/// The probability that at most this many of `all` occur, each with probability `p`.
fn at_most(called: u64, all: u64, p: f64) -> f64 {
    let term = |k: u64| {
        let ways: f64 = (0..k).map(|i| ((all - i) as f64 / (k - i) as f64).ln()).sum();
        (ways + k as f64 * p.ln() + (all - k) as f64 * (1.0 - p).ln()).exp()
    };
    (0..=called).map(term).sum()
}

/// Where a function rising from 0 to 1 reaches a value.
fn root(of: impl Fn(f64) -> f64, value: f64) -> f64 {
    let (mut low, mut high) = (1e-12, 1.0 - 1e-12);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        *(if of(middle) < value { &mut low } else { &mut high }) = middle;
    }
    f64::midpoint(low, high)
}

#[test]
fn the_interval_of_a_share_is_that_of_clopper_and_pearson() {
    // Values from R's binom.test.
    for (called, judged, low, high) in
        [(0, 10, 0.0, 0.308_497), (3, 60, 0.010_424, 0.139_250), (10, 10, 0.691_503, 1.0)]
    {
        let found = Share { called, judged, not_judged: 0 }.interval();
        assert!((found.0 - low).abs() < 1e-4 && (found.1 - high).abs() < 1e-4, "{called}: {found:?}");
    }
}

#[test]
fn a_rule_that_calls_one_in_ten_is_found_out_more_often_than_not_and_one_in_fifty_hardly_ever() {
    for (judged, most) in [(60, 5), (51, 4), (40, 3), (10, 1), (1, 1), (0, 1)] {
        assert_eq!(called_most(judged), most, "of {judged}");
    }
    for judged in 20..300 {
        let fails = |share: f64| 1.0 - at_most(called_most(judged), judged, share);
        assert!(fails(0.1) > 0.5 && fails(0.02) < 0.1, "{judged}: {} {}", fails(0.1), fails(0.02));
    }
    let share = |called, judged| Share { called, judged, not_judged: 0 };
    assert!(share(4, 60).is_above(ALLOWED) && !share(3, 60).is_above(ALLOWED));
}

/// A run with knobs to turn.
struct Run {
    session: Session,
    settings: Settings,
    lines: u64,
    seed: u64,
}

impl Run {
    fn on(device: &str) -> Self {
        let mut settings = Settings::default();
        settings.target.devices = vec![device.to_owned()];
        settings.run.window = WINDOW;
        let rates = [None, Some(2_000_000), Some(1_000_000), Some(1_000_000)];
        for (class, rate) in settings.classes.iter_mut().zip(rates) {
            (class.rate_bytes_per_s, class.depth) = (rate, 4);
        }
        settings.run.slow_log = Duration::from_mins(1);
        let options = Options { destroy: vec![device.to_owned()], ..Options::default() };
        let facts = Arc::new(Facts::read(Path::new("/")));
        let mut session = Session::open(settings.clone(), options, facts, &mut Nobody).unwrap();
        session.start().unwrap();
        let mut run = Self { session, settings, lines: 0, seed: 1 };
        run.wait(4 * BETWEEN);
        run
    }

    /// Continues until `watch` returns false.
    fn watch(&mut self, mut watch: impl FnMut(&mut Session, &Event) -> bool) {
        loop {
            let left = self.session.next_ns().saturating_sub(self.session.now_ns());
            let look = if self.session.is_settling() { 2_000_000 } else { 50_000_000 };
            std::thread::sleep(Duration::from_nanos(left.min(look)));
            self.session.tick().unwrap();
            assert_eq!(self.session.failure(), None);
            let events: Vec<Event> = self.session.events().collect();
            for event in &events {
                if let Event::Ledger(line) = event {
                    self.lines = self.lines.max(line.number);
                }
                if !watch(&mut self.session, event) {
                    return;
                }
            }
        }
    }

    fn wait(&mut self, mut windows: usize) {
        self.watch(|_, event| {
            windows -= usize::from(matches!(event, Event::Window(..)));
            windows > 0
        });
    }

    /// Gives a knob this value, which it may have already, and waits for some windows.
    fn begin_with(&mut self, knob: &str, value: &str) {
        let value = self.set(knob, value);
        self.session.turn(knob, &value);
        self.wait(4 * BETWEEN);
    }

    /// Turns a knob to another value; returns the ledger line once it is closed, after some more windows.
    fn turn(&mut self, knob: &str, value: &str) -> LedgerLine {
        let number = self.lines + 1;
        let value = self.set(knob, value);
        self.session.turn(knob, &value);
        let mut closed = LedgerLine::default();
        self.watch(|_, event| match event {
            Event::Turned { outcome: Err(why), .. } => panic!("{knob}: {why}"),
            Event::Ledger(line) if line.number == number && !line.open => {
                closed = (**line).clone();
                false
            }
            _ => true,
        });
        self.wait(BETWEEN);
        closed
    }

    fn set(&mut self, knob: &str, value: &str) -> stacktune::testing::settings::knobs::Value {
        let knob = find(knob).unwrap();
        let value = knob.parse(value).unwrap();
        knob.set(&mut self.settings, value.clone());
        value
    }

    fn duel(&mut self, knob: &str, values: [&str; 2], figure: Figure) -> Report {
        self.seed += 1;
        let spec = DuelSpec {
            knob: knob.to_owned(),
            values: values.map(str::to_owned),
            figure,
            margin: 0.05,
            seed: self.seed,
        };
        self.begin_with(knob, values[0]);
        let mut duel = Duel::new(spec, &self.settings).unwrap();
        self.watch(|session, event| duel.watch(session, event).unwrap());
        self.begin_with(knob, values[0]);
        duel.report()
    }
}

fn called(report: &Report) -> bool {
    matches!(report.verdict, Verdict::First | Verdict::Second | Verdict::LessDurable)
}

/// Whether any figure of the line was judged.
fn judged(line: &LedgerLine) -> bool {
    line.changes().into_iter().any(|(_, change)| change.interval.is_some())
}

fn any_clear(line: &LedgerLine) -> bool {
    line.changes().into_iter().any(|(_, change)| change.verdict.is_clear())
}
