//! Writing a recording during a run.

use std::collections::BTreeMap;
#[cfg(feature = "programs")]
use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use rustix::fs::Access;
#[cfg(feature = "programs")]
use rustix::fs::OFlags;
use serde::Serialize;

use super::files::Appender;
use super::hlog;
#[cfg(feature = "programs")]
use super::names::PROGRAM_LOG;
use super::names::{HOST, LATENCY, LEDGER, PROFILE, SCHEMA, SUMMARY, WINDOWS};
use super::summary::{Frame, Summary};
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::host::{Doubt, Facts, NewFolders, TargetFacts, Trusting};
use crate::host::{doubted, make_folders, refuse_exchangeable};
use crate::json;
use crate::load::kv::built::{BUILT, Built};
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::{LedgerLine, Window};
use crate::printable;
use crate::runs::pitfalls::Circumstances;
use crate::stack::system_folder::refuse_system_folder;

/// What is known when a recording starts.
#[derive(Debug, Clone)]
pub struct Header {
    /// The profile's name.
    pub profile: String,
    /// The profile as run.
    pub profile_toml: String,
    /// The host's facts, for `host.json`.
    pub facts: Facts,
    /// The opened target's facts; none if no storage is touched.
    pub target: Option<TargetFacts>,
    /// Things that a reader should know: fallbacks, what the flush covers, ….
    pub notes: Vec<String>,
    /// The wall clock at the run's time 0.
    pub run_started: SystemTime,
    /// The price of all drives in $, if known, and usable bytes, if the target is drives.
    pub worth: Option<(Option<f64>, u64)>,
    /// The circumstances that affect whether it can be believed.
    pub circumstances: Circumstances,
}

/// How a recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As planned.
    Complete,
    /// Early, by a signal or the operator.
    Interrupted,
    /// The run failed, and why.
    Failed(String),
}

/// `host.json`.
#[derive(Serialize)]
struct Host<'a> {
    schema: u32,
    stacktune: &'a str,
    started_unix_s: u64,
    #[serde(flatten)]
    facts: &'a Facts,
    target: Option<&'a TargetFacts>,
    notes: &'a [String],
    rocksdb: Option<Built>,
    price: Option<f64>,
    usable_bytes: Option<u64>,
    circumstances: &'a Circumstances,
}

/// Where a recording is made.
#[derive(Debug)]
pub enum Destination<'a> {
    /// A folder that the operator named: it does not exist yet, or is empty.
    Named(&'a Path),
    /// An empty folder, already opened.
    Held(HeldFolder),
}

impl Destination<'_> {
    fn hold(self) -> Result<HeldFolder> {
        let dir = match self {
            Self::Held(folder) => return Ok(folder),
            Self::Named(dir) => dir,
        };
        refuse_folder(dir)?;
        make_folder(dir)?;
        // Others may have put a link there since it was checked.
        let folder = HeldFolder::open_own(dir)?;
        if folder.names()?.is_empty() {
            Ok(folder)
        } else {
            Err(Error::input(format!("{} is not empty", printable::path(dir))))
        }
    }
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for Destination<'a> {
    fn from(dir: &'a P) -> Self {
        Self::Named(dir.as_ref())
    }
}

impl From<HeldFolder> for Destination<'_> {
    fn from(folder: HeldFolder) -> Self {
        Self::Held(folder)
    }
}

/// A recording in progress. Every call hands its data to the kernel before it returns.
pub struct Writer {
    folder: HeldFolder,
    profile: String,
    windows: Appender,
    latency: Appender,
    ledger: Appender,
    /// Lines that are still open.
    open_lines: BTreeMap<u64, LedgerLine>,
    serializer: V2DeflateSerializer,
    warmup_ns: u64,
    warmup_windows: u64,
    worth: Option<(Option<f64>, u64)>,
    circumstances: Circumstances,
}

