//! Profiles: settings as TOML, there and back; the built-in ones, and where the user's are kept.

pub mod builtin;
pub mod check;
pub mod identity;
pub mod kv;
pub mod parse;
mod parse_sweep;
pub mod settings;
pub mod stack;
pub mod store;
pub mod sweep;
pub mod write;
mod write_sweep;

pub use builtin::builtin;
pub use check::{Problem, check};
pub use identity::by_identity;
pub use parse::{parse, parse_bytes};
pub use settings::{Buffering, Interface, Settings};
pub use store::{Entry, Source, Store, expand_home};
pub use sweep::{Step, Sweep};
pub use write::to_toml;

#[cfg(test)]
pub(crate) mod testing;
