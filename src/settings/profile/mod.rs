//! Profiles: settings from and to TOML; the built-in ones, and where the user's are kept.
//!
//! Enters: TOML. Leaves: settings and steps, or every mistake with its line; and TOML again.

pub mod builtin;
pub mod check;
mod contents;
pub mod identity;
pub mod parse;
mod parse_layers;
mod parse_program;
mod parse_program_own;
mod parse_sweep;
pub mod store;
pub mod sweep;
mod toml_value;
pub mod write;
mod write_layers;
mod write_program;
mod write_sweep;

pub use builtin::{builtin, is_demo};
pub use check::check;
pub use contents::Profile;
pub use identity::by_identity;
pub use parse::parse;
pub use store::{Entry, FILE_BYTES_MAX, ProfileFolder, Source, config_folder};
pub use sweep::{Sweep, SweepStep};
pub use write::to_toml;

#[cfg(test)]
mod older_tests;
