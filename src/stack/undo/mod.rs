//! Taking away what stands: right after a failure, when a run ends, or by `cleanup` after a crash.
//!
//! Enters: a journal. Leaves: the host as it was, or what could not be taken away, and why.

mod all;
mod hands;
mod leftovers;

pub use all::undo_all;
pub(crate) use hands::Hands;
pub use leftovers::{Cleaned, Leftover, Standing, State, Wanted, cleanup, kept, leftovers};
