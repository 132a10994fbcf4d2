//! The figures of a ledger's line: what each is called, and what it is measured in.

use std::fmt;

/// A figure of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerFigure {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: FigureUnit,
}

/// The unit of a figure of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    /// 10⁶ bytes per second.
    MbPerS,
    /// Latency in nanoseconds.
    LatencyNs,
    /// CPU cycles of the whole system over the bytes of all classes.
    CyclesPerByte,
    /// A share of all intended starts.
    Share,
}

impl LedgerFigure {
    /// Whether a higher value is a gain: only for rates; for latencies, cycles and missed starts, lower is better.
    pub fn more_is_gain(self) -> bool {
        self.unit == FigureUnit::MbPerS
    }
}

impl fmt::Display for LedgerFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}
