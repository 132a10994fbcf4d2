//! A sweep's folder: begun, continued, and read.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::schedule::{Run, SCHEMA, Schedule};
use crate::error::{Error, Kind, Result};
use crate::held_folder::{HeldFolder, final_name};
use crate::printable;
use crate::regular_file;
use crate::runs::record::{PROFILE, Recording, is_of_recording, refuse_folder, replace};
use crate::settings::Profile;
use crate::settings::profile::{self, parse, to_toml};

const SWEEP: &str = "sweep.json";
const PROCESSES: &str = "processes.jsonl";
const NOT_RUN: &str = "not-run.json";

/// Larger than any of these files.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Whether the folder is a sweep's.
pub fn is_sweep(dir: &Path) -> bool {
    dir.join(SWEEP).is_file()
}

/// Why a run has no figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRun {
    /// `input` if this host can't do it, `refused` if data is at risk, `failed` otherwise.
    pub kind: String,
    /// The reason.
    pub why: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl NotRun {
    /// The reason, from the error that kept it from running.
    pub fn of(error: &Error) -> Self {
        let kind = match error.kind {
            Kind::Input => "input",
            Kind::Refused => "refused",
            Kind::Failed | Kind::Interrupted => "failed",
        };
        Self { kind: kind.into(), why: printable::joined(&error.what), hint: error.hint.clone() }
    }
}

/// The state of a run.
#[derive(Debug)]
pub enum State {
    /// Not begun.
    Open,
    /// Begun, but not ended normally.
    HalfDone,
    /// It has no figures.
    NotRun(NotRun),
    /// What is in its folder can't be read, or its folder is a link: it stays as it is.
    Damaged(NotRun),
    /// It is complete.
    Done(Box<Recording>),
}

/// A process that has worked on a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
}

/// A sweep's folder.
#[derive(Debug)]
pub struct Folder {
    dir: PathBuf,
    /// What is run.
    pub schedule: Schedule,
    /// The processes that worked on it earlier.
    pub before: Vec<Process>,
    /// Keeps other processes from working on it.
    _lock: Option<File>,
}

impl Folder {
    /// Begins the sweep of a profile in a new folder, or continues the one that is there.
    ///
    /// # Errors
    /// Input if the folder holds something else, or the sweep of another profile; refused if another process
    /// works on it.
    pub fn begin(dir: &Path, profile: &Profile, read_only: bool) -> Result<Self> {
        if !is_sweep(dir) && !holds_a_beginning(dir) {
            refuse_folder(dir)?;
        }
        fs::create_dir_all(dir).map_err(|e| Error::os("cannot create", dir, e))?;
        let lock = lock(dir)?;
        let now = now_unix_s();
        if !is_sweep(dir) {
            // If an earlier process was killed early, only the profile may be there.
            refuse_other(dir, profile)?;
            let schedule = Schedule::of(profile, read_only, now)?;
            replace(dir, PROFILE, to_toml(profile).as_bytes())?;
            replace(dir, SWEEP, &json(&schedule)?)?;
        }
        refuse_other(dir, profile)?;
        let mut folder = Self { _lock: Some(lock), ..Self::read(dir)? };
        if folder.schedule.read_only != read_only {
            let how = if read_only { "without" } else { "with" };
            let what = format!("the sweep in {} was started {how} --read-only", printable::path(dir));
            return Err(Error::input(what).hint("continue it as it was started, or give a new folder"));
        }
        folder.enter(now)?;
        Ok(folder)
    }

