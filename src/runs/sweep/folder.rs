//! A sweep's folder: begun, continued, and read.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock, fstat};
use serde::{Deserialize, Serialize};

use super::schedule::{SCHEMA, Schedule, ScheduledRun};
use crate::error::{Error, Kind, Result};
use crate::held_folder::{HeldFolder, final_name};
use crate::host::is_private;
use crate::json;
use crate::printable;
use crate::printable::Shown as _;
use crate::regular_file;
use crate::runs::record::{PROFILE, Recording, is_of_recording, make_folder, refuse_folder};
use crate::settings::Profile;
use crate::settings::profile::sweep::STEPS_MAX;
use crate::settings::profile::{self, parse, to_toml};

const SWEEP: &str = "sweep.json";
const PROCESSES: &str = "processes.jsonl";
const NOT_RUN: &str = "not-run.json";

/// Larger than any of these files can be.
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
            Kind::Failed | Kind::Stopped | Kind::Interrupted => "failed",
        };
        Self { kind: kind.into(), why: printable::joined(&error.what), hint: error.hint.clone() }
    }
}

/// The state of a run.
#[derive(Debug)]
pub enum State {
    /// Not begun.
    Open,
    /// Begun, but did not end normally.
    HalfDone,
    /// It has no figures.
    NotRun(NotRun),
    /// Its folder's content can't be read, or its folder is a link: it is left alone.
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
    /// The runs to be made.
    pub schedule: Schedule,
    /// The processes that worked on it earlier.
    pub before: Vec<Process>,
    /// The state of a process working on it, if this one is.
    work: Option<Work>,
}

/// What a process that runs the sweep keeps in memory: others may own the folder, and whatever they put there
/// must not decide what is run.
#[derive(Debug)]
struct Work {
    /// The folder, locked so that no other process works on it.
    held: HeldFolder,
    /// The profile that the operator gave.
    profile: Profile,
}

impl Folder {
    /// Begins the sweep of a profile in a new folder, or continues an existing one.
    ///
    /// # Errors
    /// Input if the folder holds something else, or the sweep of another profile; refused if another process
    /// works on it.
    pub fn begin(dir: &Path, profile: &Profile, read_only: bool) -> Result<Self> {
        if !is_sweep(dir) && !holds_a_beginning(dir) {
            refuse_folder(dir)?;
        }
        make_folder(dir)?;
        let held = HeldFolder::open(dir)?;
        lock(&held)?;
        let now = now_unix_s();
        // As it would be read back: for a target of devices, the files' settings are not written.
        let written = to_toml(profile);
        let profile = parse(&written, "the profile")?;
        refuse_other(&held, &profile)?;
        let schedule = if held.has(SWEEP) {
            let schedule = read_schedule(&held.read(SWEEP, FILE_BYTES_MAX)?, &dir.join(SWEEP))?;
            refuse_other_schedule(&schedule, &profile, read_only, dir)?;
            schedule
        } else {
            // If an earlier process was killed early, there may be just the profile.
            let schedule = Schedule::of(&profile, read_only, now)?;
            held.replace(PROFILE, written.as_bytes())?;
            held.replace(SWEEP, &json::lines(&schedule)?)?;
            schedule
        };
        let before = earlier_processes(&held);
        let process = Process { pid: std::process::id(), started_unix_s: now };
        held.append(PROCESSES, &json::line(&process)?)?;
        Ok(Self { dir: dir.to_owned(), schedule, before, work: Some(Work { held, profile }) })
    }

    /// Reads a sweep's folder.
    ///
    /// # Errors
    /// Input if there is none, or one of a newer layout; failed if it is damaged.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(SWEEP);
        let text =
            regular_file::read(&path, FILE_BYTES_MAX).map_err(|e| Error::os("cannot read", &path, e))?;
        let schedule = read_schedule(&text, &path)?;
        Ok(Self { dir: dir.to_owned(), schedule, before: Vec::new(), work: None })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The profile with its steps, as run: the operator's if this process runs it, otherwise the folder's.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn profile(&self) -> Result<Profile> {
        if let Some(work) = &self.work {
            return Ok(work.profile.clone());
        }
        let path = self.dir.join(PROFILE);
        let text = regular_file::read(&path, profile::FILE_BYTES_MAX);
        parse_profile(text.map_err(|e| Error::os("cannot read", &path, e))?, &path)
    }

    /// Writes a file beside the runs' folders.
    ///
    /// # Errors
    /// If that fails, or this process does not run the sweep.
    pub fn replace(&self, name: &str, content: &[u8]) -> Result<()> {
        self.held()?.replace(name, content)
    }

    /// The folder that the runs are made in.
    fn held(&self) -> Result<&HeldFolder> {
        let work = self.work.as_ref().ok_or_else(|| {
            Error::failed(format!("{} was opened for reading only", printable::path(&self.dir)))
        })?;
        Ok(&work.held)
    }

    /// A run's folder.
    pub fn run_dir(&self, run: &ScheduledRun) -> PathBuf {
        self.dir.join(&run.dir)
    }

    /// A run's folder for its recording: made now, or empty.
    ///
    /// # Errors
    /// If it can't be made, is a link, or not empty.
    pub fn make_run_dir(&self, run: &ScheduledRun) -> Result<HeldFolder> {
        self.held()?.empty_folder(&run.dir)
    }

