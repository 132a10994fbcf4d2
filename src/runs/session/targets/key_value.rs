//! A data set of key-value pairs: opening, loading, turning and reopening.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::layout::{Layout, emulated};
use crate::error::{Error, Result, describe_errno};
use crate::host::{TargetFacts, Trusting, make_own_folder};
use crate::load::kv::Store;
use crate::load::kv::dataset::DatabaseFolder;
use crate::load::volume::{self, Extent, Progress, Region};
use crate::meter::counts::engine::EngineFigures;
use crate::printable::Shown as _;
use crate::runs::session::attendant::Attendant;
use crate::runs::session::opening::data_set::in_words;
use crate::runs::session::write_budget::WriteBudget;
use crate::settings::jobs::OpenedWith;
use crate::settings::{Kv, Rocksdb};
use crate::threads;
use crate::units::{MIB, approx_size, format_size};

/// An open data set. Dropping it closes its database.
pub struct KeyValue {
    pub(super) store: Arc<Store>,
    /// The abilities of the file system below it.
    pub(super) facts: TargetFacts,
    pub(super) layout: Layout,
    /// Closes the database and opens it again.
    reopening: Option<JoinHandle<Result<()>>>,
    /// The settings with which it could not be opened.
    refused: Option<OpenedWith>,
    /// Bytes that it had written at the last check.
    written_bytes: u64,
    /// The error of puts, as reported to the operator.
    reported: Option<i32>,
}

/// A folder in which a data set can be opened.
pub(in crate::runs::session) struct FoundPairs {
    dir: PathBuf,
    kv: Kv,
    /// Whether it is loaded anew even if it is complete.
    anew: bool,
    /// The abilities of the file system below it.
    pub facts: TargetFacts,
    /// Bytes of keys and values if it is loaded from scratch.
    pub bytes_to_load: u64,
}

impl FoundPairs {
    /// Examines the folder, making it if there is none; nothing of another data set is removed yet.
    pub fn look(dir: PathBuf, kv: Kv, anew: bool) -> Result<Self> {
        // Both refuse before anything is made.
        volume::files::refuse_foreign_lock(&dir)?;
        DatabaseFolder::new(&dir).marker()?;
        make_own_folder(&dir, Trusting::Root)?;
        let facts = volume::examine_folder(&dir)?;
        let bytes_to_load = Store::bytes_to_begin(&dir, &kv, anew)?;
        Ok(Self { dir, kv, anew, facts, bytes_to_load })
    }

    /// Opens the data set, making it if there is none; nothing is loaded yet.
    pub fn open(self, attendant: &mut dyn Attendant) -> Result<KeyValue> {
        let Self { dir, kv, anew, facts, .. } = self;
        let (store, mut notes) = Store::open(&dir, &kv, anew)?;
        notes.iter().for_each(|note| attendant.notice(note));
        let data = store.data();
        notes.insert(0, format!("RocksDB in {}: {}", dir.shown(), in_words(&data)));
        notes.extend(emulated(facts.emulated.as_ref()));
        // Anything else in the folder is not part of the data set.
        let path = DatabaseFolder::new(&dir).database();
        let extent = Extent { path: path.clone(), identity: None, member: 0, offset_bytes: 0 };
        let region = Region {
            id: Region::DATA,
            set: store.set(),
            extents: vec![extent],
            extent_bytes: data.bytes().next_multiple_of(MIB),
        };
        Ok(KeyValue {
            store: Arc::new(store),
            facts,
            layout: Layout::of_pairs(region, path, notes),
            reopening: None,
            refused: None,
            written_bytes: 0,
            reported: None,
        })
    }
}

impl KeyValue {
    /// Loads what is missing, and counts what the last run lost. Returns the first sequence number.
    pub(super) fn make_ready(&mut self, budget: &WriteBudget, attendant: &mut dyn Attendant) -> Result<u64> {
        self.load(budget, attendant)?;
        let losses = self.store.count_losses()?.map(|losses| losses.to_string());
        losses.iter().for_each(|text| attendant.notice(text));
        self.layout.notes.extend(losses);
        // RocksDB's times must be the run's, without loading and looking up before it.
        self.store.count_anew()?;
        Ok(self.store.sequence_base())
    }

