//! The block layer's own count of bytes, to be compared with the workers'.

use std::path::{Path, PathBuf};

const SECTOR_BYTES: u64 = 512; // of these statistics, whatever the device's blocks are

/// Reads what the block layer counts of the members that are devices.
#[derive(Debug, Default)]
pub struct BlockProbe {
    members: Vec<Option<Device>>,
}

/// A device's counters.
#[derive(Debug)]
pub(super) struct Device {
    stat: PathBuf,
    /// Read and written sectors at the last reading; none while it can't be read.
    last: Option<(u64, u64)>,
}

impl BlockProbe {
    /// Begins to count: the device number (major, minor) of each member that is a device, in order,
    /// under a root (`/`).
    pub fn open(root: &Path, members: &[Option<(u32, u32)>]) -> Self {
        let device = |(major, minor): (u32, u32)| {
            Device::open(root.join(format!("sys/dev/block/{major}:{minor}/stat")))
        };
        Self { members: members.iter().map(|number| number.map(device)).collect() }
    }

    /// Bytes read and written since the last call, by member; none for files and where unknown.
    pub fn window(&mut self) -> Vec<Option<(u64, u64)>> {
        self.members.iter_mut().map(|device| device.as_mut().and_then(Device::window)).collect()
    }
}

impl Device {
    /// Begins to count, by a `stat` of sysfs.
    pub(super) fn open(stat: PathBuf) -> Self {
        Self { last: sectors(&stat), stat }
    }

    /// Bytes read and written since the last call.
    pub(super) fn window(&mut self) -> Option<(u64, u64)> {
        let now = sectors(&self.stat);
        let last = std::mem::replace(&mut self.last, now);
        let ((read, written), last) = (now?, last?);
        // They start over if another device has taken the name.
        let bytes = |now: u64, last: u64| now.checked_sub(last)?.checked_mul(SECTOR_BYTES);
        Some((bytes(read, last.0)?, bytes(written, last.1)?))
    }
}

/// Sectors read and written, from the third and seventh field; none if counting is switched off.
fn sectors(stat: &Path) -> Option<(u64, u64)> {
    if !counts(stat) {
        return None;
    }
    let text = std::fs::read_to_string(stat).ok()?;
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let read = fields.nth(2)?.ok()?;
    let written = fields.nth(3)?.ok()?;
    Some((read, written))
}

/// Whether a device's I/O is counted: by its switch, or for a partition by that of its disk.
fn counts(stat: &Path) -> bool {
    let Some(dir) = stat.parent() else { return true };
    let switch = |path: &str| std::fs::read_to_string(dir.join(path)).ok();
    let counts = switch("queue/iostats").or_else(|| switch("../queue/iostats"));
    counts.is_none_or(|counts| counts.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn bytes_are_counted_since_the_last_call() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/dev/block/259:3");
        fs::create_dir_all(&folder).unwrap();
        let write = |read: u64, written: u64| {
            let line = format!("   10  1  {read}  5  20  2  {written} 9 0 7 8 0 0 0 0 3 1\n");
            fs::write(folder.join("stat"), line).unwrap();
        };
        write(1000, 50);
        let mut probe = BlockProbe::open(root.path(), &[None, Some((259, 3)), Some((259, 4))]);
        write(1008, 50);
        assert_eq!(probe.window(), [None, Some((4096, 0)), None]);
        write(1008, 51);
        assert_eq!(probe.window(), [None, Some((0, 512)), None]);
        let switch = |on: &str| {
            fs::create_dir_all(folder.join("queue")).unwrap();
            fs::write(folder.join("queue/iostats"), on).unwrap();
        };
        switch("0\n");
        assert_eq!(probe.window(), [None, None, None], "what is not counted is not zero");
        switch("1\n");
        assert_eq!(probe.window(), [None, None, None], "nor are bytes counted meanwhile");
        write(1008, 52);
        assert_eq!(probe.window(), [None, Some((0, 512)), None]);
        fs::remove_file(folder.join("stat")).unwrap();
        assert_eq!(probe.window(), [None, None, None]);
    }

    #[test]
    fn a_device_that_came_back_is_counted_from_then_on() {
        let root = tempfile::tempdir().unwrap();
        let mut probe = BlockProbe::open(root.path(), &[Some((7, 0))]);
        let folder = root.path().join("sys/dev/block/7:0");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stat"), "1 1 8000 1 1 1 80 1 0 0 0").unwrap();
        assert_eq!(probe.window(), [None]);
        fs::write(folder.join("stat"), "1 1 8001 1 1 1 80 1 0 0 0").unwrap();
        assert_eq!(probe.window(), [Some((512, 0))]);
    }
}
