//! The system's folders, and folders that others own or could replace: root puts and opens nothing there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::devices::run;
use crate::common::program::{Home, Outcome};
use crate::common::{is_root, skip};

const NOBODY: u32 = 65_534;
const EXCHANGED: &str = "could be exchanged for another folder";

/// The program with settings.
fn program(home: &Home, arguments: &[&str], sets: &[&str]) -> Outcome {
    let sets = sets.iter().map(|set| format!("--set={set}"));
    let mut command = home.command(arguments);
    Outcome::of(&command.args(sets).env("XDG_STATE_HOME", home.path("state")).output().unwrap())
}

/// `check`, `record --dry-run` and `record` are refused for that reason.
#[track_caller]
fn refused(home: &Home, profile: &str, sets: &[&str], status: i32, why: &str) {
    let out = home.path("out");
    let record = ["record", profile, "--for", "1s", "--out", out.to_str().unwrap()];
    let planned = [&record[..], &["--dry-run"]].concat();
    for (arguments, status) in [(&["check", profile][..], 2), (&planned, status), (&record, status)] {
        let outcome = program(home, arguments, sets).expect(status);
        assert!(outcome.stderr.contains(why), "{why}: {outcome:?}");
    }
    assert!(!out.exists());
}

fn set(key: &str, path: &Path) -> String {
    format!("{key}={}", path.display())
}

#[test]
fn rocksdb_opens_nothing_that_others_have_put_into_its_folder() {
    let test = "rocksdb_opens_nothing_that_others_have_put_into_its_folder";
    if !is_root() {
        return skip(test, "only root gives files to others");
    }
    let home = Home::new();
    let (dir, victim, made) = (home.target(), home.path("victim"), home.path("made"));
    let database = dir.join("rocksdb");
    let dir_set = set("target.files.dir", &dir);
    let sets = [dir_set.as_str(), "kv.pairs=1000", "kv.value_size=400"];
    let record = |out: &str| {
        let out = home.path(out);
        program(&home, &["record", "rocksdb", "--for", "1s", "--out", out.to_str().unwrap()], &sets).expect(0)
    };
    record("first");
    fs::write(&victim, "root's").unwrap();
    for (name, leads_to) in [("000000.dbtmp", &victim), ("LOCK.new", &made)] {
        symlink(leads_to, database.join(name)).unwrap();
        refused(&home, "rocksdb", &sets, 3, &format!("{name} is a symbolic link"));
        fs::remove_file(database.join(name)).unwrap();
    }
    // Reading a pipe in place of a file would block.
    let current = database.join("CURRENT");
    let content = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    mknodat(CWD, &current, FileType::Fifo, Mode::RUSR, 0).unwrap();
    refused(&home, "rocksdb", &sets, 3, "CURRENT is not a regular file");
    let verified = program(&home, &["verify", "rocksdb"], &sets).expect(3);
    assert!(verified.stderr.contains("CURRENT is not a regular file"), "{verified:?}");
    fs::remove_file(&current).unwrap();
    fs::write(&current, content).unwrap();
    for (folder, why) in [(&dir, EXCHANGED), (&database, "rocksdb belongs to user 65534")] {
        chown(folder, Some(NOBODY), None).unwrap();
        refused(&home, "rocksdb", &sets, 3, why);
        chown(folder, Some(0), None).unwrap();
    }
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o1777)).unwrap();
    refused(&home, "rocksdb", &sets, 3, "others may write to");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    record("again");
    assert!(fs::read(&victim).unwrap() == b"root's" && !made.exists());
}

/// Somebody else's folder, with a folder of root's inside, and a link to root's.
fn others(home: &Home) -> [PathBuf; 3] {
    let (theirs, roots) = (home.path("theirs"), home.path("roots"));
    fs::create_dir_all(theirs.join("ours")).unwrap();
    fs::create_dir(&roots).unwrap();
    symlink(roots, theirs.join("link")).unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    [theirs.clone(), theirs.join("link"), theirs.join("ours")]
}

