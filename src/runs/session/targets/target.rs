//! What a run works on: one of what it can be, with what they have in common.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::key_value::KeyValue;
use super::layout::Layout;
use super::pages::Pages;
use super::stack::{Content, Stack};
use super::userspace_drives::UserspaceDrives;
use crate::error::{Error, Result};
use crate::host::TargetFacts;
use crate::load::workers::control::Writes;
use crate::load::workers::{KvWorkers, SimulatedWorkers, ThreadedWorkers, Workers};
use crate::runs::session::attendant::Attendant;
use crate::runs::session::consent::refuse_stray_consent;
use crate::runs::session::data_set::folder;
use crate::runs::session::message::Progress;
use crate::runs::session::resolve::{Kind, Resolved};
use crate::runs::session::retained_stack::RetainedStack;
use crate::runs::session::verified::Verified;
use crate::stack::build::Built;
use crate::stack::guard::Claim;
use crate::stack::journal::Journal;
use crate::stack::supervise::Watch;

/// What a run works on.
// There is one at a time: its size is of no account.
#[expect(clippy::large_enum_variant)]
pub enum Target {
    /// Regions without storage.
    Imagined(Layout),
    /// Files of a folder.
    Files(Pages),
    /// Block devices as they are.
    Devices(Pages),
    /// What was built for it.
    Stack(Stack),
    /// Drives that have left the kernel.
    UserspaceDrives(UserspaceDrives),
    /// A data set of key-value pairs in a folder.
    KeyValue(KeyValue),
}

impl Target {
    /// Opens what the settings name. What was built for it is left in `retained` where that fails.
    ///
    /// # Errors
    /// Refused where data is at risk; input where it can't do what the settings say.
    pub(in crate::runs::session) fn open(
        resolved: &Resolved,
        attendant: &mut dyn Attendant,
        retained: &mut RetainedStack,
    ) -> Result<Self> {
        let Resolved { settings, options, facts, .. } = resolved;
        match resolved.kind {
            Kind::Imagined => Ok(Self::Imagined(Layout::imagined(settings))),
            Kind::Stack => Stack::open(resolved, attendant, retained).map(Self::Stack),
            Kind::KeyValue => {
                refuse_stray_consent(&options.destroy, &[], facts)?;
                if options.read_only {
                    return Err(writes_at_once());
                }
                KeyValue::open(&folder(settings, None)?, resolved, attendant).map(Self::KeyValue)
            }
            Kind::Pages => {
                let is_files = settings.target.devices.is_empty();
                let variant = if is_files { Self::Files } else { Self::Devices };
                Pages::open(resolved, attendant).map(variant)
            }
        }
    }

    /// Loads or fills what is missing. Returns where sequence numbers begin.
    pub(in crate::runs::session) fn make_ready(
        &mut self,
        resolved: &Resolved,
        attendant: &mut dyn Attendant,
    ) -> Result<u64> {
        let (pages, built) = match self {
            Self::Imagined(_) | Self::UserspaceDrives(_) => return Ok(0),
            Self::KeyValue(pairs) | Self::Stack(Stack { content: Content::KeyValue(pairs), .. }) => {
                return pairs.make_ready(resolved, attendant);
            }
            Self::Files(pages) | Self::Devices(pages) => (pages, None),
            Self::Stack(Stack { content: Content::Pages(pages), built }) => (pages, Some(built)),
        };
        let filled = pages.fill(resolved, attendant)?;
        if let (Some(built), Some(time)) = (built, filled) {
            // A stack was empty before: that was all of it.
            built.filled_in(time);
        }
        pages.sequence_base(resolved)
    }

    /// Lets the drives of a filled target leave the kernel, where the settings say so.
    pub(in crate::runs::session) fn leave_kernel(self, resolved: &Resolved, watch: Watch) -> Result<Self> {
        match self {
            Self::Devices(pages) if resolved.leaves_kernel => {
                UserspaceDrives::take(pages, resolved, watch).map(Self::UserspaceDrives)
            }
            target => Ok(target),
        }
    }

    /// The workers on it, which write by these counts.
    ///
    /// # Errors
    /// Where they are to be in another process, and that is gone.
    pub(in crate::runs::session) fn workers(
        &self,
        resolved: &Resolved,
        writes: Arc<Writes>,
    ) -> Result<Box<dyn Workers>> {
        if let Self::UserspaceDrives(drives) = self {
            return drives.workers(writes);
        }
        let Layout { data, wal, members, .. } = self.layout();
        let (data, wal, members) = (data.clone(), wal.clone(), members.len());
        Ok(if let Some(pairs) = self.key_value() {
            Box::new(KvWorkers::new(pairs.store.clone(), data, writes))
        } else if resolved.settings.is_simulated() {
            Box::new(SimulatedWorkers::new(data, wal, members, writes, &resolved.settings.sim))
        } else {
            Box::new(ThreadedWorkers::new(data, wal, members, writes))
        })
    }

