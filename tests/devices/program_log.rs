//! A program whose log lies on a drive of its own.

use std::fs;

use crate::common::devices::{Loops, Mount, run as run_tool};
use crate::common::program::Home;
use crate::program::{USER, figure, log, nothing_runs, of_profile, on_ext4, outcome};

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
    // Neither half goes with another.
    let elsewhere = home.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let elsewhere = elsewhere.display().to_string();
    let parted = run(&sets(&elsewhere)).expect(3);
    assert!(parted.stderr.contains("its other half is not in"), "{parted:?}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    let without = run(&sets(&wal)[..1]).expect(3);
    assert!(without.stderr.contains("holds what another setup made"), "{without:?}");
    for (wal, why) in [("/none/at/all", "there is no folder"), (&*data, "is the folder of the data")] {
        let refused = run(&sets(wal)).expect(2);
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
    let built = outcome(on_ext4(&home, "1s", &["--user", USER, &sets(&wal)[1]], "true")).expect(2);
    assert!(built.stderr.contains("beside a stack that is built"), "{built:?}");
    nothing_runs(&home);
}
