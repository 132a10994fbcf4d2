//! The target of a run, as the settings specify it.

use crate::settings::{Interface, Kv, Settings, Sim, Target, Wal};
use crate::stack::handover::Noiommu;

/// The target of a run.
#[derive(Debug, Clone)]
pub(in crate::runs::session) enum TargetSpec {
    /// Nothing touches storage.
    Imagined(ImaginedSpec),
    /// Files, or devices as they are.
    Pages(PagesSpec),
    /// A data set of key-value pairs.
    KeyValue(KvSpec),
    /// A program's folder, and its log's folder if that is separate; `~` stands for the home folder.
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
    /// The simulated devices; none if the generator runs alone.
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
    /// The folder; `~` stands for the home folder.
    pub dir: String,
    pub kv: Kv,
}

/// The content of a stack.
#[derive(Debug, Clone)]
pub(in crate::runs::session) struct BuiltSpec {
    pub target: Target,
    pub wal: Wal,
    /// The data set; none if the stack holds pages.
    pub kv: Option<Kv>,
    /// Whether a program makes its own files on it.
    pub program: bool,
}

impl BuiltSpec {
    /// From settings that build a stack.
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
