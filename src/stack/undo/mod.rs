//! Removing a stack: right after a failure, when a run ends, or by `cleanup` after a crash.
//!
//! Enters: a journal. Leaves: the host as it was, or what could not be removed, and why.

mod all_steps;
mod arrays;
mod files;
mod filesystems;
mod leftovers;
mod one_step;
mod tables;
mod undoer;

pub use all_steps::undo_all;
pub use filesystems::names_of_others;
pub use leftovers::{Cleaned, CleanupRequest, Leftover, Remnant, StackState, cleanup, kept, leftovers};
pub(crate) use undoer::Undoer;