    /// Where the load's I/O goes.
    pub fn layout(&self) -> &Layout {
        match self {
            Self::Imagined(layout) => layout,
            Self::Files(pages)
            | Self::Devices(pages)
            | Self::Stack(Stack { content: Content::Pages(pages), .. }) => &pages.layout,
            Self::UserspaceDrives(drives) => &drives.layout,
            Self::KeyValue(pairs) | Self::Stack(Stack { content: Content::KeyValue(pairs), .. }) => {
                &pairs.layout
            }
        }
    }

    /// Adds what to know about it.
    pub(in crate::runs::session) fn note(&mut self, notes: Vec<String>) {
        let layout = match self {
            Self::Imagined(layout) => layout,
            Self::Files(pages)
            | Self::Devices(pages)
            | Self::Stack(Stack { content: Content::Pages(pages), .. }) => &mut pages.layout,
            Self::UserspaceDrives(drives) => &mut drives.layout,
            Self::KeyValue(pairs) | Self::Stack(Stack { content: Content::KeyValue(pairs), .. }) => {
                &mut pairs.layout
            }
        };
        layout.notes.extend(notes);
    }

    /// What it can do; none where nothing touches storage.
    pub fn facts(&self) -> Option<&TargetFacts> {
        if let Self::UserspaceDrives(drives) = self {
            return Some(&drives.facts);
        }
        let pairs = || self.key_value().map(|pairs| &pairs.facts);
        self.pages().map(|pages| &pages.volume.facts).or_else(pairs)
    }

    /// The volume's side of it, where the kernel reads and writes it in pages.
    pub fn pages(&self) -> Option<&Pages> {
        match self {
            Self::Files(pages)
            | Self::Devices(pages)
            | Self::Stack(Stack { content: Content::Pages(pages), .. }) => Some(pages),
            _ => None,
        }
    }

    /// The data set, where the classes read and write pairs.
    pub fn key_value(&self) -> Option<&KeyValue> {
        match self {
            Self::KeyValue(pairs) | Self::Stack(Stack { content: Content::KeyValue(pairs), .. }) => {
                Some(pairs)
            }
            _ => None,
        }
    }

    /// The same, to be opened again or looked at.
    pub fn key_value_mut(&mut self) -> Option<&mut KeyValue> {
        match self {
            Self::KeyValue(pairs) | Self::Stack(Stack { content: Content::KeyValue(pairs), .. }) => {
                Some(pairs)
            }
            _ => None,
        }
    }

    /// What was built for it.
    pub fn built(&self) -> Option<&Built> {
        if let Self::Stack(stack) = self { Some(&stack.built) } else { None }
    }

    /// The journal of what was built for it.
    pub(in crate::runs::session) fn journal(&mut self) -> Option<&mut Journal> {
        if let Self::Stack(stack) = self { Some(stack.built.journal()) } else { None }
    }

    /// Devices that are held against other programs.
    pub fn claims(&self) -> &[Claim] {
        self.pages().map(|pages| pages.claims.as_slice()).unwrap_or_default()
    }

    /// Whether the kernel's page cache can hold anything of it.
    pub fn is_cacheable(&self) -> bool {
        self.pages().is_some() || self.key_value().is_some()
    }

    /// Whether somebody else works on its devices.
    pub(in crate::runs::session) fn is_mounted(&self) -> bool {
        self.pages().is_some_and(|pages| pages.mounted)
    }

    /// The steps by which its drives come back that have left the kernel.
    pub fn steps_back(&self) -> Vec<String> {
        if let Self::UserspaceDrives(drives) = self { drives.steps_back() } else { Vec::new() }
    }

    /// Reads everything back; none where nothing touches storage.
    ///
    /// # Errors
    /// Input where the drives have left the kernel.
    pub(in crate::runs::session) fn verify(
        &self,
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<Option<Verified>> {
        if let Self::UserspaceDrives(_) = self {
            let what = "the drives have left the kernel, which reads them back";
            return Err(Error::input(what).hint("run `stacktune verify` once they are given back"));
        }
        if let Some(pairs) = self.key_value() {
            return pairs.store.verify(progress, stop).map(|report| Some(Verified::Pairs(report)));
        }
        let pages = self.pages().map(|pages| pages.volume.verify(progress, stop)).transpose()?;
        Ok(pages.map(Verified::Pages))
    }

    /// Closes it once its workers have ended, and returns what was built for it. In between `restore` puts
    /// the host's settings back: after a database is closed and drives are given back, before a volume is
    /// closed.
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
                    Content::Pages(pages) => Some(pages),
                    Content::KeyValue(pairs) => {
                        drop(pairs);
                        None
                    }
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
            Self::Imagined(_) | Self::Files(_) | Self::Devices(_) => (restore(None), None),
        }
    }

    /// Closes a target that no session runs on, and returns what was built for it.
    pub(in crate::runs::session) fn abandon(self) -> Option<Built> {
        if let Self::Stack(stack) = self { Some(stack.built) } else { None }
    }
}

fn writes_at_once() -> Error {
    let what = "RocksDB writes to its files as soon as it opens them, and --read-only writes nothing";
    Error::input(what).hint("leave --read-only out, or set load.engine to pages")
}
