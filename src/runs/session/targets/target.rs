//! The target of a run: one of several kinds, and their common operations.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::found::{Content, Imagined};
use super::key_value::KeyValue;
use super::layout::Layout;
use super::pages::Pages;
use super::program_folder::ProgramFolder;
use super::spec::UserspaceSpec;
use super::stack::{OnStack, Stack};
use super::userspace_drives::UserspaceDrives;
use crate::error::{Error, Kind, Result};
use crate::host::TargetFacts;
use crate::load::volume::write_map::WriteMap;
use crate::load::workers::control::Writes;
use crate::load::workers::{KvWorkers, SimulatedWorkers, ThreadedWorkers, Workers};
use crate::runs::pitfalls::Prepared;
use crate::runs::session::attendant::Attendant;
use crate::runs::session::message::Progress;
use crate::runs::session::targets::verified::Verified;
use crate::runs::session::write_budget::WriteBudget;
use crate::stack::build::Built;
use crate::stack::guard::Claim;
use crate::stack::journal::Journal;
use crate::stack::supervise::Watch;

/// The target of a run.
// There is only one at a time, so its size does not matter.
#[expect(clippy::large_enum_variant)]
pub enum Target {
    /// Regions without storage.
    Imagined(Imagined),
    /// Files of a folder.
    Files(Pages),
    /// Block devices as they are.
    Devices(Pages),
    /// A stack.
    Stack(Stack),
    /// Drives that have left the kernel.
    UserspaceDrives(UserspaceDrives),
    /// A data set of key-value pairs in a folder.
    KeyValue(KeyValue),
    /// A folder for a program's files.
    Folder(ProgramFolder),
}

impl Target {
    /// An open target, on its stack if there is one.
    pub(in crate::runs::session) fn of(content: Content, built: Option<Built>) -> Self {
        match (content, built) {
            (Content::Imagined(imagined), _) => Self::Imagined(imagined),
            (Content::Pages(pages), Some(built)) => {
                Self::Stack(Stack { content: OnStack::Pages(pages), built })
            }
            (Content::KeyValue(pairs), Some(built)) => {
                Self::Stack(Stack { content: OnStack::KeyValue(pairs), built })
            }
            (Content::Folder(folder), Some(built)) => {
                Self::Stack(Stack { content: OnStack::Folder(folder), built })
            }
            (Content::Folder(folder), None) => Self::Folder(folder),
            (Content::Pages(pages), None) if pages.is_on_devices() => Self::Devices(pages),
            (Content::Pages(pages), None) => Self::Files(pages),
            (Content::KeyValue(pairs), None) => Self::KeyValue(pairs),
        }
    }

    /// Loads or fills what is missing. Returns the first sequence number.
    pub(in crate::runs::session) fn make_ready(
        &mut self,
        budget: &WriteBudget,
        (read_only, preconditioned): (bool, bool),
        attendant: &mut dyn Attendant,
    ) -> Result<u64> {
        let (pages, mut built) = match self {
            Self::Imagined(_)
            | Self::UserspaceDrives(_)
            | Self::Folder(_)
            | Self::Stack(Stack { content: OnStack::Folder(_), .. }) => return Ok(0),
            Self::KeyValue(pairs) | Self::Stack(Stack { content: OnStack::KeyValue(pairs), .. }) => {
                return pairs.make_ready(budget, attendant);
            }
            Self::Files(pages) | Self::Devices(pages) => (pages, None),
            Self::Stack(Stack { content: OnStack::Pages(pages), built }) => (pages, Some(built)),
        };
        if let Some(built) = &mut built {
            built.journal().fills(pages.volume.set)?;
        }
        let scattered = built.is_some() && preconditioned && pages.refuse_scattered(budget)?;
        let began = Instant::now();
        let mut filled = match pages.fill(budget, attendant) {
            // A stack that was built for it is removed, and the fill with it.
            Err(error) if error.kind == Kind::Interrupted && built.is_none() => {
                return Err(error.hint("the next run continues where it stopped"));
            }
            filled => filled?,
        };
        if filled.is_some() {
            pages.last = Prepared::InOrder;
        }
        // The fill was sequential: only random pages on top leave the drives in the requested state.
        if scattered && filled.is_some() {
            pages.scatter(budget, attendant)?;
            (pages.last, filled) = (Prepared::AtRandom, Some(began.elapsed()));
        }
        if let (Some(built), Some(time)) = (built, filled) {
            // A stack was empty before, so this was the complete fill.
            built.filled_in(time);
        }
        if read_only { Ok(0) } else { pages.volume.next_sequence_base() }
    }

