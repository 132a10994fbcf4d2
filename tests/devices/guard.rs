//! The guard on real loop devices: every refusal, with a check that the content is unchanged.

use std::fs::{File, OpenOptions};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use crate::common;
use crate::common::devices::{Loop, Loops, run};
use crate::common::program::wait_for;
use crate::consent::everything;
use stacktune::testing::host::Facts;
use stacktune::testing::stack::guard::{self, Consent, Examination, OwnData};

pub const SIZE: u64 = 16 << 20;
pub const MAGIC: &[u8] = b"stacktune test header";

/// A header or a page is ours if it begins with the magic.
struct ByMagic;

impl OwnData for ByMagic {
    fn header(&self, head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    fn page(&self, _device: &File, _offset: u64, page: &[u8]) -> bool {
        page.starts_with(MAGIC)
    }
}

/// A loop device that the guard examines.
pub struct Examined {
    device: Loop,
    size: u64,
    _loops: Loops,
}

impl Deref for Examined {
    type Target = Loop;

    fn deref(&self) -> &Loop {
        &self.device
    }
}

impl Examined {
    /// None if this process can't make one; two more devices may be made on it.
    pub fn make(test: &str, options: &[&str], size: u64) -> Option<Self> {
        let loops = Loops::take(test, 3)?;
        Some(Self { device: loops.in_memory(size >> 20, options), size, _loops: loops })
    }

    pub fn blank(test: &str) -> Option<Self> {
        Self::make(test, &[], SIZE)
    }

    pub fn run(&self, program: &str, arguments: &[&str]) {
        run(program, &[arguments, &[&self.path]].concat());
    }

    pub fn hash(&self) -> u32 {
        // Read through the device, so that content in its page cache counts too.
        let device = File::open(&self.path).unwrap();
        let mut bytes = vec![0; self.size as usize];
        device.read_exact_at(&mut bytes, 0).unwrap();
        crc32c::crc32c(&bytes)
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) {
        let device = OpenOptions::new().write(true).open(&self.path).unwrap();
        device.write_all_at(bytes, offset).unwrap();
        device.sync_all().unwrap();
    }

    pub fn examine(&self) -> stacktune::testing::error::Result<Examination> {
        guard::examine(&self.path, &facts(), 0, &ByMagic)
    }

