//! Reading back what a run has written.

use std::sync::atomic::AtomicBool;

use super::message::Progress;
use super::run::Session;
use crate::error::{Error, Result};
use crate::load::kv::PairsReport;
use crate::load::volume::VerifyReport;

/// What came of reading the target back.
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

impl Session {
    /// Reads the target back once all has drained, and checks every page that was written, or every pair;
    /// none where nothing touches storage.
    pub fn verify(&self, progress: &mut dyn FnMut(Progress), stop: &AtomicBool) -> Result<Option<Verified>> {
        if self.settings.leaves_kernel() {
            let what = "the drives have left the kernel, which reads them back";
            return Err(Error::input(what).hint("run `stacktune verify` once they are given back"));
        }
        if let Some(store) = self.engine.pairs() {
            return store.verify(progress, stop).map(|report| Some(Verified::Pairs(report)));
        }
        let verified = self.target.volume.as_ref().map(|volume| volume.verify(progress, stop)).transpose()?;
        Ok(verified.map(Verified::Pages))
    }
}
