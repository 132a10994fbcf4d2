//! The course of a duel: which value is next, which windows count, and when it is over.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::evidence::{evidence, is_within, median};
use super::figures::Figure;
use super::report::{
    Begins, Bets, ENOUGH, Pair, Report, Verdict, differences, differences_at_worst, order_matters, ratio, row,
};
use crate::class::Class;
use crate::meter::flag::{FlagKind, used_by_others};
use crate::meter::window::Window;

/// Windows measured in a block: short blocks tell more in the same time, since there are more of them.
const MEASURED: usize = 3;
/// Windows that settle before that, besides the turn's own; more if that turns out too short.
const SETTLING: usize = 0;
const DOUBLED_MAX: u32 = 2;
/// The same for a block whose storage is built first: building is slow, so the block measures more, and new
/// storage settles longer.
const BUILT_MEASURED: usize = 10;
const BUILT_SETTLING: usize = 5;
/// Windows that settle for a program's figures: its first report is about the time before.
const REPORTED_SETTLING: usize = 1;
/// The most pairs.
pub const PAIRS_MAX: usize = 40;
/// The maximum number of windows of a duel, unless its blocks need longer to settle.
pub const WINDOWS_MAX: usize = PAIRS_MAX * 2 * (1 + SETTLING + MEASURED);
/// With fewer pairs no evidence suffices, whatever they are.
pub const PAIRS_MIN: usize = 7;
/// Pairs after which the duel checks whether blocks settle, and the evidence that they don't.
const SETTLED_PAIRS: usize = 4;
const UNSETTLED: f64 = 10.0;
/// From this many pairs on, no more than a third of them may be left out.
const DROPPED_FROM: usize = 6;

/// The contestants, and the figure they compete in.
#[derive(Debug, Clone, PartialEq)]
pub struct DuelSpec {
    /// The knob's path.
    pub knob: String,
    /// Its two values, as in a profile.
    pub values: [String; 2],
    /// The deciding figure.
    pub figure: Figure,
    /// Differences below this fraction do not matter.
    pub margin: f64,
    /// Decides the order of each pair.
    pub seed: u64,
}

/// What to do after a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuelMove {
    /// Go on.
    Stay,
    /// Turn the knob to this value: 0 or 1.
    Turn(usize),
    /// It is over.
    Over,
}

/// A duel in progress.
#[derive(Debug, Clone)]
pub struct Course {
    spec: DuelSpec,
    begins: Begins,
    /// All figures of a pair, and the index of the deciding one.
    measured: Vec<Figure>,
    counts: usize,
    coin: SmallRng,
    /// The knob's value, if its block is in progress.
    value: Option<usize>,
    /// The order of the current pair, and which of its blocks is next: 0 or 1.
    first: usize,
    block: usize,
    /// Windows left until the block is settled; all windows of a turn are ignored.
    settling: usize,
    settling_windows: usize,
    measured_windows: usize,
    windows: Vec<Window>,
    /// The blocks of the pair so far, by value, and why the pair can't count.
    blocks: [Vec<Window>; 2],
    forbidden: Option<String>,
    pairs: Vec<Pair>,
    /// By value and pair: the figure of a block's last third over that of its first, as a logarithm.
    trends: [Vec<f64>; 2],
    dropped: Vec<String>,
    /// The pairs before each time that blocks got longer to settle; and how many those are with the ones left out.
    unsettled: Vec<Vec<Pair>>,
    earlier: usize,
    /// Whether each value survives less than the other in some respect.
    less_durable: [bool; 2],
    verdict: Option<(Verdict, Option<String>)>,
}

impl Course {
    /// A duel in a run that has the first value; with [`Begins::Built`], it has none yet.
    pub fn new(spec: DuelSpec, begins: Begins) -> Self {
        let mut coin = SmallRng::seed_from_u64(spec.seed);
        let first = usize::from(coin.random_bool(0.5));
        let (settling, measured) =
            if begins == Begins::Built { (BUILT_SETTLING, BUILT_MEASURED) } else { (SETTLING, MEASURED) };
        Self {
            measured: Figure::ALL.to_vec(),
            counts: Figure::ALL.iter().position(|figure| *figure == spec.figure).unwrap_or(0),
            spec,
            begins,
            coin,
            value: (begins == Begins::Turned).then_some(0),
            first,
            block: 0,
            settling,
            settling_windows: settling,
            measured_windows: measured,
            windows: Vec::new(),
            blocks: [Vec::new(), Vec::new()],
            forbidden: None,
            pairs: Vec::new(),
            trends: [Vec::new(), Vec::new()],
            dropped: Vec::new(),
            unsettled: Vec::new(),
            earlier: 0,
            less_durable: [false; 2],
            verdict: None,
        }
    }

    /// The same for a run whose program reports these figures, the deciding one among them.
    pub fn of_program(spec: DuelSpec, begins: Begins, measured: Vec<Figure>) -> Self {
        let counts = measured.iter().position(|figure| *figure == spec.figure).unwrap_or(0);
        let new = Self::new(spec, begins);
        let settling = new.settling.max(REPORTED_SETTLING);
        Self { measured, counts, settling, settling_windows: settling, ..new }
    }

