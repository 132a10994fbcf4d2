//! Reading a recording, even of a killed process.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, Error as _};

use super::names::{CONTRACT, HOST, LATENCY, LEDGER, PROFILE, SCHEMA, SUMMARY, WINDOWS};
use super::summary::{Frame, Summary};
use super::{bounds, by_settings, consistency, contract, hlog, rebuild};
use crate::error::{Error, Result};
use crate::json;
use crate::meter::window::{LedgerLine, Window};
use crate::printable;
use crate::regular_file;
use crate::settings::profile::FILE_BYTES_MAX;

/// Larger than any summary or description of a host.
const JSON_BYTES_MAX: u64 = 16 << 20;
/// Longer than the line of any window or turn.
const LINE_BYTES: usize = 1 << 20;
/// The windows are held in memory: a week of them, one per second, takes less.
const LINES_BYTES_MAX: u64 = 2 << 30;

/// A recording as read.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The folder that it was read from.
    pub dir: PathBuf,
    /// Its totals, from `summary.json` or, without that, from its windows.
    pub summary: Summary,
    /// Its windows, without their histograms.
    pub windows: Vec<Window>,
    /// Its turns, in order, with their verdicts.
    pub ledger: Vec<LedgerLine>,
    /// How well the rules of drives were kept, if the run was traced.
    pub contract: Option<contract::Contract>,
    /// The content of `host.json`, as any version of stacktune wrote it.
    pub host: serde_json::Value,
    /// The profile as run.
    pub profile_toml: String,
    /// Missing or damaged parts, in sentences.
    pub notes: Vec<String>,
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// Input if the folder has none, or one of a newer layout; failed if a file is damaged, unless it is just
    /// cut off.
    pub fn open(dir: &Path) -> Result<Self> {
        if !dir.join(WINDOWS).is_file() {
            let what = if dir.join(WINDOWS).exists() {
                format!("{} is not a recording: its {WINDOWS} is not a regular file", printable::path(dir))
            } else if dir.exists() {
                format!("{} is not a recording", printable::path(dir))
            } else {
                format!("there is no folder `{}`", printable::path(dir))
            };
            return Err(Error::input(what).hint("give a folder that `stacktune record --out` made"));
        }
        let mut notes = Vec::new();
        let windows = lines(&dir.join(WINDOWS), &mut notes)?;
        bounds::check_windows(&windows)
            .map_err(|why| damaged(&dir.join(WINDOWS), &serde_json::Error::custom(why)))?;
        let ledger =
            if dir.join(LEDGER).exists() { lines(&dir.join(LEDGER), &mut notes)? } else { Vec::new() };
        let host = optional(&dir.join(HOST))?.unwrap_or_default();
        let contract = contract::read(optional(&dir.join(CONTRACT)), &mut notes);
        let profile_toml = regular_file::read_text(&dir.join(PROFILE), FILE_BYTES_MAX).unwrap_or_else(|e| {
            notes.push(format!("{PROFILE} can't be read: {}.", crate::error::describe(&e)));
            String::new()
        });
        let log = read_log(&dir.join(LATENCY), &windows);
        let summary = read_summary(&dir.join(SUMMARY))?;
        let written = summary.is_some();
        let mut summary = match summary {
            Some(summary) => {
                notes.extend(
                    log.as_ref().err().map(|e| format!("Its percentiles can't be checked: {}.", e.what)),
                );
                summary
            }
            None => rebuilt(log.as_ref().map_err(Clone::clone)?, &windows, &profile_toml, &host, &mut notes),
        };
        let log = log.unwrap_or_default();
        notes.extend(log.damage.as_ref().map(|damage| format!("{LATENCY} is damaged: {damage}.")));
        let frame = frame(&windows, &profile_toml, &host);
        let mut found = consistency::contradictions((&summary, written), &windows, &ledger, &log, frame);
        found.extend(by_settings::contradictions(&windows, &ledger, &profile_toml, &host));
        consistency::report(&found, &mut summary, &mut notes);
        Ok(Self { dir: dir.to_owned(), summary, windows, ledger, contract, host, profile_toml, notes })
    }

    /// The folder's name, for tables.
    pub fn name(&self) -> String {
        let path = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        printable::path(path.file_name().map_or(&*path, Path::new))
    }
}

