//! The operator's own SPDK (22.09 or later), if stacktune was built with the feature `spdk`.
//!
//! Enters: PCI addresses of drives bound to VFIO. Leaves: queues for the workers of the separate process.
//!
//! SPDK is in no package registry, its structures change from release to release, and it works only with the
//! DPDK that it was built with, so its users build it by hand. Therefore a shim of one C file (`shim/spdk.c`)
//! is compiled against the installed headers, and contains everything that depends on them. DPDK ends its
//! process on errors that it can't handle, so nothing here is called except in a separate process (see the
//! `remote` module).

#[cfg(feature = "spdk")]
mod shim;

#[cfg(feature = "spdk")]
pub use shim::{Attached, SpdkDrive, WorkerQueues};

/// Path prefix of a member that is a namespace driven by SPDK: `spdk:0000:01:00.0/1`.
pub const SCHEME: &str = "spdk:";
