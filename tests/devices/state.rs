//! The state folder: who may write to it, and which of others' content is believed.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::devices::Loops;
use crate::common::program::{Home, MODEST, Outcome, Running, wait_for};
use crate::common::stacks::new_id;
use crate::common::{is_root, skip};
use rustix::fs::{FlockOperation, flock};

/// A user who is not root.
const NOBODY: u32 = 65534;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, bits: u32) {
    fs::set_permissions(path, Permissions::from_mode(bits)).unwrap();
}

#[test]
fn what_is_made_under_umask_0_is_for_its_owner_alone() {
    let Some(_loops) = Loops::take("what_is_made_under_umask_0_is_for_its_owner_alone", 2) else { return };
    let home = Home::new();
    let sets = ["target.files.count=1", "target.files.size=96MiB", "stack.filesystem=ext4"];
    let plain = home.record("out", "2s", &[&MODEST[..], &sets].concat());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"umask 0; exec "$0" "$@""#]).arg(plain.get_program()).args(plain.get_args());
    command.env_clear().envs(home.environment()).env("XDG_STATE_HOME", home.path("state"));
    let running = Running::start(command.stdout(std::process::Stdio::piped()));
    let state = home.path("state/stacktune");
    let within = |dir: &str| Some(fs::read_dir(state.join(dir)).ok()?.next()?.ok()?.path());
    let mount = wait_for("the stack", || within("mnt").filter(|mount| mount.join("data-0").exists()));
    let journal = within("journal").unwrap();
    assert_eq!(mode(&journal), 0o600);
    for dir in [&home.path("state"), &state, &state.join("journal"), mount.parent().unwrap()] {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
    }
    running.outcome().expect(0);
}

/// A state folder with a journal that names an existing file.
fn with_journal(home: &Home) -> (PathBuf, PathBuf) {
    let id = new_id();
    let (folder, journals) = (home.path(&format!("stack-{id}")), home.path("state/stacktune/journal"));
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(&journals).unwrap();
    let file = folder.join("member-0");
    fs::write(&file, "someone's").unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let header = serde_json::json!({ "format": 1, "id": id, "boot": boot.trim(), "pid": 1, "profile": "mine",
        "started_unix_s": 1, "drives": [] });
    let undo = serde_json::json!({ "undo": "remove_file", "file": file });
    let step = serde_json::json!({ "line": "intend", "number": 0, "command": "fallocate", "undo": undo });
    let journal = journals.join(format!("{id}.jsonl"));
    fs::write(&journal, format!("{header}\n{step}\n")).unwrap();
    (journal, file)
}

fn program(home: &Home, arguments: &[&str]) -> Outcome {
    let mut command = home.command(arguments);
    Outcome::of(&command.env("XDG_STATE_HOME", home.path("state")).output().unwrap())
}

#[test]
fn a_journal_that_others_could_have_written_is_not_believed() {
    let test = "a_journal_that_others_could_have_written_is_not_believed";
    if !is_root() {
        return skip(test, "only root gives files to others");
    }
    let home = Home::new();
    let (journal, file) = with_journal(&home);
    let journals = journal.parent().unwrap();
    let state = journals.parent().unwrap();
    let refused = |why: &str, hint: &str| {
        for command in ["status", "cleanup"] {
            let outcome = program(&home, &[command]).expect(3);
            assert!(outcome.stderr.contains(why) && outcome.stderr.contains(hint), "{why}: {outcome:?}");
        }
        assert!(file.exists());
    };
    for dir in [&home.path("state"), state, journals] {
        chown(dir, Some(NOBODY), None).unwrap();
        refused(&format!("{} belongs to user {NOBODY}", dir.display()), "set XDG_STATE_HOME");
        chown(dir, Some(0), None).unwrap();
        set_mode(dir, 0o777);
        refused(&format!("others may write to {}", dir.display()), "chmod go-w");
        set_mode(dir, 0o755);
    }
    // A journal of theirs, locked by a process of theirs.
    chown(&journal, Some(NOBODY), None).unwrap();
    let theirs = File::open(&journal).unwrap();
    flock(&theirs, FlockOperation::LockExclusive).unwrap();
    let began = Instant::now();
    let outcome = program(&home, &["cleanup"]).expect(3);
    assert!(outcome.stdout.contains(&format!("owned by user {NOBODY}")), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "nobody waits for it: {:?}", began.elapsed());
    assert!(file.exists());
    drop(theirs);
    chown(&journal, Some(0), None).unwrap();
    // A journal with a second name elsewhere, through which it could be changed.
    let second = home.path("second");
    fs::hard_link(&journal, &second).unwrap();
    let outcome = program(&home, &["cleanup"]).expect(3);
    assert!(outcome.stdout.contains("a file with a second name"), "{outcome:?}");
    assert!(file.exists());
    fs::remove_file(second).unwrap();
    program(&home, &["cleanup"]).expect(0);
    assert!(!file.exists() && !journal.exists());
}

#[test]
fn what_cannot_be_named_is_gone() {
    let home = Home::new();
    let (journal, file) = with_journal(&home);
    // As if a stack's path had been too long to be named.
    let text = fs::read_to_string(&journal).unwrap().replace("member-0", &"x".repeat(300));
    fs::write(&journal, text).unwrap();
    program(&home, &["cleanup"]).expect(0);
    assert!(file.exists() && !journal.exists());
}
