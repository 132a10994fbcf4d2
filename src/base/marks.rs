//! What files of stacktune's own are called and begin with. [`crate::load`] writes them, and [`crate::stack`] looks for
//! them before it takes down a file system: what has only the name is somebody else's.

use crate::units::MIB;

/// Begins each copy of a member's header.
pub const VOLUME: &[u8; 16] = b"stacktune volume";
/// Where the copies are on the member: the first sector, and the middle of the header, which has a MiB.
pub const VOLUME_AT: [u64; 2] = [0, MIB / 2];

/// The WAL's file.
pub const WAL_NAME: &str = "wal";

/// The file that is locked, and marks the folder as stacktune's.
pub const LOCK_NAME: &str = "stacktune-set";
/// Its content.
pub const LOCK_TEXT: &[u8] = b"A set of stacktune: its files lie beside this one.\n";

/// Prefix of a file's first name; the rest can't be guessed.
pub const NEW_PREFIX: &str = ".stacktune-";

/// The file that says which pairs the database beside it has.
pub const PAIRS_NAME: &str = "stacktune-pairs.json";
/// What it says that this is.
pub const PAIRS_WHAT: &str = "a data set of stacktune: pairs in RocksDB";
/// The folder of the database.
pub const DATABASE_NAME: &str = "rocksdb";

/// The folder of a program that is the load.
pub const PROGRAM_NAME: &str = "stacktune-program";
/// The file beside it that says by which words it was set up.
pub const SETUP_NAME: &str = "stacktune-setup";
/// What that begins with.
pub const SETUP_BEGINS: &str = "# The program's folder beside this file was set up by stacktune:\n";

/// The name of the data file of that index.
pub fn data_name(index: u64) -> String {
    format!("data-{index}")
}
