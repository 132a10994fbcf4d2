//! A figure before and after a turn of a knob, and whether it changed.

use serde::{Deserialize, Serialize};

use crate::settings::Better;

/// A figure of the ledger before and after a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Mean over the windows before; a percentile is that of all their I/Os.
    pub before: Option<f64>,
    /// The smallest and largest value of a window before; for a percentile, of a stretch of windows that
    /// together have enough I/Os.
    pub before_range: Option<(f64, f64)>,
    /// Likewise after.
    pub after: Option<f64>,
    /// The smallest and largest value after.
    pub after_range: Option<(f64, f64)>,
    /// The interval of the change, as fractions of the value before ([`super::turns::estimate`]).
    #[serde(default)]
    pub interval: Option<(f64, f64)>,
    /// Whether it changed clearly.
    pub verdict: Verdict,
    /// Which direction is better for a program's figure, where its profile says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

impl Change {
    /// The change as a fraction of the value before; none if a value is unknown, or the one before is zero.
    pub fn relative(&self) -> Option<f64> {
        let before = self.before.filter(|before| *before > 0.0)?;
        Some(self.after? / before - 1.0)
    }

    /// Whether a clear change of a program's figure is a gain; none if it is not clear, or the profile does not say.
    pub fn is_gain(&self) -> Option<bool> {
        match self.verdict {
            Verdict::None | Verdict::NoClearChange => None,
            Verdict::Higher | Verdict::Lower => Some(self.better?.is_gain(self.verdict == Verdict::Higher)),
        }
    }
}

/// A turn's effect on a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Unknown: no windows, or a flag forbids a verdict.
    #[default]
    None,
    /// A change that may be chance, or is too small to matter.
    NoClearChange,
    /// Clearly higher after than before.
    Higher,
    /// Clearly lower.
    Lower,
}

impl Verdict {
    /// Whether there is a clear change.
    pub fn is_clear(self) -> bool {
        matches!(self, Self::Higher | Self::Lower)
    }
}
