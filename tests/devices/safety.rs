//! What the real program refuses, keeps and leaves alone, on loop devices and files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// Loop devices over files of their own. There are few, so one test has them at a time.
struct Loops {
    devices: Vec<String>,
    dir: TempDir,
    _turn: File,
}

impl Loops {
    /// None, with the reason told, where this process can't make them.
    fn make(test: &str, sizes_mib: &[u64]) -> Option<Self> {
        if !common::is_root() {
            common::skip(test, "needs root for loop devices");
            return None;
        }
        let turn = File::create(std::env::temp_dir().join("stacktune-test-loop-devices")).unwrap();
        turn.lock().unwrap();
        // In memory where there is such a folder: nothing here is about a disk's speed.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let mut loops = Self { devices: Vec::new(), dir, _turn: turn };
        for (n, size_mib) in sizes_mib.iter().enumerate() {
            let image = loops.dir.path().join(format!("device-{n}"));
            File::create(&image).unwrap().set_len(size_mib * MIB).unwrap();
            let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
            let Some(made) = made.ok().filter(|made| made.status.success()) else {
                common::skip(test, "needs loop devices");
                return None;
            };
            loops.devices.push(String::from_utf8(made.stdout).unwrap().trim().to_owned());
        }
        Some(loops)
    }

    fn write(&self, device: usize, offset: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(&self.devices[device]).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        file.sync_all().unwrap();
    }

    fn sectors_of_4_kib(&self, device: usize) {
        let set = Command::new("losetup").args(["--sector-size", "4096", &self.devices[device]]).status();
        assert!(set.unwrap().success());
    }

    fn content(&self, device: usize) -> Vec<u8> {
        std::fs::read(&self.devices[device]).unwrap()
    }

    /// Runs the program on the first devices, so many, with the WAL there, if anywhere of its own.
    fn record(&self, devices: usize, wal: Option<&str>, arguments: &[&str]) -> Output {
        let names: Vec<String> = self.devices[..devices].iter().map(|name| format!("{name:?}")).collect();
        let wal = wal.map_or(String::new(), |wal| format!("target = {wal:?}\n"));
        let target = format!("devices = [{}]", names.join(", "));
        record(self.dir.path(), &target, &wal, arguments)
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for device in &self.devices {
            // Nothing to be done where it fails: the file behind it is gone anyway.
            let _ = Command::new("losetup").args(["--detach", device]).status();
        }
    }
}

fn record(dir: &Path, target: &str, wal: &str, arguments: &[&str]) -> Output {
    let profile = dir.join("profile.toml");
    let text = format!(
        "name = \"safety\"\n[target]\n{target}\n[io]\ninterface = \"sync\"\nbuffering = \"cached\"\n\
         [scan]\ndepth = 2\nbatch = 1\n[wal]\nrate = \"1MB/s\"\n{wal}[background]\nrate = \"1MB/s\"\n"
    );
    std::fs::write(&profile, text).unwrap();
    let out = dir.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stacktune"));
    command.arg("record").arg(profile).arg("--out").arg(out).args(["--for", "100ms"]).args(arguments);
    command.output().unwrap()
}

/// What it said, with its exit status.
#[track_caller]
fn ended(output: &Output, status: i32) -> String {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{told}");
    told
}

#[test]
fn nothing_is_wiped_where_the_run_is_refused_for_another_reason() {
    let name = "nothing_is_wiped_where_the_run_is_refused_for_another_reason";
    let Some(loops) = Loops::make(name, &[64, 64]) else { return };
    loops.write(0, 0, &vec![0x5a; 3 * MIB as usize]);
    let (first, second) = (loops.devices[0].clone(), loops.devices[1].clone());
    let link = loops.dir.path().join("link");
    std::os::unix::fs::symlink(&first, &link).unwrap();
    let theirs: PathBuf = loops.dir.path().join("theirs");
    std::fs::write(&theirs, "precious").unwrap();
    let before = loops.content(0);
    let destroy = ["--destroy", first.as_str()];
    for wal in [first.as_str(), link.to_str().unwrap(), first.trim_start_matches("/dev/")] {
        assert!(
            ended(&loops.record(1, Some(wal), &destroy), 2).contains("is a device of the target already")
        );
    }
    assert!(ended(&loops.record(1, theirs.to_str(), &destroy), 3).contains("not a file that stacktune made"));
    assert!(ended(&loops.record(1, Some("/dev/no-such-drive"), &destroy), 2).contains("no block device"));
    assert!(!Path::new("/dev/no-such-drive").exists());
    let limited = [&destroy[..], &["--set", "run.max_writes=8MiB"]].concat();
    assert!(ended(&loops.record(1, None, &limited), 2).contains("run.max_writes"));
    // Direct I/O is refused for what the device itself can do.
    let small = [&destroy[..], &["--set", "io.buffering=direct", "--set", "io.page_size=512B"]].concat();
    loops.sectors_of_4_kib(0);
    assert!(ended(&loops.record(1, None, &small), 2).contains("io.page_size"));
    loops.write(1, 0, &[0x5a; 4096]);
    assert!(ended(&loops.record(2, None, &destroy), 3).contains(&second));
    loops.write(1, 0, &[0; 4096]);
    let stray = ["--destroy", second.as_str()];
    assert!(ended(&loops.record(1, None, &stray), 2).contains("not a device of this target"));
    assert!(loops.content(0) == before, "the content changed");
    assert_eq!(std::fs::read_to_string(theirs).unwrap(), "precious");
}

