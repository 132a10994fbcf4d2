//! The workers of the four classes: pacing, offsets, commits, and the loop itself.
//!
//! Enters: each class's job and an open target. Leaves: I/O, and counts of it in cells.
//!
//! A worker's orders never change: turning a knob drains and stops a class's workers, then starts new ones.
//! What must outlive them is in [`control::Shared`] (the WAL's position) and [`control::Writes`] (sequence
//! numbers, how much may still be written). Once started, a worker allocates nothing and takes no lock.
//!
//! A session sees the workers as [`Workers`]:
//!
//! | implementation | the workers |
//! |---|---|
//! | [`ThreadedWorkers`] | move pages, in threads of this process |
//! | [`SimulatedWorkers`] | move pages of simulated devices, in the calling thread on a virtual clock |
//! | [`KvWorkers`] | get and put key-value pairs, in threads of this process |
//! | `RemoteWorkers` of [`remote`](crate::load::remote) | move pages, in another process |

mod commit;
pub mod control;
pub mod ended;
mod generations;
mod io_priority;
mod kv;
pub mod launch;
mod lifecycle;
pub mod observer;
mod offsets;
mod pacing;
mod simulated;
#[cfg(test)]
#[path = "workers_tests.rs"]
mod tests;
mod worker;

pub use generations::ThreadedWorkers;
pub use kv::KvWorkers;
pub use lifecycle::{Activity, Workers};
pub use simulated::SimulatedWorkers;
