//! The storage under the load: what may be written to, and the tools that tell and prepare it.
//!
//! A block device is opened for writing in one place alone, [`guard`]: whoever wants to write needs
//! its [`guard::Claim`].

pub mod build;
mod content;
pub mod guard;
pub mod place;
pub mod plan;
pub mod runner;
pub mod step;
mod wipe;

pub use content::Ours;
