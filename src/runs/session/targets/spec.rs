//! What a run is to work on, as far as the settings say it.

use crate::settings::{Interface, Kv, Settings, Sim, Target, Wal};
use crate::stack::handover::Noiommu;

/// What a run is to work on.
#[derive(Debug, Clone)]
pub(in crate::runs::session) enum TargetSpec {
    /// Nothing touches storage.
    Imagined(ImaginedSpec),
    /// Files, or devices as they are.
    Pages(PagesSpec),
    /// A data set of key-value pairs.
    KeyValue(KvSpec),
    /// The folder of a program, and that of its log if it has one, `~` being the home folder.
    Folder(String, Option<String>),
    /// Files, devices or pairs, or a program's folder, on a stack that is built for them.
    Stack(BuiltSpec),
}

/// Regions without storage.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct ImaginedSpec {
    /// Members.
    pub count: u32,
    /// Bytes of each.
    pub size_bytes: u64,
    /// The devices that are simulated; none where the generator runs alone.
    pub sim: Option<Sim>,
}

/// Files of a folder, or devices, with the WAL's place.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct PagesSpec {
    pub target: Target,
    pub wal: Wal,
}

/// A data set in a folder.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct KvSpec {
    /// The folder, `~` being the home folder.
    pub dir: String,
    pub kv: Kv,
}

/// What is opened on a stack.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct BuiltSpec {
    pub target: Target,
    pub wal: Wal,
    /// The data set; none where the stack holds pages.
    pub kv: Option<Kv>,
    /// Whether a program makes its own files on it.
    pub program: bool,
}

impl BuiltSpec {
    /// That of settings which build a stack.
    pub fn of(settings: &Settings) -> Self {
        let (target, wal) = (settings.target.clone(), settings.wal.clone());
        let program = settings.program.is_some();
        Self { target, wal, kv: settings.is_keyed().then(|| settings.kv.clone()), program }
    }
}

/// How drives leave the kernel.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct UserspaceSpec {
    /// What drives them.
    pub interface: Interface,
    /// Whether they may go without an IOMMU.
    pub noiommu: Noiommu,
}
