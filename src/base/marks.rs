//! The names and first bytes of stacktune's own files. [`crate::load`] writes them, and [`crate::stack`]
//! looks for them before it takes down a file system: a file that has only the name is somebody else's.

use crate::units::MIB;

/// Starts each copy of a member's header.
pub const VOLUME: &[u8; 16] = b"stacktune volume";
/// Where the copies are on a member: the first sector, and the middle of the header, which takes one MiB.
pub const VOLUME_AT: [u64; 2] = [0, MIB / 2];

/// The WAL's file.
pub const WAL_NAME: &str = "wal";

/// The file that is locked, and that marks the folder as stacktune's.
pub const LOCK_NAME: &str = "stacktune-set";
/// Its content.
pub const LOCK_TEXT: &[u8] = b"A set of stacktune: its files lie beside this one.\n";

/// Prefix of a file's first name; the rest can't be guessed.
pub const NEW_PREFIX: &str = ".stacktune-";

/// The file that describes the pairs in the database beside it.
pub const PAIRS_NAME: &str = "stacktune-pairs.json";
/// The description in that file.
pub const PAIRS_WHAT: &str = "a data set of stacktune: pairs in RocksDB";
/// The folder of the database.
pub const DATABASE_NAME: &str = "rocksdb";

/// The folder of a program that is the load.
pub const PROGRAM_NAME: &str = "stacktune-program";
/// The file beside it that records the words it was set up with.
pub const SETUP_NAME: &str = "stacktune-setup";
/// What that file begins with.
pub const SETUP_BEGINS: &str = "# The program's folder beside this file was set up by stacktune:\n";

/// The name of the data file with that index.
pub fn data_name(index: u64) -> String {
    format!("data-{index}")
}
