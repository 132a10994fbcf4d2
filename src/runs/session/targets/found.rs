//! The content of a target's place: examined and locked against others, but not yet changed.

use std::path::PathBuf;

use super::key_value::{FoundPairs, KeyValue};
use super::layout::Layout;
use super::pages::{FoundPages, Pages};
use super::program_folder::ProgramFolder;
use super::spec::{ImaginedSpec, KvSpec, TargetSpec};
use super::stack::request;
use crate::error::{Error, Result};
use crate::host::{Facts, TargetFacts, Trusting, make_own_folder};
use crate::runs::session::attendant::Attendant;
use crate::runs::session::opening::consent::refuse_stray_consent;
use crate::runs::session::opening::data_set::folder;
use crate::runs::session::options::Options;
use crate::settings::Sim;
use crate::settings::paths::absolute;
use crate::stack::build::Built;
use crate::stack::plan::Exposed;

/// The content that can be opened.
pub(in crate::runs::session) enum FoundTarget {
    Imagined(Imagined),
    Pages(FoundPages),
    KeyValue(FoundPairs),
    Folder(PathBuf, Option<PathBuf>),
}

/// The open content, on a stack or not.
pub(in crate::runs::session) enum Content {
    /// Regions without storage.
    Imagined(Imagined),
    /// Files or devices, read and written in pages.
    Pages(Pages),
    /// A data set of pairs.
    KeyValue(KeyValue),
    /// A folder for a program's files.
    Folder(ProgramFolder),
}

/// Regions without storage, and the simulated devices for them.
pub struct Imagined {
    pub(super) layout: Layout,
    pub(super) sim: Option<Sim>,
}

impl FoundTarget {
    /// Examines the content to be opened, on its stack if there is one. All refusals happen here, before
    /// anything is made or written; anything to be written is locked against others from here on.
    ///
    /// # Errors
    /// Refused if data is at risk; input if there is no such content.
    pub fn look(
        spec: &TargetSpec,
        built: Option<&Built>,
        options: &Options,
        facts: &Facts,
        attendant: &mut dyn Attendant,
    ) -> Result<Self> {
        let exposed = built.map(|built| &built.plan().exposed);
        match spec {
            TargetSpec::Imagined(spec) => Ok(Self::Imagined(Imagined::of(spec))),
            TargetSpec::Pages(spec) => FoundPages::look(spec, options, facts, attendant).map(Self::Pages),
            TargetSpec::KeyValue(spec) => {
                refuse_stray_consent(&options.destroy, &[], facts)?;
                if options.read_only {
                    return Err(writes_at_once());
                }
                pairs(spec, None, options)
            }
            TargetSpec::Folder(dir, wal) => {
                refuse_stray_consent(&options.destroy, &[], facts)?;
                Ok(Self::Folder(absolute("target.files.dir", dir)?, log_folder(wal.as_ref())?))
            }
            TargetSpec::Stack(spec) if spec.program => {
                let wal = log_folder(spec.wal.target.as_ref())?;
                folder(&spec.target.dir, exposed, "a program").map(|dir| Self::Folder(dir, wal))
            }
            TargetSpec::Stack(spec) => match (&spec.kv, built) {
                (Some(kv), _) => {
                    let spec = KvSpec { dir: spec.target.dir.clone(), kv: kv.clone() };
                    pairs(&spec, exposed, options)
                }
                (None, Some(built)) => FoundPages::look_built(request(built)?).map(Self::Pages),
                (None, None) => Err(Error::failed("nothing was built for the target")),
            },
        }
    }

    /// Its abilities, as far as they are known before it is open.
    pub fn facts(&self) -> Option<&TargetFacts> {
        match self {
            Self::Imagined(_) | Self::Folder(..) => None,
            Self::Pages(pages) => pages.facts(),
            Self::KeyValue(pairs) => Some(&pairs.facts),
        }
    }

    /// Bytes that will be filled, or loaded.
    pub fn bytes_to_fill(&self) -> u64 {
        match self {
            Self::Imagined(_) | Self::Folder(..) => 0,
            Self::Pages(pages) => pages.bytes_to_fill(),
            Self::KeyValue(pairs) => pairs.bytes_to_load,
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// If another run uses it, or it can't be opened.
    pub fn open(self, attendant: &mut dyn Attendant) -> Result<Content> {
        match self {
            Self::Imagined(imagined) => Ok(Content::Imagined(imagined)),
            Self::Pages(pages) => pages.open().map(Content::Pages),
            Self::KeyValue(pairs) => pairs.open(attendant).map(Content::KeyValue),
            Self::Folder(dir, wal) => {
                make_own_folder(&dir, Trusting::Caller)?;
                Ok(Content::Folder(ProgramFolder::of(dir, wal)))
            }
        }
    }
}

impl Imagined {
    fn of(spec: &ImaginedSpec) -> Self {
        let layout = Layout::imagined(spec.count, spec.size_bytes, spec.sim.is_some());
        Self { layout, sim: spec.sim.clone() }
    }
}

fn pairs(spec: &KvSpec, exposed: Option<&Exposed>, options: &Options) -> Result<FoundTarget> {
    let dir = folder(&spec.dir, exposed, "RocksDB")?;
    FoundPairs::look(dir, spec.kv.clone(), options.anew).map(FoundTarget::KeyValue)
}

/// The folder of a program's log, if the log has its own place.
fn log_folder(wal: Option<&String>) -> Result<Option<PathBuf>> {
    wal.map(|wal| absolute("wal.target", wal)).transpose()
}

fn writes_at_once() -> Error {
    let what = "RocksDB writes to its files as soon as it opens them, and --read-only writes nothing";
    Error::input(what).hint("leave --read-only out, or set load.engine to pages")
}
