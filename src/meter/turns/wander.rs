//! How far a run's figures wander by themselves, measured by pseudo-turns.
//!
//! A level may stay where it is on both sides of a turn and still jump every half minute: the windows beside
//! the turn do not show that, but earlier ones do. A pseudo-turn has two sides as long as a turn's, with no
//! knob turned between them, so any difference between them is the run's own. A turn's change is clear only
//! beyond what the run's last pseudo-turns leave to chance.

use std::collections::{BTreeMap, VecDeque};

use super::estimate::{STALLED, Together, quantile, root_mean_square, without_hiccups};
use crate::meter::window::LedgerLine;

/// The most pseudo-turns that count, the latest ones,
const TURNS_MAX: usize = 60;
/// and the fewest that say how far the next one may go.
const TURNS_MIN: usize = 8;

/// How a run's figures changed over its last pseudo-turns.
#[derive(Debug, Clone, Default)]
pub(in crate::meter) struct Wander {
    /// The logarithms of after over before, by figure.
    changes: BTreeMap<String, VecDeque<f64>>,
}

impl Wander {
    /// Takes a pseudo-turn's line.
    pub(super) fn take(&mut self, line: &LedgerLine) {
        let figures = line.changes().map(|(figure, change)| (figure.name, change));
        let metrics = line.metrics.iter().map(|(name, change)| (name.as_str(), change));
        for (name, change) in figures.into_iter().chain(metrics) {
            let Some((before, after)) = change.before.zip(change.after) else { continue };
            let least = before.max(after) * STALLED;
            if least <= 0.0 {
                continue;
            }
            let changes = self.changes.entry(name.to_owned()).or_default();
            if changes.len() == TURNS_MAX {
                changes.pop_front();
            }
            changes.push_back((after.max(least) / before.max(least)).ln());
        }
    }

    /// How far a figure goes by chance, as a logarithm; none while too few pseudo-turns have shown it.
    pub(super) fn reach(&self, figure: &str, together: Together) -> Option<f64> {
        let changes = self.changes.get(figure).filter(|changes| changes.len() >= TURNS_MIN)?;
        let changes: Vec<f64> = changes.iter().copied().collect();
        let spread = root_mean_square(&without_hiccups(&changes));
        Some(quantile(together.error(), changes.len() as f64) * spread)
    }
}

#[cfg(test)]
#[path = "wander_tests.rs"]
mod tests;
