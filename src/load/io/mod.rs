//! The interfaces: how an I/O enters the kernel, or bypasses it, one file each.
//!
//! An interface opens its members (a path here; a character device or a PCI address elsewhere), owns the
//! buffers, knows how to flush and counts its polls. The load sees only [`Queue`] and [`Backend`]. A new
//! interface takes one file here, its lines in the launch table below ([`dispatch`]), and one row in
//! [`crate::settings::interface`].
//!
//! Enters: operations on the pages of members. Leaves: their completions, and counts of polls.

mod backend;
pub mod buffers;
pub mod clock;
pub mod files;
pub mod libaio;
pub mod null;
pub mod parts;
pub mod passthrough;
pub mod polls;
pub mod ring;
pub mod sim;
#[cfg(feature = "spdk")]
pub mod spdk;
pub mod sync;
pub mod uring;
#[cfg(feature = "userspace")]
pub mod vfio;

pub use backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use libaio::Libaio;
use null::Null;
use passthrough::Passthrough;
#[cfg(feature = "spdk")]
use spdk::Spdk;
use sync::SyncIo;
use uring::Uring;
#[cfg(feature = "userspace")]
use vfio::Vfio;

use crate::settings::interface::Interface;

/// Something to do with an interface's code, whichever interface it is.
pub trait Use {
    /// The result.
    type Output;

    /// Does it with that interface's code.
    fn backend<B: Backend>(self) -> Self::Output;
}

/// The launch table: which code runs an interface, one line each. `None` for simulated devices, whose workers
/// run on the simulation's clock ([`sim`]), and for interfaces that are not in this build.
pub fn dispatch<U: Use>(interface: Interface, with: U) -> Option<U::Output> {
    Some(match interface {
        Interface::Sync => with.backend::<SyncIo>(),
        Interface::Libaio => with.backend::<Libaio>(),
        Interface::IoUring => with.backend::<Uring>(),
        Interface::NvmePassthrough => with.backend::<Passthrough>(),
        Interface::Null => with.backend::<Null>(),
        Interface::Sim => return None,
        #[cfg(feature = "userspace")]
        Interface::Vfio => with.backend::<Vfio>(),
        #[cfg(not(feature = "userspace"))]
        Interface::Vfio => return None,
        #[cfg(feature = "spdk")]
        Interface::Spdk => with.backend::<Spdk>(),
        #[cfg(not(feature = "spdk"))]
        Interface::Spdk => return None,
    })
}
