//! Reading back what a run has written.

use crate::error::{Error, Result};
use crate::load::kv::PairsReport;
use crate::load::volume::VerifyReport;

/// The result of reading the target back.
#[derive(Debug)]
pub enum Verified {
    /// Of pages.
    Pages(Box<VerifyReport>),
    /// Of pairs.
    Pairs(PairsReport),
}

impl Verified {
    /// Whether everything was looked at and is as it was written.
    fn is_clean(&self) -> bool {
        match self {
            Self::Pages(report) => report.is_clean(),
            Self::Pairs(report) => report.is_clean(),
        }
    }

    /// What it means for the command.
    ///
    /// # Errors
    /// Failed if something is not as it was written, or pages could not be compared with what was.
    pub fn ended_well(&self) -> Result<()> {
        match self {
            _ if !self.is_clean() => Err(Error::failed("not everything is as written")),
            Self::Pages(report) if !report.write_map.compared => {
                let why = report.write_map.why.as_deref().unwrap_or_default();
                Err(Error::failed(format!("not checked for lost writes: {why}"))
                    .hint("what the next run writes is"))
            }
            _ => Ok(()),
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
