//! Key-value pairs in `RocksDB`, on a file system: the load's other engine.
//!
//! Enters: a folder, options of RocksDB and operations on pairs. Leaves: their results, and the engine's own
//! counts.
//!
//! A data set ([`dataset`]) is a number of pairs whose keys ([`keys`]) and values ([`values`]) can be
//! recomputed from their numbers, so that everything read back can be checked. A [`Store`] opens a folder's
//! database, loads the pairs unless the folder's marker says that they are there, changes `RocksDB`'s options
//! while it is open ([`options`]), and reports what the engine did ([`crate::meter::counts::engine`]). The
//! workers of [`crate::load`] call it through [`Handle`]s. Acknowledged puts can be recorded elsewhere
//! ([`acks`]), to count afterwards how many a crash has lost.
//!
//! A build without the crate has the same types, but no values of them.

#![cfg_attr(not(feature = "rocksdb"), expect(dead_code, reason = "nothing opens a database"))]

pub mod acks;
pub mod built;
pub mod dataset;
pub mod keys;
pub mod options;
pub mod report;
pub mod values;

#[cfg(feature = "rocksdb")]
mod ffi;
#[cfg(feature = "rocksdb")]
mod handle;
#[cfg(feature = "rocksdb")]
mod loading;
#[cfg(feature = "rocksdb")]
mod reading;
#[cfg(feature = "rocksdb")]
mod store;
#[cfg(feature = "rocksdb")]
mod tickers;

#[cfg(not(feature = "rocksdb"))]
mod absent;

#[cfg(not(feature = "rocksdb"))]
pub use absent::{Handle, Scanner, Store};
pub use dataset::DataSet;
#[cfg(feature = "rocksdb")]
pub use handle::{Handle, Scanner};
pub use report::PairsReport;
#[cfg(feature = "rocksdb")]
pub use store::Store;