    /// Reads a sweep's folder.
    ///
    /// # Errors
    /// Input if there is none, or one of a newer layout; failed if it is damaged.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(SWEEP);
        let text =
            regular_file::read(&path, FILE_BYTES_MAX).map_err(|e| Error::os("cannot read", &path, e))?;
        let damaged = |e: serde_json::Error| {
            let why = e.to_string();
            Error::failed(format!("{} is damaged: {}", printable::path(&path), printable::line(&why)))
        };
        let value: serde_json::Value = printable::from_json(&text).map_err(damaged)?;
        if value["schema"].as_u64().is_some_and(|schema| schema > u64::from(SCHEMA)) {
            return Err(Error::input(format!("{} was written by a newer stacktune", printable::path(&path)))
                .hint("read it with that version"));
        }
        let schedule: Schedule = serde_json::from_value(value).map_err(damaged)?;
        let stray = schedule.runs.iter().find(|run| {
            let is_name = Path::new(&run.dir).components().count() == 1 && !run.dir.starts_with('.');
            run.step >= schedule.steps.len() || !is_name || run.dir.contains('/')
        });
        if let Some(run) = stray {
            return Err(Error::failed(format!(
                "{} is damaged: it has a run `{}`",
                printable::path(&path),
                run.dir
            )));
        }
        let lines = regular_file::read_text(&dir.join(PROCESSES), FILE_BYTES_MAX).unwrap_or_default();
        let before = lines.lines().filter_map(|line| printable::from_json(line.as_bytes()).ok()).collect();
        Ok(Self { dir: dir.to_owned(), schedule, before, _lock: None })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The profile with its steps, as run.
    pub fn profile(&self) -> Result<Profile> {
        read_profile(&self.dir)
    }

    /// A run's folder.
    pub fn run_dir(&self, run: &Run) -> PathBuf {
        self.dir.join(&run.dir)
    }

    /// The state of a run.
    pub fn state(&self, run: &Run) -> State {
        let dir = self.run_dir(run);
        state_of(&dir).unwrap_or_else(|error| {
            let path = printable::path(&dir);
            let what_to_do = format!("to have that run done again, remove {path} or move it elsewhere");
            State::Damaged(NotRun {
                kind: "failed".into(),
                why: format!("{}; {what_to_do}", error.what),
                hint: Some(what_to_do),
            })
        })
    }

    /// Prepares a run's folder for a recording: what is left of an incomplete one is removed.
    ///
    /// # Errors
    /// Input if the folder contains something that is not part of a recording, failed if it is a link; then nothing is
    /// changed.
    pub fn clear(&self, run: &Run) -> Result<()> {
        let dir = self.run_dir(run);
        if !is_folder(&dir)? {
            return Ok(());
        }
        let entries = fs::read_dir(&dir).map_err(|e| Error::os("cannot read", &dir, e))?;
        let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        let is_ours = |name: &str| {
            let plain = final_name(name);
            plain == NOT_RUN || is_of_recording(plain)
        };
        if let Some(stray) = names.iter().find(|name| !name.to_str().is_some_and(is_ours)) {
            let (dir, stray) = (printable::path(&dir), printable::path(Path::new(stray)));
            let what = format!("{dir} holds {stray}, which no recording has");
            return Err(Error::input(what).hint("that run was not touched; move it elsewhere"));
        }
        for name in names {
            let path = dir.join(name);
            fs::remove_file(&path).map_err(|e| Error::os("cannot remove", &path, e))?;
        }
        Ok(())
    }

    /// Records why a run has no figures.
    pub fn not_run(&self, run: &Run, not_run: &NotRun) -> Result<()> {
        let dir = self.run_dir(run);
        fs::create_dir_all(&dir).map_err(|e| Error::os("cannot create", &dir, e))?;
        HeldFolder::open_own(&dir)?.replace(NOT_RUN, &json(not_run)?)
    }

    /// Records that this process works on it.
    fn enter(&mut self, now_unix_s: u64) -> Result<()> {
        let path = self.dir.join(PROCESSES);
        let process = Process { pid: std::process::id(), started_unix_s: now_unix_s };
        let cannot = |e: std::io::Error| Error::os("cannot write", &path, e);
        let mut line =
            serde_json::to_vec(&process).map_err(|e| Error::failed(format!("cannot encode: {e}")))?;
        line.push(b'\n');
        // A link would lead to a file of others, a pipe would be waited for.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut file =
            File::options().append(true).create(true).custom_flags(flags).open(&path).map_err(cannot)?;
        if !file.metadata().map_err(cannot)?.is_file() {
            return Err(Error::failed(format!("{} is not a regular file", printable::path(&path))));
        }
        file.write_all(&line).and_then(|()| file.sync_all()).map_err(cannot)
    }
}

