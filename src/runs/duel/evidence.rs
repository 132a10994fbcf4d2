//! The evidence in the signs of paired differences, after any number of pairs.
//!
//! If two settings do not differ in a figure, the sign of each pair's difference is that of the coin that chose the
//! order, whatever the noise is like. A gambler who bets on the signs then wins as often as he loses, and the chance
//! that his stake ever grows by a factor E is at most 1/E (Ville 1939): it is valid to look after each pair, and to
//! stop at any. Five gamblers bet that the second value is higher, five that it is lower, each with his own boldness;
//! [`evidence`] is the mean of their stakes. They bet more on large differences than on small ones, relative to the
//! median so far; the bet is chosen before looking at the sign.

use crate::meter::spread::Spread;

/// How boldly the gamblers bet.
const BOLDNESS: [f64; 5] = [0.3, 0.6, 1.0, 1.7, 3.0];
/// A difference of this many medians counts like any larger one.
const MEDIANS_MAX: f64 = 4.0;
/// The step of the search for an interval's ends, and how far it goes (a factor of four), as logarithms.
const STEP: f64 = 0.002;
const FAR: f64 = 1.4;
/// The smallest factor that a margin allows for.
const LEAST: f64 = 0.01;

/// The gamblers' stakes, as logarithms: of those who bet on higher values, and of those who bet on lower ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stakes([[f64; 2]; BOLDNESS.len()]);

impl Stakes {
    /// Bets on the signs of these differences too. The median to which sizes are compared starts over, so that blocks
    /// of another length may follow; the stakes do not, or each restart would wipe out all losses.
    pub fn bet(&mut self, differences: &[f64]) {
        self.bet_around(differences, 0.0);
    }

    /// The evidence that the differences are not around zero: 1 is none; 40 or more has a chance of one in 40.
    pub fn evidence(&self) -> f64 {
        self.0.iter().flatten().map(|stake| stake.exp()).sum::<f64>() / (2 * BOLDNESS.len()) as f64
    }

    /// Whether those who bet on higher values own more.
    pub fn are_for_more(&self) -> bool {
        let all = |direction: usize| self.0.iter().map(|stakes| stakes[direction].exp()).sum::<f64>();
        all(0) > all(1)
    }

    fn bet_around(&mut self, differences: &[f64], shift: f64) {
        let mut sizes: Vec<f64> = Vec::with_capacity(differences.len());
        for difference in differences.iter().map(|difference| difference - shift) {
            let size = difference.abs();
            let at = sizes.partition_point(|other| *other < size);
            sizes.insert(at, size);
            if size == 0.0 {
                continue;
            }
            let median = sizes[sizes.len() / 2];
            let bet = difference.signum() * (size / median).min(MEDIANS_MAX);
            for (stake, boldness) in self.0.iter_mut().zip(BOLDNESS) {
                let even = ln_cosh(boldness * bet);
                stake[0] += boldness * bet - even;
                stake[1] -= boldness * bet + even;
            }
        }
    }
}

/// The evidence of these differences alone; see [`Stakes::evidence`].
pub fn evidence(differences: &[f64]) -> f64 {
    around(differences, 0.0)
}

/// The shifts against which the differences hold less evidence than `threshold`: if all pairs differ by the
/// same factor, its logarithm is in this range, with a chance of error of one in `threshold`.
pub fn interval(differences: &[f64], threshold: f64) -> (f64, f64) {
    let middle = median(differences);
    let end = |direction: f64| {
        let steps = (0..(FAR / STEP) as u32).map(|step| middle + direction * f64::from(step) * STEP);
        steps.take_while(|shift| around(differences, *shift) < threshold).last()
    };
    let end = |direction: f64| end(direction).map_or(middle, |last| last + direction * STEP);
    (end(-1.0), end(1.0))
}

/// The median; 0 if there are none.
pub fn median(differences: &[f64]) -> f64 {
    Spread::of(differences).map_or(0.0, |spread| spread.median)
}

