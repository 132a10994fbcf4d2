//! The workers of the four classes: pacing, offsets, commits, and the loop itself.
//!
//! A worker's orders never change: a turn of a knob stops a class's workers, which drain, and starts
//! new ones. What must outlive them (the WAL's position, sequence numbers, how much may still be
//! written) is in [`control::Shared`]. After its start a worker allocates nothing and takes no lock.

mod commit;
pub mod control;
pub mod engine;
mod kv;
pub mod launch;
mod offsets;
mod pacing;
pub mod remote_workers;
pub mod simulated;
mod worker;

pub use engine::{Activity, Workers};
pub use remote_workers::RemoteWorkers;
