//! The data set of a session on pairs: opened, loaded, looked at, turned, and opened anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use super::message::Progress;
use super::ready::settle;
use super::run::{Attendant, Options, Session};
use super::target::{Target, refuse_over_limit};
use crate::class::Class;
use crate::error::{Error, Result, describe_errno};
use crate::host::Facts;
use crate::load::kv::dataset::Place;
use crate::load::kv::{DataSet, PairsReport, Store};
use crate::load::volume::{self, Extent, Region};
use crate::meter::engine::EngineFigures;
use crate::meter::member::Member;
use crate::settings::Settings;
use crate::settings::jobs::OpenedWith;
use crate::settings::knobs::Ground;
use crate::settings::profile::expand_home;
use crate::stack::build::Built;
use crate::stack::plan::Exposed;
use crate::units::{MIB, approx_size, format_size};

/// The folder of the data set: that of the files, or the stack's.
fn folder(settings: &Settings, built: Option<&Built>) -> Result<PathBuf> {
    match built.map(|built| &built.plan().exposed) {
        Some(Exposed::Files { dir, .. }) => Ok(dir.clone()),
        Some(Exposed::Devices(_)) => {
            Err(Error::input("RocksDB keeps files, and the stack has no file system")
                .hint("choose stack.filesystem"))
        }
        None => expand_home(&settings.target.dir),
    }
}

/// Opens the data set of the settings, and makes it where there is none; nothing is loaded yet.
pub(super) fn open(
    settings: &Settings,
    options: &Options,
    facts: &Facts,
    built: Option<&Built>,
    attendant: &mut dyn Attendant,
) -> Result<Target> {
    if options.read_only {
        let what = "RocksDB writes to its files as soon as it opens them, and --read-only writes nothing";
        return Err(Error::input(what).hint("leave --read-only out, or set load.engine to pages"));
    }
    let dir = folder(settings, built)?;
    // Both refuse before anything is made.
    volume::files::refuse_foreign_lock(&dir)?;
    Place::new(&dir).marker()?;
    volume::files::make_folder(&dir)?;
    let target_facts = volume::examine_folder(&dir)?;
    settle(&mut settings.clone(), Ground { facts, target: Some(&target_facts) }, options, &mut Vec::new())?;
    // Another data set that lies there is removed only for one that may be loaded.
    let begin_bytes = Store::bytes_to_begin(&dir, settings, options.anew)?;
    refuse_over_limit(begin_bytes, options.written_bytes.load(Ordering::Relaxed), settings)?;
    let (store, mut notes) = Store::open(&dir, settings, options.anew)?;
    notes.iter().for_each(|note| attendant.notice(note));
    let data = store.data();
    notes.insert(0, format!("RocksDB in {}: {}", dir.display(), in_words(&data)));
    if let Some(model) = &target_facts.emulated {
        notes.push(format!("emulated drives ({model}): the figures say nothing of real ones"));
    }
    // What else lies in the folder is none of the data set's.
    let path = Place::new(&dir).database();
    let extent = Extent { path: path.clone(), identity: None, member: 0, offset_bytes: 0 };
    let region = Region {
        id: Region::DATA,
        set: store.set(),
        extents: vec![extent],
        extent_bytes: data.bytes().next_multiple_of(MIB),
    };
    let member = Member { name: "rocksdb".into(), device: None, path: Some(path) };
    Ok(Target::of_pairs(Arc::new(store), target_facts, region, member, notes))
}

fn in_words(data: &DataSet) -> String {
    let DataSet { pairs, key_bytes, value_bytes, .. } = data;
    format!("{pairs} pairs of {key_bytes} + {value_bytes} B, {} in all", approx_size(data.bytes()))
}

