//! The operator's own SPDK (22.09 or later), where stacktune was built with the feature `spdk`.
//!
//! SPDK is in no registry, its structures change from release to release, and it takes only the DPDK
//! that it was built with: whoever wants it has built it by hand. So a shim of one file in C
//! (`shim/spdk.c`) is compiled against the headers that are there, and knows all that there is to know
//! of them. DPDK ends its process where it does not know on, so that nothing here is called but in a
//! process of its own (see the `remote` module).

#[cfg(feature = "spdk")]
mod shim;

#[cfg(feature = "spdk")]
pub use shim::{Attached, Drive, WorkerQueues};

/// How a member's path begins that is a namespace of a drive which SPDK drives: `spdk:0000:01:00.0/1`.
pub const SCHEME: &str = "spdk:";
