//! A program that is the load: where it runs, as whom, in which cgroups, and how all of it is ended.
//!
//! Enters: words, a user and a folder. Leaves: processes in cgroups of their own, in the journal before they are made;
//! and nothing of them at the end.

mod enter;
mod groups;
mod place;

pub use enter::{Start, find, package_of};
pub use groups::Groups;
pub(crate) use groups::end;
pub use place::Place;
