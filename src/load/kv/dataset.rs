//! A folder's data set, and the marker by which the next run recognizes it.
//!
//! ```text
//! DIR/stacktune-set        locked by the run that has the folder (as with files of pages)
//! DIR/stacktune-pairs.json the marker: which pairs the database has, and whether all are loaded
//! DIR/rocksdb/             the database
//! ```
//! The marker is written before the database and says whose it is: a folder `rocksdb` without a marker
//! belongs to someone else and is left alone.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::keys;
use crate::error::{Error, Result};
use crate::host::{Trusting, refuse_exchangeable, refuse_others_entries, refuse_others_folder};
use crate::json;
use crate::load::volume::files;
use crate::marks::{DATABASE_NAME, NEW_PREFIX, PAIRS_NAME, PAIRS_WHAT};
use crate::printable::Shown as _;
use crate::regular_file;
use crate::settings::{Kv, Named, Order};
use crate::units::approx_size;

/// Space beyond keys and values: their overhead in files, memtables, and compactions in progress.
const ROOM_FACTOR: (u64, u64) = (5, 4);

/// Larger than the marker, and than RocksDB's IDENTITY file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The layout of a database that is about to be removed.
const REMOVED: &str = "removed";
/// The layout of the marker, and of keys and values.
const SCHEMA: u32 = 1;
/// Number of the WAL's own pairs: a sixteenth of the loaded ones, within these limits.
const LOGGED_MIN: u64 = 1024;
pub(super) const LOGGED_MAX: u64 = 1 << 16;
/// Sequence numbers per run: each run has its own range, above those of all earlier runs.
const EPOCH_SHIFT: u32 = 38;

/// How many puts its run made before the one with that sequence number.
pub fn put_before(sequence: u64) -> u64 {
    sequence & ((1 << EPOCH_SHIFT) - 1)
}

/// The run that a sequence number belongs to.
pub fn run_of(sequence: u64) -> u64 {
    sequence >> EPOCH_SHIFT
}

/// The content of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSet {
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Pairs that are loaded.
    pub pairs: u64,
    /// `sequential` or `random`.
    pub order: String,
    /// [`crate::settings::Rocksdb::layout`] at the time of loading. Later live turns change files only as
    /// they are compacted; the marker records them ([`Marker::turned`]).
    pub layout: String,
}

impl DataSet {
    /// The data set for these settings, on a file system of that many bytes.
    ///
    /// # Errors
    /// Input if there are more pairs than keys.
    pub fn of(kv: &Kv, filesystem_bytes: u64) -> Result<Self> {
        let pairs = &kv.pairs;
        let count = pairs.count_on(filesystem_bytes);
        let set = Self {
            key_bytes: pairs.key_bytes,
            value_bytes: pairs.value_bytes,
            pairs: count,
            order: pairs.order.name().to_owned(),
            layout: kv.rocksdb.layout(),
        };
        if set.pairs + set.logged() > keys::numbers(set.key_bytes) {
            let what = format!("{count} pairs are more than keys of {} B can distinguish", set.key_bytes);
            return Err(Error::input(what).hint("use longer keys (kv.key_size), or fewer pairs (kv.pairs)"));
        }
        Ok(set)
    }

    /// Bytes of a key and its value.
    pub fn pair_bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes
    }

    /// Bytes of all keys and values that are loaded.
    pub fn bytes(&self) -> u64 {
        self.pairs * self.pair_bytes()
    }

    /// Number of the WAL's own pairs: they follow the loaded ones, and are written one after another, over
    /// and over again.
    pub fn logged(&self) -> u64 {
        (self.pairs / 16).clamp(LOGGED_MIN, LOGGED_MAX)
    }

    /// Whether the pairs are loaded in ascending order of keys.
    pub fn is_sequential(&self) -> bool {
        self.order == Order::Sequential.name()
    }
}

