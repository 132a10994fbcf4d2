//! What a profile from a stranger, or another user of the host, can't make root do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::common::devices::Loops;
use crate::common::program::{Home, MODEST, Outcome};
use crate::stack_run::{ON_EXT4, assert_nothing_left, program};

/// The permissions of a path.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn options_of_a_profile_lead_nowhere_beyond_its_file_system() {
    let Some(_loops) = Loops::take("options_of_a_profile_lead_nowhere_beyond_its_file_system", 2) else {
        return;
    };
    let home = Home::new();
    // Beside the profile, with all that it asks for: a program of root's, and a folder of files.
    let here = home.path("here");
    fs::create_dir(&here).unwrap();
    fs::copy("/bin/sh", here.join("sh")).unwrap();
    fs::write(here.join("proto"), "/\n0 0\nd--755 0 0\nrun -u-755 0 0 sh\n$\n").unwrap();
    let before = fs::read_dir(&here).unwrap().count();
    for (filesystem, knob, value) in [
        ("xfs", "mkfs_options", "-pproto"),
        ("ext4", "mkfs_options", "-d."),
        ("ext4", "mkfs_options", "-z undo"),
        ("btrfs", "mkfs_options", "-r."),
        ("f2fs", "mkfs_options", "-csda"),
        ("ext4", "mount_options", "loop=loop7"),
        ("ext4", "mount_options", "errors=panic"),
        ("ext4", "mount_options", "suid"),
    ] {
        let sets = [
            "target.files.count=1".to_owned(),
            "target.files.size=512MiB".to_owned(),
            format!("stack.filesystem={filesystem}"),
            format!("stack.{knob}={value}"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut record = home.record("out", "1s", &sets);
        let mut check = home.command(["check", "demo"]);
        check.args(home.sets(&sets));
        for command in [&mut check, &mut record] {
            let command = command.current_dir(&here).env("XDG_STATE_HOME", home.path("state"));
            let outcome = Outcome::of(&command.output().unwrap()).expect(2);
            let refusal = format!("`stack.{knob}` can't be {value}: ");
            assert!(outcome.stderr.contains(&refusal), "{outcome:?}");
        }
        assert_eq!(fs::read_dir(&here).unwrap().count(), before, "{value}");
        assert_nothing_left(&home);
    }
}

#[test]
fn a_mounted_stack_runs_nothing_and_nobody_else_enters_it_whatever_the_umask() {
    let test = "a_mounted_stack_runs_nothing_and_nobody_else_enters_it_whatever_the_umask";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let home = Home::new();
    let state = home.path("state/stacktune");
    // As earlier versions left it.
    fs::create_dir_all(state.join("mnt")).unwrap();
    fs::set_permissions(state.join("mnt"), fs::Permissions::from_mode(0o755)).unwrap();
    let record =
        home.record("out", "1s", &[&MODEST[..], &ON_EXT4, &["stack.mount_options=noatime"]].concat());
    let mut open = std::process::Command::new("sh");
    open.args(["-c", "umask 0; exec \"$0\" \"$@\" --keep"]).arg(record.get_program()).args(record.get_args());
    open.env_clear().envs(home.environment()).env("XDG_STATE_HOME", home.path("state"));
    Outcome::of(&open.output().unwrap()).expect(0);
    let mount = fs::read_dir(state.join("mnt")).unwrap().next().unwrap().unwrap().path();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(mount.to_str().unwrap())).unwrap();
    let options: Vec<&str> = line.split(' ').nth(5).unwrap().split(',').collect();
    for option in ["nosuid", "nodev", "noexec", "noatime"] {
        assert!(options.contains(&option), "{line}");
    }
    assert_eq!(mode(&state.join("mnt")), 0o700);
    let folder = fs::read_dir(home.target()).unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode(&folder), 0o700, "of the files below");
    program(&home, &["cleanup", "--all"]).expect(0);
    assert_nothing_left(&home);
}

#[test]
fn root_puts_nothing_into_the_systems_folders() {
    let Some(_loops) = Loops::take("root_puts_nothing_into_the_systems_folders", 2) else { return };
    let home = Home::new();
    let link = home.path("link");
    symlink("/etc", &link).unwrap();
    let below = link.join("stacktune-test");
    for dir in
        ["/", "/etc", "/boot", "/usr/share/stacktune-test", "/var", "/srv/../etc", below.to_str().unwrap()]
    {
        let dir = format!("target.files.dir={dir}");
        for stack in [&[][..], &ON_EXT4] {
            let sets = [&MODEST[..], stack, &[&dir]].concat();
            let mut check = home.command(["check", "demo"]);
            check.args(home.sets(&sets));
            let mut plan = home.record("out", "1s", &sets);
            plan.arg("--dry-run");
            for command in [&mut check, &mut plan, &mut home.record("out", "1s", &sets)] {
                let command = command.env("XDG_STATE_HOME", home.path("state"));
                let outcome = Outcome::of(&command.output().unwrap()).expect(2);
                assert!(outcome.stderr.contains("is a folder of the system"), "{dir}: {outcome:?}");
            }
        }
    }
    assert!(!Path::new("/etc/stacktune-test").exists() && !Path::new("/usr/share/stacktune-test").exists());
    assert_nothing_left(&home);
}

#[test]
fn what_others_have_in_the_folder_is_named_and_stays() {
    let Some(_loops) = Loops::take("what_others_have_in_the_folder_is_named_and_stays", 2) else { return };
    for stack in [&[][..], &ON_EXT4] {
        let home = Home::new();
        fs::create_dir(home.target()).unwrap();
        let theirs = home.target().join("letters");
        fs::write(&theirs, "kept").unwrap();
        let sets = [&MODEST[..], stack].concat();
        let mut check = home.command(["check", "demo"]);
        check.args(home.sets(&sets));
        let mut plan = home.record("out", "1s", &sets);
        plan.arg("--dry-run");
        for command in [&mut check, &mut plan, &mut home.record("out", "1s", &sets)] {
            let outcome =
                Outcome::of(&command.env("XDG_STATE_HOME", home.path("state")).output().unwrap()).expect(0);
            let printed = outcome.stdout + &outcome.stderr;
            assert!(printed.contains("holds letters, which stacktune did not put there"), "{printed}");
        }
        assert_eq!(fs::read_to_string(theirs).unwrap(), "kept");
    }
}
