//! How often equal settings, and different ones, differ clearly, on synthetic series of a figure's windows:
//! white, autocorrelated, with spikes, drift and jumps.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

/// The windows of a turn, as the ledger takes them: before it, in between, and after it.
const TURNS: [(usize, usize, usize); 5] = [(5, 3, 3), (10, 3, 5), (30, 3, 5), (60, 3, 5), (60, 3, 20)];
const COUNTED: usize = 10;
const FIGURES: u64 = 11;

/// Whether tests run all series, as in the soak.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("SOAK").is_some()
}

/// How many of these series a test runs: all in the soak (`SOAK=1`), otherwise a quarter. Their seeds are fixed.
pub(crate) fn series(all: u64) -> u64 {
    if is_whole() { all } else { all / 4 }
}

/// Asserts that the help states what was measured.
pub(crate) fn assert_in_help(words: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/help/figures.md");
    let help = std::fs::read_to_string(path).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains(words), "{path} does not say: {words}");
}

/// The same for what only the full set of series shows.
pub(crate) fn assert_in_help_if_whole(words: &str) {
    println!("the help says: {words}");
    if is_whole() {
        assert_in_help(words);
    }
}

fn turn(gap: usize) -> Together {
    Together { figures: FIGURES as usize, gap, change_min: TURN_CHANGE_MIN }
}

/// How many of these lines, of equal settings or with the first figure changed by `factor`, have a clear change.
fn clear_lines(lines: u64, (before, gap, after): (usize, usize, usize), kind: Kind, factor: f64) -> u64 {
    let figures = if factor <= 1.0 { FIGURES } else { 1 };
    let is_clear = |line: u64| {
        (0..figures).any(|figure| {
            let mut series = Series::new(kind, line * FIGURES + figure);
            let first = series.take(100.0, before);
            series.take(100.0, gap);
            let second = series.take(100.0 * factor, after);
            let first = Side { windows: &first, counted: COUNTED.min(before) };
            estimate(first, Side::of(&second), turn(gap)).unwrap().is_clear
        })
    };
    (0..lines).filter(|line| is_clear(*line)).count() as u64
}

#[test]
fn what_is_clear_agrees_with_the_sides_as_wholes_and_its_interval_holds_their_change() {
    let clear = Estimate { change: -0.36, low: -0.38, high: -0.35, is_clear: true, judged: 0.3 };
    let of = |before: f64, after: f64| {
        let of = clear.of_wholes((before, after), turn(3));
        (of.verdict(), (of.low * 1000.0).round(), (of.high * 1000.0).round())
    };
    assert_eq!(of(100.0, 64.0), (Verdict::Lower, -380.0, -350.0));
    assert_eq!(of(100.0, 90.0), (Verdict::Lower, -380.0, -100.0));
    assert_eq!(
        of(100.0, 99.9),
        (Verdict::NoClearChange, -380.0, -1.0),
        "most windows say one thing, all I/Os another"
    );
    assert_eq!(of(100.0, 120.0), (Verdict::NoClearChange, -380.0, 200.0));
    assert_eq!(of(100.0, 0.0), (Verdict::Lower, -1000.0, -350.0));
    assert_eq!(of(0.0, 1.0), (Verdict::NoClearChange, -380.0, -350.0), "the opposite, and no share");
}

#[test]
fn a_hiccup_brings_no_change_beyond_what_the_level_wanders_by_itself() {
    let before = [99.0, 100.0, 101.0, 100.0, 99.0, 101.0, 100.0, 100.0, 99.0, 101.0];
    let after = [92.0, 92.0, 92.0, 92.0, 0.0];
    let clear = estimate(Side::of(&before), Side::of(&after), turn(3)).unwrap();
    let clear = Estimate { is_clear: true, ..clear }.of_wholes((100.0, 73.6), turn(3));
    assert_eq!(clear.verdict(), Verdict::Lower);
    assert_eq!(clear.beyond(0.25).verdict(), Verdict::NoClearChange, "four windows of five went down by 8%");
    assert_eq!(clear.beyond(0.1).verdict(), Verdict::Lower);
}

/// The figures are independent of each other here, which is the worst case.
#[test]
fn turns_that_do_nothing_are_clear_in_one_line_of_twenty_at_most() {
    let (mut all, mut worst, lines) = ((0, 0), 0, series(500));
    for kind in KINDS {
        let clear = TURNS.map(|turn| clear_lines(lines, turn, kind, 1.0));
        println!("{:<17} {clear:?} of {lines} lines each", kind.name);
        all = (all.0 + clear.iter().sum::<u64>(), all.1 + lines * TURNS.len() as u64);
        assert!(clear.iter().sum::<u64>() * 4 <= lines, "{}: {clear:?}", kind.name);
        worst = clear.into_iter().fold(worst, u64::max);
        // With few windows before a turn that are much alike, it is more than one in twenty: the help says so.
        assert!(clear.iter().all(|clear| clear * 12 <= lines), "{}: {clear:?}", kind.name);
    }
    println!("all: {} of {}", all.0, all.1);
    assert!(all.0 * 40 <= all.1, "{all:?}: more than one in forty");
    assert_in_help_if_whole(&format!("spikes and autocorrelation, it was one in {};", all.1 / all.0));
    assert_in_help_if_whole(&format!("it was {worst} of {lines}."));
}

