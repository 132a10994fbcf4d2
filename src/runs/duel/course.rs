//! The course of a duel: which value is next, which windows count, and when it is over.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::evidence::{evidence, is_within, median};
use super::figures::Figure;
use super::report::{ENOUGH, Pair, Report, Verdict, order_matters, row};
use crate::class::Class;
use crate::meter::flag::{FlagKind, used_by_others};
use crate::meter::window::Window;

/// Windows that are measured in a block: short blocks say more in the same time, since there are more of them.
const MEASURED: usize = 3;
/// Windows that settle before, besides that of the turn; more where that is too short.
const SETTLING: usize = 0;
const DOUBLED_MAX: u32 = 2;
/// The most pairs.
pub const PAIRS_MAX: usize = 40;
/// Pairs after which it is looked at whether blocks settle, and the evidence that they don't.
const SETTLED_PAIRS: usize = 4;
const UNSETTLED: f64 = 10.0;
/// With this many pairs, more than a third of them must not be left out.
const DROPPED_FROM: usize = 6;

/// What fights, and for what.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The knob's path.
    pub knob: String,
    /// Its two values, as in a profile.
    pub values: [String; 2],
    /// The figure that counts.
    pub figure: Figure,
    /// Differences below this fraction do not matter.
    pub margin: f64,
    /// Decides the order of each pair.
    pub seed: u64,
}

/// What to do after a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Go on.
    Stay,
    /// Turn the knob to this value: 0 or 1.
    Turn(usize),
    /// It is over.
    Over,
}

/// A duel that goes on.
#[derive(Debug)]
pub struct Course {
    spec: Spec,
    coin: SmallRng,
    /// The value that the knob has.
    value: usize,
    /// The order of the pair that is measured, and which of its blocks: 0 or 1.
    first: usize,
    block: usize,
    /// Windows to go until the block is settled; all of a turn's count for nothing.
    settling: usize,
    settling_windows: usize,
    windows: Vec<Window>,
    /// The blocks of the pair so far, by value, and what forbids that it counts.
    blocks: [Vec<Window>; 2],
    forbidden: Option<String>,
    pairs: Vec<Pair>,
    /// By value and pair: the last window's figure over the first's, as a logarithm.
    trends: [Vec<f64>; 2],
    dropped: Vec<String>,
    doubled: u32,
    less_durable: Option<usize>,
    verdict: Option<(Verdict, Option<String>)>,
}

impl Course {
    /// A duel of a run that has the first value.
    pub fn new(spec: Spec) -> Self {
        let mut coin = SmallRng::seed_from_u64(spec.seed);
        let first = usize::from(coin.random_bool(0.5));
        Self {
            spec,
            coin,
            value: 0,
            first,
            block: 0,
            settling: SETTLING,
            settling_windows: SETTLING,
            windows: Vec::new(),
            blocks: [Vec::new(), Vec::new()],
            forbidden: None,
            pairs: Vec::new(),
            trends: [Vec::new(), Vec::new()],
            dropped: Vec::new(),
            doubled: 0,
            less_durable: None,
            verdict: None,
        }
    }

    /// Notes that this value survives less than the other.
    pub fn survives_less(&mut self, value: usize) {
        self.less_durable = Some(value);
    }

    /// Takes the next window.
    pub fn window(&mut self, window: &Window) -> Step {
        if self.verdict.is_some() {
            return Step::Over;
        }
        let wanted = if self.block == 0 { self.first } else { 1 - self.first };
        if self.value != wanted {
            self.value = wanted;
            return Step::Turn(wanted);
        }
        if !window.is_clean() {
            return Step::Stay;
        }
        if self.settling > 0 {
            self.settling -= 1;
            return Step::Stay;
        }
        if self.forbidden.is_none() {
            self.forbidden = forbidding(window, self.spec.figure);
        }
        self.windows.push(window.clone());
        if self.windows.len() < MEASURED {
            return Step::Stay;
        }
        self.blocks[wanted] = std::mem::take(&mut self.windows);
        self.settling = self.settling_windows;
        self.block += 1;
        if self.block == 2 {
            self.pair();
        }
        if self.verdict.is_some() { Step::Over } else { Step::Stay }
    }

    /// Both blocks were measured.
    fn pair(&mut self) {
        let pair = Pair {
            first: self.first,
            figures: [0, 1].map(|value| Figure::ALL.map(|figure| figure.of(&self.blocks[value]))),
        };
        self.block = 0;
        self.first = usize::from(self.coin.random_bool(0.5));
        match self.forbidden.take() {
            Some(why) => self.dropped.push(why),
            None if pair.difference(self.spec.figure).is_none() => {
                self.dropped.push(format!("no {} in a block", self.spec.figure.name()));
            }
            None => {
                for (trends, block) in self.trends.iter_mut().zip(&self.blocks) {
                    let at = |window: Option<&Window>| {
                        self.spec.figure.of(std::slice::from_ref(window?)).map(f64::ln)
                    };
                    let ends = at(block.last()).zip(at(block.first()));
                    trends.extend(ends.map(|(last, first)| last - first));
                }
                self.pairs.push(pair);
            }
        }
        self.verdict = self.judged();
    }

