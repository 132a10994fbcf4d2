//! A sweep from its profile to its folder, on simulated drives: complete runs stay, all others are run again.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::error::Result;
use crate::host::Facts;
use crate::runs::record::fixture;
use crate::runs::session::{Advance, Attendant, Options, PlanShown, Progress, Session, Wanted};
use crate::settings::Profile;
use crate::settings::profile::parse;

const PROFILE: &str = "io.interface = \"sim\"\n[sweep]\nfor = \"1s\"\nrepeat = 2\n\
    [[step]]\nlabel = \"one\"\n[[step]]\nlabel = \"two\"\nscan.depth = 8\n";

/// Notes the reports, and ends the sweep after that many runs.
#[derive(Default)]
struct Notes {
    begun: Vec<String>,
    noticed: Vec<String>,
    fails: bool,
    /// Where others replace each run's folder with a link once the run begins, and the link's target.
    link: Option<(PathBuf, PathBuf)>,
}

impl SweepWatcher for Notes {
    fn on_event(&mut self, event: SweepEvent) {
        if let SweepEvent::Begins { run, .. } = event {
            self.begun.push(run.dir.clone());
            if let Some((out, other)) = &self.link {
                symlink(other, out.join(&run.dir)).unwrap();
            }
        }
    }

    fn waits(&mut self, _: &str) -> bool {
        true
    }

    fn recorded(&mut self, _: &mut Session, _: &Path) -> Result<()> {
        if self.fails {
            Err(crate::error::Error::failed("the pages are not what was written"))
        } else {
            Ok(())
        }
    }
}

impl Attendant for Notes {
    fn progress(&mut self, _: Progress) -> bool {
        true
    }
    fn notice(&mut self, text: &str) {
        self.noticed.push(text.to_owned());
    }
    fn consent(&mut self, _: Vec<Wanted>) -> Option<Vec<String>> {
        None
    }
    fn plan(&mut self, _: PlanShown) -> Option<Vec<String>> {
        None
    }
    fn step(&mut self, _: &Advance) -> bool {
        true
    }
}

fn profile(text: &str) -> Profile {
    parse(text, "sweep.toml").unwrap()
}

fn facts() -> Arc<Facts> {
    Arc::new(fixture::facts())
}

/// Continues the sweep in that folder; returns the folders of the runs that it made.
fn swept(dir: &Path, text: &str, fails: bool) -> Vec<String> {
    let mut notes = Notes { fails, ..Notes::default() };
    let folder = prepare(dir, &profile(text), &Options::default(), &facts, &mut notes).unwrap();
    run(&folder, &Options::default(), &facts, false, &|| 0, &mut notes).unwrap();
    notes.begun
}

fn states(dir: &Path) -> Vec<State> {
    let folder = Folder::read(dir).unwrap();
    folder.schedule.runs.iter().map(|run| folder.state(run)).collect()
}

#[test]
fn a_complete_sweep_runs_nothing_more() {
    let out = tempfile::tempdir().unwrap();
    let mut begun = swept(out.path(), PROFILE, false);
    assert!(states(out.path()).iter().all(|state| matches!(state, State::Done(_))));
    begun.sort();
    assert_eq!(begun, ["01-one-r1", "01-one-r2", "02-two-r1", "02-two-r2"]);
    assert!(swept(out.path(), PROFILE, false).is_empty());
}

#[test]
fn interrupted_runs_are_repeated_and_complete_ones_stay() {
    let out = tempfile::tempdir().unwrap();
    let begun = swept(out.path(), PROFILE, false);
    // As left by kill -9: one run with windows but no summary, and one that was not begun.
    std::fs::remove_file(out.path().join(&begun[2]).join("summary.json")).unwrap();
    std::fs::remove_dir_all(out.path().join(&begun[3])).unwrap();
    assert!(matches!(states(out.path())[2..], [State::HalfDone, State::Open]));
    assert_eq!(swept(out.path(), PROFILE, false), begun[2..]);
    assert!(states(out.path()).iter().all(|state| matches!(state, State::Done(_))));
}

#[test]
fn a_failed_run_is_recorded_and_repeated_when_the_sweep_is_continued() {
    let out = tempfile::tempdir().unwrap();
    assert_eq!(swept(out.path(), PROFILE, true).len(), 4, "none of them ends it");
    let all = states(out.path());
    assert!(all.iter().all(|s| matches!(s, State::NotRun(not_run) if not_run.kind == "failed")), "{all:?}");
    assert_eq!(swept(out.path(), PROFILE, false).len(), 4);
}

