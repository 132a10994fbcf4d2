//! What a duel leaves: each pair, the evidence for each figure, and the verdict.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::evidence::{Stakes, interval, median};
use super::figures::Figure;
use crate::error::Result;
use crate::held_folder::HeldFolder;
use crate::json;

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
    /// The logarithm of the second value's figure over the first's; the figure by its place.
    pub fn difference(&self, at: usize) -> Option<f64> {
        let of = |value: usize| self.figures[value].get(at).copied().flatten();
        Some((of(1)? / of(0)?).ln())
    }
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

/// How a duel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first value is better by the figure that counts.
    First,
    /// The second value is.
    Second,
    /// It is better by the figure, but less survives with it.
    LessDurable,
    /// They differ by less than the margin.
    NoDifference,
    /// The pairs did not suffice.
    Unclear,
    /// Something forbids a verdict.
    NotJudged,
}

/// A figure over all pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DuelRow {
    /// The figure.
    pub figure: Figure,
    /// The pairs that have it.
    pub pairs: usize,
    /// See [`Stakes::evidence`]; of all pairs, those before blocks settled for longer included.
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
    /// Pairs that were measured before blocks settled for longer, once for each time: evidence, but not of the change.
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
    /// The differences of the pairs in the figure that counts, as logarithms.
    pub fn differences(&self) -> Vec<f64> {
        let at = self.measured.iter().position(|figure| *figure == self.figure);
        at.map_or_else(Vec::new, |at| differences(&self.pairs, at))
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

/// What was bet on the figure: on the pairs of blocks that had not settled, then on these.
pub fn stakes(unsettled: &[Vec<Pair>], pairs: &[Pair], at: usize) -> Stakes {
    let mut stakes = Stakes::default();
    for pairs in unsettled.iter().map(Vec::as_slice).chain([pairs]) {
        stakes.bet(&differences(pairs, at));
    }
    stakes
}

/// The figure at that place over these pairs, after those of blocks that had not settled; `counts` is the place of the
/// one that counts.
pub fn row(
    unsettled: &[Vec<Pair>],
    pairs: &[Pair],
    measured: &[Figure],
    (at, counts): (usize, usize),
) -> DuelRow {
    let differences = differences(pairs, at);
    let others = measured.len().saturating_sub(1).max(1) as f64;
    let threshold = if at == counts { ENOUGH } else { ENOUGH * others };
    let (low, high) = interval(&differences, threshold);
    DuelRow {
        figure: measured[at].clone(),
        pairs: differences.len(),
        evidence: stakes(unsettled, pairs, at).evidence(),
        threshold,
        change: (!differences.is_empty()).then(|| median(&differences).exp_m1()),
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