    fn load(&self, budget: &WriteBudget, attendant: &mut dyn Attendant) -> Result<()> {
        let store = &self.store;
        if let Some(missing_bytes) = store.missing_bytes() {
            budget.refuse(missing_bytes)?;
            let data = store.data();
            let rest = if missing_bytes < data.bytes() {
                format!("the missing {} of ", approx_size(missing_bytes))
            } else {
                String::new()
            };
            attendant.notice(&format!("loading {rest}{}; the next run reuses them", in_words(&data)));
        }
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let before = written_of(store);
        let left_bytes = budget.left_bytes();
        let mut progress = |progress: Progress| {
            // Compactions rewrite pairs that were put.
            if written_of(store).saturating_sub(before) > left_bytes {
                over.store(true, Ordering::Relaxed);
            }
            if over.load(Ordering::Relaxed) || !attendant.progress(progress) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let whole = store.load(&mut progress, &stop);
        budget.add(written_of(store).saturating_sub(before));
        let whole = whole?;
        if over.into_inner() {
            let what = format!(
                "loading and merging wrote {}, the limit of run.max_writes",
                format_size(budget.limit_bytes.unwrap_or(u64::MAX))
            );
            return Err(Error::input(what)
                .hint("with a higher limit it continues from there: --set run.max_writes=…"));
        }
        if !whole {
            return Err(
                Error::interrupted("loading was stopped").hint("the next run continues where it stopped")
            );
        }
        Ok(())
    }

    /// Bytes written until now are counted already.
    pub fn begin(&mut self) {
        self.written_bytes = written_of(&self.store);
    }

    /// The database.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// RocksDB's work so far by its own counts, and the bytes that it has written since the last call.
    pub fn figures(&mut self) -> Option<(EngineFigures, u64)> {
        let figures = self.store.figures()?;
        let written_bytes = figures.counts.written_bytes();
        let before = std::mem::replace(&mut self.written_bytes, written_bytes);
        Some((figures, written_bytes.saturating_sub(before)))
    }

    /// The report about puts: once why they fail, and once that they work again. `puts` tells whether a class puts.
    pub fn look_at_puts(&mut self, puts: bool) -> Option<String> {
        let store = &self.store;
        if store.failing().is_some() && !puts {
            // Nobody would notice when there is room again.
            store.put_failed(0);
            self.reported = None;
            return None;
        }
        let failing = store.failing();
        if std::mem::replace(&mut self.reported, failing) == failing {
            return None;
        }
        Some(match failing {
            Some(errno @ (libc::ENOSPC | libc::EDQUOT)) => {
                let (dir, free) = (store.dir().shown(), approx_size(store.free_bytes()));
                format!(
                    "puts are waiting: {} in {dir}, where {free} are free; they continue once there is room",
                    describe_errno(errno)
                )
            }
            Some(errno) => format!("puts fail: {}", describe_errno(errno)),
            None => "puts continue".into(),
        })
    }

    /// Turns the options that RocksDB can change while it is open.
    pub fn turn(&self, rocksdb: &Rocksdb) -> std::result::Result<(), String> {
        if self.reopening.is_some() {
            return Err("RocksDB is being reopened".into());
        }
        // A closed database takes all settings when it is opened again.
        if self.store.opened_with().is_none() { Ok(()) } else { self.store.turn(rocksdb) }
    }

    /// Retries settings with which it could not be opened.
    pub fn retry(&mut self) {
        self.refused = None;
    }

    /// Whether classes must wait until the database is open with these settings. It is closed once all have
    /// drained; `works` tells whether any has not.
    pub fn reopens(&mut self, rocksdb: &Rocksdb, works: bool) -> Reopening {
        let mut reopening = Reopening::default();
        if let Some(thread) = self.reopening.take_if(|thread| thread.is_finished()) {
            let failed = match thread.join() {
                Ok(outcome) => outcome.err().map(|error| error.one_line()),
                Err(_) => Some("RocksDB could not be reopened".into()),
            };
            // If it is still open as before, try again.
            let closed = self.store.opened_with().is_none();
            self.refused = failed.as_ref().filter(|_| closed).map(|_| OpenedWith::of(rocksdb));
            reopening.failed = failed;
        }
        let wanted = OpenedWith::of(rocksdb);
        if self.reopening.is_none()
            && (self.store.opened_with() == Some(wanted) || self.refused == Some(wanted))
        {
            return reopening;
        }
        reopening.waits = true;
        if self.reopening.is_none() && !works {
            let (store, rocksdb) = (self.store.clone(), rocksdb.clone());
            match threads::start("reopen RocksDB", move || store.reopen(&rocksdb)) {
                Ok(thread) => self.reopening = Some(thread),
                Err(error) => {
                    reopening.failed = Some(error.one_line());
                    self.refused = Some(wanted);
                }
            }
            reopening.began = self.reopening.is_some();
        }
        reopening
    }

    /// Waits for the thread that reopens the database.
    pub fn end(&mut self) {
        // Its outcome no longer matters.
        self.reopening.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// The progress of reopening a database with other settings.
#[derive(Debug, Default)]
pub struct Reopening {
    /// Whether classes must wait.
    pub waits: bool,
    /// Whether it begins now.
    pub began: bool,
    /// Why it could not be opened.
    pub failed: Option<String>,
}

/// Bytes that RocksDB has written since it was opened.
fn written_of(store: &Store) -> u64 {
    store.figures().map_or(0, |figures| figures.counts.written_bytes())
}
