//! The stacks on this host, and removing those of dead processes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::all_steps::{Terms, undo_with};
use super::undoer::{Scrutiny, Undoer};
use crate::error::{Error, Kind, Result};
use crate::printable::{self, Shown as _};
use crate::stack::devices::Drive;
use crate::stack::guard::{Consent, OwnData};
use crate::stack::journal::{self, Journal, Opened, Record, Undo, boot_id};
use crate::stack::runner::Runner;
use crate::stack::supervise::Advance;

/// How long to wait for a tool that a dead process had started.
const TOOL_PATIENCE: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(50);

/// The state of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StackState {
    /// Its process is alive.
    Running,
    /// Its process is dead, but a tool that it had started is still working.
    Ending,
    /// Its process is dead: `cleanup` removes it.
    Dead,
    /// The operator retained it. Other programs read this word, so it stays as it was first named.
    #[serde(rename = "kept")]
    Retained,
    /// Its journal can't be read.
    Unreadable,
}

/// A stack that has a journal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leftover {
    /// The stack's id.
    pub id: String,
    /// Its state.
    pub state: StackState,
    /// The profile that it was built for.
    pub profile: String,
    /// The process that built it.
    pub pid: u32,
    /// When, in seconds since 1970.
    pub since_unix_s: u64,
    /// Whether the host has rebooted since, which removed loop devices, mounts and settings.
    pub restarted: bool,
    /// The drives that it works on: nodes, with their serials.
    pub drives: Vec<String>,
    /// Things that are, or may be, in place, last made first.
    pub stands: Vec<Remnant>,
    /// Why its journal can't be read.
    pub problem: Option<String>,
}

/// Something that a stack has made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remnant {
    /// What it is, in words.
    pub what: String,
    /// The commands that remove it by hand; empty if it is already gone, or is removed with something else.
    pub commands: Vec<String>,
}

/// All stacks that have a journal, whoever built them.
pub fn leftovers(state_dir: &Path) -> Result<Vec<Leftover>> {
    let runner = Runner::default();
    let found = journal::all(state_dir)?.into_iter().map(|path| look(&path, &runner));
    Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// What [`cleanup`] should remove.
#[derive(Debug, Clone, Default)]
pub struct CleanupRequest {
    /// Only these stacks, including retained ones; empty means all dead ones.
    pub ids: Vec<String>,
    /// Retained ones too.
    pub retained: bool,
    /// Give up on what is on missing drives.
    pub forget_missing: bool,
    /// Consent to lose foreign data on drives that are formatted back.
    pub consent: Consent,
}

/// A stack that `cleanup` removed, or tried to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cleaned {
    /// What was left.
    pub leftover: Leftover,
    /// Why something is still left; none if nothing is.
    pub problem: Option<String>,
    /// Whether that is only because others' data would have been destroyed.
    #[serde(skip)]
    pub refused: bool,
    /// Parents made for the stack's folder that stay because others use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
}

/// The stacks that were retained, and that [`cleanup`] leaves alone unless they are named.
pub fn retained(state_dir: &Path) -> Result<Vec<Leftover>> {
    Ok(leftovers(state_dir)?.into_iter().filter(|stack| stack.state == StackState::Retained).collect())
}

/// Undoes what dead processes left, and nothing that stacktune did not make; `own_data` recognizes
/// stacktune's own data on a drive.
///
/// # Errors
/// Input (2) if an id is unknown; refused (3) if a named stack's process is alive. What could not be removed
/// of a stack is in its [`Cleaned`].
pub fn cleanup(
    state_dir: &Path,
    wanted: &CleanupRequest,
    (runner, own_data): (&Runner, &dyn OwnData),
    watch: &mut dyn FnMut(&Advance) -> bool,
) -> Result<Vec<Cleaned>> {
    journal::sweep(state_dir);
    let mut cleaned = Vec::new();
    for path in chosen(state_dir, &wanted.ids)? {
        let Some(mut leftover) = look(&path, runner)? else { continue };
        let named = !wanted.ids.is_empty();
        match leftover.state {
            StackState::Running if named => return Err(lives(&leftover)),
            StackState::Running => continue,
            StackState::Retained if !named && !wanted.retained => continue,
            _ => {}
        }
        let mut folders = Vec::new();
        let problem = match take(&path) {
            Ok(None) => continue,
            Ok(Some(journal)) => {
                leftover = summary_of(journal.record(), leftover.state, runner)?;
                folders = folders_above(journal.record(), runner);
                let scrutiny = Some(Scrutiny { own_data, consent: &wanted.consent });
                let terms = Terms { forget_missing: wanted.forget_missing, scrutiny };
                undo_with(journal, runner, terms, &mut *watch).err()
            }
            Err(error) => Some(error),
        };
        folders.retain(|dir| problem.is_none() && dir.symlink_metadata().is_ok());
        let refused = problem.as_ref().is_some_and(|error| error.kind == Kind::Refused);
        let problem = problem.map(|error| error.to_string());
        cleaned.push(Cleaned { leftover, problem, refused, folders });
    }
    Ok(cleaned)
}