    /// The state of a run.
    pub fn state(&self, run: &ScheduledRun) -> State {
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
    pub fn clear(&self, run: &ScheduledRun) -> Result<()> {
        let Some(folder) = self.held()?.folder(&run.dir)? else { return Ok(()) };
        let names = folder.names()?;
        let is_ours = |name: &str| {
            let plain = final_name(name);
            plain == NOT_RUN || is_of_recording(plain)
        };
        if let Some(stray) = names.iter().find(|name| !name.to_str().is_some_and(is_ours)) {
            let (dir, stray) = (printable::path(folder.path()), printable::path(Path::new(stray)));
            let what = format!("{dir} holds {stray}, which is not part of a recording");
            return Err(Error::input(what).hint("that run was not touched; move it elsewhere"));
        }
        names.iter().try_for_each(|name| folder.remove(name))
    }

    /// Records why a run has no figures.
    ///
    /// # Errors
    /// If that can't be written, or the run's folder is a link.
    pub fn not_run(&self, run: &ScheduledRun, not_run: &NotRun) -> Result<()> {
        let held = self.held()?;
        let folder = match held.folder(&run.dir)? {
            Some(folder) => folder,
            None => held.empty_folder(&run.dir)?,
        };
        folder.replace(NOT_RUN, &json::lines(not_run)?)
    }
}

/// The processes that worked on it before, if others can't have written that list: it decides what is removed.
fn earlier_processes(held: &HeldFolder) -> Vec<Process> {
    let read = || {
        let file = regular_file::open_in(held, PROCESSES).ok()?;
        if !is_private(&file, &fstat(&file).ok()?) {
            return None;
        }
        String::from_utf8(regular_file::read_opened(file, FILE_BYTES_MAX).ok()?).ok()
    };
    let lines = read().unwrap_or_default();
    lines.lines().filter_map(|line| json::read_of_others(line.as_bytes()).ok()).collect()
}

fn read_schedule(text: &[u8], path: &Path) -> Result<Schedule> {
    let damaged = |e: serde_json::Error| {
        let why = e.to_string();
        Error::failed(format!("{} is damaged: {}", printable::path(path), printable::line(&why)))
    };
    let value: serde_json::Value = json::read_of_others(text).map_err(damaged)?;
    if value["schema"].as_u64().is_some_and(|schema| schema > u64::from(SCHEMA)) {
        return Err(Error::input(format!("{} was written by a newer stacktune", printable::path(path)))
            .hint("read it with that version"));
    }
    let schedule: Schedule = json::read_value(&value).map_err(damaged)?;
    let stray = schedule.runs.iter().find(|run| {
        let is_name = Path::new(&run.dir).components().count() == 1 && !run.dir.starts_with('.');
        run.step >= schedule.steps.len() || !is_name || run.dir.contains('/')
    });
    let mut dirs = HashSet::new();
    let twice = schedule.runs.iter().find(|run| !dirs.insert(run.dir.as_str()));
    let why = match (stray, twice) {
        (Some(run), _) => format!("it has a run `{}`", run.dir),
        (None, Some(run)) => format!("it has the run `{}` twice", run.dir),
        _ if schedule.steps.len() > STEPS_MAX => format!("it has more than {STEPS_MAX} steps"),
        (None, None) => return Ok(schedule),
    };
    Err(Error::failed(format!("{} is damaged: {why}", printable::path(path))))
}

/// Refuses to continue with steps or runs that differ from the profile's, in whatever order.
fn refuse_other_schedule(there: &Schedule, profile: &Profile, read_only: bool, dir: &Path) -> Result<()> {
    if there.read_only != read_only {
        let how = if read_only { "without" } else { "with" };
        let what = format!("the sweep in {} was started {how} --read-only", printable::path(dir));
        return Err(Error::input(what).hint("continue it as it was started, or give a new folder"));
    }
    let of = |schedule: &Schedule| {
        let labels: Vec<_> = schedule.steps.iter().map(|step| step.label.clone()).collect();
        let mut runs: Vec<_> = schedule.runs.iter().map(|run| (run.step, run.repeat)).collect();
        runs.sort_unstable();
        (schedule.profile.clone(), labels, runs)
    };
    if of(there) == of(&Schedule::of(profile, read_only, there.started_unix_s)?) {
        return Ok(());
    }
    let path = printable::path(&dir.join(SWEEP));
    Err(Error::input(format!("the runs in {path} do not match the profile: it was changed"))
        .hint("nothing was changed; give a new folder"))
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
        return Ok(json::read_of_others(&text).map_or(State::HalfDone, State::NotRun));
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
fn refuse_other(held: &HeldFolder, profile: &Profile) -> Result<()> {
    if !held.has(PROFILE) {
        return Ok(());
    }
    let dir = held.path();
    let other = parse_profile(held.read(PROFILE, profile::FILE_BYTES_MAX)?, &dir.join(PROFILE))?;
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
            format!(
                "{} is {}, but {} there",
                knob.path,
                knob.get(&profile.settings),
                knob.get(&other.settings)
            )
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

fn parse_profile(text: Vec<u8>, path: &Path) -> Result<Profile> {
    let text = String::from_utf8(text)
        .map_err(|_| Error::failed(format!("{} is not text (UTF-8 was expected)", printable::path(path))))?;
    parse(&text, &path.shown())
}

/// Locks the folder for as long as it is held.
fn lock(held: &HeldFolder) -> Result<()> {
    flock(held, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Error::failed(format!("another process is running the sweep in {}", printable::path(held.path())))
            .hint("wait for it to end, or give a new folder")
    })
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