    /// Records that this value survives less than the other.
    pub fn survives_less(&mut self, value: usize) {
        self.less_durable[value] = true;
    }

    /// How its blocks begin.
    pub fn begins(&self) -> Begins {
        self.begins
    }

    /// The value of the block that is measured or comes next.
    fn wanted(&self) -> usize {
        if self.block == 0 { self.first } else { 1 - self.first }
    }

    /// Begins the next block on storage that was built for it; returns its value.
    pub fn begin_block(&mut self) -> usize {
        let wanted = self.wanted();
        self.value = Some(wanted);
        wanted
    }

    /// Takes the next window.
    pub fn window(&mut self, window: &Window) -> DuelMove {
        if self.verdict.is_some() {
            return DuelMove::Over;
        }
        let wanted = self.wanted();
        if self.value != Some(wanted) {
            return DuelMove::Turn(self.begin_block());
        }
        if !window.is_clean() {
            return DuelMove::Stay;
        }
        if self.settling > 0 {
            self.settling -= 1;
            return DuelMove::Stay;
        }
        if self.forbidden.is_none() {
            self.forbidden = forbidding(window, &self.spec.figure);
        }
        self.windows.push(window.clone());
        if self.windows.len() < self.measured_windows {
            return DuelMove::Stay;
        }
        self.blocks[wanted] = std::mem::take(&mut self.windows);
        self.block_ends();
        match self.begins {
            _ if self.verdict.is_some() => DuelMove::Over,
            // The storage built for this block has served its purpose.
            Begins::Built => DuelMove::Turn(self.wanted()),
            Begins::Turned | Begins::Uncached => DuelMove::Stay,
        }
    }

    fn block_ends(&mut self) {
        self.settling = self.settling_windows;
        self.block += 1;
        if self.begins != Begins::Turned {
            self.value = None;
        }
        // The other half would only cost another build.
        let in_vain = self.begins == Begins::Built && self.forbidden.is_some();
        if self.block == 2 || in_vain {
            self.pair();
        }
    }

    /// Leaves out the current pair, whichever half the reason concerns.
    pub fn forbid(&mut self, why: String) {
        self.forbidden.get_or_insert(why);
    }

    /// Leaves out the current pair, since its current block can't be measured.
    pub fn lose_block(&mut self, why: String) {
        self.windows.clear();
        self.forbid(why);
        self.block_ends();
    }

    /// Ends the duel without a verdict, since nothing more can be measured.
    pub fn stop(&mut self, why: String) {
        self.verdict.get_or_insert((Verdict::Unclear, Some(why)));
    }

    /// Ends a pair: both blocks were measured, or one of them was lost.
    fn pair(&mut self) {
        let of = |value: usize| self.measured.iter().map(|figure| figure.of(&self.blocks[value])).collect();
        let figures = || [of(0), of(1)];
        let first = self.first;
        match self.forbidden.take() {
            Some(why) => self.dropped.push(why),
            None => self.count(Pair { first, figures: figures() }),
        }
        self.block = 0;
        self.first = usize::from(self.coin.random_bool(0.5));
        self.blocks = [Vec::new(), Vec::new()];
        self.verdict = self.judged();
    }

    fn count(&mut self, pair: Pair) {
        let (figure, at) = (&self.spec.figure, self.counts);
        if pair.difference(at).is_none() && pair.lacking(at).is_none() {
            self.dropped.push(format!("no {} in either block", figure.name()));
            return;
        }
        for (trends, block) in self.trends.iter_mut().zip(&self.blocks) {
            let third = (block.len() / 3).max(1);
            let ends = figure.of(&block[..third]).zip(figure.of(&block[block.len() - third..]));
            trends.extend(ends.and_then(|(first, last)| ratio(first, last)));
        }
        self.pairs.push(pair);
    }

    /// Whether there is a verdict.
    pub fn is_over(&self) -> bool {
        self.verdict.is_some()
    }

    /// The number of pairs so far, including those left out.
    pub fn pairs(&self) -> usize {
        self.earlier + self.pairs.len() + self.dropped.len()
    }

    /// The most windows that a pair takes: each block may begin with a turn's window.
    pub fn pair_windows(&self) -> usize {
        2 * (1 + self.settling_windows + self.measured_windows)
    }

