//! A load in a separate process.
//!
//! Enters: jobs and commands. Leaves: samples with their histograms, as if the workers were in this process.
//!
//! DPDK, which SPDK is built on, aborts on errors that it can't handle, and takes memory, signals and the CPU
//! of its first thread as if it were alone. So SPDK runs in a helper: the same program with a hidden command,
//! and the very same [`Workers`](crate::load::workers::Workers), pacing and histograms. Only the operator's
//! actions and what the meters read at the end of a window cross the boundary: commands one way, samples with
//! their histograms the other. Figures are therefore as accurate as in this process, because nothing is added
//! to the path of an I/O. An I/O server behind shared rings would add a hop and a second polling thread, and
//! attribute both to SPDK.
//!
//! | file | what |
//! |---|---|
//! | [`protocol`] | the messages: one line of JSON each, over a pair of sockets |
//! | [`client`] | this side: starts the helper, sends requests, and notices its end |
//! | [`workers::RemoteWorkers`] | this side: the workers there, as a session sees them |
//! | [`server`] | the other: starts and stops workers on request |
//! | [`helper`] | the hidden command: SPDK, and the server on top of it |
//!
//! The helper ends when its socket does, however this process ends, and the kernel then releases the drives.
//! If the helper ends first, the classes stop, with its last output as the reason.

pub mod client;
pub mod helper;
mod link;
pub mod protocol;
pub mod server;
mod workers;
