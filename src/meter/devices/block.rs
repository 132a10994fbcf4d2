//! The block layer's own counts: bytes, to be compared with the workers', and the time that I/Os took.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const SECTOR_BYTES: u64 = 512; // of these statistics, whatever the device's blocks are
/// The index of a device's flush count in its `stat`; the flushes' time follows it.
const FLUSHES: usize = 15;

/// Reads the block layer's counts for the members that are devices.
#[derive(Debug, Default)]
pub struct BlockProbe {
    members: Vec<Option<Device>>,
}

/// Reads and writes that a device completed, and their total time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveIos {
    /// Reads and writes as they reached the device, after the kernel split and merged them.
    pub ios: u64,
    /// Milliseconds from the start of each to its end, including its time in the kernel's queue.
    pub ms: u64,
}

impl DriveIos {
    /// The mean latency in nanoseconds, like `r_await` and `w_await` of `iostat -x`, but for reads and writes
    /// together; none without any.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.ios > 0).then(|| self.ms as f64 * 1e6 / self.ios as f64)
    }
}

/// A device's I/O in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::meter) struct Passed {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub ios: DriveIos,
    /// Flushes, which are counted only for whole drives, not partitions; none before Linux 5.5, which lacks them.
    pub flushes: Option<DriveIos>,
}

impl DriveIos {
    fn and(self, other: Self) -> Self {
        Self { ios: self.ios + other.ios, ms: self.ms + other.ms }
    }
}

impl Passed {
    /// The sum of both devices' counts.
    pub fn and(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            ios: self.ios.and(other.ios),
            flushes: self.flushes.zip(other.flushes).map(|(one, other)| one.and(other)),
        }
    }
}

/// A device's counters.
#[derive(Debug)]
pub(in crate::meter) struct Device {
    stat: PathBuf,
    /// At the last reading; none while they can't be read.
    last: Option<Counters>,
}

/// A device's counts.
#[derive(Debug, Clone, Copy)]
struct Counters {
    read: Direction,
    written: Direction,
    /// Flushes, for which no sectors are counted.
    flushed: Option<Direction>,
}

/// The counts of its reads, its writes or its flushes.
#[derive(Debug, Clone, Copy)]
struct Direction {
    ios: u64,
    sectors: u64,
    /// The kernel prints only its lower 32 bits: with a deep queue it wraps after some hours.
    ms: u32,
}

impl BlockProbe {
    /// Starts counting for each member that is a device, in order, by its number (major, minor),
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
    /// Starts counting from a `stat` file of sysfs.
    pub(in crate::meter) fn open(stat: PathBuf) -> Self {
        Self { last: counters(&stat), stat }
    }

    /// Bytes read and written since the last call.
    pub(in crate::meter) fn window(&mut self) -> Option<(u64, u64)> {
        self.passed().map(|passed| (passed.read_bytes, passed.written_bytes))
    }

    /// Its I/O since the last call.
    pub(in crate::meter) fn passed(&mut self) -> Option<Passed> {
        let now = counters(&self.stat);
        let last = std::mem::replace(&mut self.last, now);
        let (now, last) = (now?, last?);
        // The counts restart if another device has taken the name.
        let since = |now: Direction, last: Direction| {
            let bytes = now.sectors.checked_sub(last.sectors)?.checked_mul(SECTOR_BYTES)?;
            let ms = u64::from(now.ms.wrapping_sub(last.ms));
            Some((bytes, DriveIos { ios: now.ios.checked_sub(last.ios)?, ms }))
        };
        let (read, written) = (since(now.read, last.read)?, since(now.written, last.written)?);
        let flushes = now.flushed.zip(last.flushed).and_then(|(now, last)| Some(since(now, last)?.1));
        Some(Passed { read_bytes: read.0, written_bytes: written.0, ios: read.1.and(written.1), flushes })
    }
}

/// Its reads and writes, four fields each, and its flushes, the last two fields; none if accounting is switched off.
fn counters(stat: &Path) -> Option<Counters> {
    if !counts(stat) {
        return None;
    }
    let fields = fields(stat)?;
    let direction = |from: usize| {
        let [ios, _merged, sectors, ms] = fields.get(from..from + 4)? else { return None };
        Some(Direction { ios: *ios, sectors: *sectors, ms: *ms as u32 })
    };
    let flushed = fields.get(FLUSHES..FLUSHES + 2).and_then(|fields| {
        let [ios, ms] = fields else { return None };
        Some(Direction { ios: *ios, sectors: 0, ms: *ms as u32 })
    });
    Some(Counters { read: direction(0)?, written: direction(4)?, flushed })
}

/// The numbers in such a file.
fn fields(stat: &Path) -> Option<Vec<u64>> {
    std::fs::read_to_string(stat).ok()?.split_ascii_whitespace().map(|field| field.parse().ok()).collect()
}

/// Whether a device's I/O is counted: by its `iostats` switch, or for a partition that of its disk.
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
    fn the_mean_latency_is_that_of_reads_and_writes_together() {
        let dir = tempfile::tempdir().unwrap();
        let stat = dir.path().join("stat");
        let write = |text: &str| fs::write(&stat, text).unwrap();
        // The milliseconds of the reads are about to wrap.
        write("100 0 800 4294967290 50 0 400 10 0 0 0 9 9 9 9 9 9");
        let mut device = Device::open(stat.clone());
        write("130 7 1040 24 60 3 480 40 2 0 0 9 9 9 9 9 9");
        let passed = device.passed().unwrap();
        assert_eq!(passed.ios, DriveIos { ios: 40, ms: 60 });
        assert_eq!(passed.ios.mean_ns(), Some(1.5e6));
        assert_eq!(passed.flushes, Some(DriveIos::default()));
        assert_eq!(device.passed().unwrap().ios.mean_ns(), None, "nothing was done");
        // Older kernels lack the flush fields.
        write("130 7 1040 24 60 3 480 40 2 0 0 9 9 9 9");
        assert_eq!(device.passed().unwrap().flushes, None);
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
