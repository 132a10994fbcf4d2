//! Loop devices and mounts that go with the test, even a failed one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The turn of one test at the loop devices: there are few.
pub struct Loops {
    _turn: File,
}

/// A loop device over a file of its own, with direct I/O.
pub struct Loop {
    pub path: String,
    pub backing: PathBuf,
    _dir: TempDir,
}

/// A mounted device.
pub struct Mount {
    pub at: TempDir,
}

impl Loops {
    /// None, with the reason told, where this process can't make loop devices.
    pub fn take(test: &str) -> Option<Self> {
        if !super::is_root() {
            super::skip(test, "needs root for loop devices");
            return None;
        }
        let turn = File::create(std::env::temp_dir().join("stacktune-test-loop-devices")).unwrap();
        turn.lock().unwrap();
        Some(Self { _turn: turn })
    }

    /// A device whose content is made by `prepare`.
    #[allow(clippy::unused_self)] // whoever makes one has its turn
    pub fn device(&self, size_mib: u64, prepare: impl FnOnce(&Path)) -> Loop {
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let backing = dir.path().join("backing");
        File::create(&backing).unwrap().set_len(size_mib << 20).unwrap();
        prepare(&backing);
        let file = backing.to_str().unwrap();
        let path = run("losetup", &["--find", "--show", "--direct-io=on", file]);
        Loop { path, backing, _dir: dir }
    }

    /// A device of zeros.
    pub fn blank(&self, size_mib: u64) -> Loop {
        self.device(size_mib, |_| {})
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

    /// Its count of written bytes as it is when at least so many windows of a recording are there, and how
    /// many there are.
    pub fn written_by_window(&self, recording: &Path, least: usize) -> (usize, u64) {
        let windows = || {
            let text = std::fs::read_to_string(recording.join("windows.jsonl"));
            text.map_or(0, |text| text.matches('\n').count())
        };
        super::program::wait_for("windows", || {
            let before = windows();
            let (_, written) = self.block_bytes();
            // A window may have ended between the two.
            (before >= least && windows() == before).then_some((before, written))
        })
    }

    /// A profile of this device alone.
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
        let _ = Command::new("umount").arg(self.at.path()).status();
    }
}

/// Runs a program that must succeed; its output without the line's end.
#[track_caller]
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether a program is there.
pub fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
