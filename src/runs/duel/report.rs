//! The result of a duel: each pair, the evidence for each figure, and the verdict.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::evidence::{Stakes, evidence, interval, median};
use super::figures::Figure;
use crate::error::Result;
use crate::held_folder::HeldFolder;
use crate::json;
use crate::meter::duel_outcome::DuelOutcome;
pub use crate::meter::duel_outcome::DuelVerdict as Verdict;
use crate::meter::turns::estimate::STALLED;

/// The file it is written to.
pub const FILE: &str = "duel.json";
/// The evidence from which the deciding figure is clear: by chance, that happens in one duel of 40.
pub const ENOUGH: f64 = 40.0;
/// Pairs in either order from which the duel checks whether the order matters; how often the pairs are
/// shuffled for that, and how rarely chance may explain it.
const ORDER_PAIRS: usize = 4;
const SHUFFLES: usize = 2000;
const ORDER_ERROR: f64 = 0.01;

/// A pair of blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Pair {
    /// Whose block came first: 0 or 1.
    pub first: usize,
    /// The figures of the block of each value, in the order of [`Report::measured`].
    pub figures: [Vec<Option<f64>>; 2],
}

impl Pair {
    /// Each value's figure at that index.
    fn of(&self, at: usize) -> [Option<f64>; 2] {
        self.figures.each_ref().map(|figures| figures.get(at).copied().flatten())
    }

    /// The logarithm of the second value's figure over the first's, for the figure at that index; none if a
    /// block lacks it, or both stalled.
    pub fn difference(&self, at: usize) -> Option<f64> {
        let [first, second] = self.of(at);
        ratio(first?, second?)
    }

    /// The value whose block lacks the figure while the other has it: 0 or 1.
    pub fn lacking(&self, at: usize) -> Option<usize> {
        match self.of(at) {
            [None, Some(_)] => Some(0),
            [Some(_), None] => Some(1),
            _ => None,
        }
    }

    /// The difference; if exactly one block lacks the figure, as if it had this factor of the other's.
    fn at_worst(&self, at: usize, worst: f64) -> Option<f64> {
        let of_lacking = || Some(if self.lacking(at)? == 1 { worst.ln() } else { -worst.ln() });
        self.difference(at).or_else(of_lacking)
    }
}

/// The logarithm of the second over the first; a zero is a stall, and counts as a thousandth of the other.
/// None if both are zero.
pub fn ratio(first: f64, second: f64) -> Option<f64> {
    let least = first.max(second) * STALLED;
    (least > 0.0).then(|| (second.max(least) / first.max(least)).ln())
}

/// How a block begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Begins {
    /// With a turn, unless the block before had the same value.
    Turned,
    /// With an empty page cache, whatever the previous value: what that leaves there would serve the other.
    Uncached,
    /// On storage that is built or opened anew, whatever the previous value.
    Built,
}

/// A figure over all pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DuelRow {
    /// The figure.
    pub figure: Figure,
    /// Pairs that have it.
    pub pairs: usize,
    /// See [`Bets::evidence`].
    pub evidence: f64,
    /// The evidence from which it is clear; higher for figures other than the deciding one.
    pub threshold: f64,
    /// The median of the change from the first value to the second, as a fraction; none without pairs.
    pub change: Option<f64>,
    /// The range that the change is in, if it is the same in all pairs; none without pairs.
    pub interval: Option<(f64, f64)>,
}

impl DuelRow {
    /// Whether the values differ clearly in it.
    pub fn is_clear(&self) -> bool {
        self.evidence >= self.threshold
    }
}

/// `duel.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The knob's path.
    pub knob: String,
    /// Its two values, as in a profile.
    pub values: [String; 2],
    /// The deciding figure.
    pub figure: Figure,
    /// Differences below this fraction do not matter.
    pub margin: f64,
    /// The seed of the order of the pairs.
    pub seed: u64,
    /// Windows in each block that settle, and that are measured.
    pub block_windows: (usize, usize),
    /// How each block begins.
    pub begins: Begins,
    /// Which value survives less, if one does: 0 or 1.
    pub less_durable: Option<usize>,
    /// The figures of each pair's blocks, in order.
    pub measured: Vec<Figure>,
    /// The pairs that count, in order.
    pub pairs: Vec<Pair>,
    /// The pairs before each time that blocks were given longer to settle; see [`Bets`].
    pub unsettled: Vec<Vec<Pair>>,
    /// Why pairs were left out, one for each.
    pub dropped: Vec<String>,
    /// The figures; the deciding one first.
    pub figures: Vec<DuelRow>,
    /// How it ended.
    pub verdict: Verdict,
    /// Why there is none, or why it is unclear.
    pub why: Option<String>,
}

impl Report {
    /// The index of the deciding figure.
    fn counts(&self) -> Option<usize> {
        self.measured.iter().position(|figure| *figure == self.figure)
    }

    /// The differences of the pairs in the deciding figure, as logarithms.
    pub fn differences(&self) -> Vec<f64> {
        self.counts().map_or_else(Vec::new, |at| differences(&self.pairs, at))
    }

    /// How many pairs lack the deciding figure in one block.
    pub fn lacking(&self) -> usize {
        let lacks = |at: usize| self.pairs.iter().filter(|pair| pair.lacking(at).is_some()).count();
        self.counts().map_or(0, lacks)
    }

    /// The part that its ledger line keeps.
    pub fn outcome(&self) -> DuelOutcome {
        let row = self.figures.first();
        DuelOutcome {
            verdict: self.verdict,
            figure: self.figure.name().to_owned(),
            pairs: row.map_or(0, |row| row.pairs as u64),
            change: row.and_then(|row| row.change),
            interval: row.and_then(|row| row.interval),
            is_clear: row.is_some_and(DuelRow::is_clear),
            margin: self.margin,
            less_durable: self.less_durable,
            why: self.why.clone(),
        }
    }

