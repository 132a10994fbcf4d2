//! Profiles: settings as TOML, there and back; the built-in ones, and where the user's are kept.

pub mod builtin;
pub mod check;
pub mod identity;
pub mod parse;
mod parse_sweep;
pub mod store;
pub mod sweep;
pub mod write;
mod write_sweep;

pub use builtin::builtin;
pub use check::{Problem, check};
pub use identity::by_identity;
pub use parse::{parse, parse_bytes};
pub use store::{Entry, Source, Store, expand_home};
pub use sweep::{Step, Sweep};
pub use write::to_toml;