/// Two recordings of equal settings: the windows of each, those in between, and the number of such pairs.
const RECORDINGS: [(usize, usize, u64); 3] = [(30, 10, 160), (60, 20, 160), (300, 60, 60)];

/// Each pair compares twenty figures together, independent of each other, which is the worst case.
fn clear_pairs(kind: Kind, (windows, between, pairs): (usize, usize, u64)) -> u64 {
    const TOGETHER: u64 = 20;
    let together = Together { figures: TOGETHER as usize, gap: 60, change_min: RECORDING_CHANGE_MIN };
    let differs = |pair: &u64| {
        (0..TOGETHER).any(|figure| {
            let mut series = Series::new(kind, pair * TOGETHER + figure);
            let first = series.take(100.0, windows);
            series.take(100.0, between);
            let second = series.take(100.0, windows);
            estimate(Side::of(&first), Side::of(&second), together).unwrap().is_clear
        })
    };
    (0..series(pairs)).filter(differs).count() as u64
}

#[test]
fn recordings_of_equal_settings_differ_clearly_in_one_of_twenty_at_most() {
    let pairs = RECORDINGS.map(|(.., pairs)| series(pairs));
    let (mut all, mut of_each) = (0, 0);
    for kind in KINDS {
        let clear = RECORDINGS.map(|recordings| clear_pairs(kind, recordings));
        println!("{:<17} {clear:?} of {pairs:?} pairs of recordings", kind.name);
        let sum = clear.iter().sum::<u64>();
        assert!(sum * 20 <= pairs.iter().sum::<u64>(), "{}: {clear:?} of {pairs:?}", kind.name);
        // A level that jumps between two recordings looks like a setting, all the more if little else varies.
        if kind.jumps > 0.0 {
            of_each = clear[2];
            assert!(clear[2] * 5 <= pairs[2], "{clear:?}");
        } else {
            assert!(
                clear.iter().zip(pairs).all(|(clear, pairs)| clear * 10 <= pairs),
                "{}: {clear:?}",
                kind.name
            );
        }
        all += sum;
    }
    let lines = pairs.iter().sum::<u64>() * KINDS.len() as u64;
    println!("all: {all} of {lines}");
    assert!(all * 40 <= lines, "{all} of {lines}");
    assert_in_help_if_whole(&format!("{all} of {lines} pairs of recordings had a clear change"));
    assert_in_help_if_whole(&format!("{of_each} of {} pairs of five-minute recordings", pairs[2]));
}

/// What the ledger can detect: its own power, which equals a duel's only where the windows are quiet.
#[test]
fn large_changes_of_quiet_figures_are_clear() {
    let found = |kind, factor| clear_lines(200, (30, 3, 5), kind, factor) / 2;
    let of_kinds = KINDS.map(|kind| [1.05, 1.1, 1.2, 1.5].map(|factor| found(kind, factor)));
    for (Kind { name, .. }, found) in KINDS.iter().zip(of_kinds) {
        println!("{name:<17} 5, 10, 20, 50%: {found:?}% of lines");
    }
    assert!(of_kinds[0][0] >= 95 && of_kinds[1][2] >= 95 && of_kinds[4][3] >= 75);
    let ([quiet, ..], [five, ten, twenty, fifty]) = (of_kinds[0], of_kinds[3]);
    assert_in_help(&format!("On quiet series, a change of 5% is found in {quiet} of 100 turns"));
    assert_in_help(&format!(
        "changes of 5, 10, 20 or 50% are found in {five}, {ten}, {twenty} and {fifty} of 100"
    ));
}

#[test]
fn a_hiccup_neither_makes_a_change_nor_hides_one() {
    let steady: Vec<f64> = (0..10).map(|window| 100.0 + f64::from(window % 3)).collect();
    let mut hiccup = steady.clone();
    hiccup[4] = 40.0;
    let of = |before: &[f64], after: &[f64]| estimate(Side::of(before), Side::of(after), turn(3)).unwrap();
    assert!(!of(&steady, &hiccup).is_clear && !of(&steady, &hiccup[2..7]).is_clear);
    let faster: Vec<f64> = steady.iter().map(|value| value * 1.2).collect();
    assert!(of(&steady, &faster).is_clear && of(&steady, &faster[..5]).is_clear);
    let estimate = of(&steady, &faster);
    assert!((estimate.change - 0.2).abs() < 1e-9);
    assert!(estimate.low > 0.1 && estimate.low < 0.2 && estimate.high < 0.3);
}