/// Loads what is missing, and adds what was written for it.
pub(super) fn load(
    store: &Store,
    settings: &Settings,
    written_bytes: &AtomicU64,
    attendant: &mut dyn Attendant,
) -> Result<()> {
    let missing_bytes = store.missing_bytes();
    if let Some(missing_bytes) = missing_bytes {
        refuse_over_limit(missing_bytes, written_bytes.load(Ordering::Relaxed), settings)?;
        attendant.notice(&format!(
            "loading {} of pairs, which the next run finds there: {}",
            approx_size(missing_bytes),
            in_words(&store.data())
        ));
    }
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let before = written_of(store);
    let limit_bytes = settings.run.max_writes_bytes.unwrap_or(u64::MAX);
    let left_bytes = limit_bytes.saturating_sub(written_bytes.load(Ordering::Relaxed));
    let mut progress = |progress: Progress| {
        // Merges write what was put once more.
        if written_of(store).saturating_sub(before) > left_bytes {
            over.store(true, Ordering::Relaxed);
        }
        if over.load(Ordering::Relaxed) || !attendant.progress(progress) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let whole = store.load(&mut progress, &stop);
    written_bytes.fetch_add(written_of(store).saturating_sub(before), Ordering::Relaxed);
    let whole = whole?;
    if over.into_inner() {
        let what =
            format!("loading and merging has written {}, which is run.max_writes", format_size(limit_bytes));
        return Err(
            Error::input(what).hint("a higher limit goes on where this stopped: --set run.max_writes=…")
        );
    }
    if !whole {
        return Err(Error::interrupted("loading was stopped").hint("the next run goes on where it stopped"));
    }
    Ok(())
}

/// Bytes that the engine has written since it was opened.
fn written_of(store: &Store) -> u64 {
    store.figures().map_or(0, |figures| figures.counts.written_bytes())
}

/// What opening the settings' data set takes, in words. `held` is a folder that this process has locked and
/// leaves first.
///
/// # Errors
/// Refused where something is in the way; input where there are more pairs than keys.
pub(super) fn outlook(settings: &Settings, held: Option<&Path>) -> Result<String> {
    let place = Place::new(&folder(settings, None)?);
    volume::files::refuse_foreign_lock(place.dir())?;
    if held != Some(place.dir()) {
        volume::files::refuse_locked(place.dir())?;
    }
    let (found, (bytes, _)) = (place.marker()?, place.room()?);
    let data = DataSet::of(settings, bytes)?;
    refuse_over_limit(Store::bytes_to_begin(place.dir(), settings, false)?, 0, settings)?;
    let (dir, words) = (place.dir().display(), in_words(&data));
    Ok(match found {
        Some(marker) if marker.pairs == data && marker.loaded => format!("open {words}, in {dir}"),
        Some(marker) if marker.pairs == data => format!("go on loading {words}, in {dir}"),
        Some(_) => format!("replace the data set of other settings in {dir} by {words}"),
        None => format!("load {words}, in {dir}"),
    })
}

/// Reads every pair of the settings' data set back.
///
/// # Errors
/// Input where it is not there, or on a stack; refused where a run has it.
pub fn verify_pairs(
    settings: &Settings,
    progress: &mut dyn FnMut(Progress),
    stop: &AtomicBool,
) -> Result<PairsReport> {
    if settings.stack.is_built() {
        let what = "the pairs of this profile are on its stack, which goes with the run";
        return Err(Error::input(what).hint("`stacktune record --verify` reads them back before it goes"));
    }
    let place = Place::new(&folder(settings, None)?);
    let data = DataSet::of(settings, place.room()?.0)?;
    if place.marker()?.is_none_or(|marker| marker.pairs != data || !marker.loaded) {
        let what = format!("{} holds no data set of this profile that is loaded", place.dir().display());
        return Err(Error::input(what).hint("`stacktune record` loads it"));
    }
    // What was acknowledged is for the next run to look for.
    let mut settings = settings.clone();
    settings.kv.acks = None;
    Store::open(place.dir(), &settings, false)?.0.verify(progress, stop)
}

/// What a session on pairs knows beside its settings.
#[derive(Debug, Default)]
pub(super) struct Engine {
    /// Closes the database and opens it again.
    reopening: Option<JoinHandle<Result<()>>>,
    /// With what it could not be opened.
    refused: Option<OpenedWith>,
    /// Bytes that it had written when that was looked at last.
    written_bytes: u64,
    /// What puts fail with, as it was told last.
    told: Option<i32>,
}

impl Engine {
    /// Whatever opens the database again has ended.
    pub fn end(self) {
        // What came of it nobody asks any more.
        self.reopening.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// What could not be opened is tried again.
    pub fn retry(&mut self) {
        self.refused = None;
    }

    /// It goes on from there: what was written until now is counted already.
    pub fn begin(store: Option<&Arc<Store>>) -> Self {
        Self { written_bytes: store.map_or(0, |store| written_of(store)), ..Self::default() }
    }
}

impl Session {
    /// What the storage engine did so far; what it wrote is added to what was written. None of pages.
    pub(super) fn engine_figures(&mut self) -> Option<EngineFigures> {
        let figures = self.engine.pairs()?.figures()?;
        let written_bytes = figures.counts.written_bytes();
        let before = std::mem::replace(&mut self.pairs.written_bytes, written_bytes);
        self.writes.add(written_bytes.saturating_sub(before));
        Some(figures)
    }

    /// Whether puts have found no room since the last call.
    pub(super) fn found_full(&self) -> bool {
        self.engine.pairs().is_some_and(|store| store.take_full())
    }

    /// Tells once what puts fail with, and once that they no longer do.
    pub(super) fn look_at_puts(&mut self) {
        let Some(store) = self.engine.pairs().cloned() else { return };
        let puts = |class: Class| class.writes() && self.classes.works(class);
        if store.failing().is_some() && !Class::ALL.into_iter().any(puts) {
            // Nobody is left who would find that there is room again.
            store.put_failed(0);
            self.pairs.told = None;
            return;
        }
        let failing = store.failing();
        if std::mem::replace(&mut self.pairs.told, failing) == failing {
            return;
        }
        match failing {
            Some(errno @ (libc::ENOSPC | libc::EDQUOT)) => {
                let (dir, free) = (store.dir().display(), approx_size(store.free_bytes()));
                self.notice(format!(
                    "puts stand still: {} in {dir}, where {free} are free; they go on once there is room",
                    describe_errno(errno)
                ));
            }
            Some(errno) => self.notice(format!("puts fail: {}", describe_errno(errno))),
            None => self.notice("puts go on".into()),
        }
    }

    /// Turns what `RocksDB` turns while it is open.
    pub(super) fn turn_engine(&mut self, settings: &Settings) -> std::result::Result<(), String> {
        if settings.kv.rocksdb == self.settings.kv.rocksdb {
            return Ok(());
        }
        match self.engine.pairs() {
            Some(_) if self.pairs.reopening.is_some() => Err("RocksDB is just being opened again".into()),
            // It takes all of them once it is opened again.
            Some(store) if store.opened_with().is_none() => Ok(()),
            Some(store) => store.turn(&settings.kv.rocksdb),
            None => Ok(()),
        }
    }

    /// Whether classes must wait until the database is open with what the settings say. It is closed once
    /// all have drained.
    pub(super) fn is_reopening(&mut self) -> bool {
        let Some(store) = self.engine.pairs().cloned() else { return false };
        if let Some(thread) = self.pairs.reopening.take_if(|thread| thread.is_finished()) {
            let failed = match thread.join() {
                Ok(outcome) => outcome.err().map(|error| error.one_line()),
                Err(_) => Some("RocksDB could not be opened again".into()),
            };
            // One that is open still, as it was, is tried again.
            let closed = store.opened_with().is_none();
            self.pairs.refused = failed.as_ref().filter(|_| closed).map(|_| OpenedWith::of(&self.settings));
            failed.into_iter().for_each(|why| self.notice(why));
        }
        if self.pairs.reopening.is_some() {
            return true;
        }
        let wanted = OpenedWith::of(&self.settings);
        if store.opened_with() == Some(wanted) || self.pairs.refused == Some(wanted) {
            return false;
        }
        if Class::ALL.into_iter().any(|class| self.classes.works(class)) {
            return true;
        }
        let rocksdb = self.settings.kv.rocksdb.clone();
        self.pairs.reopening = Some(std::thread::spawn(move || store.reopen(&rocksdb)));
        self.turned = true;
        true
    }
}
