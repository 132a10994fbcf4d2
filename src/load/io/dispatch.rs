//! The launch table: which code runs an interface.

use super::backend::Backend;
use super::libaio::Libaio;
use super::null::Null;
use super::passthrough::Passthrough;
#[cfg(feature = "spdk")]
use super::spdk::Spdk;
use super::sync::SyncIo;
use super::uring::Uring;
use super::vfio::Vfio;
use crate::settings::interface::Interface;

/// Something to do with the code of an interface, whichever it is.
pub trait Use {
    /// The result.
    type Output;

    /// Does it with the code of that interface.
    fn backend<B: Backend>(self) -> Self::Output;
}

/// The launch table: which code runs an interface, one line each. None for simulated devices, whose workers
/// run on the simulation's clock ([`super::sim`]), and for code that is not in this build.
pub fn dispatch<U: Use>(interface: Interface, with: U) -> Option<U::Output> {
    Some(match interface {
        Interface::Sync => with.backend::<SyncIo>(),
        Interface::Libaio => with.backend::<Libaio>(),
        Interface::IoUring => with.backend::<Uring>(),
        Interface::NvmePassthrough => with.backend::<Passthrough>(),
        Interface::Null => with.backend::<Null>(),
        Interface::Sim => return None,
        Interface::Vfio => with.backend::<Vfio>(),
        #[cfg(feature = "spdk")]
        Interface::Spdk => with.backend::<Spdk>(),
        #[cfg(not(feature = "spdk"))]
        Interface::Spdk => return None,
    })
}