/// The marker's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    what: String,
    schema: u32,
    /// The content of the database.
    pub pairs: DataSet,
    /// The seed of the values; each load draws a new one.
    pub set: u64,
    /// How many runs have opened it.
    pub epoch: u64,
    /// Whether every pair is loaded.
    pub loaded: bool,
    /// RocksDB's own id of the database (its file IDENTITY); `None` until it is first opened.
    #[serde(default)]
    pub identity: Option<String>,
    /// The layout of the last turn after loading, which some files may have; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned: Option<String>,
}

impl Marker {
    /// The marker of a data set that has yet to be loaded.
    pub fn new(pairs: DataSet, set: u64) -> Self {
        let (what, schema) = (PAIRS_WHAT.into(), SCHEMA);
        Self { what, schema, pairs, set, epoch: 0, loaded: false, identity: None, turned: None }
    }

    /// The same, for a database that is about to be removed; no settings ever ask for this layout.
    #[must_use]
    pub fn removed(self) -> Self {
        Self { pairs: DataSet { layout: REMOVED.into(), ..self.pairs }, loaded: false, ..self }
    }

    /// The same, after files may have been written in that layout.
    #[must_use]
    pub fn turned_to(self, layout: String) -> Self {
        Self { turned: Some(layout), ..self }
    }

    /// The same, marked as completely loaded or not.
    #[must_use]
    pub fn with_loaded(self, loaded: bool) -> Self {
        Self { loaded, ..self }
    }

    /// The first sequence number of the run that opened it.
    pub fn sequence_base(&self) -> u64 {
        self.epoch << EPOCH_SHIFT
    }
}

/// The folder of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFolder(PathBuf);

