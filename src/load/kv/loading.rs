//! Loads the pairs, and continues an interrupted load.
//!
//! Pairs are put in batches that bypass the log, and each batch records how many have been put so far:
//! whichever memtables have been flushed when a run dies, the record matches the pairs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rocksdb::{DB, FlushOptions, WaitForCompactOptions, WriteBatch, WriteOptions};

use super::dataset::Marker;
use super::keys::{Key, Shuffled};
use super::store::Store;
use super::values::Values;
use crate::error::{Error, Result};
use crate::load::volume::Progress;
use crate::units::MIB;

/// The key of that record; shorter than any pair's key.
pub(super) const NOTE: &[u8] = b"\xff";
const BATCH_BYTES: u64 = MIB;
/// How often to serve the operator while waiting for compactions.
const LOOK_US: u64 = 200_000;

impl Store {
    /// Bytes of keys and values still to load; `None` if all are loaded.
    pub fn missing_bytes(&self) -> Option<u64> {
        let marker = self.marker();
        let loaded = || self.db().map_or(0, |db| noted(&db));
        (!marker.loaded).then(|| (marker.pairs.pairs.saturating_sub(loaded())) * marker.pairs.pair_bytes())
    }

    /// Loads what is missing, and waits until nothing is left to compact, even from earlier runs, so that
    /// every run starts from the same state. Returns false if it was stopped.
    ///
    /// # Errors
    /// With `RocksDB`'s message.
    pub fn load(&self, progress: &mut dyn FnMut(Progress), stop: &AtomicBool) -> Result<bool> {
        let marker = self.marker();
        let db = self.db()?;
        let failed = |error: rocksdb::Error| {
            Error::failed(format!("RocksDB can't load the pairs: {}", error.into_string()))
                .hint("the next run continues where this one stopped")
        };
        if marker.loaded {
            return settled(&db, &marker, progress, stop).map_err(failed);
        }
        let whole = put_all(&db, &marker, progress, stop).map_err(failed)?;
        let whole = whole && settled(&db, &marker, progress, stop).map_err(failed)?;
        if whole {
            let marker = marker.with_loaded(true);
            self.place.mark(&marker)?;
            *self.marker.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = marker;
            // If the process dies first, the note stays, but nothing reads it any more.
            db.delete(NOTE).map_err(failed)?;
            db.flush().map_err(failed)?;
        } else {
            db.flush().map_err(failed)?;
        }
        Ok(whole)
    }
}

/// Number of pairs put so far.
fn noted(db: &DB) -> u64 {
    let note = db.get_pinned(NOTE).ok().flatten();
    note.and_then(|note| note.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))).unwrap_or(0)
}

fn put_all(
    db: &DB,
    marker: &Marker,
    progress: &mut dyn FnMut(Progress),
    stop: &AtomicBool,
) -> std::result::Result<bool, rocksdb::Error> {
    let data = &marker.pairs;
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    let (mut key, mut values) = (Key::new(data.key_bytes), Values::new(marker.set, data.value_bytes));
    let shuffled = (!data.is_sequential()).then(|| Shuffled::new(data.pairs, marker.set));
    let each = (BATCH_BYTES / data.pair_bytes()).clamp(1, 10_000);
    let first = noted(db);
    let (mut next, began) = (first, Instant::now());
    while next < data.pairs {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let mut batch = WriteBatch::default();
        let end = (next + each).min(data.pairs);
        for place in next..end {
            let number = shuffled.map_or(place, |shuffled| shuffled.at(place));
            batch.put(key.of(number), values.of(number, 0));
        }
        batch.put(NOTE, end.to_le_bytes());
        db.write_opt(batch, &options)?;
        next = end;
        let seconds = began.elapsed().as_secs_f64().max(1e-9);
        progress(Progress {
            what: "loading pairs".into(),
            done_bytes: next * data.pair_bytes(),
            all_bytes: data.bytes(),
            rate_bytes_per_s: ((next - first) * data.pair_bytes()) as f64 / seconds,
        });
    }
    let mut flush = FlushOptions::default();
    flush.set_wait(true);
    db.flush_opt(&flush).map(|()| true)
}

/// Waits for the compactions that loading has left; false if stopped.
fn settled(
    db: &DB,
    marker: &Marker,
    progress: &mut dyn FnMut(Progress),
    stop: &AtomicBool,
) -> std::result::Result<bool, rocksdb::Error> {
    let all_bytes = marker.pairs.bytes();
    let pending = || db.property_int_value("rocksdb.estimate-pending-compaction-bytes").ok().flatten();
    loop {
        let mut options = WaitForCompactOptions::default();
        options.set_timeout(LOOK_US);
        match db.wait_for_compact(&options) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == rocksdb::ErrorKind::TimedOut => {}
            Err(error) => return Err(error),
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        progress(Progress {
            what: "merging the loaded pairs".into(),
            done_bytes: all_bytes.saturating_sub(pending().unwrap_or(0)),
            all_bytes,
            rate_bytes_per_s: 0.0,
        });
    }
}
