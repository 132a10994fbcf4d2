//! `stacktune show`: a recording as text, or on the screen.

use std::path::{Path, PathBuf};

use super::output::{print, print_json};
use super::{inspect, ui};
use crate::error::{Error, Kind, Result};
use crate::printable::Shown as _;
use crate::regular_file;
use crate::runs::record::{self, SUMMARY_SCHEMA};
use crate::ui::cli::ShowArgs;
use crate::ui::report::{self, ListedFolder};
use crate::ui::tui::{Beside, Replay};

/// A kept ledger has a few kilobytes for each turn.
const LEDGER_BYTES_MAX: u64 = 64 << 20;

/// Runs the command.
pub fn run(args: &ShowArgs) -> Result<()> {
    let json = args.output.json;
    match &args.dir {
        _ if args.list => list(args.dir.as_deref(), json),
        None => print(SUMMARY_SCHEMA),
        Some(dir) if args.over_time => inspect::show_over_time(dir, json),
        Some(dir) if args.screen => {
            ui::require_terminal("without one, use `stacktune show DIR`")?;
            let theme = args.theme.as_deref().map(ui::theme).transpose()?;
            ui::show(replay(dir, args.with.as_deref())?, theme)
        }
        Some(path) if path.is_file() => ledger(path, json),
        Some(dir) => inspect::show(dir, json),
    }
}

/// Shows the ledger that a screen has kept.
fn ledger(path: &Path, json: bool) -> Result<()> {
    let text = regular_file::read_text(path, LEDGER_BYTES_MAX);
    let text = text.map_err(|error| Error::os("cannot read", path, error))?;
    let is_of_file = |error: Error| Error { what: format!("{}: {}", path.shown(), error.what), ..error };
    let runs = report::ran::kept_runs(&text).map_err(is_of_file)?;
    if json { print_json(&runs) } else { print(&report::ran::ran_turns(&runs)) }
}

/// Lists the recordings of a folder, or of those in which they usually are.
fn list(dir: Option<&Path>, json: bool) -> Result<()> {
    let folders = match dir {
        Some(dir) if !dir.is_dir() => {
            return Err(Error::input(format!("there is no folder `{}`", dir.shown())));
        }
        Some(dir) => vec![dir.to_owned()],
        None => ui::shelves(),
    };
    let listed = |folder: PathBuf| -> Result<_> {
        Ok(ListedFolder { folder: folder.display().to_string(), recordings: record::list(&folder)? })
    };
    let listed: Vec<_> = folders.into_iter().map(listed).collect::<Result<_>>()?;
    if json { print_json(&listed) } else { print(&report::recordings(&listed)) }
}

/// One or two recordings, ready for the screen. A damaged one is wrong input: there is nothing of it to show.
fn replay(dir: &Path, with: Option<&Path>) -> Result<(Replay, Option<Beside>)> {
    let read = || -> Result<_> {
        let first = inspect::single(dir)?;
        let Some(with) = with else { return Ok((Replay::of(first)?, None)) };
        let (replay, beside) = Beside::of(first, inspect::single(with)?)?;
        Ok((replay, Some(beside)))
    };
    read().map_err(|error| Error { kind: Kind::Input, ..error })
}
