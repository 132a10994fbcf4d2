//! An open data set: creates, recognizes, opens, closes and reopens it.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rocksdb::{BlockBasedOptions, Cache, DB, Options};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::acks::Acks;
use super::dataset::{DataSet, DatabaseFolder, Marker, put_before};
use super::handle::{Handle, unreadable};
use super::keys::Key;
use super::options::{Setting, changed, fixed, of_database, of_files, of_pairs, text};
use super::{ffi, tickers};
use crate::error::{Error, Result};
use crate::host::{Trusting, make_own_folder};
use crate::load::volume::files;
use crate::meter::counts::engine::EngineFigures;
use crate::printable::Shown as _;
use crate::settings::jobs::OpenedWith;
use crate::settings::paths::expand_home;
use crate::settings::{Kv, Rocksdb};
use crate::threads;

/// Threads of RocksDB besides those that flush and compact: its timer and the like, and those that open a database's
/// files (`max_file_opening_threads`). It starts all of them when opening a database, and aborts if it can't.
const OTHER_THREADS: usize = 4 + 16;

/// An open data set, locked against other runs.
pub struct Store {
    pub(super) place: DatabaseFolder,
    pub(super) marker: Mutex<Marker>,
    /// None while it is being reopened.
    db: RwLock<Option<Arc<DB>>>,
    /// Shared by every opening: the statistics, which keep counting.
    base: RwLock<Options>,
    cache: Mutex<Cache>,
    /// The options in force.
    options: Mutex<Rocksdb>,
    /// Sequence number of the WAL's next put.
    next_logged: AtomicU64,
    /// How many of the WAL's own pairs earlier runs have put.
    logged_before: u64,
    pub(super) acks: Option<Acks>,
    /// The error of the last put, until one succeeds.
    failed: AtomicI32,
    /// Whether a put found no room since this was last read.
    found_full: AtomicBool,
    _lock: Option<File>,
}

impl Store {
    /// Bytes of keys and values to load from scratch when the folder's data set is opened; 0 if it is there
    /// or was begun (then [`Store::missing_bytes`] is the rest).
    ///
    /// # Errors
    /// Refused if something is there that stacktune did not make.
    pub fn bytes_to_begin(dir: &Path, kv: &Kv, anew: bool) -> Result<u64> {
        let place = DatabaseFolder::new(dir);
        let data = DataSet::of(kv, place.room()?.0)?;
        let keeps = |marker: Marker| marker.pairs == data && !anew;
        Ok(if place.marker()?.is_some_and(keeps) { 0 } else { data.bytes() })
    }