    /// Refused for a reason that contains `why`, with unchanged content.
    #[track_caller]
    pub fn refused(&self, consent: &Consent, why: &str) {
        let before = self.hash();
        let error = match self.examine().and_then(|found| guard::permit(found, consent)) {
            Ok(permit) => panic!("permitted: {permit:?}"),
            Err(error) => error,
        };
        assert_eq!(error.exit_status(), 3, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(self.hash(), before, "the content changed");
    }

    /// Refused without consent, permitted with it, and blank after the wipe.
    #[track_caller]
    pub fn needs_consent(&self, content: &str) {
        self.refused(&Consent::default(), content);
        let consent = Consent::named(std::slice::from_ref(&self.path), &facts()).unwrap();
        let before = self.hash();
        let permit = guard::permit(self.examine().unwrap(), &consent).unwrap();
        let claim = permit.open().unwrap();
        assert_eq!(self.hash(), before, "opening alone writes nothing");
        claim.wipe().unwrap();
        drop(claim);
        let mut edge = vec![0; 1 << 20];
        let device = File::open(&self.path).unwrap();
        for offset in [0, self.size - edge.len() as u64] {
            device.read_exact_at(&mut edge, offset).unwrap();
            assert!(edge.iter().all(|byte| *byte == 0), "the edge at {offset} is not zero");
        }
        let left = Command::new("wipefs").args(["--no-act", &self.path]).output().unwrap();
        assert!(left.stdout.is_empty(), "{}", String::from_utf8_lossy(&left.stdout));
    }
}

/// Runs a command at the end of a test, even a failed one.
pub struct Undo(Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        let _ = Command::new(&self.0[0]).args(&self.0[1..]).status();
    }
}

pub fn undo(words: &[&str]) -> Undo {
    Undo(words.iter().map(ToString::to_string).collect())
}

pub fn facts() -> Facts {
    Facts::read(Path::new("/"))
}

#[test]
fn a_blank_device_is_permitted_and_claimed() {
    let Some(device) = Examined::blank("a_blank_device_is_permitted_and_claimed") else { return };
    let found = device.examine().unwrap();
    assert!(!found.needs_consent() && !found.own_fill);
    let claim = guard::permit(found, &Consent::default()).unwrap().open().unwrap();
    // While it is claimed, no other run or mount can take it.
    let error = device.examine().unwrap_err();
    assert!(error.what.contains("held exclusively by another program"), "{error}");
    claim.wipe().unwrap();
    claim.reopen(libc::O_DIRECT).unwrap();
    drop(claim);
    assert!(device.examine().is_ok());
}

#[test]
fn a_mounted_device_is_refused_even_with_consent() {
    let Some(device) = Examined::blank("a_mounted_device_is_refused_even_with_consent") else { return };
    device.run("mkfs.ext4", &["-q", "-F"]);
    let at = device.dir.path().join("a mount");
    std::fs::create_dir(&at).unwrap();
    let at = at.to_str().unwrap();
    run("mount", &["-o", "ro", &device.path, at]);
    let _unmount = undo(&["umount", at]);
    device.refused(&everything(&device), "mounted at");
    let seen = guard::examine_read_only(&device.path, &facts()).unwrap();
    assert!(seen.mounted);
    assert_eq!(seen.flags, [format!("mounted at {at}")]);
}

#[test]
fn a_device_with_a_mounted_partition_is_refused() {
    let test = "a_device_with_a_mounted_partition_is_refused";
    let Some(device) = Examined::make(test, &["--partscan"], SIZE) else { return };
    run("addpart", &[&device.path, "1", "2048", "16384"]);
    let partition = format!("{}p1", device.path);
    run("mkfs.ext4", &["-q", "-F", &partition]);
    // A file system inside a partition counts, mounted or not.
    device.refused(&Consent::default(), &format!("ext4 signature at byte 1080 of {partition}"));
    let at = device.dir.path().join("mount");
    std::fs::create_dir(&at).unwrap();
    let at = at.to_str().unwrap();
    run("mount", &["-o", "ro", &partition, at]);
    let unmount = undo(&["umount", at]);
    device.refused(&everything(&device), &format!("mounted at {at} ({}", &partition["/dev/".len()..]));
    drop(unmount);
    // A partition's name gives no consent for the whole device, and is not a valid target.
    let error = Consent::named(std::slice::from_ref(&partition), &facts()).unwrap_err();
    assert!(error.what.contains("is a partition"), "{error}");
    assert!(guard::examine(&partition, &facts(), 0, &ByMagic).is_err());
    device.needs_consent("ext4 signature");
    assert!(!Path::new(&partition).exists(), "the kernel still knows the partition");
}

#[test]
fn a_swapped_on_device_is_refused() {
    let Some(device) = Examined::blank("a_swapped_on_device_is_refused") else { return };
    device.run("mkswap", &["-q"]);
    device.run("swapon", &[]);
    let _off = undo(&["swapoff", &device.path]);
    device.refused(&everything(&device), "swapped on");
}

#[test]
fn a_read_only_device_is_refused() {
    let Some(device) = Examined::make("a_read_only_device_is_refused", &["--read-only"], SIZE) else {
        return;
    };
    device.refused(&everything(&device), "is read-only");
}

#[test]
fn a_device_that_is_too_small_is_refused() {
    let Some(device) = Examined::blank("a_device_that_is_too_small_is_refused") else { return };
    let error = guard::examine(&device.path, &facts(), SIZE + 1, &ByMagic).unwrap_err();
    assert_eq!(error.exit_status(), 3);
    assert!(error.what.contains("too small"), "{error}");
    assert!(guard::examine(&device.path, &facts(), SIZE, &ByMagic).is_ok());
}

#[test]
fn a_device_opened_exclusively_elsewhere_is_refused() {
    let Some(device) = Examined::blank("a_device_opened_exclusively_elsewhere_is_refused") else { return };
    let holder = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.path).unwrap();
    device.refused(&everything(&device), "held exclusively by another program");
    drop(holder);
    assert!(device.examine().is_ok());
}

#[test]
fn who_only_glances_at_a_device_is_waited_for() {
    let Some(device) = Examined::blank("who_only_glances_at_a_device_is_waited_for") else { return };
    let found = device.examine().unwrap();
    let holder = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.path).unwrap();
    let glance = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(holder);
    });
    guard::permit(found, &Consent::default()).unwrap().open().unwrap();
    glance.join().unwrap();
}

#[test]
fn a_device_that_another_process_writes_to_is_refused() {
    let Some(device) = Examined::blank("a_device_that_another_process_writes_to_is_refused") else { return };
    let script = format!("exec 3<>{}; echo ready; read line", device.path);
    let mut writer = Command::new("sh")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(writer.stdout.as_mut().unwrap(), &mut ready).unwrap();
    device.refused(&everything(&device), "has it open for writing");
    drop(writer.stdin.take());
    writer.wait().unwrap();
    assert!(device.examine().is_ok());
}

