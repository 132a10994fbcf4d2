//! How the RocksDB in this program was compiled, according to the build script.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::settings::Settings;

/// RocksDB's version and how it was compiled, which determines its speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Built {
    /// RocksDB's version, `11.8.1`.
    pub version: &'static str,
    /// `by the crate`, `unity build, COMPILER, -O2`, or `a library of the system`.
    pub build: &'static str,
    /// What computes checksums: `SSE4.2`, `ARMv8`, `software`, or `unknown`.
    pub crc32c: &'static str,
}

/// None in a program without RocksDB.
pub const BUILT: Option<Built> = if cfg!(feature = "rocksdb") {
    Some(Built {
        version: env!("STACKTUNE_ROCKSDB_VERSION"),
        build: env!("STACKTUNE_ROCKSDB_BUILD"),
        crc32c: env!("STACKTUNE_ROCKSDB_CRC32C"),
    })
} else {
    None
};

/// Refuses settings that need RocksDB in a program without it.
pub fn require(settings: &Settings) -> Result<()> {
    if BUILT.is_some() || !settings.is_keyed() { Ok(()) } else { Err(absent()) }
}

/// The error of a program without RocksDB.
pub(super) fn absent() -> Error {
    Error::not_built("has no RocksDB")
}