    /// The verdict, once there is one.
    fn judged(&mut self) -> Option<(Verdict, Option<String>)> {
        if let Some(why) = self.lacks_too_many() {
            return Some((Verdict::NotJudged, Some(why)));
        }
        let unsettled = self.trends.iter().any(|trends| evidence(trends) >= UNSETTLED);
        let may_double = self.unsettled.len() < DOUBLED_MAX as usize && self.pairs() < PAIRS_MAX;
        if self.pairs.len() >= SETTLED_PAIRS && unsettled && may_double {
            self.settle_for_longer();
            return None;
        }
        let (figure, at) = (&self.spec.figure, self.counts);
        let differences = differences(&self.pairs, at);
        let change = median(&differences);
        if Bets::of(&self.unsettled, &self.pairs, (at, figure)).evidence(change) >= ENOUGH {
            return Some(self.winner(change));
        }
        let at_worst = figure.at_worst().iter().map(|worst| differences_at_worst(&self.pairs, at, *worst));
        if at_worst.chain([differences]).all(|of| is_within(&of, self.spec.margin, ENOUGH)) {
            return Some((Verdict::NoDifference, None));
        }
        (self.pairs() >= PAIRS_MAX).then(|| {
            let what = format!("{} pairs do not decide it", self.pairs());
            (Verdict::Unclear, Some(what))
        })
    }

    /// Why there can't be a verdict: too many pairs do not count, or lack the figure in one block.
    fn lacks_too_many(&self) -> Option<String> {
        let (figure, values) = (&self.spec.figure, &self.spec.values);
        let mut lacking = [0, 0];
        self.pairs.iter().filter_map(|pair| pair.lacking(self.counts)).for_each(|value| lacking[value] += 1);
        let (dropped, these) = (self.dropped.len(), self.pairs.len() + self.dropped.len());
        let without = dropped + lacking[0] + lacking[1];
        if these < DROPPED_FROM || without * 3 <= these {
            return None;
        }
        let why = match self.dropped.last() {
            Some(why) if dropped >= lacking[0] + lacking[1] => why.clone(),
            _ => format!(
                "no {} in the block of {}",
                figure.name(),
                values[usize::from(lacking[1] > lacking[0])]
            ),
        };
        Some(format!("{without} of {these} pairs do not count: {why}"))
    }

    fn settle_for_longer(&mut self) {
        self.earlier = self.pairs();
        self.settling_windows = (self.settling_windows * 2).max(1);
        self.settling = self.settling_windows;
        self.unsettled.push(std::mem::take(&mut self.pairs));
        self.dropped.clear();
        self.trends = [Vec::new(), Vec::new()];
    }

    fn winner(&mut self, change: f64) -> (Verdict, Option<String>) {
        if order_matters(&self.pairs, self.counts, &mut self.coin) {
            let why = "the order within a pair matters: the previous block still affects the next one";
            return (Verdict::NotJudged, Some(why.into()));
        }
        let winner = usize::from((change > 0.0) == self.spec.figure.more_is_better());
        let verdict = match winner {
            _ if self.less_durable[winner] => Verdict::LessDurable,
            0 => Verdict::First,
            _ => Verdict::Second,
        };
        (verdict, None)
    }

    /// Its result; a duel that was ended early is unclear.
    pub fn report(&self) -> Report {
        let early = || (Verdict::Unclear, Some("it was ended before it was decided".to_owned()));
        let (verdict, why) = self.verdict.clone().unwrap_or_else(early);
        let others = (0..self.measured.len()).filter(|at| *at != self.counts);
        let figures = std::iter::once(self.counts).chain(others);
        Report {
            knob: self.spec.knob.clone(),
            values: self.spec.values.clone(),
            figure: self.spec.figure.clone(),
            margin: self.spec.margin,
            seed: self.spec.seed,
            block_windows: (self.settling_windows, self.measured_windows),
            begins: self.begins,
            less_durable: self.less_durable(verdict),
            measured: self.measured.clone(),
            pairs: self.pairs.clone(),
            unsettled: self.unsettled.clone(),
            dropped: self.dropped.clone(),
            figures: figures
                .map(|at| row(&self.unsettled, &self.pairs, &self.measured, (at, self.counts)))
                .collect(),
            verdict,
            why,
        }
    }

    /// Which value survives less; if each does in some respect, the better one by the figure.
    fn less_durable(&self, verdict: Verdict) -> Option<usize> {
        let change = median(&differences(&self.pairs, self.counts));
        let better = usize::from((change > 0.0) == self.spec.figure.more_is_better());
        let of_better = (verdict == Verdict::LessDurable).then_some(better);
        of_better.or_else(|| self.less_durable.iter().position(|less| *less))
    }
}

/// Why this window forbids a verdict on the figure, in words.
fn forbidding(window: &Window, figure: &Figure) -> Option<String> {
    let of_classes = Class::ALL.iter().flat_map(|class| &window.class(*class).flags);
    // Blocks settle by the duel's own rule. As a coin decides the order, trends and others' load favor neither side.
    let counts = |kind: Option<FlagKind>| {
        use FlagKind::{Drifting, ProcessorsFull, Settling};
        !matches!(kind, Some(Settling | Drifting | ProcessorsFull))
    };
    let mut flags = window.flags.iter().chain(of_classes).filter(|flag| flag.forbids_verdict);
    let forbidding = flags.find(|flag| counts(FlagKind::of(&flag.text))).map(|flag| flag.text.clone());
    let texts = window.flags.iter().map(|flag| flag.text.as_str());
    forbidding.or_else(|| used_by_others(texts).filter(|_| *figure == Figure::CyclesPerByte))
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "reported_tests.rs"]
mod reported_tests;