impl DatabaseFolder {
    /// That folder.
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.0
    }

    /// The database's folder.
    pub fn database(&self) -> PathBuf {
        self.0.join(DATABASE_NAME)
    }

    /// The marker, if there is one.
    ///
    /// # Errors
    /// Refused if a database or file is in the way that is not stacktune's, or that others could have put there.
    pub fn marker(&self) -> Result<Option<Marker>> {
        self.refuse_others()?;
        let path = self.0.join(PAIRS_NAME);
        let text = match regular_file::read(&path, FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if std::fs::symlink_metadata(self.database()).is_ok() {
                    let what = format!("there is no stacktune marker next to {}", self.database().shown());
                    return Err(foreign(&what));
                }
                return Ok(None);
            }
            read => read.map_err(|error| Error::os("cannot read", &path, error))?,
        };
        let marker: Option<Marker> = json::read(&text).ok();
        match marker {
            Some(marker) if marker.what == PAIRS_WHAT && marker.schema == SCHEMA => {
                self.known(marker).map(Some)
            }
            Some(marker) if marker.what == PAIRS_WHAT => {
                let what = format!("{} is from another version of stacktune", path.shown());
                Err(Error::refused(what).hint("remove its folder, or choose another one (target.files.dir)"))
            }
            _ => Err(foreign(&format!("{} is not stacktune's", path.shown()))),
        }
    }

    /// Refuses a database that others could have prepared: RocksDB opens and truncates files by name, even
    /// through links.
    ///
    /// # Errors
    /// Refused, with what others could change.
    pub fn refuse_others(&self) -> Result<()> {
        refuse_exchangeable(&self.0, Trusting::Root)?;
        refuse_others_folder(&self.0)?;
        refuse_others_entries(&self.database())
    }

    /// The marker, if it belongs to the database beside it.
    fn known(&self, marker: Marker) -> Result<Marker> {
        let database = self.database();
        let gone = |marker: Marker| Marker { identity: None, ..marker.with_loaded(false) };
        if !database.join("CURRENT").exists() {
            return Ok(gone(marker));
        }
        let is_ours = match (&marker.identity, self.identity()) {
            (Some(known), Some(found)) => *known == found,
            // Removing it was cut short.
            (Some(_), None) => marker.pairs.layout == REMOVED,
            // It was created, but not yet recorded.
            (None, _) => !marker.loaded,
        };
        if is_ours {
            return Ok(marker);
        }
        let what = format!("{} is not the database that stacktune's marker describes", database.shown());
        Err(foreign(&what))
    }

    /// RocksDB's own id of the database.
    pub fn identity(&self) -> Option<String> {
        let name = regular_file::read_text(&self.database().join("IDENTITY"), FILE_BYTES_MAX).ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    }

    /// Replaces the marker atomically.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn mark(&self, marker: &Marker) -> Result<()> {
        let path = self.0.join(PAIRS_NAME);
        let text = json::lines(marker)?;
        let written = || {
            let mut file = tempfile::Builder::new().prefix(NEW_PREFIX).tempfile_in(&self.0)?;
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            File::open(&self.0)?.sync_all()
        };
        written().map_err(|error: std::io::Error| Error::os("cannot write", &path, error))
    }

    /// Bytes of the file system, and how many are free for this user.
    ///
    /// # Errors
    /// If that can't be read.
    pub fn room(&self) -> Result<(u64, u64)> {
        let there = files::nearest_folder(&self.0);
        let stat = rustix::fs::statvfs(there)
            .map_err(|error| Error::os("cannot read the size of the file system of", there, error))?;
        Ok((stat.f_blocks.saturating_mul(stat.f_frsize), stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    /// Checks that there is space for the pairs to load; `free_bytes` are free for this user.
    ///
    /// # Errors
    /// Failed if the disk has too little space.
    pub fn refuse_without_room(&self, data: &DataSet, loaded: bool, free_bytes: u64) -> Result<()> {
        let (times, over) = ROOM_FACTOR;
        let pairs_bytes = data.bytes().saturating_add(data.logged() * data.pair_bytes());
        let needed_bytes = (pairs_bytes / over).saturating_mul(times);
        let has_bytes = free_bytes + self.taken();
        if loaded || needed_bytes <= has_bytes {
            return Ok(());
        }
        let (needs, has) = (approx_size(needed_bytes), approx_size(has_bytes));
        let what = format!("the pairs need {needs}, compaction and logs included, and {has} is available");
        Err(Error::failed(format!("{}: {what}", self.0.shown()))
            .hint("use fewer pairs (kv.pairs, kv.share), or smaller values (kv.value_size)"))
    }

    /// Bytes that the database takes.
    pub fn taken(&self) -> u64 {
        let files = std::fs::read_dir(self.database()).into_iter().flatten().flatten();
        files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    }
}

fn foreign(what: &str) -> Error {
    Error::refused(what).hint(
        "nothing was changed: move it elsewhere, or choose another folder for the target (target.files.dir)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_count_the_share_of_the_file_system_decides() {
        let mut kv = Kv::default();
        let set = DataSet::of(&kv, 4016 * 1000).unwrap();
        assert_eq!((set.pairs, set.bytes()), (250, 250 * 4016));
        kv.pairs.count = Some(7);
        assert_eq!(DataSet::of(&kv, 4016 * 1000).unwrap().pairs, 7);
        kv.pairs.key_bytes = 4;
        kv.pairs.count = Some(1 << 31);
        let error = DataSet::of(&kv, 0).unwrap_err().to_string();
        assert!(error.contains("kv.key_size"), "{error}");
    }

    #[test]
    fn foreign_data_is_refused_and_the_marker_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let place = DatabaseFolder::new(dir.path());
        assert_eq!(place.marker().unwrap(), None);
        std::fs::create_dir(place.database()).unwrap();
        assert!(place.marker().unwrap_err().to_string().contains("no stacktune marker"));
        let marker = Marker::new(DataSet::of(&Kv::default(), 1 << 30).unwrap(), 5);
        place.mark(&marker).unwrap();
        assert_eq!(place.marker().unwrap(), Some(marker));
        std::fs::write(dir.path().join(PAIRS_NAME), "{}").unwrap();
        let error = place.marker().unwrap_err();
        assert_eq!(error.kind, crate::error::Kind::Refused);
    }
}
