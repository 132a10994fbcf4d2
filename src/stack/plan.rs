//! What is to be done to build a stack, as data: shown, confirmed, and then run as it was shown.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::guard::Consent;
use super::place::{Drive, Place};
use super::step::Step;
use crate::error::Result;
use crate::host::Facts;
use crate::profile::Settings;

/// A stack's own id: 16 hexadecimal digits, random; folders, arrays and ids are named after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackId(pub String);

impl StackId {
    /// A new one.
    pub fn random() -> Self {
        Self(format!("{:016x}", rand::random::<u64>()))
    }
}

/// Steps to a stack, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The stack's id.
    pub id: StackId,
    /// The steps.
    pub steps: Vec<Step>,
    /// Drives of which everything is destroyed, with what is on them now.
    pub destroys: Vec<Destroyed>,
    /// What the target is then opened on.
    pub top: Top,
    /// What it survives and costs.
    pub worth: Worth,
    /// Bytes that the steps write, and then the fill, of all drives.
    pub writes_bytes: u64,
}

/// A drive of which everything is destroyed.
#[derive(Debug, Clone, PartialEq)]
pub struct Destroyed {
    /// The drive.
    pub drive: Drive,
    /// What is on it, in words; empty where nothing but stacktune's own data was found.
    pub content: Vec<String>,
    /// Bytes that are written to it, by steps and fill.
    pub writes_bytes: u64,
    /// Its rated endurance in bytes, where known.
    pub rated_bytes: Option<u64>,
}

/// What the target is opened on once the stack stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Top {
    /// Block devices, pages interleaved over them.
    Devices(Vec<Place>),
    /// A data file and a WAL file in a folder of a file system.
    Files {
        /// The folder.
        dir: PathBuf,
        /// Bytes of the data file.
        data_bytes: u64,
        /// Bytes of the WAL file.
        wal_bytes: u64,
    },
}

/// What survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerCut {
    /// What was committed is there.
    Yes,
    /// Commits may be lost.
    No,
    /// The drives do not tell whether their caches are volatile.
    Unknown,
}

/// What a stack survives, holds and costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Worth {
    /// A power cut.
    pub power_cut: PowerCut,
    /// Why, in a sentence.
    pub why: String,
    /// Drives that may be lost without losing data.
    pub drives_lost: u64,
    /// Usable bytes.
    pub usable_bytes: u64,
    /// The price of all drives in $, where told.
    pub price: Option<f64>,
}

/// A plan that the operator has agreed to. Only [`Plan::confirm`] makes one.
#[derive(Debug)]
pub struct Confirmed {
    pub(super) plan: Plan,
}

/// Plans the stack of the settings. Looks at drives and files, writes nothing.
///
/// `state_dir` is where stacktune keeps journals and mount points. The drives of `standing` are those
/// of a stack that is taken down before: what uses them now is that, and they are not looked at. The
/// same id gives the same plan.
///
/// # Errors
/// Refused (3) where the guard refuses a drive; input (2) where the settings don't make a stack.
pub fn plan(
    settings: &Settings,
    facts: &Facts,
    id: StackId,
    state_dir: &Path,
    standing: &[Drive],
) -> Result<Plan> {
    let _ = (settings, facts, id, state_dir, standing);
    todo!()
}

/// What the settings' stack survives, holds and costs on this host.
pub fn worth(settings: &Settings, facts: &Facts) -> Worth {
    let _ = (settings, facts);
    todo!()
}

impl Plan {
    /// The drives that it is built on; none where it is built on files.
    pub fn drives(&self) -> Vec<Drive> {
        self.destroys.iter().map(|destroyed| destroyed.drive.clone()).collect()
    }

    /// The plan as text, a line a step, each with the command that it is; what runs is what is shown.
    pub fn lines(&self) -> Vec<String> {
        todo!()
    }

    /// What the operator types to agree, a word for each drive that is destroyed: its serial, or its
    /// name where it has none.
    pub fn to_type(&self) -> Vec<String> {
        todo!()
    }

    /// Goes on only with consent for each drive that is destroyed.
    pub fn confirm(self, consent: &Consent) -> Result<Confirmed> {
        for destroyed in self.destroys.iter().filter(|destroyed| !destroyed.content.is_empty()) {
            let drive = &destroyed.drive;
            if !consent.covers_device(&drive.name, drive.serial.as_deref()) {
                let what = format!("{} is not empty: {}", drive.path.display(), destroyed.content.join("; "));
                return Err(crate::error::Error::refused(what));
            }
        }
        Ok(Confirmed { plan: self })
    }
}
