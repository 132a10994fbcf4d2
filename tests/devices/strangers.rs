//! Things that a stranger's profile, or another user of the host, can't make root do.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::common::devices::{Loops, run};
use crate::common::program::{Home, MODEST, Outcome};
use crate::common::stacks::{Ground, Nobodys, confirmed, new_id};
use crate::common::{is_root, skip};
use crate::stack_run::{ON_EXT4, TOOLS, assert_nothing_left, fake, program};
use stacktune::testing::runs::session::Advance;
use stacktune::testing::settings::{Filesystem, Raid};
use stacktune::testing::stack::build;
use stacktune::testing::stack::id::StackId;
use stacktune::testing::stack::journal::Journal;
use stacktune::testing::stack::runner::Runner;
use stacktune::testing::stack::undo::{CleanupRequest, StackState, cleanup, leftovers};

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
    // Next to the profile, everything that it asks for: a program of root's, and a folder of files.
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
fn a_folder_that_others_can_exchange_holds_no_files_of_root() {
    let Some(_loops) = Loops::take("a_folder_that_others_can_exchange_holds_no_files_of_root", 2) else {
        return;
    };
    let nobody = Some(65_534);
    for (owner, bits, why) in [
        (nobody, 0o755, "belongs to user 65534"),
        (None, 0o777, "others may write to"),
        (None, 0o775, "others may"),
    ] {
        let home = Home::new();
        let theirs = home.path("theirs");
        fs::create_dir_all(theirs.join("data")).unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(bits)).unwrap();
        chown(&theirs, owner, None).unwrap();
        for dir in [theirs.clone(), theirs.join("data"), theirs.join("not/yet/there")] {
            let dir = format!("target.files.dir={}", dir.display());
            let sets = [&MODEST[..], &ON_EXT4, &[&dir]].concat();
            for more in [&["--dry-run"][..], &[]] {
                let mut record = home.record("out", "1s", &sets);
                record.env("XDG_STATE_HOME", home.path("state")).args(more);
                let outcome = Outcome::of(&record.output().unwrap()).expect(3);
                assert!(outcome.stderr.contains(why), "{outcome:?}");
            }
            assert_nothing_left(&home);
        }
        // In a sticky folder, only the owner can replace an entry.
        if owner.is_none() {
            fs::set_permissions(&theirs, fs::Permissions::from_mode(bits | 0o1000)).unwrap();
            let dir = format!("target.files.dir={}", theirs.join("data").display());
            let mut record = home.record("out", "1s", &[&MODEST[..], &ON_EXT4, &[&dir]].concat());
            record.env("XDG_STATE_HOME", home.path("state"));
            Outcome::of(&record.output().unwrap()).expect(0);
            assert_nothing_left(&home);
        }
    }
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
                assert!(outcome.stderr.contains("is a system folder"), "{dir}: {outcome:?}");
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

/// The folder is replaced before its file is attached or formatted: in the new one, the file is a link to
/// somebody's disk image.
#[test]
fn a_folder_that_is_exchanged_during_the_build_leads_to_no_other_file() {
    let test = "a_folder_that_is_exchanged_during_the_build_leads_to_no_other_file";
    let Some(loops) = Loops::take(test, 3) else { return };
    for (exchanged_at, attached) in [(2, false), (2, true), (3, true)] {
        let (ground, id) = (Ground::new(), new_id());
        let plan = ground.plan(&id, Filesystem::Ext4, Raid::None);
        let folder = ground.target().join(format!("stacktune-{id}"));
        let aside = ground.path().join("aside");
        let image = loops.blank(32);
        let file = if attached { image.backing.clone() } else { image.dir.path().join("image") };
        if !attached {
            File::create(&file).unwrap().set_len(32 << 20).unwrap();
        }
        let mut watch = |advance: &Advance| {
            if advance.step == exchanged_at && !advance.undoing && !aside.exists() {
                fs::rename(&folder, &aside).unwrap();
                fs::create_dir(&folder).unwrap();
                symlink(&file, folder.join("member-0")).unwrap();
            }
            true
        };
        let error = build::build(confirmed(plan), &ground.site(), &mut watch).unwrap_err();
        assert!(fs::read(&file).unwrap().iter().all(|byte| *byte == 0), "it was written to: {error}");
        let over =
            run("losetup", &["--noheadings", "--output", "NAME", "--associated", file.to_str().unwrap()]);
        assert_eq!(over.lines().count(), usize::from(attached), "{over}");
        assert!(error.what.contains("there"), "{error}");
        // With the original folder back in its place, everything in it is removed.
        fs::remove_dir_all(&folder).unwrap();
        fs::rename(&aside, &folder).unwrap();
        let cleaned =
            cleanup(&ground.state(), &CleanupRequest::default(), (&Runner::default(), &Nobodys), &mut |_| {
                true
            })
            .unwrap();
        assert_eq!(cleaned[0].problem, None);
        ground.assert_nothing_left(&id);
    }
}

#[test]
fn a_lock_of_somebody_elses_on_an_old_journal_delays_nobody() {
    let test = "a_lock_of_somebody_elses_on_an_old_journal_delays_nobody";
    if !is_root() {
        return skip(test, "only root starts programs of other users");
    }
    let (ground, id) = (Ground::new(), StackId(new_id()));
    drop(Journal::begin(&ground.state(), &id, "mine", &[]).unwrap());
    let folder = ground.state().join("journal");
    let path = folder.join(format!("{}.jsonl", id.0));
    // As earlier versions left it with a common umask.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let held_by = |user: u32| {
        let file = File::open(&path).unwrap();
        file.lock().unwrap();
        Command::new("sleep").arg("100").uid(user).stdin(file).spawn().unwrap()
    };
    let end = |mut holder: Child| {
        holder.kill().unwrap();
        holder.wait().unwrap();
    };
    // A lock held by root may belong to a tool that is still working.
    let own = held_by(0);
    assert_eq!(leftovers(&ground.state()).unwrap()[0].state, StackState::Running);
    end(own);
    let stranger = held_by(65_534);
    let begun = Instant::now();
    assert_eq!(leftovers(&ground.state()).unwrap()[0].state, StackState::Dead);
    assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
    let cleaned =
        cleanup(&ground.state(), &CleanupRequest::default(), (&Runner::default(), &Nobodys), &mut |_| true)
            .unwrap();
    assert_eq!(cleaned[0].problem, None);
    assert!(begun.elapsed() < Duration::from_secs(30));
    end(stranger);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}

/// Like another program's `losetup --find`, which opens each device it tries, even a new one.
#[test]
fn a_program_that_looks_at_a_new_loop_device_in_passing_does_not_end_the_build() {
    let test = "a_program_that_looks_at_a_new_loop_device_in_passing_does_not_end_the_build";
    let Some(_loops) = Loops::take(test, 2) else { return };
    let home = Home::new();
    let looked = home.path("looked");
    let script = format!(
        "node=$(/usr/sbin/losetup \"$@\") || exit\necho \"$node\"\ncase \"$*\" in *--find*) exec 9<>\"$node\"\n\
         echo \"$node\" >>{}\nsleep 1 </dev/null >/dev/null 2>&1 &\nesac",
        looked.display()
    );
    let mut record = home.record("out", "1s", &[&MODEST[..], &ON_EXT4].concat());
    record.env("XDG_STATE_HOME", home.path("state")).env(TOOLS, fake(&home, "losetup", &script));
    Outcome::of(&record.output().unwrap()).expect(0);
    assert!(fs::read_to_string(looked).unwrap().starts_with("/dev/loop"));
    assert_nothing_left(&home);
}
