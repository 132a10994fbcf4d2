//! What a stack has made and how that is taken away: written down, durably, before each step acts.
//!
//! One file of JSON lines for each stack. Whoever works on a stack holds a lock on its file, which
//! ends with the process; the tools that it runs hold it too, so that nobody cleans up while one
//! that was left behind still works.
//!
//! Enters: what is about to be done, and its [`Undo`]. Leaves: the [`Record`] of all that, also after a crash.

mod file;
mod folder;
mod record;
mod undo;

pub use file::{Journal, Opened, boot_id};
pub(crate) use folder::sweep;
pub use folder::{all, folder};
pub use record::{Entry, Record};
pub use undo::Undo;
