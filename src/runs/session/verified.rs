//! Reading back what a run has written.

use crate::load::kv::PairsReport;
use crate::load::volume::VerifyReport;

/// The result of reading the target back.
#[derive(Debug)]
pub enum Verified {
    /// Of pages.
    Pages(VerifyReport),
    /// Of pairs.
    Pairs(PairsReport),
}

impl Verified {
    /// Whether everything was looked at and is as it was written.
    pub fn is_clean(&self) -> bool {
        match self {
            Self::Pages(report) => report.is_clean(),
            Self::Pairs(report) => report.is_clean(),
        }
    }
}

impl std::fmt::Display for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pages(report) => report.fmt(f),
            Self::Pairs(report) => report.fmt(f),
        }
    }
}