/// Whether there is a folder of that name.
///
/// # Errors
/// If it is something else, or can't be examined. A link is not followed: others may have put it there.
fn is_folder(dir: &Path) -> Result<bool> {
    let kind = match dir.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        found => found.map_err(|e| Error::os("cannot examine", dir, e))?.file_type(),
    };
    if kind.is_dir() {
        return Ok(true);
    }
    let what = if kind.is_symlink() { "a link, which is not followed" } else { "not a folder" };
    Err(Error::failed(format!("{} is {what}", printable::path(dir))))
}

/// The state of the run with that folder.
fn state_of(dir: &Path) -> Result<State> {
    if !is_folder(dir)? {
        return Ok(State::Open);
    }
    let mut entries = fs::read_dir(dir).map_err(|e| Error::os("cannot read", dir, e))?;
    let reason = dir.join(NOT_RUN);
    if reason.symlink_metadata().is_ok() {
        let text = regular_file::read(&reason, FILE_BYTES_MAX);
        let text = text.map_err(|e| Error::os("cannot read", &reason, e))?;
        return Ok(printable::from_json(&text).map_or(State::HalfDone, State::NotRun));
    }
    if entries.next().is_none() {
        return Ok(State::Open);
    }
    if dir.join("summary.json").symlink_metadata().is_err() {
        return Ok(State::HalfDone);
    }
    let recording = Recording::open(dir)?;
    let summary = &recording.summary;
    Ok(if summary.interrupted || summary.rebuilt {
        State::HalfDone
    } else if let Some(why) = &summary.failure {
        State::NotRun(NotRun { kind: "failed".into(), why: why.clone(), hint: None })
    } else {
        State::Done(Box::new(recording))
    })
}

/// Whether a process was killed there while beginning a sweep.
fn holds_a_beginning(dir: &Path) -> bool {
    let is_of_it = |name: &std::ffi::OsStr| {
        let plain = name.to_str().map(final_name);
        plain.is_some_and(|name| [PROFILE, SWEEP].contains(&name))
    };
    fs::read_dir(dir)
        .is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| is_of_it(&entry.file_name()))))
}

/// Refuses to continue the sweep of another profile.
fn refuse_other(dir: &Path, profile: &Profile) -> Result<()> {
    if !dir.join(PROFILE).exists() {
        return Ok(());
    }
    let other = read_profile(dir)?;
    // As it would be read back: for a target of devices, the files are not written.
    let profile = &parse(&to_toml(profile), "the profile")?;
    // A profile's description does not affect what is run.
    let mut same_about = other.clone();
    same_about.settings.about.clone_from(&profile.settings.about);
    if same_about == *profile {
        return Ok(());
    }
    let differ: Vec<_> = crate::settings::knobs::all()
        .iter()
        .filter(|knob| knob.get(&other.settings) != knob.get(&profile.settings))
        .map(|knob| {
            format!("{} is {}, there {}", knob.path, knob.get(&profile.settings), knob.get(&other.settings))
        })
        .collect();
    let why = match (differ.is_empty(), other.sweep == profile.sweep) {
        (false, _) => differ.join("; "),
        (true, false) => "the steps, their times or their order differ".to_owned(),
        (true, true) => "its name differs".to_owned(),
    };
    Err(Error::input(format!("{} holds the sweep of another profile: {why}", printable::path(dir)))
        .hint("nothing was changed; continue with the same profile, or give a new folder"))
}

fn read_profile(dir: &Path) -> Result<Profile> {
    let path = dir.join(PROFILE);
    let text = regular_file::read_text(&path, profile::FILE_BYTES_MAX)
        .map_err(|e| Error::os("cannot read", &path, e))?;
    parse(&text, &path.display().to_string())
}

/// Holds the folder until the process ends.
fn lock(dir: &Path) -> Result<File> {
    let file = File::open(dir).map_err(|e| Error::os("cannot open", dir, e))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Error::refused(format!("another process is running the sweep in {}", printable::path(dir)))
            .hint("wait for it to end, or give a new folder")
    })?;
    Ok(file)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|e| Error::failed(format!("cannot encode: {e}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
