//! A program with its log on a drive of its own.

use std::fs;
use std::path::Path;

use crate::common::devices::{Loops, Mount, run as run_tool};
use crate::common::program::Home;
use crate::program::{USER, figure, log, nothing_runs, of_profile, on_ext4, outcome};
use crate::stack_run::{assert_nothing_left, program};

#[test]
fn a_log_on_another_drive_is_measured_with_the_data_and_stays_with_them() {
    let name = "a_log_on_another_drive_is_measured_with_the_data_and_stays_with_them";
    let Some(loops) = Loops::take(name, 2) else { return };
    let home = Home::new();
    let formatted = || loops.device(96, |file| drop(run_tool("mkfs.ext4", &["-q", file.to_str().unwrap()])));
    let devices = [formatted(), formatted()];
    let mounts = devices.each_ref().map(|device| Mount::of(device, "rw"));
    let [data, wal] = mounts.each_ref().map(|mount| mount.at.path().display().to_string());
    let text = "[command]\nsetup = [\"sh\", \"-c\", \"echo of {wal} >{dir}/made; echo log >{wal}/made\"]\n\
                run = [\"sh\", \"-c\", \"cat {dir}/made {wal}/made; stat -c %u {dir} {wal}; \
                dd if=/dev/zero of={dir}/a bs=1M count=32 oflag=direct 2>&1; \
                dd if=/dev/zero of={wal}/b bs=1M count=16 oflag=direct 2>&1; sleep 1\"]";
    let sets = |wal: &str| [format!("--set=target.files.dir={data}"), format!("--set=wal.target={wal}")];
    let run = |sets: &[String]| {
        let _ = fs::remove_dir_all(home.path("out"));
        let more: Vec<&str> = ["--user", USER].into_iter().chain(sets.iter().map(String::as_str)).collect();
        outcome(of_profile(&home, "1m", text, &more))
    };
    let first = run(&sets(&wal)).expect(0);
    let said = log(&home);
    assert!(said.contains("of /mnt\nlog\n") || said.contains("of /srv\nlog\n"), "{said}");
    assert_eq!(said.matches("\n65534").count(), 2, "{said}");
    let written = figure(&first.json(), "drives_written_bytes") >> 20;
    assert!((48..52).contains(&written), "{written} MiB");
    for (folder, name) in [(&data, "a"), (&wal, "b")] {
        assert!(fs::exists(format!("{folder}/stacktune-program/{name}")).unwrap(), "{folder}");
    }
    nothing_runs(&home);

    let again = run(&sets(&wal)).expect(0);
    assert!(again.stderr.contains("command.setup is skipped"), "{again:?}");
    // Neither half works with another one.
    let elsewhere = home.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let elsewhere = elsewhere.display().to_string();
    let parted = run(&sets(&elsewhere)).expect(3);
    assert!(parted.stderr.contains("is from an earlier run, but its other half"), "{parted:?}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    let without = run(&sets(&wal)[..1]).expect(3);
    assert!(without.stderr.contains("was made by another setup"), "{without:?}");
    for (wal, why) in [("/none/at/all", "there is no folder"), (&*data, "is the folder of the data")] {
        let refused = run(&sets(wal)).expect(2);
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
    nothing_runs(&home);
}

#[test]
fn a_log_beside_a_stack_is_measured_with_it_and_goes_with_it_alone() {
    let name = "a_log_beside_a_stack_is_measured_with_it_and_goes_with_it_alone";
    let Some(loops) = Loops::take(name, 2) else { return };
    let home = Home::new();
    let device = loops.device(96, |file| drop(run_tool("mkfs.ext4", &["-q", file.to_str().unwrap()])));
    let mount = Mount::of(&device, "rw");
    let log_dir = mount.at.path();
    let set = format!("--set=wal.target={}", log_dir.display());
    // Somebody else's folder of the same name.
    fs::create_dir(log_dir.join("stacktune-program")).unwrap();
    fs::write(log_dir.join("stacktune-program/theirs"), "theirs").unwrap();
    let before = names(log_dir);
    let precious = home.path("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("theirs"), "theirs").unwrap();
    let script = "stat -c %u:%a {dir} {wal}; ln -s PRECIOUS {wal}/link; mkdir {wal}/deep; \
                  dd if=/dev/zero of={dir}/a bs=1M count=32 oflag=direct 2>&1; \
                  dd if=/dev/zero of={wal}/deep/b bs=1M count=16 oflag=direct 2>&1; sleep 1";
    let script = &script.replace("PRECIOUS", precious.to_str().unwrap());
    let run = |more: &[&str]| {
        let _ = fs::remove_dir_all(home.path("out"));
        outcome(on_ext4(&home, "1m", &[&["--user", USER, &set], more].concat(), script)).expect(0)
    };
    let built = run(&[]);
    let said = log(&home);
    assert_eq!(said.matches("\n65534:700").count(), 2, "{said}");
    let written = figure(&built.json(), "drives_written_bytes") >> 20;
    assert!((48..56).contains(&written), "{written} MiB");
    assert_eq!(names(log_dir), before);
    assert_eq!(fs::read_to_string(log_dir.join("stacktune-program/theirs")).unwrap(), "theirs");
    assert!(precious.join("theirs").exists());
    assert_nothing_left(&home);

    // A retained stack keeps its log, which may hold somebody's files by now.
    run(&["--keep"]);
    let kept = names(log_dir).into_iter().find(|name| !before.contains(name)).unwrap();
    let kept = log_dir.join(kept);
    let id = kept.file_name().unwrap().to_str().unwrap().strip_prefix("stack-").unwrap().to_owned();
    let refused = program(&home, &["cleanup", &id]).expect(3);
    assert!(refused.stdout.contains("holds stacktune-program, which"), "{refused:?}");
    assert!(kept.join("stacktune-program/deep/b").exists());
    fs::remove_dir_all(kept.join("stacktune-program")).unwrap();
    // So does anything on the stack itself.
    let refused = program(&home, &["cleanup", &id]).expect(3);
    assert!(refused.stdout.contains("holds stacktune-program, which"), "{refused:?}");
    assert_eq!(names(log_dir), before);
    let data = home.path("state/stacktune/mnt").join(&id).join("stacktune-program");
    fs::read_dir(data).unwrap().for_each(|entry| fs::remove_file(entry.unwrap().path()).unwrap());
    program(&home, &["cleanup", &id]).expect(0);
    assert_nothing_left(&home);
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}
