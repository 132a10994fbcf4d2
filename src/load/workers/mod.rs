//! The workers of the four classes: pacing, offsets, commits, and the loop itself.
//!
//! Enters: each class's job and an open target. Leaves: I/O, and counts of it in cells.
//!
//! A worker's orders never change: a turn of a knob stops a class's workers, which drain, and starts new
//! ones. What must outlive them (the WAL's position, sequence numbers, how much may still be written) is in
//! [`control::Shared`]. Once started, a worker allocates nothing and takes no lock.
//!
//! [`Workers`] is what a session sees of them:
//!
//! | implementation | the workers |
//! |---|---|
//! | [`ThreadedWorkers`] | move pages, in threads of this process |
//! | [`SimulatedWorkers`] | move pages of simulated devices, in the calling thread on a virtual clock |
//! | [`KvWorkers`] | get and put key-value pairs, in threads of this process |
//! | `RemoteWorkers` of [`remote`](crate::load::remote) | move pages, in another process |

mod commit;
pub mod control;
mod generations;
mod io_priority;
mod kv;
pub mod launch;
mod lifecycle;
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
