//! The threads that begin and end traces of the target's drives for the screen, which keeps drawing meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use super::message::Msg;
use super::tracing::{Said, Wanted};
use super::wake::Wake;
use crate::error::Result;
use crate::held_folder::HeldFolder;
use crate::json;
use crate::meter::context::ByTrace;
use crate::printable::Shown as _;
use crate::runs::record::{CONTRACT, TRACE, TRACE_FACTS, make_folder};
use crate::runs::session::Tap;
use crate::threads;
use crate::trace::{Watch, Watched, keep};
use crate::ui::clock;
use crate::ui::report::contract_kept;

/// A trace under way, and its drives.
type Begun = (Watch, Vec<Watched>);

/// The trace of the screen.
#[derive(Debug, Default)]
pub struct Thread {
    /// The thread that begins a trace, and returns it if that went well.
    begins: Option<JoinHandle<Option<Begun>>>,
    under_way: Option<Begun>,
}

impl Thread {
    /// Starts or ends a trace, as `wanted` says; the screen gets the outcome as a message.
    pub fn turn(&mut self, wanted: Wanted, folder: &Path, wake: &Sender<Wake>) -> Option<Msg> {
        match wanted {
            Wanted::Begin(drives, cpus) => {
                if self.begins.as_ref().is_some_and(JoinHandle::is_finished) {
                    self.under_way = self.begun();
                }
                // The key was pressed again before the screen knew of the trace.
                if self.begins.is_some() || self.under_way.is_some() {
                    return None;
                }
                let wake = wake.clone();
                let begins = threads::start("begin a trace", move || {
                    let (said, begun) = match begin(&drives, &cpus, wake.clone()) {
                        Ok(begun) => (
                            Said::Began(begun.1.iter().map(|of| of.name.clone()).collect(), tap(&begun.0)),
                            Some(begun),
                        ),
                        Err(error) => (Said::Ended(Err(error)), None),
                    };
                    drop(wake.send(Wake::Msg(Msg::Traced(said))));
                    begun
                });
                begins
                    .map(|begins| self.begins = Some(begins))
                    .err()
                    .map(|error| Msg::Traced(Said::Ended(Err(error))))
            }
            Wanted::End(recording, name) => {
                let (watch, drives) = self.begun()?;
                let (folder, wake) = (folder.to_owned(), wake.clone());
                let started = threads::start("keep a trace", move || {
                    let ended = kept(watch, &drives, recording, &folder, &name);
                    drop(wake.send(Wake::Msg(Msg::Traced(Said::Ended(ended)))));
                });
                started.err().map(|error| Msg::Traced(Said::Ended(Err(error))))
            }
        }
    }

    /// The trace under way; waits for one that is still beginning.
    fn begun(&mut self) -> Option<Begun> {
        let begun = self.begins.take().and_then(|begins| begins.join().ok().flatten());
        begun.or_else(|| self.under_way.take())
    }

    /// Ends and keeps a trace that is still under way when the screen is left; returns what to say about it.
    pub fn leave(&mut self, recording: Option<PathBuf>, folder: &Path, name: &str) -> Option<String> {
        let (watch, drives) = self.begun()?;
        Some(kept(watch, &drives, recording, folder, name).unwrap_or_else(|error| error.one_line()))
    }
}

fn begin(folders: &[PathBuf], cpus: &[u32], wake: Sender<Wake>) -> Result<Begun> {
    let drives = folders.iter().map(|folder| Watched::of(folder)).collect::<Result<Vec<_>>>()?;
    let report = move |live| drop(wake.send(Wake::Msg(Msg::Traced(Said::Live(Arc::new(live))))));
    let watch = Watch::start(drives.clone(), cpus, Some(Box::new(report)))?;
    Ok((watch, drives))
}

/// Where a run takes the figures of its windows, under the names that the ledger shows.
fn tap(watch: &Watch) -> Tap {
    let (stretches, notes) = (watch.stretches(), watch.notes());
    let tap = Tap::of(move |length_ns| {
        let of = stretches.take(length_ns);
        let figures = [
            ("write p50 KiB", of.write_median_bytes.map(|bytes| bytes / 1024.0)),
            ("mean depth", of.mean_depth),
            ("discards/s", of.discards_per_s),
            ("misses % at 10%", of.miss_ratio.map(|ratio| 100.0 * ratio)),
        ];
        let figures = figures.into_iter().filter_map(|(name, figure)| Some((name.to_owned(), figure?)));
        ByTrace { figures: figures.collect(), p99_ns: of.p99_ns }
    });
    tap.noting(move |at_ns, text| notes.add(at_ns, text))
}

/// Ends a trace, and keeps it.
fn kept(
    watch: Watch,
    drives: &[Watched],
    recording: Option<PathBuf>,
    folder: &Path,
    name: &str,
) -> Result<String> {
    let traced = watch.stop()?;
    let held = recording.and_then(|recording| HeldFolder::open_own(&recording).ok());
    // A recording has one trace.
    let held = if let Some(held) = held.filter(|held| !held.has(TRACE)) {
        held
    } else {
        let own = folder.join(format!("{name}-{}-trace", clock::local_stamp()));
        make_folder(&own)?;
        HeldFolder::open_own(&own)?
    };
    keep(&traced, drives, &held, [TRACE, TRACE_FACTS])?;
    held.replace(CONTRACT, &json::lines(&contract_kept(&traced, drives, None))?)?;
    Ok(format!("{}: {}", traced.in_words(), held.path().shown()))
}
