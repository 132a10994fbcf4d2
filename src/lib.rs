//! stacktune: a live tuner for the storage stack under a database.

pub mod class;
pub mod error;
pub mod host;
pub mod stack;
pub mod units;
