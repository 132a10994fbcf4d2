//! What a stack has made and how to undo it, recorded durably before each step acts.
//!
//! One file of JSON lines for each stack. A process that works on a stack locks its file, and the lock ends
//! with the process; the tools that it runs hold it too, so that nothing is cleaned up while one of them is
//! still working.
//!
//! Enters: each planned change and its [`Undo`]. Leaves: the [`Record`] of them all, even after a crash.

mod exposed;
mod file;
mod folder;
mod record;
mod undo;

pub use file::{Journal, Opened, boot_id};
pub(crate) use folder::sweep;
pub use folder::{all, folder};
pub use record::{JournalEntry, JournalHeader, Record};
pub use undo::Undo;