    /// Opens the data set of a folder, or creates it. Removes another data set there, and with `anew` even
    /// the same one. [`Store::load`] loads whatever is missing.
    ///
    /// # Errors
    /// Refused if something is there that stacktune did not make, another run uses it, or the disk has no
    /// room; failed with `RocksDB`'s message.
    pub fn open(dir: &Path, kv: &Kv, anew: bool) -> Result<(Self, Vec<String>)> {
        let place = DatabaseFolder::new(dir);
        files::refuse_foreign_lock(dir)?;
        let found = place.marker()?;
        let (whole_bytes, free_bytes) = place.room()?;
        let data = DataSet::of(kv, whole_bytes)?;
        let keeps = |marker: &Marker| marker.pairs == data && !anew;
        let loaded = found.as_ref().is_some_and(|marker| keeps(marker) && marker.loaded);
        place.refuse_without_room(&data, loaded, free_bytes)?;
        make_own_folder(dir, Trusting::Root)?;
        let lock = files::lock_folder(dir, files::Share::Exclusive)?;
        raise_open_files();
        let mut notes = Vec::new();
        // Read again: nobody else can change it, now that the folder is locked.
        let (mut marker, other) = match place.marker()? {
            Some(marker) if keeps(&marker) => (marker, None),
            other => (Marker::new(data.clone(), rand::random()), other),
        };
        // This may refuse, so it comes before anything is removed.
        let acks = kv.acks.as_deref().map(expand_home).transpose()?;
        let acks = acks.map(|path| Acks::open(&path, marker.set)).transpose()?;
        if let Some(other) = other {
            notes.extend((other.pairs != data).then(|| replaced(&other, &data)));
            place.mark(&other.removed())?;
            remove(&place)?;
        }
        notes.extend(mixed(&marker, dir));
        marker.epoch += 1;
        place.mark(&marker)?;
        let rocksdb = &kv.rocksdb;
        let cache = Cache::new_lru_cache(rocksdb.block_cache_bytes as usize);
        let base = base();
        let db = open(&place, &base, &cache, rocksdb)?;
        notes.extend(acks.as_ref().map(Acks::adopt).transpose()?.flatten());
        // It has a new one only if the old database was gone.
        if let Some(identity) = place.identity().filter(|found| marker.identity.as_ref() != Some(found)) {
            marker.identity = Some(identity);
            place.mark(&marker)?;
        }
        let store = Self {
            place,
            next_logged: AtomicU64::new(marker.sequence_base()),
            logged_before: logged_in(&db, &marker.pairs)?,
            marker: Mutex::new(marker),
            db: RwLock::new(Some(Arc::new(db))),
            base: RwLock::new(base),
            cache: Mutex::new(cache),
            options: Mutex::new(rocksdb.clone()),
            acks,
            failed: AtomicI32::new(0),
            found_full: AtomicBool::new(false),
            _lock: lock,
        };
        Ok((store, notes))
    }

    /// Its content.
    pub fn data(&self) -> DataSet {
        self.marker().pairs
    }

