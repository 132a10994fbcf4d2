//! stacktune: a live tuner for the storage stack under a database.

pub mod class;
pub mod error;
pub mod host;
pub mod knobs;
pub mod meter;
pub mod profile;
pub mod session;
pub mod tui;
pub mod units;
