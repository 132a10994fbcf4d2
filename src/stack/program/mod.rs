//! A program as the load: where it runs, as which user, in which cgroups, and how it is killed.
//!
//! Enters: words, a user and a folder. Leaves: processes in their own cgroups, which are journaled before
//! they are made; none of them remains at the end.

mod end;
#[cfg(feature = "programs")]
mod enter;
#[cfg(feature = "programs")]
mod groups;
#[cfg(feature = "programs")]
mod log_folder;
#[cfg(feature = "programs")]
mod place;

pub(crate) use end::{end, remove_all};
#[cfg(feature = "programs")]
pub use enter::{Start, find, installed_by};
#[cfg(feature = "programs")]
pub use groups::{Groups, Part};
#[cfg(feature = "programs")]
pub use log_folder::make_log_folder;
#[cfg(feature = "programs")]
pub use place::Place;