#[test]
fn a_fill_is_kept_beside_old_data_that_it_does_not_cover() {
    let name = "a_fill_is_kept_beside_old_data_that_it_does_not_cover";
    let Some(loops) = Loops::make(name, &[64, 80]) else { return };
    let old = vec![0x5a; 2 * MIB as usize];
    let behind = |loops: &Loops| loops.content(1)[78 * MIB as usize..].to_vec();
    let destroy = ["--destroy", loops.devices[1].as_str()];
    ended(&loops.record(2, None, &[]), 0);
    // The larger member is used in part: what lies behind is not ours.
    loops.write(1, 78 * MIB, &old);
    assert!(ended(&loops.record(2, None, &[]), 3).contains("not empty"));
    ended(&loops.record(2, None, &destroy), 0);
    assert!(behind(&loops) == old, "it was wiped, and the fill with it");
    // Within what is filled it is damage: only then all begins anew.
    loops.write(1, 40 * MIB, &vec![0x5a; 4 * MIB as usize]);
    ended(&loops.record(2, None, &destroy), 0);
    assert!(behind(&loops)[MIB as usize..].iter().all(|byte| *byte == 0));
}

#[test]
fn foreign_data_beside_a_header_of_ours_needs_consent() {
    let name = "foreign_data_beside_a_header_of_ours_needs_consent";
    let Some(loops) = Loops::make(name, &[64]) else { return };
    ended(&loops.record(1, None, &[]), 0);
    // The header's second copy, at 512 KiB, stays whole.
    loops.write(0, 0, &vec![0x5a; 64 << 10]);
    let before = loops.content(0);
    assert!(ended(&loops.record(1, None, &[]), 3).contains("the first at byte 0"));
    assert!(loops.content(0) == before, "the content changed");
    ended(&loops.record(1, None, &["--destroy", &loops.devices[0]]), 0);
}

#[test]
fn an_empty_file_of_two_names_does_not_become_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let theirs = dir.path().join("theirs");
    std::fs::write(&theirs, "").unwrap();
    std::fs::hard_link(&theirs, target.join("stacktune-set")).unwrap();
    let files = format!("files = {{ dir = {target:?}, count = 1, size = \"16MiB\" }}");
    assert!(ended(&record(dir.path(), &files, "", &[]), 3).contains("hard links"));
    assert_eq!(std::fs::metadata(theirs).unwrap().len(), 0);
}

#[test]
fn a_refused_run_on_files_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("above/target");
    let files = |size: &str| format!("files = {{ dir = {target:?}, count = 1, size = {size:?} }}");
    let theirs = dir.path().join("theirs");
    std::fs::write(&theirs, "precious").unwrap();
    let wal = |path: &Path| format!("target = {path:?}\n");
    let limited = ["--set", "run.max_writes=8MiB"];
    let missing = dir.path().join("none/wal");
    for (size, wal, arguments, status) in [
        ("16MiB", String::new(), &limited[..], 2),
        ("16TiB", String::new(), &[], 3),
        ("16MiB", wal(&theirs), &[], 3),
        ("16MiB", wal(&missing), &[], 2),
    ] {
        ended(&record(dir.path(), &files(size), &wal, arguments), status);
        assert!(!target.parent().unwrap().exists(), "{size} {wal} {arguments:?}");
    }
}

#[test]
fn a_run_that_the_file_system_refuses_makes_nothing() {
    let name = "a_run_that_the_file_system_refuses_makes_nothing";
    let Some(loops) = Loops::make(name, &[512]) else { return };
    loops.sectors_of_4_kib(0);
    let at = loops.dir.path().join("mounted");
    std::fs::create_dir(&at).unwrap();
    let done = |program: &str, arguments: &[&str]| {
        assert!(Command::new(program).args(arguments).output().unwrap().status.success(), "{program}");
    };
    done("mkfs.ext4", &["-q", &loops.devices[0]]);
    done("mount", &[&loops.devices[0], at.to_str().unwrap()]);
    let target = at.join("above/target");
    let files = format!("files = {{ dir = {target:?}, count = 1, size = \"16MiB\" }}");
    // The file system's sectors are 4 KiB: direct I/O of less is not possible.
    let small = ["--set", "io.buffering=direct", "--set", "scan.page_size=512B"];
    let profile = record(loops.dir.path(), &files, "", &small);
    let dir = format!("target.files.dir={}", target.display());
    let mut demo = Command::new(env!("CARGO_BIN_EXE_stacktune"));
    demo.args(["record", "demo", "--for", "100ms", "--set", &dir, "--set", "scan.page_size=512B", "--out"]);
    let demo = demo.arg(loops.dir.path().join("demo")).output().unwrap();
    let made = target.parent().unwrap().exists();
    done("umount", &[at.to_str().unwrap()]);
    assert!(ended(&profile, 2).contains("scan.page_size"));
    assert!(ended(&demo, 2).contains("scan.page_size"));
    assert!(!made);
}
