//! The thread that traces the target's drives for the screen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::message::Msg;
use super::tracing::{Said, Wanted};
use super::wake::Wake;
use crate::error::Result;
use crate::held_folder::HeldFolder;
use crate::printable::Shown as _;
use crate::runs::record::{TRACE, TRACE_FACTS, make_folder};
use crate::threads;
use crate::trace::{Watch, Watched, keep};
use crate::ui::clock;

/// The thread of a trace, if one is under way.
#[derive(Debug, Default)]
pub struct Thread(Option<(Watch, Vec<Watched>)>);

impl Thread {
    /// Does what is asked for; it is said to the screen how that went.
    pub fn turn(&mut self, wanted: Wanted, folder: &Path, wake: &Sender<Wake>) -> Option<Msg> {
        match wanted {
            Wanted::Begin(drives, cpus) => {
                let said = self.begin(&drives, &cpus, wake.clone());
                Some(Msg::Traced(said.unwrap_or_else(|error| Said::Ended(Err(error)))))
            }
            Wanted::End(recording, name) => {
                let (watch, drives) = self.0.take()?;
                let (folder, wake) = (folder.to_owned(), wake.clone());
                let started = threads::start("keep a trace", move || {
                    let ended = kept(watch, &drives, recording, &folder, &name);
                    drop(wake.send(Wake::Msg(Msg::Traced(Said::Ended(ended)))));
                });
                started.err().map(|error| Msg::Traced(Said::Ended(Err(error))))
            }
        }
    }

    fn begin(&mut self, folders: &[PathBuf], cpus: &[u32], wake: Sender<Wake>) -> Result<Said> {
        let drives = folders.iter().map(|folder| Watched::of(folder)).collect::<Result<Vec<_>>>()?;
        let names = drives.iter().map(|of| of.name.clone()).collect();
        let report = move |live| drop(wake.send(Wake::Msg(Msg::Traced(Said::Live(Arc::new(live))))));
        let watch = Watch::start(drives.clone(), cpus, Some(Box::new(report)))?;
        self.0 = Some((watch, drives));
        Ok(Said::Began(names))
    }

    /// Ends and keeps a trace that is still under way when the screen is left; what is to be said of it.
    pub fn leave(&mut self, recording: Option<PathBuf>, folder: &Path, name: &str) -> Option<String> {
        let (watch, drives) = self.0.take()?;
        Some(kept(watch, &drives, recording, folder, name).unwrap_or_else(|error| error.one_line()))
    }
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
    Ok(format!("{}: {}", traced.in_words(), held.path().shown()))
}