    /// Lets the drives of a filled target leave the kernel; `profile` names the run in the journal.
    pub(in crate::runs::session) fn leave_kernel(
        self,
        spec: &UserspaceSpec,
        profile: &str,
        watch: Watch,
    ) -> Result<Self> {
        match self {
            Self::Devices(pages) => {
                UserspaceDrives::take(pages, spec, profile, watch).map(Self::UserspaceDrives)
            }
            target => Ok(target),
        }
    }

    /// The workers on it, which account for their writes in `writes`.
    ///
    /// # Errors
    /// If they belong in another process, and that is gone.
    pub(in crate::runs::session) fn workers(&self, writes: Arc<Writes>) -> Result<Box<dyn Workers>> {
        if let Self::UserspaceDrives(drives) = self {
            return drives.workers(writes);
        }
        let Layout { data, wal, members, .. } = self.layout();
        let (data, wal, members) = (data.clone(), wal.clone(), members.len());
        Ok(match (self, self.key_value()) {
            (_, Some(pairs)) => Box::new(KvWorkers::new(pairs.store.clone(), data, writes)),
            (Self::Imagined(Imagined { sim: Some(sim), .. }), _) => {
                Box::new(SimulatedWorkers::new(data, wal, members, writes, sim))
            }
            _ => Box::new(ThreadedWorkers::new(data, wal, members, writes)),
        })
    }

    /// Where the load's I/O goes.
    pub fn layout(&self) -> &Layout {
        match self {
            Self::Imagined(imagined) => &imagined.layout,
            Self::Files(pages)
            | Self::Devices(pages)
            | Self::Stack(Stack { content: OnStack::Pages(pages), .. }) => &pages.layout,
            Self::UserspaceDrives(drives) => drives.layout(),
            Self::KeyValue(pairs) | Self::Stack(Stack { content: OnStack::KeyValue(pairs), .. }) => {
                &pairs.layout
            }
            Self::Folder(folder) | Self::Stack(Stack { content: OnStack::Folder(folder), .. }) => {
                &folder.layout
            }
        }
    }

    /// Adds things to know about it.
    pub(in crate::runs::session) fn note(&mut self, notes: Vec<String>) {
        let layout = match self {
            Self::Imagined(imagined) => &mut imagined.layout,
            Self::Files(pages)
            | Self::Devices(pages)
            | Self::Stack(Stack { content: OnStack::Pages(pages), .. }) => &mut pages.layout,
            Self::UserspaceDrives(drives) => drives.layout_mut(),
            Self::KeyValue(pairs) | Self::Stack(Stack { content: OnStack::KeyValue(pairs), .. }) => {
                &mut pairs.layout
            }
            Self::Folder(folder) | Self::Stack(Stack { content: OnStack::Folder(folder), .. }) => {
                &mut folder.layout
            }
        };
        layout.notes.extend(notes);
    }

    /// Its abilities; none if nothing touches storage.
    pub fn facts(&self) -> Option<&TargetFacts> {
        match self {
            Self::Imagined(_) => None,
            Self::UserspaceDrives(drives) => Some(drives.facts()),
            Self::Folder(folder) | Self::Stack(Stack { content: OnStack::Folder(folder), .. }) => {
                folder.facts.as_ref()
            }
            Self::Files(pages)
            | Self::Devices(pages)
            | Self::Stack(Stack { content: OnStack::Pages(pages), .. }) => Some(&pages.volume.facts),
            Self::KeyValue(pairs) | Self::Stack(Stack { content: OnStack::KeyValue(pairs), .. }) => {
                Some(&pairs.facts)
            }
        }
    }

    /// The volume, if the kernel reads and writes it in pages.
    pub fn pages(&self) -> Option<&Pages> {
        match self {
            Self::Files(pages)
            | Self::Devices(pages)
            | Self::Stack(Stack { content: OnStack::Pages(pages), .. }) => Some(pages),
            _ => None,
        }
    }

    /// How it was last written before the load.
    pub(in crate::runs::session) fn last_written(&self) -> Prepared {
        match self {
            Self::Folder(_) | Self::Stack(Stack { content: OnStack::Folder(_), .. }) => Prepared::ByProgram,
            Self::KeyValue(_) | Self::Stack(Stack { content: OnStack::KeyValue(_), .. }) => Prepared::Loaded,
            _ => self.pages().map_or(Prepared::Earlier, |pages| pages.last),
        }
    }

