//! Commands that look and run nothing.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::{facts, facts_with_versions, print, print_json, settings};
use crate::error::{Error, Result};
use crate::knobs::Ground;
use crate::profile::{Source, Store, check as problems_of};
use crate::record::Recording;
use crate::report::{self, Shown, profiles::Row};
use crate::session::check_serials;
use crate::{calibrate as calibration, host};

/// Each shape of load is measured so long.
const CALIBRATION_TIME: Duration = Duration::from_millis(500);

/// `stacktune show`.
pub fn show(dir: &std::path::Path, json: bool) -> Result<()> {
    let recording = Recording::open(dir)?;
    if json { print_json(&Shown::of(&recording)) } else { print(&report::show(&recording)) }
}

/// `stacktune compare`.
pub fn compare(dirs: &[PathBuf], json: bool) -> Result<()> {
    let recordings: Vec<_> = dirs.iter().map(|dir| Recording::open(dir)).collect::<Result<_>>()?;
    let comparison = report::compare(&recordings)?;
    if json { print_json(&comparison) } else { print(&comparison.to_string()) }
}

/// `stacktune knobs`.
pub fn knobs(json: bool) -> Result<()> {
    let facts = facts();
    let rows = report::knobs::rows(Ground { facts: &facts, target: None });
    if json { print_json(&rows) } else { print(&report::knobs::text(&rows)) }
}

/// `stacktune profiles`.
pub fn profiles(json: bool) -> Result<()> {
    let row = |entry: crate::profile::Entry| Row {
        about: entry.error.map_or(entry.about, |error| format!("broken: {error}")),
        name: entry.name,
        from: match entry.source {
            Source::BuiltIn => "built in".into(),
            Source::File(path) => path.display().to_string(),
        },
    };
    let rows: Vec<_> = Store::of_user().list()?.into_iter().map(row).collect();
    if json { print_json(&rows) } else { print(&report::profiles::text(&rows)) }
}

/// `stacktune host`.
pub fn host(json: bool) -> Result<()> {
    let facts = facts_with_versions();
    if json { print_json(&*facts) } else { print(&host::describe(&facts)) }
}

/// `stacktune calibrate`.
pub fn calibrate(json: bool) -> Result<()> {
    let costs = calibration::calibrate(&calibration_folder()?, CALIBRATION_TIME, &facts())?;
    if json {
        return print_json(&costs);
    }
    let mut text = String::from(
        "CPU time of this process per I/O, on a file of 64 MiB that the page cache holds\n\n\
         interface  how                                user ns  system ns      I/O/s\n",
    );
    for cost in costs {
        let (user, system) = (cost.user_ns, cost.system_ns);
        let _ = writeln!(
            text,
            "{:<10} {:<33} {user:>8.0} {system:>10.0} {:>10.0}",
            cost.interface, cost.how, cost.iops
        );
    }
    print(&text)
}

/// A folder on a disk: the user's cache.
fn calibration_folder() -> Result<PathBuf> {
    let dir = crate::profile::expand_home("~/.cache/stacktune")?;
    std::fs::create_dir_all(&dir).map_err(|e| Error::os("cannot create", &dir, e))?;
    Ok(dir)
}

/// `stacktune check`.
pub fn check(profile: &str, sets: &[String]) -> Result<()> {
    let (settings, _) = settings(Some(profile), sets)?;
    let facts = facts();
    let mut problems: Vec<_> = problems_of(&settings, Ground { facts: &facts, target: None })
        .iter()
        .map(ToString::to_string)
        .collect();
    problems.extend(check_serials(&settings, &facts).err().map(|error| error.to_string()));
    if problems.is_empty() {
        return print(&format!("{}: this host can do all of it\n", settings.name));
    }
    Err(Error::input(format!("{} can't run here:\n  {}", settings.name, problems.join("\n  "))))
}
