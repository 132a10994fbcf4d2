//! What is built for a target, and opened as one of the others.

use std::path::PathBuf;

use super::key_value::KeyValue;
use super::pages::Pages;
use crate::error::{Error, Result};
use crate::runs::session::attendant::Attendant;
use crate::runs::session::consent::{check_serials, refuse_stray_consent};
use crate::runs::session::data_set::folder;
use crate::runs::session::resolve::Resolved;
use crate::runs::session::retained_stack::RetainedStack;
use crate::runs::session::target_stack::{raise, request};
use crate::stack::build::Built;

/// A stack, and what is open on it. The content is closed before the stack is taken down.
pub struct Stack {
    pub(super) content: Content,
    pub(super) built: Built,
}

/// What is open on a stack.
pub enum Content {
    /// Its files or its device, read and written in pages.
    Pages(Pages),
    /// A data set of pairs in its file system.
    KeyValue(KeyValue),
}

impl Stack {
    /// Builds what the target stands on, unless it stands already, and opens that. What was built is left in
    /// `retained` where it can't be opened.
    pub(super) fn open(
        resolved: &Resolved,
        attendant: &mut dyn Attendant,
        retained: &mut RetainedStack,
    ) -> Result<Self> {
        let Resolved { settings, options, facts, .. } = resolved;
        if options.read_only {
            let what = "a stack is built by writing, and --read-only writes nothing";
            return Err(Error::input(what).hint("set stack.* to none, or leave --read-only out"));
        }
        if settings.wal.target.is_some() {
            let what = "wal.target names a place beside the target, and a stack keeps the WAL on itself";
            return Err(Error::input(what).hint("leave wal.target out, or build no stack"));
        }
        let built = if let Some(built) = retained.take_for(settings)? {
            built
        } else {
            check_serials(settings, facts)?;
            refuse_stray_consent(&options.destroy, &settings.target.devices, facts)?;
            raise(resolved, attendant)?
        };
        match Content::open(&built, resolved, attendant) {
            Ok(content) => Ok(Self { content, built }),
            Err(error) => {
                retained.put(built, settings.clone());
                Err(error)
            }
        }
    }
}

impl Content {
    fn open(built: &Built, resolved: &Resolved, attendant: &mut dyn Attendant) -> Result<Self> {
        if resolved.settings.is_keyed() {
            let dir: PathBuf = folder(&resolved.settings, Some(&built.plan().exposed))?;
            return KeyValue::open(&dir, resolved, attendant).map(Self::KeyValue);
        }
        let (request, claims) = request(built)?;
        Pages::open_built(request, claims, resolved).map(Self::Pages)
    }
}
