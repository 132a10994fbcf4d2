//! What a duel leaves: each pair, the evidence for each figure, and the verdict.

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

/// What it is written into.
pub const FILE: &str = "duel.json";
/// Evidence from which on the figure that counts is clear: by chance, that is so in one duel of 40.
pub const ENOUGH: f64 = 40.0;
/// Pairs in one order, and in the other, from which on it is looked at whether the order matters; how often the pairs
/// are shuffled for that, and how seldom chance may explain it.
const ORDER_PAIRS: usize = 4;
const SHUFFLES: usize = 2000;
const ORDER_ERROR: f64 = 0.01;

/// A pair of blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Pair {
    /// Which value's block was first: 0 or 1.
    pub first: usize,
    /// The figures of the block of each value, in the order of [`Report::measured`].
    pub figures: [Vec<Option<f64>>; 2],
}

impl Pair {
    /// The figure at that place, of each value.
    fn of(&self, at: usize) -> [Option<f64>; 2] {
        self.figures.each_ref().map(|figures| figures.get(at).copied().flatten())
    }

    /// The logarithm of the second value's figure over the first's; none where a block lacks it, or both stalled. The
    /// figure by its place.
    pub fn difference(&self, at: usize) -> Option<f64> {
        let [first, second] = self.of(at);
        ratio(first?, second?)
    }

    /// The value whose block lacks the figure, which the other one has: 0 or 1.
    pub fn lacking(&self, at: usize) -> Option<usize> {
        match self.of(at) {
            [None, Some(_)] => Some(0),
            [Some(_), None] => Some(1),
            _ => None,
        }
    }

    /// The difference, where one block alone lacks the figure as if it had this factor of the other's.
    fn at_worst(&self, at: usize, worst: f64) -> Option<f64> {
        let of_lacking = || Some(if self.lacking(at)? == 1 { worst.ln() } else { -worst.ln() });
        self.difference(at).or_else(of_lacking)
    }
}

/// The logarithm of the second over the first; one that is zero has stalled, and is a thousandth of the other. None of
/// two that are.
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
    /// With an empty page cache, whichever value was before: what one value leaves there would serve the other.
    Uncached,
    /// On storage that is built or opened anew, whichever value was before.
    Built,
}

/// A figure over all pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DuelRow {
    /// The figure.
    pub figure: Figure,
    /// The pairs that have it.
    pub pairs: usize,
    /// See [`Bets::evidence`].
    pub evidence: f64,
    /// The evidence from which on it is clear; more for those that were not named.
    pub threshold: f64,
    /// The median of the change from the first value to the second, as a fraction; none without pairs.
    pub change: Option<f64>,
    /// What it is between, if it is the same in all pairs; none without pairs.
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
    /// The figure that counts.
    pub figure: Figure,
    /// Differences below this fraction do not matter.
    pub margin: f64,
    /// What the order of the pairs came from.
    pub seed: u64,
    /// Windows that settle in each block, and that are measured.
    pub block_windows: (usize, usize),
    /// How each block begins.
    pub begins: Begins,
    /// Which value survives less, if one does: 0 or 1.
    pub less_durable: Option<usize>,
    /// The figures of each pair's blocks, in order.
    pub measured: Vec<Figure>,
    /// The pairs that count, in order.
    pub pairs: Vec<Pair>,
    /// Pairs that were measured before blocks settled for longer, once for each time; see [`Bets`].
    pub unsettled: Vec<Vec<Pair>>,
    /// Why pairs were left out, one for each.
    pub dropped: Vec<String>,
    /// The figures; the one that counts first.
    pub figures: Vec<DuelRow>,
    /// How it ended.
    pub verdict: Verdict,
    /// Why there is none, or why it is unclear.
    pub why: Option<String>,
}

impl Report {
    /// The place of the figure that counts.
    fn counts(&self) -> Option<usize> {
        self.measured.iter().position(|figure| *figure == self.figure)
    }

    /// The differences of the pairs in the figure that counts, as logarithms.
    pub fn differences(&self) -> Vec<f64> {
        self.counts().map_or_else(Vec::new, |at| differences(&self.pairs, at))
    }

    /// How many pairs lack the figure that counts in one block.
    pub fn lacking(&self) -> usize {
        let lacks = |at: usize| self.pairs.iter().filter(|pair| pair.lacking(at).is_some()).count();
        self.counts().map_or(0, lacks)
    }

    /// What its line of the ledger keeps.
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

    /// Writes it into the folder of a recording, beside those that are there: `duel.json`, `duel-2.json`, …
    ///
    /// # Errors
    /// Where that fails.
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

/// The differences of the pairs that have the figure at that place.
pub fn differences(pairs: &[Pair], at: usize) -> Vec<f64> {
    pairs.iter().filter_map(|pair| pair.difference(at)).collect()
}

/// The differences, and those of the pairs of which one block alone lacks the figure as if it had this factor of the
/// other's.
pub fn differences_at_worst(pairs: &[Pair], at: usize, worst: f64) -> Vec<f64> {
    pairs.iter().filter_map(|pair| pair.at_worst(at, worst)).collect()
}

/// What was bet on a figure: on the pairs of blocks that had not settled, then on these.
///
/// A value may lack a figure just where it is bad, so that the blocks that have it are the better ones. So it is bet
/// twice, without such pairs and as if what is lacking were far worse, and only what both find counts: such pairs make no
/// value better, and keep the one that lacks it from being so. Where it is not known what is worse, it is bet on either.
///
/// Pairs of blocks that had not settled count against a verdict alone: the change and its interval are of the others, which
/// must be enough by themselves.
#[derive(Debug, Clone)]
pub struct Bets {
    known: Stakes,
    at_worst: Vec<Stakes>,
    /// The evidence of the pairs that had settled.
    settled: f64,
}

impl Bets {
    /// On these pairs' figure at that place.
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

    /// The evidence for a change in this direction, see [`Stakes::evidence`]; no more than none where what was bet on
    /// speaks for the other one.
    pub fn evidence(&self, change: f64) -> f64 {
        let all = || self.at_worst.iter().chain([&self.known]);
        let least = all().map(Stakes::evidence).fold(self.settled, f64::min);
        let agree = all().all(|stakes| stakes.are_for_more() == (change > 0.0));
        if agree { least } else { least.min(1.0) }
    }
}

/// The figure at that place over these pairs, after those of blocks that had not settled; `counts` is the place of the
/// one that counts.
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

/// Whether what was first made a difference: then a block is not over when the next begins.
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