/// Whether the differences are evidence against every shift of `margin` or more, in both directions.
pub fn is_within(differences: &[f64], margin: f64, threshold: f64) -> bool {
    let (low, high) = ((1.0 - margin).max(LEAST).ln(), (1.0 + margin).ln());
    let is_inside = !differences.is_empty() && (low..high).contains(&median(differences));
    is_inside && [low, high].into_iter().all(|shift| around(differences, shift) >= threshold)
}

fn around(differences: &[f64], shift: f64) -> f64 {
    let mut stakes = Stakes::default();
    stakes.bet_around(differences, shift);
    stakes.evidence()
}

/// Avoids the overflow of cosh.
fn ln_cosh(x: f64) -> f64 {
    x.abs() + (-2.0 * x.abs()).exp().ln_1p() - std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    #[test]
    fn the_gamblers_expect_nothing_of_a_coin() {
        // All 2^10 orders of signs, with sizes of any kind: the mean of the evidence is 1.
        let sizes = [0.1, 3.0, 0.2, 0.2, 50.0, 0.01, 1.0, 1.1, 0.9, 7.0];
        let signed = |signs: u32| {
            sizes
                .iter()
                .enumerate()
                .map(|(at, size)| if signs >> at & 1 == 1 { -size } else { *size })
                .collect()
        };
        let all = (0..1024).map(|signs| evidence(&signed(signs) as &Vec<f64>));
        assert!((all.sum::<f64>() / 1024.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn evidence_ever_exceeds_forty_in_one_of_forty_series_at_most() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut exceeds = |_: &u32| {
            let mut differences: Vec<f64> = Vec::new();
            (0..40).any(|_| {
                // Sizes as wild as can be; only the coin is fair.
                let size = (random.random::<f64>() * 8.0).exp();
                differences.push(if random.random_bool(0.5) { size } else { -size });
                evidence(&differences) >= 40.0
            })
        };
        let found = (0..4000).filter(|run| exceeds(run)).count();
        assert!((10..=100).contains(&found), "{found} of 4000");
    }

    #[test]
    fn who_begins_anew_keeps_what_was_lost() {
        // Starting over up to twice, with the stakes kept, makes a win no more likely.
        let mut random = SmallRng::seed_from_u64(3);
        let mut exceeds = |_: &u32| {
            let mut stakes = Stakes::default();
            (0..3).any(|stretch| {
                let mut differences: Vec<f64> = Vec::new();
                (0..40).any(|pair| {
                    let size = (random.random::<f64>() * 3.0).exp();
                    differences.push(if random.random_bool(0.5) { size } else { -size });
                    let mut now = stakes;
                    now.bet(&differences);
                    let begins_anew = stretch < 2 && pair == 39;
                    if begins_anew {
                        stakes = now;
                    }
                    now.evidence() >= 40.0
                })
            })
        };
        let found = (0..4000).filter(|run| exceeds(run)).count();
        assert!((10..=100).contains(&found), "{found} of 4000");
        let mut up = Stakes::default();
        up.bet(&[0.1, 0.1, 0.2]);
        assert!(up.are_for_more());
        up.bet(&[-0.1; 7]);
        assert!(!up.are_for_more());
    }

    #[test]
    fn the_interval_holds_the_factor() {
        let mut random = SmallRng::seed_from_u64(2);
        let factor = 0.1;
        let differences: Vec<f64> = (0..14).map(|_| factor + 0.04 * (random.random::<f64>() - 0.5)).collect();
        let (low, high) = interval(&differences, 40.0);
        assert!(low < factor && factor < high && high - low < 0.06, "{low} {high}");
        assert!(evidence(&differences) > 40.0);
        assert!(evidence(&differences[..5]) < 40.0, "five are too few, whatever they are");
        assert!(is_within(&differences, 0.2, 40.0) && !is_within(&differences, 0.1, 40.0));
        assert!(is_within(&differences, 1.0, 40.0), "nothing is less than nothing");
        let nothing = interval(&[], 40.0);
        assert!(nothing.0 < -1.3 && nothing.1 > 1.3);
    }
}
