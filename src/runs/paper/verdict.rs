//! Whether the measurements here confirm the paper's claims, by the spread over the repeats.
//!
//! The factor here is the median of one row's repeats over the median of the other's. Its spread covers any
//! two repeats: from the smallest numerator over the largest denominator, to the largest numerator over the
//! smallest denominator. A directional claim *holds* if the whole spread is on the paper's side of 1 and a
//! t-test of the repeats' logarithms rules out chance down to [`ERROR`], is *reversed* if that is so on the
//! other side, and is *unclear* otherwise: three repeats and three are separated by chance in a tenth of all
//! cases, whatever is measured. How far the factor is from the paper's is not judged: both are shown.
//!
//! A claim of "about" a factor holds if the whole spread is within a tenth of it, and is reversed if all of
//! it is outside.
//!
//! Times, rates and cycles of simulated and emulated drives are made up: they only show what was put into
//! them, so such a claim is *not judged*; nor is a claim about a row that this build can't run. Counts of a
//! traced run are judged on emulated drives, too.
//!
//! With fewer than three repeats of a row a claim is unclear: with two and two, one order in six is on the
//! paper's side by chance.

use serde::Serialize;

use super::experiment::Says;
use crate::meter::spread::Spread;
use crate::meter::turns::estimate;

/// With fewer repeats of a row a claim is unclear.
pub const REPEATS_MIN: usize = 3;
/// How often equal rows get "holds" or "reversed" by chance, if repeats are normally distributed.
const ERROR: f64 = 0.01;
/// The tolerance of a claim of "about" a factor.
const ABOUT: f64 = 0.1;

/// The ruling on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    /// As in the paper.
    Holds,
    /// The opposite of the paper.
    Reversed,
    /// The repeats are inconclusive.
    Unclear,
    /// The drives were not real, or this program can't run a row.
    #[serde(rename = "not_judged")]
    NotJudged,
}

impl Ruling {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Reversed => "reversed",
            Self::Unclear => "unclear",
            Self::NotJudged => "not judged",
        }
    }
}

/// A figure of one row of a claim, in each repeat; or why it has none.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// The figure, by repeat.
    pub values: Vec<f64>,
    /// Why it allows no verdict, in words.
    pub obstacle: Option<String>,
    /// The kind of its drives, if not real: simulated, or emulated.
    pub unreal: Option<&'static str>,
}

/// A claim's factor here, and the ruling on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Median over median.
    pub factor: Option<f64>,
    /// The smallest and the largest factor between any two repeats.
    pub range: Option<(f64, f64)>,
    /// The ruling.
    pub ruling: Ruling,
    /// Why it is unclear, or not judged.
    pub why: Option<String>,
}

/// A claim that can't be judged, for that reason.
pub fn not_judged(why: &str) -> Judged {
    Judged { factor: None, range: None, ruling: Ruling::NotJudged, why: Some(why.into()) }
}

/// Judges a claim by the repeats of its two rows. `factor` is the paper's; for [`Says::About`] without one it
/// is 1.
pub fn judge(says: Says, factor: Option<f64>, above: &Side, below: &Side) -> Judged {
    let spreads = Spread::of(&above.values).zip(Spread::of(&below.values));
    let here = spreads.and_then(|(a, b)| ratio(a.median, b.median));
    let range = spreads.and_then(|(a, b)| Some((ratio(a.low, b.high)?, ratio(a.high, b.low)?)));
    let unclear = |why: String| Judged { factor: here, range, ruling: Ruling::Unclear, why: Some(why) };
    if let Some(unreal) = above.unreal.or(below.unreal) {
        return Judged { ruling: Ruling::NotJudged, ..unclear(unreal.into()) };
    }
    if let Some(obstacle) = above.obstacle.as_ref().or(below.obstacle.as_ref()) {
        return unclear(obstacle.clone());
    }
    let repeats = above.values.len().min(below.values.len());
    let Some((low, high)) = range else { return unclear("no figures".into()) };
    if repeats < REPEATS_MIN {
        let noun = if repeats == 1 { "repeat" } else { "repeats" };
        return unclear(format!("{repeats} {noun}, but {REPEATS_MIN} are needed"));
    }
    let chance = if low > 1.0 || high < 1.0 {
        "the repeats vary too much for their number"
    } else {
        "the repeats overlap"
    };
    let differ = estimate::repeats_differ(&above.values, &below.values, ERROR);
    let (holds, reversed, overlap) = match says {
        Says::More => (differ && low > 1.0, differ && high < 1.0, chance),
        Says::Less => (differ && high < 1.0, differ && low > 1.0, chance),
        Says::About => {
            let of = factor.unwrap_or(1.0);
            let (least, most) = (of * (1.0 - ABOUT), of * (1.0 + ABOUT));
            let within = low >= least && high <= most;
            (within, high < least || low > most, "the spread crosses a tenth of the factor")
        }
    };
    match (holds, reversed) {
        (true, _) => Judged { factor: here, range, ruling: Ruling::Holds, why: None },
        (_, true) => Judged { factor: here, range, ruling: Ruling::Reversed, why: None },
        _ => unclear(overlap.into()),
    }
}

