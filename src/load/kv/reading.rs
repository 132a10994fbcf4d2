//! Reads every pair back, and counts acknowledged puts that are lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rocksdb::ReadOptions;

use super::acks::{Acks, Losses};
use super::dataset::run_of;
use super::handle::unreadable;
use super::keys::{Key, number};
use super::loading::NOTE;
use super::report::PairsReport;
use super::store::Store;
use super::values::{SEQUENCE_BYTES, Values, Wrong, sequence};
use crate::error::{Error, Result};
use crate::load::volume::Progress;
use crate::units::MIB;

/// How many wrong pairs are named.
const NAMED_MAX: usize = 5;

impl Store {
    /// Reads and checks every pair; every loaded one must be there.
    ///
    /// # Errors
    /// With `RocksDB`'s message, if it can't continue.
    pub fn verify(&self, progress: &mut dyn FnMut(Progress), stop: &AtomicBool) -> Result<PairsReport> {
        let (data, db) = (self.data(), self.db()?);
        let mut values = Values::new(self.set(), data.value_bytes);
        let mut report = PairsReport::default();
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        let mut iterator = db.raw_iterator_opt(options);
        let (mut expected, mut done_bytes, mut reported_bytes, began) = (0, 0, 0, Instant::now());
        iterator.seek_to_first();
        while let Some((key, value)) = iterator.item() {
            if stop.load(Ordering::Relaxed) {
                return Ok(report);
            }
            if key == NOTE {
                // Left by a load that was cut short at its end.
            } else if let Some(found) = number(key).filter(|_| key.len() as u64 == data.key_bytes) {
                let gone = found.min(data.pairs).saturating_sub(expected);
                if gone > 0 {
                    report.missing += gone;
                    report.name(|| format!("pairs {expected} to {} are missing", expected + gone - 1));
                }
                expected = expected.max(found.saturating_add(1).min(data.pairs));
                report.judge(found, values.check(found, value));
            } else {
                report.foreign += 1;
                report.name(|| format!("the key {key:02x?} is not one of stacktune's"));
            }
            done_bytes += (key.len() + value.len()) as u64;
            iterator.next();
            if done_bytes - reported_bytes > 16 * MIB {
                reported_bytes = done_bytes;
                progress(Progress {
                    what: "reading pairs back".into(),
                    done_bytes: done_bytes.min(data.bytes()),
                    all_bytes: data.bytes(),
                    rate_bytes_per_s: done_bytes as f64 / began.elapsed().as_secs_f64().max(1e-9),
                });
            }
        }
        iterator.status().map_err(unreadable)?;
        if expected < data.pairs {
            report.missing += data.pairs - expected;
            report.name(|| format!("pairs {expected} to {} are missing", data.pairs - 1));
        }
        report.complete = true;
        Ok(report)
    }
}

impl PairsReport {
    fn judge(&mut self, number: u64, checked: std::result::Result<Option<u64>, Wrong>) {
        let (count, what) = match checked {
            Ok(_) => {
                self.pairs_ok += 1;
                return;
            }
            Err(Wrong::Damaged) => (&mut self.damaged, "is damaged"),
            Err(Wrong::Misplaced) => (&mut self.misplaced, "belongs to another pair"),
            Err(Wrong::Length) => (&mut self.misplaced, "has another length"),
        };
        *count += 1;
        self.name(|| format!("the value of pair {number} {what}"));
    }

    fn name(&mut self, what: impl FnOnce() -> String) {
        if self.first.len() < NAMED_MAX {
            self.first.push(what());
        }
    }
}

impl Store {
    /// Counts the recorded puts that a crash has lost, and clears the record; `None` if nothing is recorded.
    ///
    /// # Errors
    /// If the record or a pair can't be read.
    pub fn count_losses(&self) -> Result<Option<Losses>> {
        let Some(acks) = &self.acks else { return Ok(None) };
        let losses = losses(self, acks)?;
        acks.begin()?;
        Ok((losses.acknowledged > 0).then_some(losses))
    }
}

/// The recorded puts that are lost: the pair has an older value, or none.
pub fn losses(store: &Store, acks: &Acks) -> Result<Losses> {
    let (data, db) = (store.data(), store.db()?);
    let noted = acks.noted()?;
    if noted.is_empty() {
        return Ok(Losses::default());
    }
    if data.value_bytes < SEQUENCE_BYTES as u64 {
        let what = format!("values of {} B do not identify the put that wrote them", data.value_bytes);
        return Err(Error::input(what).hint("use values of 8 B or more (kv.value_size), or no wal.acks"));
    }
    let mut key = Key::new(data.key_bytes);
    let mut losses = Losses::default();
    for (slot, acknowledged) in noted {
        let value = db.get_pinned(key.of(data.pairs + slot)).map_err(unreadable)?;
        let newest = value.as_deref().and_then(sequence);
        if newest.is_some_and(|newest| run_of(newest) > run_of(acknowledged)) {
            // A later run without a record has overwritten the value: nothing can be concluded.
            continue;
        }
        losses.acknowledged += 1;
        losses.lost += u64::from(newest.is_none_or(|newest| newest < acknowledged));
    }
    Ok(losses)
}
