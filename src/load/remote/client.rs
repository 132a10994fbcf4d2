//! Our side: starts the helper, and the workers in it.

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

/// The hidden command that runs the helper.
pub const COMMAND: &str = "drive-spdk";
/// Time for attaching, which clears huge pages and resets drives.
const ATTACH_PATIENCE: Duration = Duration::from_mins(2);
/// Time for everything else, which is immediate except for draining I/O: a hanging drive gets 30 s, and the
/// abort another 30 s.
const PATIENCE: Duration = Duration::from_secs(90);

/// The helper and its drives. When this is dropped, it releases them and ends.
pub struct Remote {
    link: Arc<Mutex<Link>>,
    attached: Attached,
}

impl Remote {
    /// Starts a helper that drives these namespaces, by PCI address and number.
    ///
    /// # Errors
    /// Why it does not start, with its output.
    pub fn start(drives: Vec<(String, u32)>) -> Result<Self> {
        // This very program, even if its file has been replaced.
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

    /// The running versions of SPDK and DPDK, and the drives' limits.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// Workers in the helper, on these regions. Their writes count as written here, too.
    ///
    /// # Errors
    /// If the helper is gone.
    pub fn load(
        &self,
        data: Region,
        wal: Region,
        members: usize,
        writes: Arc<Writes>,
    ) -> Result<RemoteWorkers> {
        let (sequence, written_bytes) = (writes.sequence(), writes.written_bytes());
        let map = writes.map().map(|map| map.path());
        let mut link = lock(&self.link);
        link.writes = Some(writes);
        link.ask(Ask::Load(Box::new(Load { data, wal, members, sequence, written_bytes, map })))?;
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
