//! What the real program refuses, preserves and leaves alone, on loop devices and files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::devices::{Loop, Loops, Mount, run};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A profile's devices, and a folder for its other files.
struct Target {
    devices: Vec<Loop>,
    dir: TempDir,
    _loops: Loops,
}

impl Target {
    /// None if this process can't make them.
    fn make(test: &str, sizes_mib: &[u64]) -> Option<Self> {
        let loops = Loops::take(test, sizes_mib.len())?;
        let devices = sizes_mib.iter().map(|size_mib| loops.in_memory(*size_mib, &[])).collect();
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Some(Self { devices, dir, _loops: loops })
    }

    fn write(&self, device: usize, offset: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(&self.devices[device].path).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        file.sync_all().unwrap();
    }

    fn sectors_of_4_kib(&self, device: usize) {
        let set =
            Command::new("losetup").args(["--sector-size", "4096", &self.devices[device].path]).status();
        assert!(set.unwrap().success());
    }

    fn content(&self, device: usize) -> Vec<u8> {
        std::fs::read(&self.devices[device].path).unwrap()
    }

    /// Runs the program on the first `devices`, with the WAL in its own place if there is one.
    fn record(&self, devices: usize, wal: Option<&str>, arguments: &[&str]) -> Output {
        let names: Vec<String> =
            self.devices[..devices].iter().map(|device| format!("{:?}", device.path)).collect();
        let wal = wal.map_or(String::new(), |wal| format!("target = {wal:?}\n"));
        let target = format!("devices = [{}]", names.join(", "));
        record(self.dir.path(), &target, &wal, arguments)
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

/// Checks the exit status; returns the error output.
#[track_caller]
fn ended(output: &Output, status: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    stderr
}

#[test]
fn nothing_is_wiped_where_the_run_is_refused_for_another_reason() {
    let name = "nothing_is_wiped_where_the_run_is_refused_for_another_reason";
    let Some(on) = Target::make(name, &[64, 64]) else { return };
    on.write(0, 0, &vec![0x5a; 3 * MIB as usize]);
    let (first, second) = (on.devices[0].path.clone(), on.devices[1].path.clone());
    let link = on.dir.path().join("link");
    std::os::unix::fs::symlink(&first, &link).unwrap();
    let theirs: PathBuf = on.dir.path().join("theirs");
    std::fs::write(&theirs, "precious").unwrap();
    let before = on.content(0);
    let destroy = ["--destroy", first.as_str()];
    for wal in [first.as_str(), link.to_str().unwrap(), first.trim_start_matches("/dev/")] {
        assert!(ended(&on.record(1, Some(wal), &destroy), 2).contains("is already a device of the target"));
    }
    assert!(ended(&on.record(1, theirs.to_str(), &destroy), 3).contains("not a file that stacktune made"));
    assert!(ended(&on.record(1, Some("/dev/no-such-drive"), &destroy), 2).contains("no block device"));
    assert!(!Path::new("/dev/no-such-drive").exists());
    let limited = [&destroy[..], &["--set", "run.max_writes=8MiB"]].concat();
    assert!(ended(&on.record(1, None, &limited), 2).contains("run.max_writes"));
    // Direct I/O is refused based on the device's own capability.
    let small = [&destroy[..], &["--set", "io.buffering=direct", "--set", "io.page_size=512B"]].concat();
    on.sectors_of_4_kib(0);
    assert!(ended(&on.record(1, None, &small), 2).contains("io.page_size"));
    on.write(1, 0, &[0x5a; 4096]);
    assert!(ended(&on.record(2, None, &destroy), 3).contains(&second));
    on.write(1, 0, &[0; 4096]);
    let stray = ["--destroy", second.as_str()];
    assert!(ended(&on.record(1, None, &stray), 2).contains("not a device of this target"));
    assert!(on.content(0) == before, "the content changed");
    assert_eq!(std::fs::read_to_string(theirs).unwrap(), "precious");
}

#[test]
fn the_dry_run_shows_what_is_destroyed_and_how_much_is_filled() {
    let name = "the_dry_run_shows_what_is_destroyed_and_how_much_is_filled";
    let Some(on) = Target::make(name, &[64, 64]) else { return };
    let path = &on.devices[0].path;
    run("mkfs.ext4", &["-q", "-F", path]);
    let plan = || {
        let output = on.record(2, None, &["--dry-run", "--json"]);
        ended(&output, 0);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let before = on.content(0);
    let first = plan();
    assert_eq!(first["destroys"].as_array().unwrap().len(), 1, "{first:#}");
    assert_eq!(first["destroys"][0]["path"], path.as_str());
    assert!(first["destroys"][0]["content"].to_string().contains("ext4"), "{first:#}");
    assert!(on.content(0) == before, "the dry run wrote");
    ended(&on.record(2, None, &["--destroy", path]), 0);
    // Everything except the headers, of 1 MiB each.
    assert_eq!(first["writes_bytes"], 2 * 63 * MIB);
    let second = plan();
    assert_eq!((&second["destroys"], &second["writes_bytes"]), (&serde_json::json!([]), &0.into()));
    // The dry run refuses whatever the guard refuses.
    on.write(0, 0, &vec![0; MIB as usize]);
    run("mkfs.ext4", &["-q", "-F", path]);
    let _mount = Mount::of(&on.devices[0], "ro");
    assert!(ended(&on.record(1, None, &["--dry-run"]), 3).contains("mounted"));
}

#[test]
fn a_fill_is_kept_beside_old_data_that_it_does_not_cover() {
    let name = "a_fill_is_kept_beside_old_data_that_it_does_not_cover";
    let Some(on) = Target::make(name, &[64, 80]) else { return };
    let old = vec![0x5a; 2 * MIB as usize];
    let behind = |target: &Target| target.content(1)[78 * MIB as usize..].to_vec();
    let destroy = ["--destroy", on.devices[1].path.as_str()];
    ended(&on.record(2, None, &[]), 0);
    // The larger member is only partly used: the rest is not ours.
    on.write(1, 78 * MIB, &old);
    assert!(ended(&on.record(2, None, &[]), 3).contains("not empty"));
    ended(&on.record(2, None, &destroy), 0);
    assert!(behind(&on) == old, "it was wiped, and the fill with it");
    // Inside the filled part it is damage: only then the fill begins anew.
    on.write(1, 40 * MIB, &vec![0x5a; 4 * MIB as usize]);
    ended(&on.record(2, None, &destroy), 0);
    assert!(behind(&on)[MIB as usize..].iter().all(|byte| *byte == 0));
}

#[test]
fn foreign_data_beside_a_header_of_ours_needs_consent() {
    let name = "foreign_data_beside_a_header_of_ours_needs_consent";
    let Some(on) = Target::make(name, &[64]) else { return };
    ended(&on.record(1, None, &[]), 0);
    // The header's second copy, at 512 KiB, stays intact.
    on.write(0, 0, &vec![0x5a; 64 << 10]);
    let before = on.content(0);
    assert!(ended(&on.record(1, None, &[]), 3).contains("the first at byte 0"));
    assert!(on.content(0) == before, "the content changed");
    ended(&on.record(1, None, &["--destroy", &on.devices[0].path]), 0);
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
        ("16TiB", String::new(), &[], 1),
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
    let Some(on) = Target::make(name, &[512]) else { return };
    on.sectors_of_4_kib(0);
    let at = on.dir.path().join("mounted");
    std::fs::create_dir(&at).unwrap();
    let done = |program: &str, arguments: &[&str]| {
        assert!(Command::new(program).args(arguments).output().unwrap().status.success(), "{program}");
    };
    done("mkfs.ext4", &["-q", &on.devices[0].path]);
    done("mount", &[&on.devices[0].path, at.to_str().unwrap()]);
    let target = at.join("above/target");
    let files = format!("files = {{ dir = {target:?}, count = 1, size = \"16MiB\" }}");
    // The file system's sectors are 4 KiB: smaller direct I/O is not possible.
    let small = ["--set", "io.buffering=direct", "--set", "scan.page_size=512B"];
    let profile = record(on.dir.path(), &files, "", &small);
    let dir = format!("target.files.dir={}", target.display());
    let mut demo = Command::new(env!("CARGO_BIN_EXE_stacktune"));
    demo.args(["record", "demo", "--for", "100ms", "--set", &dir, "--set", "scan.page_size=512B", "--out"]);
    let demo = demo.arg(on.dir.path().join("demo")).output().unwrap();
    let made = target.parent().unwrap().exists();
    done("umount", &[at.to_str().unwrap()]);
    assert!(ended(&profile, 2).contains("scan.page_size"));
    assert!(ended(&demo, 2).contains("scan.page_size"));
    assert!(!made);
}