    pub(super) fn marker(&self) -> Marker {
        self.marker.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The seed of the values.
    pub fn set(&self) -> u64 {
        self.marker().set
    }

    /// The first sequence number of this run.
    pub fn sequence_base(&self) -> u64 {
        self.marker().sequence_base()
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        self.place.dir()
    }

    pub(super) fn db(&self) -> Result<Arc<DB>> {
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        db.clone().ok_or_else(|| Error::failed("the database is closed: it could not be reopened"))
    }

    /// Bytes of keys and values that it stores, counting each pair once: the loaded pairs, and those that the
    /// WAL has put in this and earlier runs.
    pub fn stored_bytes(&self) -> u64 {
        let (data, put) = (self.data(), self.next_logged.load(Ordering::Relaxed) - self.sequence_base());
        data.bytes() + put.min(data.logged()).max(self.logged_before) * data.pair_bytes()
    }

    /// A handle for a worker.
    ///
    /// # Errors
    /// If the database could not be reopened.
    pub fn handle(&self) -> Result<Handle> {
        Ok(Handle::new(self.db()?))
    }

    /// The WAL's next put: index among its pairs (each run starts with the first), and sequence number.
    #[inline]
    pub fn next_logged(&self, logged: u64) -> (u64, u64) {
        let sequence = self.next_logged.fetch_add(1, Ordering::Relaxed);
        (put_before(sequence) % logged, sequence)
    }

    /// Records an acknowledged put of the WAL, if requested; returns an errno on failure.
    #[inline]
    pub fn note(&self, slot: u64, sequence: u64) -> std::result::Result<(), i32> {
        let Some(acks) = &self.acks else { return Ok(()) };
        acks.note(slot, sequence).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// Notes that a put failed with that errno, or (with 0) that one succeeded again.
    pub fn put_failed(&self, errno: i32) {
        self.failed.store(errno, Ordering::Relaxed);
        if matches!(errno, libc::ENOSPC | libc::EDQUOT) {
            self.found_full.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a put found no room since the last call.
    pub fn take_full(&self) -> bool {
        self.found_full.swap(false, Ordering::Relaxed)
    }

    /// The error with which puts currently fail.
    #[inline]
    pub fn failing(&self) -> Option<i32> {
        Some(self.failed.load(Ordering::Relaxed)).filter(|errno| *errno != 0)
    }

    /// Its current options; `None` while it is closed or being opened.
    pub fn opened_with(&self) -> Option<OpenedWith> {
        self.db.try_read().ok()?.as_ref()?;
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        Some(OpenedWith { direct_reads: options.direct_reads, direct_flush: options.direct_flush })
    }

    /// Applies the options that can change while the database is open.
    ///
    /// # Errors
    /// `RocksDB`'s message; nothing in that group of options was changed then.
    pub fn turn(&self, rocksdb: &Rocksdb) -> std::result::Result<(), String> {
        let db = self.db().map_err(|error| error.one_line())?;
        self.note_layout(rocksdb).map_err(|error| error.one_line())?;
        let mut options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_column = changed(of_pairs(rocksdb), &of_pairs(&options));
        let files = changed(of_files(rocksdb), &of_files(&options));
        if !files.is_empty() {
            of_column.push(("block_based_table_factory", format!("{{{}}}", text(&files))));
        }
        if !of_column.is_empty() {
            let pairs: Vec<_> = of_column.iter().map(|(name, value)| (*name, value.as_str())).collect();
            db.set_options(&pairs).map_err(rocksdb::Error::into_string)?;
        }
        let database = changed(of_database(rocksdb), &of_database(&options));
        if !database.is_empty() {
            ffi::set_database_options(&db, &database)?;
        }
        if rocksdb.block_cache_bytes != options.block_cache_bytes {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            cache.set_capacity(rocksdb.block_cache_bytes as usize);
        }
        let (direct_reads, direct_flush) = (options.direct_reads, options.direct_flush);
        // The fixed options stay as they are until it is reopened.
        *options = Rocksdb { direct_reads, direct_flush, ..rocksdb.clone() };
        Ok(())
    }

    /// Notes in the marker, in advance, that files will be written in another layout than when loading.
    fn note_layout(&self, rocksdb: &Rocksdb) -> Result<()> {
        let layout = rocksdb.layout();
        let mut marker = self.marker.lock().unwrap_or_else(PoisonError::into_inner);
        if layout == marker.pairs.layout || marker.turned.as_ref() == Some(&layout) {
            return Ok(());
        }
        let turned = marker.clone().turned_to(layout);
        self.place.mark(&turned)?;
        *marker = turned;
        Ok(())
    }

    /// Closes and reopens the database; no worker may still have a handle.
    ///
    /// # Errors
    /// `RocksDB`'s message; the database then stays closed until this is called again.
    pub fn reopen(&self, rocksdb: &Rocksdb) -> Result<()> {
        self.note_layout(rocksdb)?;
        let mut db = self.db.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = db.take() {
            let open = Arc::try_unwrap(open).map_err(|shared| {
                *db = Some(shared);
                Error::failed("the database can't be closed: a worker still uses it")
            })?;
            close(open);
        }
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let base = self.base.read().unwrap_or_else(PoisonError::into_inner);
        *db = Some(Arc::new(open(&self.place, &base, &cache, rocksdb)?));
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = rocksdb.clone();
        self.failed.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Closes and reopens the database with fresh statistics.
    ///
    /// # Errors
    /// As for [`Store::reopen`].
    pub fn count_anew(&self) -> Result<()> {
        *self.base.write().unwrap_or_else(PoisonError::into_inner) = base();
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.reopen(&options)
    }

    /// What the engine has done since its statistics began; `None` while it is closed.
    pub fn figures(&self) -> Option<EngineFigures> {
        // Borrowed, not shared, because closing needs sole ownership.
        let db = self.db.try_read().ok()?;
        let base = self.base.try_read().ok()?;
        Some(tickers::figures(&base, db.as_ref()?))
    }

    /// Free bytes of its file system.
    pub fn free_bytes(&self) -> u64 {
        self.place.room().map_or(0, |(_, free)| free)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let db = self.db.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = db.take().and_then(|shared| Arc::try_unwrap(shared).ok()) {
            close(open);
        }
    }
}

/// Closes it without waiting for compactions in progress: the next opening resumes them.
fn close(db: DB) {
    // Otherwise a power cut after a clean end would lose log records that are not yet on the medium.
    let _ = db.flush_wal(true);
    db.cancel_all_background_work(true);
    drop(db);
}

fn base() -> Options {
    let mut base = Options::default();
    base.create_if_missing(true);
    base.enable_statistics();
    // Its info log is for errors; we query the statistics.
    base.set_stats_dump_period_sec(0);
    base.set_stats_persist_period_sec(0);
    base.set_keep_log_file_num(4);
    base.set_max_log_file_size(16 << 20);
    base
}

fn open(place: &DatabaseFolder, base: &Options, cache: &Cache, rocksdb: &Rocksdb) -> Result<DB> {
    let path = place.database();
    let failed = |words: String| {
        Error::failed(format!("RocksDB can't open {}: {words}", path.shown())).hint(
            "its file LOG has more; a smaller data set, other options (rocksdb.*) or another folder may help",
        )
    };
    let settings: Vec<Setting> = [fixed(rocksdb), of_pairs(rocksdb), of_database(rocksdb)].concat();
    let mut options = ffi::options(base, &settings).map_err(&failed)?;
    let mut table = BlockBasedOptions::default();
    table.set_block_size(rocksdb.block_bytes as usize);
    table.set_block_cache(cache);
    if rocksdb.bloom_bits > 0 {
        table.set_bloom_filter(rocksdb.bloom_bits as f64, false);
    }
    options.set_block_based_table_factory(&table);
    let (compactions, flushes) = rocksdb.background();
    threads::require((compactions + flushes) as usize + OTHER_THREADS, "run RocksDB")?;
    DB::open(&options, &path).map_err(|error| failed(error.into_string()))
}

/// How many of the WAL's own pairs exist: each run puts them from the first one on.
fn logged_in(db: &DB, data: &DataSet) -> Result<u64> {
    let mut key = Key::new(data.key_bytes);
    let mut is_there = |slot: u64| {
        let found = db.get_pinned(key.of(data.pairs + slot));
        found.map(|value| value.is_some()).map_err(unreadable)
    };
    let (mut there, mut missing) = (0, data.logged());
    while there < missing {
        let middle = there.midpoint(missing);
        if is_there(middle)? { there = middle + 1 } else { missing = middle }
    }
    Ok(there)
}

/// Removes a database of ours.
fn remove(place: &DatabaseFolder) -> Result<()> {
    let path = place.database();
    if !path.exists() {
        return Ok(());
    }
    DB::destroy(&Options::default(), &path).map_err(|error| {
        Error::failed(format!("RocksDB can't remove {}: {}", path.shown(), error.into_string()))
    })
}

fn replaced(marker: &Marker, by: &DataSet) -> String {
    let DataSet { pairs, key_bytes, value_bytes, layout, .. } = &marker.pairs;
    let differs_in_layout = DataSet { layout: by.layout.clone(), ..marker.pairs.clone() } == *by;
    if differs_in_layout {
        return format!("the same pairs were there in another layout ({layout}) and are loaded anew");
    }
    format!("another data set was there ({pairs} pairs of {key_bytes} + {value_bytes} B) and is replaced")
}

/// A note about reused pairs, some of which may have another layout.
fn mixed(marker: &Marker, dir: &Path) -> Option<String> {
    let turned = marker.turned.as_ref()?;
    Some(format!(
        "these pairs were loaded as asked for, but then rocksdb.* was turned while they were written: some files \
         may be of {turned}; remove {} to load them anew",
        dir.shown()
    ))
}

/// `RocksDB` keeps all of a database's files open, so allow as many as possible.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, RocksDB reports when it runs out.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
