//! A run: what the operator asks of it and what it tells.

pub mod message;

pub use message::{Command, Event, Progress, Status};
