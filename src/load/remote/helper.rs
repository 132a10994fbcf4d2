//! The hidden command: SPDK, and the server on top of it. Not meant to be run by hand.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
#[cfg(feature = "spdk")]
use std::sync::Arc;
use std::time::Duration;

use super::protocol::Attached;
use super::server::{Devices, serve};
#[cfg(feature = "spdk")]
use crate::error::describe;
use crate::error::{Error, Result};
use crate::threads;

/// Workers that have not ended by then are left to the kernel.
const END_PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_secs(1);

/// Runs workers for the process at the other end of standard input.
///
/// # Errors
/// If standard input does not lead to such a process, or the socket fails.
pub fn run() -> Result<()> {
    let by_hand = || {
        Error::input("this command is internal: it runs drives for another stacktune through SPDK")
            .hint("choose io.interface = spdk in a profile instead")
    };
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let stream = UnixStream::from(stdin.map_err(|_| by_hand())?);
    // Fails unless it is a socket.
    stream.local_addr().map_err(|_| by_hand())?;
    let parent = rustix::process::getppid();
    threads::start("follow the other stacktune", move || end_after(parent))?;
    serve(stream, &mut Drives::default())
}

/// Ends this process some time after its parent has died, whatever a worker or drive is waiting for. A living
/// parent ends it itself.
fn end_after(parent: Option<rustix::process::Pid>) {
    while rustix::process::getppid() == parent {
        std::thread::sleep(LOOK);
    }
    std::thread::sleep(END_PATIENCE);
    std::process::abort();
}

/// The drives that SPDK drives.
#[derive(Default)]
struct Drives {
    #[cfg(feature = "spdk")]
    attached: Option<Arc<crate::load::spdk::Attached>>,
}

#[cfg(not(feature = "spdk"))]
impl Devices for Drives {
    fn attach(&mut self, _: &[(String, u32)]) -> Result<Attached> {
        Err(Error::input(crate::host::system::spdk::HOW_TO_GET))
    }

    fn attend(&mut self) {}
}

#[cfg(feature = "spdk")]
impl Devices for Drives {
    fn attach(&mut self, drives: &[(String, u32)]) -> Result<Attached> {
        use crate::load::spdk::{Attached as Begun, SpdkDrive};
        let failed = |error: rustix::io::Errno| {
            Error::failed(format!("cannot choose a CPU: {}", describe(&error.into())))
        };
        let mut addresses: Vec<String> = Vec::new();
        for (address, _) in drives {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        // DPDK pins its first thread to a CPU; workers run on the CPUs of their class.
        let cpus = rustix::thread::sched_getaffinity(None).map_err(failed)?;
        let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| cpus.is_set(*cpu)).unwrap_or(0);
        let begun = Begun::begin(first as u32, &addresses);
        rustix::thread::sched_setaffinity(None, &cpus).map_err(failed)?;
        let begun = begun?;
        let moved = drives.iter().map(|(address, namespace)| {
            SpdkDrive::find(address, *namespace).map(|drive| u64::from(drive.transfer_bytes_max()))
        });
        let moved = moved.collect::<Result<Vec<u64>>>()?;
        let (spdk, dpdk) = begun.versions();
        let attached = Attached {
            versions: (spdk.to_owned(), dpdk.to_owned()),
            transfer_bytes_max: moved.into_iter().min().unwrap_or(0),
        };
        self.attached = Some(begun);
        Ok(attached)
    }

    fn attend(&mut self) {
        if let Some(attached) = &self.attached {
            attached.attend();
        }
    }
}