pub(super) fn read_summary(path: &Path) -> Result<Option<Summary>> {
    let Some(value) = optional(path)? else { return Ok(None) };
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    if schema.is_some_and(|schema| schema > u64::from(SCHEMA)) {
        return Err(Error::input(format!("{} was written by a newer stacktune", printable::path(path)))
            .hint("read it with that version"));
    }
    bounds::check_summary(&value).map_err(|why| damaged(path, &serde_json::Error::custom(why)))?;
    json::read_value(&value).map(Some).map_err(|e| damaged(path, &e))
}

/// The log's content for these windows, warm-up included.
fn read_log(path: &Path, windows: &[Window]) -> Result<hlog::Logged> {
    let unreadable = |e| Error::os("cannot read", path, e);
    let log = regular_file::open(path).map_err(unreadable)?;
    hlog::sums(BufReader::new(log), &windows.iter().collect::<Vec<_>>()).map_err(unreadable)
}

fn rebuilt(
    log: &hlog::Logged,
    windows: &[Window],
    toml: &str,
    host: &serde_json::Value,
    notes: &mut Vec<String>,
) -> Summary {
    notes.push(format!(
        "{SUMMARY} is missing: the recording is still running or was killed. These totals come from its \
         {} finished windows.",
        windows.len()
    ));
    let counted: Vec<_> = windows.iter().filter(|window| rebuild::counts(window)).collect();
    Summary::of(&rebuild::totals(&counted, &log.sums), Frame { rebuilt: true, ..frame(windows, toml, host) })
}

/// The parts of the recording that are not in its counted windows.
fn frame(windows: &[Window], toml: &str, host: &serde_json::Value) -> Frame {
    let profile = toml.parse::<toml::Table>().ok();
    let name = profile.as_ref().and_then(|table| table.get("name")?.as_str());
    let warmup = || windows.iter().filter(|window| window.warmup);
    Frame {
        profile: printable::line(name.unwrap_or("unnamed")).into_owned(),
        warmup_s: warmup().map(|window| window.duration_ns).sum::<u64>() as f64 / 1e9,
        warmup_windows: warmup().count() as u64,
        circumstances: json::read_value(&host["circumstances"]).ok(),
        worth: host["usable_bytes"].as_u64().map(|bytes| (host["price"].as_f64(), bytes)),
        ..Frame::default()
    }
}

/// The JSON of a file, or none if there is no such file.
pub(super) fn optional(path: &Path) -> Result<Option<serde_json::Value>> {
    match regular_file::read(path, JSON_BYTES_MAX) {
        Ok(bytes) => json::read_of_others(&bytes).map(Some).map_err(|e| damaged(path, &e)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::os("cannot read", path, e)),
    }
}

fn damaged(path: &Path, error: &serde_json::Error) -> Error {
    Error::failed(format!("{} is damaged: {}", printable::path(path), printable::line(&error.to_string())))
}

fn lines<T: DeserializeOwned>(path: &Path, notes: &mut Vec<String>) -> Result<Vec<T>> {
    let unreadable = |e| Error::os("cannot read", path, e);
    let file = regular_file::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() > LINES_BYTES_MAX {
        return Err(Error::failed(format!("{} is larger than any recording's", printable::path(path))));
    }
    values(BufReader::new(file), path, notes)
}

/// Each line's value; the path names the lines in errors. An incomplete last line is left out, with a note.
fn values<T: DeserializeOwned>(
    mut from: impl BufRead,
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<Vec<T>> {
    let damaged = |number: usize, why: &str| {
        let (path, why) = (printable::path(path), printable::line(why));
        Error::failed(format!("{path}:{number}: damaged: {why}"))
    };
    let mut values = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let next = from.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut line);
        match (next.map_err(|e| Error::os("cannot read", path, e))?, line.strip_suffix(b"\n")) {
            (0, _) => break,
            (_, Some(b"")) => {}
            (_, Some(line)) => {
                values.push(json::read_of_others(line).map_err(|e| damaged(number, &e.to_string()))?);
            }
            (LINE_BYTES, None) => return Err(damaged(number, "it is longer than any line")),
            (_, None) => {
                let name = printable::path(Path::new(path.file_name().unwrap_or_default()));
                notes.push(format!("The last line of {name} is incomplete and left out."));
            }
        }
    }
    Ok(values)
}
