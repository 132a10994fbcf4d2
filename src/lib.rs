//! stacktune: a live tuner for the storage stack under a database.

pub mod calibrate;
pub mod class;
pub mod cli;
pub mod error;
pub mod host;
pub mod io;
pub mod knobs;
pub mod load;
pub mod meter;
pub mod plan;
pub mod profile;
pub mod record;
pub mod report;
pub mod session;
pub mod stack;
pub mod units;
pub mod volume;