    /// Whether there is a verdict.
    pub fn is_over(&self) -> bool {
        self.verdict.is_some()
    }

    /// The pairs so far, those that were left out included.
    pub fn pairs(&self) -> usize {
        self.pairs.len() + self.dropped.len()
    }

    /// The most windows that a pair takes: each block may begin with that of a turn.
    pub fn pair_windows(&self) -> usize {
        2 * (1 + self.settling_windows + MEASURED)
    }

    fn differences(&self) -> Vec<f64> {
        self.pairs.iter().filter_map(|pair| pair.difference(self.spec.figure)).collect()
    }

    /// The verdict, once there is one.
    fn judged(&mut self) -> Option<(Verdict, Option<String>)> {
        let all = self.pairs();
        if all >= DROPPED_FROM && self.dropped.len() * 3 > all {
            let dropped = self.dropped.len();
            let why = self.dropped.last().map_or("", String::as_str);
            return Some((Verdict::NotJudged, Some(format!("{dropped} of {all} pairs do not count: {why}"))));
        }
        let unsettled = self.trends.iter().any(|trends| evidence(trends) >= UNSETTLED);
        if self.pairs.len() >= SETTLED_PAIRS && unsettled && self.doubled < DOUBLED_MAX {
            self.doubled += 1;
            self.settling_windows = (self.settling_windows * 2).max(1);
            self.settling = self.settling_windows;
            self.pairs.clear();
            self.dropped.clear();
            self.trends = [Vec::new(), Vec::new()];
            return None;
        }
        let differences = self.differences();
        if evidence(&differences) >= ENOUGH {
            return Some(self.winner(median(&differences)));
        }
        if is_within(&differences, self.spec.margin, ENOUGH) {
            return Some((Verdict::NoDifference, None));
        }
        (all >= PAIRS_MAX).then(|| {
            let what = format!("{all} pairs do not decide it");
            (Verdict::Unclear, Some(what))
        })
    }

    fn winner(&mut self, change: f64) -> (Verdict, Option<String>) {
        if order_matters(&self.pairs, self.spec.figure, &mut self.coin) {
            let why = "the order within a pair matters: a block still feels the one before";
            return (Verdict::NotJudged, Some(why.into()));
        }
        let winner = usize::from((change > 0.0) == self.spec.figure.more_is_better());
        let verdict = match (winner, self.less_durable) {
            (winner, Some(less)) if winner == less => Verdict::LessDurable,
            (0, _) => Verdict::First,
            _ => Verdict::Second,
        };
        (verdict, None)
    }

    /// What it came to; a duel that was ended early is unclear.
    pub fn report(&self) -> Report {
        let early = || (Verdict::Unclear, Some("it was ended before it was decided".to_owned()));
        let (verdict, why) = self.verdict.clone().unwrap_or_else(early);
        let others = Figure::ALL.into_iter().filter(|figure| *figure != self.spec.figure);
        let figures = std::iter::once(self.spec.figure).chain(others);
        Report {
            knob: self.spec.knob.clone(),
            values: self.spec.values.clone(),
            figure: self.spec.figure,
            margin: self.spec.margin,
            seed: self.spec.seed,
            block_windows: (self.settling_windows, MEASURED),
            less_durable: self.less_durable,
            pairs: self.pairs.clone(),
            dropped: self.dropped.clone(),
            figures: figures.map(|figure| row(&self.pairs, figure, self.spec.figure)).collect(),
            verdict,
            why,
        }
    }
}

/// What in this window forbids a verdict on the figure, in words.
fn forbidding(window: &Window, figure: Figure) -> Option<String> {
    let of_classes = Class::ALL.iter().flat_map(|class| &window.class(*class).flags);
    // Blocks settle by the duel's own rule, and a trend takes neither side.
    let counts = |kind| kind != Some(FlagKind::Settling) && kind != Some(FlagKind::Drifting);
    let mut flags = window.flags.iter().chain(of_classes).filter(|flag| flag.forbids_verdict);
    let forbidding = flags.find(|flag| counts(FlagKind::of(&flag.text))).map(|flag| flag.text.clone());
    let texts = window.flags.iter().map(|flag| flag.text.as_str());
    forbidding.or_else(|| used_by_others(texts).filter(|_| figure == Figure::CyclesPerByte))
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
