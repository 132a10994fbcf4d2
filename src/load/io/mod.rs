//! The interfaces: how an I/O enters the kernel, or bypasses it, one file each.
//!
//! An interface opens its members (a path here; a character device or a PCI address elsewhere), owns
//! the buffers, knows how to flush and counts its polls. The load knows only [`Queue`] and
//! [`Backend`]. A new interface is one file here, one line in [`dispatch`](dispatch()), and one row in
//! [`crate::settings::interface`].

mod backend;
pub mod buffers;
pub mod clock;
mod dispatch;
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
pub mod vfio;

pub use backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
pub use dispatch::{Use, dispatch};