/// Folders above the stack's own that were made for it, the innermost first.
fn folders_above(record: &Record, runner: &Runner) -> Vec<PathBuf> {
    let undoer = Undoer::of((&record.header, &record.entries, record.retained), runner, (true, false));
    let above = record.entries.iter().rev().filter_map(|entry| match entry.to_undo() {
        Some(Undo::RemoveFolder { dir, .. }) if undoer.is_above(dir) => Some(dir.clone()),
        _ => None,
    });
    above.collect()
}

fn lives(leftover: &Leftover) -> Error {
    Error::refused(format!("stack {} is in use by process {}", leftover.id, leftover.pid))
        .hint("stop that run: it takes its stack down itself")
}

/// The journals of these ids; all journals if there are none.
fn chosen(state_dir: &Path, ids: &[String]) -> Result<Vec<PathBuf>> {
    let all = journal::all(state_dir)?;
    if ids.is_empty() {
        return Ok(all);
    }
    let of = |id: &String| {
        all.iter().find(|path| path.file_stem().is_some_and(|stem| stem == id.as_str())).cloned().ok_or_else(
            || {
                let id = printable::line(id);
                Error::input(format!("there is no stack {id} in {}", journal::folder(state_dir).shown()))
                    .hint("`stacktune status` lists all stacks")
            },
        )
    };
    ids.iter().map(of).collect()
}

/// Takes a journal over, waiting for a tool that still holds it. None if it is gone by then.
fn take(path: &Path) -> Result<Option<Journal>> {
    let patience_ends = Instant::now() + TOOL_PATIENCE;
    loop {
        match Journal::open(path)? {
            Opened::Free(journal) => return Ok(Some(journal)),
            Opened::Gone => return Ok(None),
            Opened::Held(record) if Instant::now() >= patience_ends => {
                let id = record.header.id.0;
                return Err(Error::failed(format!("a tool is still working on stack {id}"))
                    .hint(format!("wait for that tool to end; `fuser -v {}` shows it", path.shown())));
            }
            Opened::Held(_) => std::thread::sleep(LOOK),
        }
    }
}

fn look(path: &Path, runner: &Runner) -> Result<Option<Leftover>> {
    Ok(match Journal::open(path) {
        Ok(Opened::Gone) => None,
        Ok(Opened::Free(journal)) => {
            let record = journal.record();
            let state = if record.retained { StackState::Retained } else { StackState::Dead };
            Some(summary_of(record, state, runner)?)
        }
        Ok(Opened::Held(record)) => {
            let alive = Path::new("/proc").join(record.header.pid.to_string()).exists();
            let state = if alive { StackState::Running } else { StackState::Ending };
            Some(summary_of(&record, state, runner)?)
        }
        Err(error) => Some(unreadable(path, &error)),
    })
}

fn summary_of(record: &Record, state: StackState, runner: &Runner) -> Result<Leftover> {
    let header = &record.header;
    let same_boot = header.boot == boot_id()?;
    let undoer = Undoer::of((header, &record.entries, record.retained), runner, (same_boot, false));
    let undos = record.entries.iter().rev().filter_map(|entry| entry.to_undo());
    let standing = undos
        .filter(|undo| !undoer.went_with_the_kernel(undo))
        .map(|undo| Remnant { what: undoer.describe(undo), commands: undoer.commands(undo) });
    Ok(Leftover {
        id: header.id.0.clone(),
        state,
        profile: header.profile.clone(),
        pid: header.pid,
        since_unix_s: header.started_unix_s,
        restarted: !same_boot,
        drives: header.drives.iter().map(Drive::describe).collect(),
        stands: standing.collect(),
        problem: None,
    })
}

fn unreadable(path: &Path, error: &Error) -> Leftover {
    Leftover {
        id: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        state: StackState::Unreadable,
        profile: String::new(),
        pid: 0,
        since_unix_s: 0,
        restarted: false,
        drives: Vec::new(),
        stands: Vec::new(),
        problem: Some(error.to_string()),
    }
}