#[test]
fn root_puts_nothing_where_others_could_exchange_the_folder() {
    let test = "root_puts_nothing_where_others_could_exchange_the_folder";
    if !is_root() {
        return skip(test, "only root gives files to others");
    }
    let home = Home::new();
    let ours = set("target.files.dir", &home.target());
    for dir in others(&home) {
        let data = set("target.files.dir", &dir);
        refused(&home, "demo", &[&data], 3, EXCHANGED);
        refused(&home, "demo", &[&ours, &set("wal.target", &dir.join("w"))], 3, EXCHANGED);
        refused(&home, "rocksdb", &[&ours, &set("wal.acks", &dir.join("a"))], 3, EXCHANGED);
        let out = dir.join("out");
        let record =
            ["record", "demo", "--for", "1s", "--set=io.interface=sim", "--out", out.to_str().unwrap()];
        assert!(program(&home, &record, &[]).expect(3).stderr.contains(EXCHANGED));
        assert!(!out.exists());
        // Allowed if the caller of sudo asked for it.
        let mut by_sudo = home.command(record);
        Outcome::of(&by_sudo.env("SUDO_UID", NOBODY.to_string()).output().unwrap()).expect(0);
        fs::remove_dir_all(&out).unwrap();
        let mut by_sudo = home.command(["check", "demo", "--set", &data]);
        Outcome::of(&by_sudo.env("SUDO_UID", NOBODY.to_string()).output().unwrap()).expect(0);
    }
    assert_eq!(fs::read_dir(home.path("roots")).unwrap().count(), 0);
}

#[test]
fn files_beside_the_data_stay_out_of_the_systems_folders_and_are_shown() {
    let test = "files_beside_the_data_stay_out_of_the_systems_folders_and_are_shown";
    if !is_root() {
        return skip(test, "only root gives files to others");
    }
    let home = Home::new();
    let ours = set("target.files.dir", &home.target());
    let bound = home.path("bound");
    fs::create_dir(&bound).unwrap();
    run("mount", &["--bind", "/etc/default", bound.to_str().unwrap()]);
    let places = ["/etc/cron.d".as_ref(), "/var/lib/dpkg".as_ref(), bound.as_path()];
    let outcome = std::panic::catch_unwind(|| {
        for dir in places {
            let file = dir.join("stacktune-test");
            for (profile, key) in [("demo", "wal.target"), ("rocksdb", "wal.acks")] {
                let why = format!("{key}: {}", dir.display());
                refused(&home, profile, &[&ours, &set(key, &file)], 2, &why);
            }
            assert!(!file.exists());
        }
        let out = bound.join("stacktune-test").display().to_string();
        let record = ["record", "demo", "--set=io.interface=sim", "--for", "1s", "--out", &out];
        assert!(program(&home, &record, &[]).expect(2).stderr.contains("is a system folder"));
    });
    run("umount", &[bound.to_str().unwrap()]);
    outcome.unwrap();
    let file = home.path("w");
    for (profile, key) in [("demo", "wal.target"), ("rocksdb", "wal.acks")] {
        let place = set(key, &file);
        let sets = [ours.as_str(), &place, "kv.pairs=1000", "target.files.size=16MiB"];
        let check = program(&home, &["check", profile], &sets).expect(0);
        let planned = program(&home, &["record", profile, "--for", "1s", "--dry-run", "--out", "x"], &sets);
        for outcome in [check, planned.expect(0)] {
            assert!(outcome.stdout.contains(file.to_str().unwrap()), "{outcome:?}");
        }
    }
    let none = home.path("none/w");
    refused(&home, "rocksdb", &[&ours, &set("wal.acks", &none)], 2, "wal.acks: there is no folder");
}

#[test]
fn a_path_that_is_too_long_is_refused_before_anything_is_made() {
    let home = Home::new();
    let before = fs::read_dir(home.path("")).unwrap().count();
    for (name, why) in
        [("x".repeat(300), "a name of more than 255 bytes"), ("y/".repeat(2000), "a path of more than")]
    {
        let dir = set("target.files.dir", &home.path(&name));
        refused(&home, "demo", &[&dir], 2, why);
    }
    assert_eq!(fs::read_dir(home.path("")).unwrap().count(), before);
}