impl Writer {
    /// Starts a recording in a new or empty folder.
    ///
    /// # Errors
    /// Input if the folder is not empty, in which case it is left unchanged; failed if it can't be written.
    pub fn create<'a>(place: impl Into<Destination<'a>>, header: &Header) -> Result<Self> {
        let folder = place.into().hold()?;
        // If two start at once, the second fails here.
        let windows = Appender::create(&folder, WINDOWS)?;
        let mut latency = Appender::create(&folder, LATENCY)?;
        let ledger = Appender::create(&folder, LEDGER)?;
        folder.replace(PROFILE, header.profile_toml.as_bytes())?;
        let host = Host {
            schema: SCHEMA,
            stacktune: env!("CARGO_PKG_VERSION"),
            started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
            facts: &header.facts,
            target: header.target.as_ref(),
            notes: &header.notes,
            rocksdb: BUILT,
            price: header.worth.and_then(|(price, _)| price),
            usable_bytes: header.worth.map(|(_, bytes)| bytes),
            circumstances: &header.circumstances,
        };
        folder.replace(HOST, &json::lines(&host)?)?;
        latency.append(&hlog::header(header.run_started).map_err(Error::failed)?)?;
        Ok(Self {
            folder,
            profile: header.profile.clone(),
            windows,
            latency,
            ledger,
            open_lines: BTreeMap::new(),
            serializer: V2DeflateSerializer::new(),
            warmup_ns: 0,
            warmup_windows: 0,
            worth: header.worth,
            circumstances: header.circumstances.clone(),
        })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a finished window.
    pub fn window(&mut self, window: &Window) -> Result<()> {
        let intervals = hlog::intervals(window, &mut self.serializer)
            .map_err(|e| Error::failed(format!("cannot encode histograms for {LATENCY}: {e}")))?;
        self.latency.append(&intervals)?;
        self.windows.append(&json::line(window)?)?;
        if window.warmup {
            self.warmup_ns += window.duration_ns;
            self.warmup_windows += 1;
        }
        Ok(())
    }

    /// Takes a ledger line: a closed one is written, an open one is kept until it closes.
    pub fn ledger(&mut self, turn: &LedgerLine) -> Result<()> {
        if turn.open {
            self.open_lines.insert(turn.number, turn.clone());
            return Ok(());
        }
        self.open_lines.remove(&turn.number);
        self.ledger.append(&json::line(turn)?)
    }

    /// Ends the recording: lines still open are written as such, then the summary.
    pub fn finish(mut self, totals: &Totals, outcome: &Outcome) -> Result<Summary> {
        for turn in std::mem::take(&mut self.open_lines).values() {
            self.ledger.append(&json::line(turn)?)?;
        }
        for file in [&self.windows, &self.latency, &self.ledger] {
            file.sync()?;
        }
        let failure = match outcome {
            Outcome::Failed(why) => Some(why.clone()),
            Outcome::Complete | Outcome::Interrupted => None,
        };
        let frame = Frame {
            profile: self.profile,
            warmup_s: self.warmup_ns as f64 / 1e9,
            warmup_windows: self.warmup_windows,
            interrupted: *outcome == Outcome::Interrupted,
            failure,
            rebuilt: false,
            worth: self.worth,
            circumstances: Some(self.circumstances),
        };
        let summary = Summary::of(totals, frame);
        self.folder.replace(SUMMARY, &json::lines(&summary)?)?;
        Ok(summary)
    }
}

/// Makes a folder for recordings, and those above it.
///
/// # Errors
/// If it can't be made; as root, refused if others could replace it, or input if it is a folder of the system.
pub fn make_folder(dir: &Path) -> Result<()> {
    refuse_unsafe(dir)?;
    make(dir).map(drop).map_err(|doubt| match doubt {
        Doubt::Os(_, error) => Error::os("cannot create", dir, error),
        doubt => doubted(dir, &doubt),
    })
}

fn make(dir: &Path) -> std::result::Result<NewFolders, Doubt> {
    // Root's folders are never writable for others, whatever the umask.
    let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o777 };
    make_folders(dir, Trusting::Caller, mode)
}

fn refuse_unsafe(dir: &Path) -> Result<()> {
    refuse_system_folder("recording", dir)?;
    refuse_exchangeable(dir, Trusting::Caller)
}

/// The file of a recording for what a program prints, newly made.
///
/// # Errors
/// If it can't be made.
#[cfg(feature = "programs")]
pub fn program_log(dir: &Path) -> Result<File> {
    HeldFolder::open_own(dir)?.create(PROGRAM_LOG, OFlags::APPEND)
}

/// Refuses a folder that is not empty, or can't be made and written; leaves everything unchanged.
///
/// # Errors
/// Bad input, with the reason; refused as root if others could replace it.
pub fn refuse_folder(dir: &Path) -> Result<()> {
    refuse_unsafe(dir)?;
    let unusable = |why: std::io::Error| {
        let why = crate::error::describe(&why);
        Error::input(format!("cannot record to {}: {why}", printable::path(dir)))
            .hint("give a folder that can be created and written")
    };
    if dir.is_symlink() {
        return Err(Error::input(format!("{} is a link, which is not followed", printable::path(dir)))
            .hint("give the folder itself"));
    }
    // The only way to know whether it can be made is to make it; empty folders are removed again.
    let made = make(dir).map_err(|doubt| match doubt {
        Doubt::Os(_, error) => unusable(error.into()),
        doubt => doubted(dir, &doubt),
    })?;
    let writable = rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK);
    let writable = writable.map_err(|error| unusable(error.into()));
    if made.remove() {
        return writable;
    }
    writable?;
    let mut entries = std::fs::read_dir(dir).map_err(unusable)?;
    if entries.next().is_none() {
        return Ok(());
    }
    let recording = [WINDOWS, SUMMARY, LATENCY, HOST].iter().any(|name| dir.join(name).exists());
    let what = if recording { "already holds a recording" } else { "is not empty" };
    Err(Error::input(format!("{} {what}", printable::path(dir)))
        .hint("nothing was changed; give a new folder, or remove this one first"))
}
