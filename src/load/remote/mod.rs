//! A load in a process of its own.
//!
//! DPDK, below SPDK, aborts on errors it cannot handle, and takes its memory, its signals and
//! the CPU of its first thread as if it were alone. So what drives drives through SPDK is a helper: the
//! same program with a hidden command, which has the very same [`Workers`](crate::load::workers::Workers),
//! with pacing and histograms. Only what an operator does, and what the meters ask at the end
//! of a window, crosses the border: commands there, samples with their histograms back. What a figure
//! says of an I/O is thereby as true as in this process: nothing is added to its way, as a server of
//! I/Os behind shared rings would add a hop and a second thread that polls, and count both as SPDK's.
//!
//! | file | what |
//! |---|---|
//! | [`protocol`] | what is said: a line of JSON each, over a pair of sockets |
//! | [`client`] | this side: starts the helper, asks it, and notices its end |
//! | [`RemoteWorkers`] | this side: the workers there, as a session sees them |
//! | [`server`] | the other: starts and stops workers as it is asked |
//! | [`helper`] | the hidden command: SPDK, and the server over it |
//!
//! The helper ends when its socket does, however this process ends, and the kernel then has it let go
//! of the drives; when the helper ends first, the classes stop with its last words.

pub mod client;
pub mod helper;
mod link;
pub mod protocol;
pub mod server;
mod workers;
