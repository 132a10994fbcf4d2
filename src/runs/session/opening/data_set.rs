//! The data set of pairs in the settings: where it is, and what opening it takes.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::error::{Error, Result};
use crate::load::kv::dataset::DatabaseFolder;
use crate::load::kv::{DataSet, PairsReport, Store};
use crate::load::volume;
use crate::printable::Shown as _;
use crate::runs::session::message::Progress;
use crate::runs::session::write_budget::WriteBudget;
use crate::settings::paths::expand_home;
use crate::settings::{Kv, Settings};
use crate::stack::plan::Exposed;
use crate::units::{approx_size, grouped};

/// The folder of the data set, or of `who` else works in a folder: the files' folder, or the one that a stack exposes.
pub(in crate::runs::session) fn folder(dir: &str, exposed: Option<&Exposed>, who: &str) -> Result<PathBuf> {
    match exposed {
        Some(Exposed::Files { dir, .. }) => Ok(dir.clone()),
        Some(Exposed::Devices(_)) => {
            Err(Error::input(format!("{who} needs a file system, and the stack has none"))
                .hint("choose stack.filesystem"))
        }
        None => expand_home(dir),
    }
}

/// Pairs and their size, as a sentence has them.
pub(in crate::runs::session) fn in_words(data: &DataSet) -> String {
    let DataSet { pairs, key_bytes, value_bytes, .. } = data;
    format!("{} pairs of {key_bytes} + {value_bytes} B ({})", grouped(*pairs), approx_size(data.bytes()))
}

/// What opening a data set takes.
pub(in crate::runs::session) struct Outlook {
    /// In words.
    pub text: String,
    /// Bytes of pairs to be loaded; none if loading had begun earlier.
    pub load_bytes: Option<u64>,
}

/// What opening the settings' data set takes. `held` is a folder that this process has locked and will leave first.
///
/// # Errors
/// Refused if something is in the way; input if there are more pairs than keys.
pub(in crate::runs::session) fn outlook(settings: &Settings, held: Option<&Path>) -> Result<Outlook> {
    let place = DatabaseFolder::new(&folder(&settings.target.dir, None, "RocksDB")?);
    volume::files::refuse_foreign_lock(place.dir())?;
    if held != Some(place.dir()) {
        volume::files::refuse_locked(place.dir())?;
    }
    let (found, (bytes, free_bytes)) = (place.marker()?, place.room()?);
    let data = DataSet::of(&settings.kv, bytes)?;
    let is_loaded = found.as_ref().is_some_and(|marker| marker.pairs == data && marker.loaded);
    place.refuse_without_room(&data, is_loaded, free_bytes)?;
    let begin_bytes = Store::bytes_to_begin(place.dir(), &settings.kv, false)?;
    WriteBudget::untouched(settings.run.max_writes_bytes).refuse(begin_bytes)?;
    let (dir, words) = (place.dir().shown(), in_words(&data));
    let (text, load_bytes) = match found {
        Some(marker) if marker.pairs == data && marker.loaded => (format!("open {words} in {dir}"), Some(0)),
        Some(marker) if marker.pairs == data => (format!("continue loading {words} in {dir}"), None),
        Some(_) => (format!("replace the data set of other settings in {dir} by {words}"), Some(begin_bytes)),
        None => (format!("load {words} in {dir}"), Some(begin_bytes)),
    };
    Ok(Outlook { text, load_bytes })
}

/// Reads every pair of the settings' data set back.
///
/// # Errors
/// Input if it does not exist, or is on a stack; refused if a run is using it.
pub fn verify_pairs(
    settings: &Settings,
    progress: &mut dyn FnMut(Progress),
    stop: &AtomicBool,
) -> Result<PairsReport> {
    if settings.stack.is_built() {
        let what = "the pairs of this profile are on its stack, which is taken down with the run";
        return Err(Error::input(what).hint("`stacktune record --verify` reads them back before that"));
    }
    let place = DatabaseFolder::new(&folder(&settings.target.dir, None, "RocksDB")?);
    let data = DataSet::of(&settings.kv, place.room()?.0)?;
    if place.marker()?.is_none_or(|marker| marker.pairs != data || !marker.loaded) {
        let what = format!("{} holds no loaded data set of this profile", place.dir().shown());
        return Err(Error::input(what).hint("`stacktune record` loads it"));
    }
    // The next run looks for the acknowledged commits.
    let kv = Kv { acks: None, ..settings.kv.clone() };
    Store::open(place.dir(), &kv, false)?.0.verify(progress, stop)
}
