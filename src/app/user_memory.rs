//! What outlives a screen, in the user's state folder: its ledger, and that the first steps are known.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::error::{Error, Result};
use crate::stack::paths::state_dir;
use crate::stack::state::StateFolder;
use crate::ui::clock::local_stamp;
use crate::ui::tui::Memory;

/// The ledgers of the last screens, a file each.
const LEDGERS_MAX: usize = 100;
/// Exists once the first steps were hidden.
const KNOWN: &str = "first-steps-known";

/// The folder of one user.
#[derive(Default)]
pub struct UserMemory {
    /// The file that keeps the turns of this screen; made with the first one.
    pub file: Option<File>,
    /// The path of that file.
    pub path: Rc<RefCell<Option<PathBuf>>>,
}

fn folder() -> PathBuf {
    state_dir().join("ledger")
}

fn is_ledger(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "jsonl")
}

impl UserMemory {
    fn make(&self) -> Result<File> {
        let folder = StateFolder::make(&folder())?;
        let names = folder.names()?;
        // Their names sort by time.
        let known: Vec<_> = names.iter().filter(|name| is_ledger(name)).collect();
        for oldest in known.iter().take((known.len() + 1).saturating_sub(LEDGERS_MAX)) {
            folder.remove(oldest)?;
        }
        let name = format!("{}-{}.jsonl", local_stamp(), std::process::id());
        *self.path.borrow_mut() = Some(folder.join(&name));
        folder.lock(&name)
    }
}

impl Memory for UserMemory {
    fn keep(&mut self, line: &str) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(self.make()?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        // Not synced: the drive may be the one that is measured.
        let written = file.write_all(line.as_bytes());
        let path = self.path.borrow();
        written.map_err(|e| Error::os("cannot write", path.as_deref().unwrap_or(Path::new(KNOWN)), e))
    }

    fn is_new(&self) -> bool {
        match StateFolder::open(&folder()) {
            Ok(Some(folder)) => {
                !folder.names().unwrap_or_default().iter().any(|name| name == KNOWN || is_ledger(name))
            }
            Ok(None) => true,
            // Nothing could be kept in it.
            Err(_) => false,
        }
    }

    fn drop_first_steps(&mut self) -> Result<()> {
        StateFolder::make(&folder())?.lock(KNOWN).map(drop)
    }
}