    /// Writes it to a recording's folder, next to any earlier ones: `duel.json`, `duel-2.json`, …
    ///
    /// # Errors
    /// If that fails.
    pub fn write(&self, recording: &Path) -> Result<PathBuf> {
        let text = json::lines(self)?;
        let folder = HeldFolder::open_own(recording)?;
        let further = (2..).map(|number: u32| format!("duel-{number}.json"));
        let mut names = std::iter::once(FILE.to_owned()).chain(further);
        let name = names.find(|name| !folder.has(name)).unwrap_or_default();
        folder.replace(&name, &text)?;
        Ok(recording.join(name))
    }
}

/// The differences of the pairs that have the figure at that index.
pub fn differences(pairs: &[Pair], at: usize) -> Vec<f64> {
    pairs.iter().filter_map(|pair| pair.difference(at)).collect()
}

/// The same, also for pairs in which exactly one block lacks the figure, as if it had this factor of the other's.
pub fn differences_at_worst(pairs: &[Pair], at: usize, worst: f64) -> Vec<f64> {
    pairs.iter().filter_map(|pair| pair.at_worst(at, worst)).collect()
}

/// The bets on a figure: on the pairs of unsettled blocks, then on these.
///
/// A value may lack a figure just when it is bad, so that only its better blocks have it. So they bet twice, without
/// such pairs and as if the missing figure were far worse, and only evidence in both counts: such pairs favor no
/// value, but keep the one lacking the figure from winning. If it is unknown which way is worse, they bet on either.
///
/// Pairs of unsettled blocks can only weigh against a verdict: the change and its interval are those of the
/// other pairs, whose evidence must suffice by itself.
#[derive(Debug, Clone)]
pub struct Bets {
    known: Stakes,
    at_worst: Vec<Stakes>,
    /// The evidence of the settled pairs.
    settled: f64,
}

impl Bets {
    /// Bets on these pairs' figure at that index.
    pub fn of(unsettled: &[Vec<Pair>], pairs: &[Pair], (at, figure): (usize, &Figure)) -> Self {
        let bet = |differences: &dyn Fn(&[Pair]) -> Vec<f64>| {
            let mut stakes = Stakes::default();
            let all = unsettled.iter().map(Vec::as_slice).chain([pairs]);
            all.for_each(|pairs| stakes.bet(&differences(pairs)));
            stakes
        };
        let at_worst = |worst: &f64| bet(&|pairs: &[Pair]| differences_at_worst(pairs, at, *worst));
        Self {
            known: bet(&|pairs: &[Pair]| differences(pairs, at)),
            at_worst: figure.at_worst().iter().map(at_worst).collect(),
            settled: evidence(&differences(pairs, at)),
        }
    }

    /// The evidence for a change in this direction, see [`Stakes::evidence`]; at most that of no evidence if
    /// the bets favor the other direction.
    pub fn evidence(&self, change: f64) -> f64 {
        let all = || self.at_worst.iter().chain([&self.known]);
        let least = all().map(Stakes::evidence).fold(self.settled, f64::min);
        let agree = all().all(|stakes| stakes.are_for_more() == (change > 0.0));
        if agree { least } else { least.min(1.0) }
    }
}

/// The row of the figure at index `at` over these pairs, with the unsettled ones before; `counts` is the
/// index of the deciding figure.
pub fn row(
    unsettled: &[Vec<Pair>],
    pairs: &[Pair],
    measured: &[Figure],
    (at, counts): (usize, usize),
) -> DuelRow {
    let (differences, figure) = (differences(pairs, at), &measured[at]);
    let change = median(&differences);
    let others = measured.len().saturating_sub(1).max(1) as f64;
    let threshold = if at == counts { ENOUGH } else { ENOUGH * others };
    let (low, high) = interval(&differences, threshold);
    DuelRow {
        figure: figure.clone(),
        pairs: differences.len(),
        evidence: Bets::of(unsettled, pairs, (at, figure)).evidence(change),
        threshold,
        change: (!differences.is_empty()).then(|| change.exp_m1()),
        interval: (!differences.is_empty()).then(|| (low.exp_m1(), high.exp_m1())),
    }
}

/// Whether the order within pairs made a difference: then a block still affects the next.
pub fn order_matters(pairs: &[Pair], at: usize, random: &mut impl rand::Rng) -> bool {
    use rand::seq::SliceRandom as _;
    let known = pairs.iter().filter_map(|pair| Some((pair.first, pair.difference(at)?)));
    let (mut firsts, differences): (Vec<usize>, Vec<f64>) = known.unzip();
    let of_first = |firsts: &[usize], which: usize| -> (f64, usize) {
        let chosen = firsts.iter().zip(&differences).filter(|(first, _)| **first == which);
        chosen.fold((0.0, 0), |(sum, count), (_, difference)| (sum + difference, count + 1))
    };
    let apart = |firsts: &[usize]| {
        let ((one, ones), (other, others)) = (of_first(firsts, 0), of_first(firsts, 1));
        (one / ones as f64 - other / others as f64).abs()
    };
    if of_first(&firsts, 0).1.min(of_first(&firsts, 1).1) < ORDER_PAIRS {
        return false;
    }
    let seen = apart(&firsts);
    let as_far = (0..SHUFFLES).filter(|_| {
        firsts.shuffle(random);
        apart(&firsts) >= seen
    });
    (as_far.count() as f64) < ORDER_ERROR * SHUFFLES as f64
}
