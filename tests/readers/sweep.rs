//! Folders of sweeps and of reproductions.

use std::path::{Component, Path};

use stacktune::testing::app::reproduce;
use stacktune::testing::runs::sweep::Folder;
use stacktune::testing::ui::report::{SweepShown, reproduction, schedule, sweep as shown};

use super::{files, json, printed, put, report};

/// A file in a run's folder, of a sweep by an earlier build.
macro_rules! of_run {
    ($run:literal, $name:literal) => {
        (concat!($run, "/", $name), include_bytes!(concat!("../recordings/earlier/sweep/", $run, "/", $name)))
    };
}

/// The sweep, except its own file.
const GOOD: [(&str, &[u8]); 6] = [
    ("profile.toml", include_bytes!("../recordings/earlier/sweep/profile.toml")),
    ("processes.jsonl", include_bytes!("../recordings/earlier/sweep/processes.jsonl")),
    of_run!("01-scan.depth=1-r1", "windows.jsonl"),
    of_run!("01-scan.depth=1-r1", "summary.json"),
    of_run!("02-scan.depth=4-r1", "windows.jsonl"),
    of_run!("02-scan.depth=4-r1", "summary.json"),
];

/// `sweep.json`, and other files beside it or in the folders of its runs.
pub fn sweep(input: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let (own, further) = files(input);
    put(dir.path(), &GOOD, |_| true);
    put(dir.path(), &[&[("sweep.json", own)], &*further].concat(), is_in_it);
    match Folder::read(dir.path()) {
        Ok(folder) => read(dir.path(), &folder),
        Err(error) => drop(printed(&error.to_string())),
    }
    match reproduce::shown(dir.path()) {
        Ok(shown) => {
            report(&reproduction(&shown));
            json(&shown);
        }
        Err(error) => drop(printed(&error.to_string())),
    }
}

/// Whether a sweep may have a file of that name: at the top, or in a run's folder.
fn is_in_it(name: &str) -> bool {
    let parts: Vec<_> = Path::new(name).components().collect();
    (1..=2).contains(&parts.len()) && parts.iter().all(|part| matches!(part, Component::Normal(_)))
}

fn read(dir: &Path, folder: &Folder) {
    for run in &folder.schedule.runs {
        assert_eq!(folder.run_dir(run).parent(), Some(dir), "a run's folder is in the sweep's");
        assert!(run.step < folder.schedule.steps.len());
    }
    report(&schedule(&folder.schedule));
    let all = SweepShown::of(folder);
    report(&shown(&all));
    json(&all);
}