    /// The write map, if one is kept.
    pub(in crate::runs::session) fn map(&self) -> Option<Arc<WriteMap>> {
        match self {
            Self::UserspaceDrives(drives) => drives.map(),
            target => target.pages().and_then(|pages| pages.volume.map()),
        }
    }

    /// The data set, if the classes read and write pairs.
    pub fn key_value(&self) -> Option<&KeyValue> {
        match self {
            Self::KeyValue(pairs) | Self::Stack(Stack { content: OnStack::KeyValue(pairs), .. }) => {
                Some(pairs)
            }
            _ => None,
        }
    }

    /// The same, to be reopened or examined.
    pub fn key_value_mut(&mut self) -> Option<&mut KeyValue> {
        match self {
            Self::KeyValue(pairs) | Self::Stack(Stack { content: OnStack::KeyValue(pairs), .. }) => {
                Some(pairs)
            }
            _ => None,
        }
    }

    /// Its stack, if there is one.
    pub fn built(&self) -> Option<&Built> {
        if let Self::Stack(stack) = self { Some(&stack.built) } else { None }
    }

    /// The journal of its stack.
    pub(in crate::runs::session) fn journal(&mut self) -> Option<&mut Journal> {
        if let Self::Stack(stack) = self { Some(stack.built.journal()) } else { None }
    }

    /// Devices that are locked against other programs.
    pub fn claims(&self) -> &[Claim] {
        self.pages().map(|pages| pages.claims.as_slice()).unwrap_or_default()
    }

    /// Whether the kernel's page cache can hold any of its pages.
    pub fn is_cacheable(&self) -> bool {
        self.pages().is_some() || self.key_value().is_some()
    }

    /// Whether others use its devices.
    pub(in crate::runs::session) fn is_mounted(&self) -> bool {
        self.pages().is_some_and(|pages| pages.mounted)
    }

    /// The steps that give back its drives that have left the kernel.
    pub fn steps_back(&self) -> Vec<String> {
        if let Self::UserspaceDrives(drives) = self { drives.steps_back() } else { Vec::new() }
    }

    /// Reads everything back; none if nothing touches storage.
    ///
    /// # Errors
    /// Input if the drives have left the kernel.
    pub(in crate::runs::session) fn verify(
        &self,
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<Option<Verified>> {
        if let Self::UserspaceDrives(_) = self {
            let what = "the drives have left the kernel, and verifying reads through it";
            return Err(Error::input(what).hint("run `stacktune verify` once they are given back"));
        }
        if let Some(pairs) = self.key_value() {
            return pairs.store.verify(progress, stop).map(|report| Some(Verified::Pairs(report)));
        }
        let pages = self.pages().map(|pages| pages.volume.verify(progress, stop)).transpose()?;
        Ok(pages.map(|report| Verified::Pages(Box::new(report))))
    }

    /// Closes it once its workers have ended, and returns its stack. In between, `restore` restores the
    /// host's settings: after a database is closed and drives are given back, but before a volume is closed.
    ///
    /// # Errors
    /// What could not be given back or restored; it is left to `cleanup`.
    pub(in crate::runs::session) fn close(
        self,
        restore: impl FnOnce(Option<&mut Journal>) -> Result<()>,
    ) -> (Result<()>, Option<Built>) {
        match self {
            Self::Stack(Stack { content, mut built }) => {
                let pages = match content {
                    OnStack::Pages(pages) => Some(pages),
                    OnStack::KeyValue(pairs) => {
                        drop(pairs);
                        None
                    }
                    OnStack::Folder(_) => None,
                };
                let restored = restore(Some(built.journal()));
                drop(pages);
                (restored, Some(built))
            }
            Self::UserspaceDrives(drives) => {
                let given_back = drives.give_back();
                (given_back.and(restore(None)), None)
            }
            Self::KeyValue(pairs) => {
                drop(pairs);
                (restore(None), None)
            }
            Self::Imagined(_) | Self::Files(_) | Self::Devices(_) | Self::Folder(_) => (restore(None), None),
        }
    }

    /// Closes a target that no session runs on, and returns its stack.
    pub(in crate::runs::session) fn abandon(self) -> Option<Built> {
        if let Self::Stack(stack) = self { Some(stack.built) } else { None }
    }
}
