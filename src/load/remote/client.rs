//! This side: starts the helper, and the workers in it.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::link::{Link, lock, senseless};
use super::protocol::{Answer, Ask, Attached, Load};
use super::workers::RemoteWorkers;
use crate::error::Result;
use crate::load::volume::Region;
use crate::load::workers::control::Writes;

/// The hidden command that is the helper.
pub const COMMAND: &str = "drive-spdk";
/// Attaching clears huge pages and resets drives.
const ATTACH_PATIENCE: Duration = Duration::from_mins(2);
/// Everything else is done at once, but for I/O that drains: a drive that hangs is given 30 s, and its
/// abort as many.
const PATIENCE: Duration = Duration::from_secs(90);

/// The helper, with the drives that it drives. Dropped, it lets go of them and ends.
pub struct Remote {
    link: Arc<Mutex<Link>>,
    attached: Attached,
}

impl Remote {
    /// Starts a helper that drives these namespaces, by PCI address and number.
    ///
    /// # Errors
    /// Why it does not, with what it said.
    pub fn start(drives: Vec<(String, u32)>) -> Result<Self> {
        // This very program, whatever has become of its file.
        let mut helper = Command::new("/proc/self/exe");
        helper.arg0("stacktune").arg(COMMAND);
        Self::attach(Link::spawn(helper)?, drives)
    }

    fn attach(mut link: Link, drives: Vec<(String, u32)>) -> Result<Self> {
        link.be_patient(ATTACH_PATIENCE);
        let attached = match link.ask(Ask::Attach(drives)) {
            Ok(Answer::Attached(attached)) => attached,
            Ok(other) => return Err(senseless(&other)),
            Err(error) => return Err(link.with_words(error)),
        };
        link.be_patient(PATIENCE);
        Ok(Self { link: Arc::new(Mutex::new(link)), attached })
    }

    /// What drives the drives, and how.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// Workers there, on these regions. What they write counts as written here.
    ///
    /// # Errors
    /// Where the helper is gone.
    pub fn load(
        &self,
        data: Region,
        wal: Region,
        members: usize,
        writes: Arc<Writes>,
    ) -> Result<RemoteWorkers> {
        let (sequence, written_bytes) = (writes.sequence(), writes.written_bytes());
        let mut link = lock(&self.link);
        link.writes = Some(writes);
        link.ask(Ask::Load(Box::new(Load { data, wal, members, sequence, written_bytes })))?;
        drop(link);
        Ok(RemoteWorkers::new(self.link.clone()))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        lock(&self.link).end();
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
