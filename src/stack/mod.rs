//! The storage under the load: what may be written to, and the tools that tell and prepare it.
//!
//! A block device is opened for writing in one place alone, [`guard`]: whoever wants to write needs
//! its [`guard::Claim`].

mod content;
pub mod guard;
pub mod runner;
mod wipe;

pub use content::Ours;