#[test]
fn a_step_that_this_host_cannot_do_is_recorded_with_the_reason() {
    let out = tempfile::tempdir().unwrap();
    let text = format!(
        "{PROFILE}[[step]]\nlabel = \"never\"\nrepeat = 1\nio.buffering = \"uncached\"\n\
         io.interface = \"sync\"\n"
    );
    swept(out.path(), &text, false);
    let folder = Folder::read(out.path()).unwrap();
    let never = folder.schedule.runs.iter().find(|run| run.step == 2).unwrap();
    let State::NotRun(not_run) = folder.state(never) else { panic!("{:?}", folder.state(never)) };
    assert_eq!(not_run.kind, "input");
    assert!(not_run.why.contains("the kernel is older than 6.14"), "{not_run:?}");
    assert_eq!(
        folder.schedule.runs.iter().filter(|run| matches!(folder.state(run), State::Done(_))).count(),
        4
    );
}

#[test]
fn foreign_files_are_left_unchanged() {
    let out = tempfile::tempdir().unwrap();
    let begun = swept(out.path(), PROFILE, true);
    let note = out.path().join(&begun[0]).join("my-notes.txt");
    std::fs::write(&note, "mine").unwrap();
    let mut notes = Notes::default();
    let folder = prepare(out.path(), &profile(PROFILE), &Options::default(), &facts, &mut notes).unwrap();
    let error = run(&folder, &Options::default(), &facts, false, &|| 0, &mut notes).unwrap_err();
    assert!(error.what.contains("my-notes.txt"), "{error}");
    assert_eq!(std::fs::read(&note).unwrap(), b"mine");
}

#[test]
fn another_profile_is_refused_and_nothing_is_touched() {
    let out = tempfile::tempdir().unwrap();
    swept(out.path(), PROFILE, false);
    let refused = |text: &str, read_only: bool| {
        let options = Options { read_only, ..Options::default() };
        prepare(out.path(), &profile(text), &options, &facts, &mut Notes::default()).unwrap_err()
    };
    let error = refused(&PROFILE.replace("scan.depth = 8", "scan.depth = 9"), false);
    assert!(error.what.contains("the steps, their times or their order differ"), "{error}");
    assert_eq!(error.exit_status(), 2);
    let error = refused(&format!("point.depth = 3\n{PROFILE}"), false);
    assert!(error.what.contains("point.depth is 3, but 1 there"), "{error}");
    assert!(refused(PROFILE, true).what.contains("without --read-only"));
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("mine.txt"), "mine").unwrap();
    let error =
        prepare(elsewhere.path(), &profile(PROFILE), &Options::default(), &facts, &mut Notes::default());
    assert!(error.unwrap_err().what.contains("is not empty"));
}

