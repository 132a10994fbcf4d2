//! Removing a stack: right after a failure, when a run ends, or by `cleanup` after a crash.
//!
//! Enters: a journal. Leaves: the host as it was, or what could not be removed, and why.

mod all_steps;
mod arrays;
mod files;
mod filesystems;
mod formats;
mod inside;
mod layers;
mod leftovers;
mod one_step;
mod others;
mod program_log;
mod tables;
mod undoer;

pub use all_steps::undo_all;
pub use leftovers::{Cleaned, CleanupRequest, Leftover, Remnant, StackState, cleanup, leftovers, retained};
pub use others::others_in;
pub(crate) use undoer::Undoer;