#[test]
fn a_stall_is_a_clear_change_and_small_ones_are_not() {
    let of = |before: &[f64], after: &[f64]| estimate(Side::of(before), Side::of(after), turn(3));
    let stalled = of(&[100.0, 101.0, 99.0, 100.0], &[0.0; 4]).unwrap();
    assert!(stalled.is_clear && stalled.change < -0.99);
    assert!(!of(&[100.0; 5], &[102.0; 5]).unwrap().is_clear, "2%");
    assert!(of(&[100.0; 5], &[104.0; 5]).unwrap().is_clear);
    assert_eq!(of(&[0.0; 5], &[0.0; 5]), None);
    assert_eq!(of(&[1.0; 2], &[1.0; 5]), None);
}

/// How a figure varies while nobody turns anything, in shares of its level; a window is a second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The noise: its correlation with the window before, and its standard deviation.
    pub(crate) correlation: f64,
    pub(crate) deviation: f64,
    /// The standard deviation of a step of the random walk.
    pub(crate) walk: f64,
    /// How often a hiccup begins that takes up to 30%, and half as much in each later window.
    pub(crate) spikes: f64,
    /// How often the level jumps by 10%.
    pub(crate) jumps: f64,
    /// By how much a tenth of the windows lie above the others on average (of the logarithm), as with percentiles.
    pub(crate) tail: f64,
    /// The period, in windows, of something that takes 40%, such as a compaction or a checkpoint.
    pub(crate) period: usize,
}

/// No variation at all.
const NONE: Kind = Kind {
    name: "",
    correlation: 0.0,
    deviation: 0.0,
    walk: 0.0,
    spikes: 0.0,
    jumps: 0.0,
    tail: 0.0,
    period: 0,
};

/// The kinds that the rules are measured with.
pub(crate) const KINDS: [Kind; 8] = [
    Kind { name: "quiet", deviation: 0.01, ..NONE },
    Kind { name: "noisy", deviation: 0.04, ..NONE },
    Kind { name: "correlated", correlation: 0.7, deviation: 0.04, ..NONE },
    Kind { name: "drift and spikes", correlation: 0.7, deviation: 0.04, walk: 0.004, spikes: 0.03, ..NONE },
    Kind {
        name: "jumps too",
        correlation: 0.7,
        deviation: 0.04,
        walk: 0.004,
        spikes: 0.03,
        jumps: 0.002,
        ..NONE
    },
    Kind { name: "tail", correlation: 0.2, deviation: 0.15, tail: 0.5, ..NONE },
    Kind { name: "periodic", correlation: 0.3, deviation: 0.02, period: 7, ..NONE },
    Kind { name: "drift", deviation: 0.002, walk: 0.003, ..NONE },
];

/// A series of one kind; the same seed always gives the same series.
pub(crate) struct Series {
    kind: Kind,
    random: SmallRng,
    window: usize,
    correlated: f64,
    walked: f64,
    spike: f64,
    jumped: f64,
}

impl Series {
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let window = random.random_range(0..1000);
        let correlated = kind.deviation * normal(&mut random);
        Self { kind, random, window, correlated, walked: 0.0, spike: 0.0, jumped: 0.0 }
    }

    /// The next window of a setting with this level.
    pub(crate) fn next(&mut self, level: f64) -> f64 {
        let Kind { correlation, deviation, walk, spikes, jumps, tail, period, .. } = self.kind;
        let random = &mut self.random;
        let fresh = (1.0 - correlation * correlation).sqrt() * deviation;
        self.correlated = correlation * self.correlated + fresh * normal(random);
        self.walked += walk * normal(random);
        self.spike = if random.random_bool(spikes) { 0.3 * random.random::<f64>() } else { self.spike / 2.0 };
        if random.random_bool(jumps) {
            self.jumped += if random.random_bool(0.5) { 0.1 } else { -0.1 };
        }
        let mut ln = self.correlated + self.walked + self.jumped + (1.0 - self.spike).ln();
        if random.random_bool(0.1) {
            ln -= tail * random.random::<f64>().max(1e-9).ln();
        }
        self.window += 1;
        if period > 0 && self.window.is_multiple_of(period) {
            ln += 0.6_f64.ln();
        }
        level * ln.exp()
    }

    /// That many windows.
    pub(crate) fn take(&mut self, level: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.next(level)).collect()
    }
}

/// Box and Muller 1958.
fn normal(random: &mut SmallRng) -> f64 {
    let radius = (-2.0 * random.random::<f64>().max(1e-300).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}