/// A ratio, if it is meaningful.
fn ratio(above: f64, below: f64) -> Option<f64> {
    (below > 0.0).then(|| above / below).filter(|ratio| ratio.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn side(values: &[f64]) -> Side {
        Side { values: values.to_vec(), obstacle: None, unreal: None }
    }

    fn ruling(says: Says, above: &[f64], below: &[f64]) -> Ruling {
        judge(says, None, &side(above), &side(below)).ruling
    }

    #[test]
    fn the_whole_spread_decides() {
        let (slow, fast, wide) = ([100.0, 102.0, 101.0], [144.0, 146.0, 143.0], [90.0, 150.0, 120.0]);
        assert_eq!(ruling(Says::More, &fast, &slow), Ruling::Holds);
        assert_eq!(ruling(Says::Less, &fast, &slow), Ruling::Reversed);
        assert_eq!(ruling(Says::More, &slow, &fast), Ruling::Reversed);
        assert_eq!(ruling(Says::More, &wide, &slow), Ruling::Unclear);
        let judged = judge(Says::More, Some(1.44), &side(&fast), &side(&slow));
        assert_eq!(judged.factor, Some(144.0 / 101.0));
        assert_eq!(judged.range, Some((143.0 / 102.0, 146.0 / 100.0)));
        assert_eq!(judged.why, None);
    }

    #[test]
    fn equal_rows_seldom_hold_or_are_reversed() {
        use rand::{RngExt as _, SeedableRng as _};
        let mut random = rand::rngs::SmallRng::seed_from_u64(7);
        for repeats in [3, 4, 8] {
            // Sums of twelve are close enough to normal.
            let mut row = || -> Vec<f64> {
                let one = || (0..12).map(|_| random.random::<f64>()).sum::<f64>();
                std::iter::repeat_with(one).take(repeats).map(|sum| 100.0 + sum).collect()
            };
            let decided = (0..4000).filter(|_| ruling(Says::More, &row(), &row()) != Ruling::Unclear).count();
            println!("{repeats} repeats: {decided} of 4000");
            assert!((10..=60).contains(&decided) || repeats == 8 && decided <= 60, "{repeats}: {decided}");
        }
        // By order alone, three and three would be decided in 400 of 4000 cases.
    }

    #[test]
    fn about_is_within_a_tenth_of_the_papers_factor() {
        let about = |of, above: &[f64]| {
            judge(Says::About, Some(of), &side(above), &side(&[100.0, 100.0, 100.0])).ruling
        };
        assert_eq!(about(1.0, &[95.0, 105.0, 100.0]), Ruling::Holds);
        assert_eq!(about(1.0, &[95.0, 115.0, 100.0]), Ruling::Unclear);
        assert_eq!(about(1.0, &[120.0, 115.0, 130.0]), Ruling::Reversed);
        assert_eq!(about(0.5, &[100.0, 100.0, 100.0]), Ruling::Reversed);
        assert_eq!(about(0.5, &[48.0, 50.0, 53.0]), Ruling::Holds);
    }

    #[test]
    fn without_repeats_or_with_a_flag_a_claim_is_unclear_with_the_reason() {
        let why = |above: &Side, below: &Side| {
            let judged = judge(Says::More, None, above, below);
            assert_eq!(judged.ruling, Ruling::Unclear);
            judged.why.unwrap()
        };
        let good = side(&[1.0, 1.0, 1.0]);
        assert_eq!(why(&side(&[9.0]), &good), "1 repeat, but 3 are needed");
        assert_eq!(why(&side(&[9.0, 9.1]), &good), "2 repeats, but 3 are needed");
        assert_eq!(why(&side(&[]), &good), "no figures");
        assert_eq!(why(&side(&[9.0, 9.0, 9.0]), &side(&[0.0, 0.0, 0.0])), "no figures");
        let flagged = Side { obstacle: Some("row 1: cache 97%".into()), ..side(&[9.0, 9.0, 9.0]) };
        assert_eq!(why(&flagged, &good), "row 1: cache 97%");
        assert_eq!(why(&good, &flagged), "row 1: cache 97%");
    }

    #[test]
    fn what_is_not_real_proves_nothing() {
        let (fast, slow) = (side(&[9.0, 9.1, 9.2]), side(&[1.0, 1.0, 1.0]));
        let unreal = Side { unreal: Some("simulated"), ..fast.clone() };
        for (above, below) in [(&unreal, &slow), (&slow, &unreal)] {
            let judged = judge(Says::More, None, above, below);
            assert_eq!((judged.ruling, judged.why.as_deref()), (Ruling::NotJudged, Some("simulated")));
            assert!(judged.factor.is_some(), "both figures are shown");
        }
        assert_eq!(judge(Says::More, None, &fast, &slow).ruling, Ruling::Holds);
    }

    fn positive() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.001..1e6_f64, REPEATS_MIN..8)
    }

    fn opposite(says: Says) -> Says {
        match says {
            Says::More => Says::Less,
            Says::Less => Says::More,
            Says::About => Says::About,
        }
    }

    proptest! {
        /// A verdict never contradicts the factor itself, nor does any repeat contradict the verdict.
        #[test]
        fn no_repeat_contradicts_a_verdict(above in positive(), below in positive()) {
            let judged = judge(Says::More, None, &side(&above), &side(&below));
            let (low, high) = judged.range.unwrap();
            let factor = judged.factor.unwrap();
            prop_assert!(low <= factor && factor <= high);
            for a in &above {
                for b in &below {
                    match judged.ruling {
                        Ruling::Holds => prop_assert!(a > b),
                        Ruling::Reversed => prop_assert!(a < b),
                        Ruling::Unclear | Ruling::NotJudged => {}
                    }
                }
            }
            let overlap = above.iter().any(|a| below.iter().any(|b| a <= b))
                && above.iter().any(|a| below.iter().any(|b| a >= b));
            prop_assert!(!overlap || judged.ruling == Ruling::Unclear);
        }

        /// The opposite claim, and the claim with its rows exchanged, get the mirrored verdict.
        #[test]
        fn a_claim_and_its_opposite_agree(above in positive(), below in positive()) {
            let mirrored = |ruling| match ruling {
                Ruling::Holds => Ruling::Reversed,
                Ruling::Reversed => Ruling::Holds,
                ruling => ruling,
            };
            for says in [Says::More, Says::Less] {
                let it = ruling(says, &above, &below);
                prop_assert_eq!(ruling(opposite(says), &above, &below), mirrored(it));
                prop_assert_eq!(ruling(opposite(says), &below, &above), it);
            }
        }

        /// Neither the order of the repeats nor the unit matters.
        #[test]
        fn order_and_unit_do_not_matter(mut above in positive(), below in positive()) {
            let judged = judge(Says::About, Some(1.2), &side(&above), &side(&below));
            above.reverse();
            let again = judge(Says::About, Some(1.2), &side(&above), &side(&below));
            prop_assert_eq!(&judged, &again);
            let doubled = |values: &[f64]| side(&values.iter().map(|x| x * 2.0).collect::<Vec<_>>());
            let scaled = judge(Says::About, Some(1.2), &doubled(&above), &doubled(&below));
            prop_assert_eq!(judged.ruling, scaled.ruling);
        }

        /// More repeats never reverse a ruling.
        #[test]
        fn another_repeat_never_reverses_a_verdict(above in positive(), below in positive(), more in 0.001..1e6_f64) {
            let before = ruling(Says::More, &above, &below);
            let longer = [&above[..], &[more]].concat();
            let after = ruling(Says::More, &longer, &below);
            prop_assert!(after == before || before == Ruling::Unclear || after == Ruling::Unclear);
        }
    }
}
