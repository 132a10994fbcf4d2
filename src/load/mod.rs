//! The load: the four classes, and how their I/O reaches the drives.
//!
//! Enters: what each class is to do ([`crate::settings::jobs`]) and an open target. Leaves: samples,
//! read by [`crate::meter`].
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`volume`] | layout, headers, page stamps, fill, verification, locks | – |
//! | [`nvme`] | stacktune's own NVMe driver, for drives that the kernel hands over | – |
//! | [`spdk`] | the operator's own SPDK, through a shim in C | – |
//! | [`io`] | the interfaces, one file each | volume, nvme, spdk |
//! | [`kv`] | pairs in RocksDB: data set, options, loading, counters | volume |
//! | [`workers`] | pacing, offsets, commits, the loop of a worker | volume, io, kv |
//! | [`remote`] | a load in a separate process: commands there, samples back | workers, volume, spdk |
//! | [`calibrate`] | the generator's own cost per I/O | workers, volume, io, kv |

pub mod calibrate;
pub mod io;
pub mod kv;
pub mod nvme;
#[cfg(feature = "userspace")]
pub mod remote;
pub mod spdk;
pub mod volume;
pub mod workers;
