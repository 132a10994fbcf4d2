//! Commands that look and run nothing.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::{facts, facts_with_versions, print, print_json, settings};
use crate::error::{Error, Result};
use crate::knobs::Ground;
use crate::profile::{Source, Store};
use crate::record::Recording;
use crate::report::{self, Shown, profiles::Row};
use crate::session::{Look, look};
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
    let (dir, made) = calibration_folder()?;
    let costs = calibration::calibrate(&dir, CALIBRATION_TIME, &facts());
    // What was there before, or came to lie there, stays: only empty folders go.
    made.iter().take_while(|dir| std::fs::remove_dir(dir).is_ok()).for_each(drop);
    let costs = costs?;
    if json {
        return print_json(&costs);
    }
    let mut text = String::from(
        "CPU time of this process per I/O, on a file of 64 MiB that the page cache holds\n\n\
         interface  how                                 CPU ns  user ns  system ns      I/O/s\n",
    );
    let resolved = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), |ns| format!("{ns:.0}"));
    for cost in costs {
        let (cpu, user, system) = (cost.cpu_ns, resolved(cost.user_ns), resolved(cost.system_ns));
        let _ = writeln!(
            text,
            "{:<10} {:<33} {cpu:>7.0} {user:>8} {system:>10} {:>10.0}",
            cost.interface, cost.how, cost.iops
        );
    }
    print(&text)
}

/// A folder on a disk, in the user's cache, and those that were made for it, the innermost first.
fn calibration_folder() -> Result<(PathBuf, Vec<PathBuf>)> {
    let dir = crate::profile::expand_home("~/.cache/stacktune")?;
    let made = dir.ancestors().take_while(|dir| !dir.exists()).map(PathBuf::from).collect();
    std::fs::create_dir_all(&dir).map_err(|e| Error::os("cannot create", &dir, e))?;
    Ok((dir, made))
}

/// `stacktune check`: looks at the target too, and makes and writes nothing.
pub fn check(profile: &str, sets: &[String]) -> Result<()> {
    let (settings, demo) = settings(Some(profile), sets)?;
    let Look { problems, notes } = look(&settings, demo, &facts());
    if problems.is_empty() {
        let mut text = format!("{}: this host can do all of it\n", settings.name);
        notes.iter().for_each(|note| _ = writeln!(text, "  note: {note}"));
        return print(&text);
    }
    let problems: Vec<_> = problems.iter().map(|problem| problem.replace('\n', "\n  ")).collect();
    Err(Error::input(format!("{} can't run here:\n  {}", settings.name, problems.join("\n  "))))
}