#[test]
fn a_device_under_another_loop_device_is_refused() {
    let Some(device) = Examined::blank("a_device_under_another_loop_device_is_refused") else { return };
    let output = Command::new("losetup").args(["--find", "--show", &device.path]).output().unwrap();
    let upper = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let detach = undo(&["losetup", "--detach", &upper]);
    device.refused(&everything(&device), &format!("part of {}", &upper["/dev/".len()..]));
    let error = guard::examine(&upper, &facts(), 0, &ByMagic).unwrap_err();
    assert!(error.what.contains("is built on"), "{error}");
    drop(detach);
    // Other tests' losetup may be holding it open.
    wait_for("a free device", || device.examine().ok());
}

#[test]
fn two_loop_devices_on_one_file_are_refused() {
    let Some(device) = Examined::blank("two_loop_devices_on_one_file_are_refused") else { return };
    let file = device.backing.to_str().unwrap();
    let output = Command::new("losetup").args(["--find", "--show", file]).output().unwrap();
    let other = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let _detach = undo(&["losetup", "--detach", &other]);
    device.refused(&everything(&device), "another loop device on");
}

/// Another loop device on `path`, removed when the returned guard is dropped.
fn loop_on(path: &Path) -> (String, Undo) {
    let output = Command::new("losetup").args(["--find", "--show"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let name = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let detach = undo(&["losetup", "--detach", &name]);
    (name, detach)
}

#[test]
fn a_file_mounted_through_a_loop_device_on_another_name_of_it_is_refused() {
    let test = "a_file_mounted_through_a_loop_device_on_another_name_of_it_is_refused";
    let Some(device) = Examined::blank(test) else { return };
    let link = device.dir.path().join("link");
    std::fs::hard_link(&device.backing, &link).unwrap();
    let bound = device.dir.path().join("bound");
    File::create(&bound).unwrap();
    run("mount", &["--bind", device.backing.to_str().unwrap(), bound.to_str().unwrap()]);
    let _unbind = undo(&["umount", bound.to_str().unwrap()]);
    let at = device.dir.path().join("mount");
    std::fs::create_dir(&at).unwrap();
    let at = at.to_str().unwrap();
    for name in [&link, &bound] {
        let (other, _detach) = loop_on(name);
        run("mkfs.ext4", &["-q", "-F", &other]);
        run("mount", &["-o", "ro", &other, at]);
        let _unmount = undo(&["umount", at]);
        device
            .refused(&everything(&device), &format!("{} is another loop device on", &other["/dev/".len()..]));
    }
}

#[test]
fn a_device_under_a_loop_device_by_a_node_elsewhere_is_refused() {
    let test = "a_device_under_a_loop_device_by_a_node_elsewhere_is_refused";
    let Some(device) = Examined::blank(test) else { return };
    // Not in memory: such file systems may be mounted without device nodes.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let node = dir.path().join("node");
    let number = std::os::unix::fs::MetadataExt::rdev(&std::fs::metadata(&device.path).unwrap());
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &node, rustix::fs::FileType::BlockDevice, mode, number).unwrap();
    if File::open(&node).is_err() {
        common::skip(test, "needs device nodes on a disk");
        return;
    }
    let (upper, _detach) = loop_on(&node);
    device.refused(&everything(&device), &format!("part of {}", &upper["/dev/".len()..]));
}

#[test]
fn a_device_whose_file_system_is_in_use_without_a_listed_mount_is_reported() {
    let test = "a_device_whose_file_system_is_in_use_without_a_listed_mount_is_reported";
    let Some(device) = Examined::blank(test) else { return };
    device.run("mkfs.ext4", &["-q", "-F"]);
    let at = device.dir.path().join("mount");
    std::fs::create_dir(&at).unwrap();
    let dir = at.to_str().unwrap();
    run("mount", &[&device.path, dir]);
    let file = at.join("file");
    File::create(&file).unwrap().set_len(1 << 20).unwrap();
    // A writable file system may write at any time, but the content has to stay unchanged.
    run("mount", &["-o", "remount,ro", dir]);
    let (upper, _detach) = loop_on(&file);
    run("umount", &["--lazy", dir]);
    let name = &upper["/dev/".len()..];
    device.refused(&everything(&device), &format!("{name} is a loop device on a file of its file system"));
}

#[test]
fn the_device_of_the_root_file_system_is_the_systems_own() {
    let facts = facts();
    let is_root = |device: &&stacktune::testing::host::Device| {
        device.usage.iter().any(|usage| usage.to_string().contains("own drive: holds /"))
    };
    let Some(device) = facts.devices.iter().find(is_root) else {
        let test = "the_device_of_the_root_file_system_is_the_systems_own";
        return common::skip(test, "needs a root file system on a device");
    };
    let consent = Consent::named(std::slice::from_ref(&device.name), &facts).unwrap();
    let error =
        guard::examine(&device.name, &facts, 0, &ByMagic).and_then(|found| guard::permit(found, &consent));
    let error = error.unwrap_err();
    assert_eq!(error.exit_status(), 3);
    assert!(error.what.contains("the system's own drive"), "{error}");
}