#[test]
fn what_others_put_into_the_folder_does_not_decide_what_is_run() {
    let out = tempfile::tempdir().unwrap();
    let mut notes = Notes::default();
    let begin = || loop {
        let begun =
            prepare(out.path(), &profile(PROFILE), &Options::default(), &facts, &mut Notes::default());
        // A child process that another test starts briefly inherits this process's open files, the lock included.
        if !begun.as_ref().is_err_and(|error| error.what.contains("another process is running the sweep")) {
            break begun;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let folder = begin().unwrap();
    let schedule = std::fs::read_to_string(out.path().join("sweep.json")).unwrap();
    let evil = format!("point.depth = 3\ntarget.files.dir = \"/nowhere\"\n{PROFILE}");
    std::fs::write(out.path().join("profile.toml"), evil).unwrap();
    std::fs::write(out.path().join("sweep.json"), "{}").unwrap();
    run(&folder, &Options::default(), &facts, false, &|| 0, &mut notes).unwrap();
    for run in &folder.schedule.runs {
        let State::Done(recording) = folder.state(run) else { panic!("{:?}", folder.state(run)) };
        let ran = profile(&recording.profile_toml).settings;
        assert_eq!((ran.classes[1].depth, ran.target.dir), (1, profile(PROFILE).settings.target.dir));
    }
    assert_eq!(notes.begun.len(), 4);

    // Continuing with another profile, or other runs, is refused.
    drop(folder);
    std::fs::write(out.path().join("sweep.json"), &schedule).unwrap();
    assert!(begin().unwrap_err().what.contains("the sweep of another profile"));
    std::fs::write(out.path().join("profile.toml"), crate::settings::profile::to_toml(&profile(PROFILE)))
        .unwrap();
    drop(begin().unwrap());
    for changed in [
        schedule.replace("\"two\"", "\"owt\""),
        schedule.replace("\"repeat\": 2,\n      \"target\"", "\"repeat\": 3,\n      \"target\""),
    ] {
        assert_ne!(changed, schedule);
        std::fs::write(out.path().join("sweep.json"), changed).unwrap();
        assert!(begin().unwrap_err().what.contains("do not match the profile"));
    }
}

#[test]
fn a_link_put_in_place_of_a_runs_folder_while_it_waits_is_not_followed() {
    let (out, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = Some((out.path().to_owned(), other.path().to_owned()));
    let mut notes = Notes { link, ..Notes::default() };
    let folder = prepare(out.path(), &profile(PROFILE), &Options::default(), &facts, &mut notes).unwrap();
    run(&folder, &Options::default(), &facts, false, &|| 0, &mut notes).unwrap();
    assert_eq!(notes.begun.len(), 4, "the others are tried");
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    assert!(notes.noticed.iter().all(|text| text.contains("is a link, which is not followed")));
    assert_eq!(notes.noticed.len(), 4, "{:?}", notes.noticed);
}

#[test]
fn a_sweep_of_others_has_each_run_once_and_no_more_steps_than_a_profile() {
    let out = tempfile::tempdir().unwrap();
    swept(out.path(), PROFILE, false);
    let path = out.path().join("sweep.json");
    let schedule = Folder::read(out.path()).unwrap().schedule;
    let read = |change: &dyn Fn(&mut Schedule)| {
        let mut changed = schedule.clone();
        change(&mut changed);
        std::fs::write(&path, serde_json::to_vec(&changed).unwrap()).unwrap();
        Folder::read(out.path()).err().map(|error| error.what).unwrap_or_default()
    };
    assert_eq!(read(&|_| {}), "");
    // Each would be read again.
    let twice = read(&|schedule| schedule.runs.push(schedule.runs[0].clone()));
    assert!(twice.ends_with(&format!("it has the run `{}` twice", schedule.runs[0].dir)), "{twice}");
    let many = read(&|schedule| schedule.steps.resize(1001, schedule.steps[0].clone()));
    assert!(many.ends_with("it has more than 1000 steps"), "{many}");
}

#[test]
fn two_processes_do_not_work_on_one_sweep() {
    let out = tempfile::tempdir().unwrap();
    let held = Folder::begin(out.path(), &profile(PROFILE), false).unwrap();
    let error = Folder::begin(out.path(), &profile(PROFILE), false).unwrap_err();
    assert_eq!(error.exit_status(), 1);
    drop(held);
    Folder::begin(out.path(), &profile(PROFILE), false).unwrap();
}

#[test]
fn a_signal_ends_it_cleanly_and_reports_what_is_left() {
    let out = tempfile::tempdir().unwrap();
    let mut notes = Notes::default();
    let folder = prepare(out.path(), &profile(PROFILE), &Options::default(), &facts, &mut notes).unwrap();
    let polls = std::cell::Cell::new(0);
    let interrupts = || {
        polls.set(polls.get() + 1);
        usize::from(polls.get() > 3)
    };
    let ended = run(&folder, &Options::default(), &facts, false, &interrupts, &mut notes).unwrap();
    assert!(ended.interrupted && ended.left > 0, "{ended:?}");
    drop(folder);
    assert_eq!(swept(out.path(), PROFILE, false).len(), ended.left);
}

#[test]
fn a_damaged_run_or_a_link_is_named_and_left_and_the_others_run() {
    let (out, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let begun = swept(out.path(), PROFILE, false);
    let at = |number: usize| out.path().join(&begun[number]);
    std::fs::write(at(0).join("summary.json"), "{").unwrap();
    std::fs::remove_dir_all(at(1)).unwrap();
    symlink(other.path(), at(1)).unwrap();
    std::fs::remove_dir_all(at(2)).unwrap();
    std::fs::write(at(2), "a file").unwrap();
    std::fs::remove_dir_all(at(3)).unwrap();

    let mut notes = Notes::default();
    let folder = prepare(out.path(), &profile(PROFILE), &Options::default(), &facts, &mut notes).unwrap();
    run(&folder, &Options::default(), &facts, false, &|| 0, &mut notes).unwrap();
    assert_eq!(notes.begun, begun[3..]);
    for (number, what) in ["summary.json is damaged", "is a link", "is not a folder"].into_iter().enumerate()
    {
        let named = |text: &&String| {
            text.contains(&begun[number]) && text.contains(what) && text.contains("move it elsewhere")
        };
        assert_eq!(notes.noticed.iter().filter(named).count(), 1, "{number}: {:?}", notes.noticed);
    }
    assert_eq!(std::fs::read_to_string(at(0).join("summary.json")).unwrap(), "{");
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    let damaged = states(out.path()).iter().filter(|state| matches!(state, State::Damaged(_))).count();
    assert_eq!(damaged, 3);
}
