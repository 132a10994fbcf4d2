//! Loop devices and mounts that are removed with the test, even a failed one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

/// Loop devices that all tests of a host may have at once; each concurrent test also takes processor time.
const SLOTS: usize = 16;

/// The number of the first slot's device. Lower ones are spare: `losetup --find` of other programs holds the
/// device it tries open for writing, so a device just attached by a test would seem in use.
const FIRST_DEVICE: usize = 32;

/// A program started by a test briefly inherits everything open in its process, including exclusively opened
/// devices, so tests of a process run one at a time. `make test` runs each in a process of its own.
static TURN: Mutex<()> = Mutex::new(());

/// A test's share of the loop devices.
pub struct Loops {
    /// Each with its lock file.
    slots: Vec<(usize, File)>,
    _turn: MutexGuard<'static, ()>,
}

/// A loop device over a file of its own.
pub struct Loop {
    pub path: String,
    pub backing: PathBuf,
    /// The folder of the backing file; a test may put more files there.
    pub dir: TempDir,
}

/// A mounted device.
pub struct Mount {
    pub at: TempDir,
}

impl Loops {
    /// Room for that many devices at once, including those that the program makes. If this process can't make
    /// loop devices, returns none and adds the reason to the list of skips.
    pub fn take(test: &str, count: usize) -> Option<Self> {
        if !super::is_root() {
            super::skip(test, "needs root for loop devices");
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = |name: String| File::create(std::env::temp_dir().join(name)).unwrap();
        // A test waiting for several is not overtaken by tests that want one.
        let queue = open("stacktune-test-loops".into());
        queue.lock().unwrap();
        make_spare_devices();
        let mut slots = Vec::new();
        loop {
            let free = (0..SLOTS).map(|slot| (slot, open(format!("stacktune-test-loop-{slot}"))));
            // A slot whose device somebody still has open is left for later.
            let is_ours =
                |(slot, lock): &(usize, File)| lock.try_lock().is_ok() && is_cleared(FIRST_DEVICE + slot);
            slots.extend(free.filter(is_ours).take(count - slots.len()));
            if slots.len() == count {
                return Some(Self { slots, _turn: turn });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All devices: for measurements that concurrent tests would disturb.
    pub fn alone(test: &str) -> Option<Self> {
        Self::take(test, SLOTS)
    }

    /// A device on a disk with direct I/O; `prepare` makes its content.
    pub fn device(&self, size_mib: u64, prepare: impl FnOnce(&Path)) -> Loop {
        self.over(
            TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            size_mib,
            &["--direct-io=on"],
            prepare,
        )
    }

    /// A device of zeros.
    pub fn blank(&self, size_mib: u64) -> Loop {
        self.device(size_mib, |_| {})
    }

    /// A device in memory if possible: for tests that don't depend on a disk's speed. The options are
    /// `losetup`'s.
    pub fn in_memory(&self, size_mib: u64, options: &[&str]) -> Loop {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        self.over(dir, size_mib, options, |_| {})
    }

    /// A blank device over a file on this file system; it must be dropped before the mount.
    pub fn on(&self, mount: &Mount, size_mib: u64) -> Loop {
        self.over(TempDir::new_in(mount.at.path()).unwrap(), size_mib, &["--direct-io=on"], |_| {})
    }

    /// One of these slots' devices with nothing attached. A device detached while somebody had it open is
    /// released later.
    fn free_device(&self) -> String {
        let free = super::program::wait_for("a free loop device", || {
            self.slots.iter().map(|(slot, _)| FIRST_DEVICE + slot).find(|number| !is_attached(*number))
        });
        format!("/dev/loop{free}")
    }

    fn over(&self, dir: TempDir, size_mib: u64, options: &[&str], prepare: impl FnOnce(&Path)) -> Loop {
        let backing = dir.path().join("backing");
        File::create(&backing).unwrap().set_len(size_mib << 20).unwrap();
        prepare(&backing);
        let path = self.free_device();
        run("losetup", &[options, &[&path, backing.to_str().unwrap()]].concat());
        Loop { path, backing, dir }
    }
}

/// Whether a file is attached to a loop device.
fn is_attached(number: usize) -> bool {
    Path::new(&format!("/sys/block/loop{number}/loop")).exists()
}

/// Unmounts and detaches leftovers of a killed test from a device. The lock's holder may do this: no other
/// test on this host uses the device. Returns whether nothing is attached to it now.
fn is_cleared(number: usize) -> bool {
    if !is_attached(number) {
        return true;
    }
    let device = format!("/dev/loop{number}");
    let partitions = [1, 2].map(|number| format!("{device}p{number}"));
    for mounted in partitions.iter().chain([&device]) {
        // It may not be mounted.
        let _ = Command::new("umount").args(["--all-targets", mounted]).output();
    }
    let _ = Command::new("losetup").args(["--detach", &device]).output();
    !is_attached(number)
}

/// Creates the devices below [`FIRST_DEVICE`], which the kernel makes only on demand.
fn make_spare_devices() {
    for number in (0..FIRST_DEVICE).filter(|number| !Path::new(&format!("/sys/block/loop{number}")).exists())
    {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(4096).unwrap();
        let device = format!("/dev/loop{number}");
        run("losetup", &[&device, file.path().to_str().unwrap()]);
        run("losetup", &["--detach", &device]);
    }
}

impl Loop {
    /// The device's name in /sys/block.
    pub fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }

    /// A checksum of the content behind the device.
    pub fn hash(&self) -> u32 {
        crc32c::crc32c(&std::fs::read(&self.backing).unwrap())
    }

    /// Bytes that the block layer read from and wrote to the device so far.
    pub fn block_bytes(&self) -> (u64, u64) {
        let stat = std::fs::read_to_string(format!("/sys/block/{}/stat", self.name())).unwrap();
        let fields: Vec<u64> = stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
        (fields[2] * 512, fields[6] * 512)
    }

    /// Waits for at least `least` windows of a recording; returns their number, and the bytes written to the
    /// device by then.
    pub fn written_by_window(&self, recording: &Path, least: usize) -> (usize, u64) {
        let windows = || {
            let text = std::fs::read_to_string(recording.join("windows.jsonl"));
            text.map_or(0, |text| text.matches('\n').count())
        };
        super::program::wait_for("windows", || {
            let before = windows();
            let (_, written) = self.block_bytes();
            // A window may have ended between the two reads.
            (before >= least && windows() == before).then_some((before, written))
        })
    }

    /// A profile with only this device as its target.
    pub fn profile(&self) -> String {
        format!("[target]\ndevices = [{:?}]\n{}", self.path, super::recorded::LOAD)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}

impl Mount {
    pub fn of(device: &Loop, options: &str) -> Self {
        let at = tempfile::tempdir().unwrap();
        run("mount", &["-o", options, &device.path, at.path().to_str().unwrap()]);
        Self { at }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A loop device over one of its files is released a moment after it is detached.
        let unmounted = Command::new("umount").arg(self.at.path()).output();
        if !unmounted.is_ok_and(|output| output.status.success()) {
            let _ = Command::new("umount").arg("--lazy").arg(self.at.path()).status();
        }
    }
}

/// Runs a program that must succeed; returns its output without the final newline.
#[track_caller]
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether a program is installed.
pub fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
