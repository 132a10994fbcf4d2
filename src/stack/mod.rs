//! The storage under the load: what may be written to, and the tools that tell and prepare it.
//!
//! A block device is opened for writing in one place alone, [`guard`]: whoever wants to write needs
//! its [`guard::Claim`].

pub mod adjust;
mod attend;
pub mod build;
mod cgroup;
mod command;
mod content;
pub mod durations;
mod gpt;
pub mod guard;
pub mod handover;
mod holders;
pub mod journal;
mod layers;
pub mod leftovers;
mod node;
mod options;
pub mod place;
pub mod plan;
mod precondition;
pub mod queue;
mod resync;
mod room;
pub mod runner;
pub mod site;
pub mod step;
mod undo;
mod wear;
mod wipe;
pub mod worth;

pub use content::Ours;
