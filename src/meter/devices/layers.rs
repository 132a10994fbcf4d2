//! Bytes written and space used below the load: the block layer's counters of a target's devices, and the space
//! in use on the file system.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::block::{Device, DriveIos, Passed};
use super::member::Member;
use crate::host::Levels;

/// Reads these counters.
#[derive(Debug, Default)]
pub struct LayerProbe {
    top: Vec<Device>,
    /// None if they are the devices at the top: read a moment later, they would seem to have written more.
    bottom: Option<Vec<Device>>,
    capacity_bytes: u64,
    files: Vec<PathBuf>,
    /// Whether only the target uses the file system.
    own: bool,
}

/// What these counters say about a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LayerFigures {
    /// Bytes written to the devices at the top; none if there are none, or one can't be read.
    pub top_bytes: Option<u64>,
    /// Bytes written to the drives.
    pub drives_bytes: Option<u64>,
    /// Bytes read from both.
    pub read: ReadBelow,
    /// The drives' reads and writes.
    pub drive_ios: Option<DriveIos>,
    /// Bytes of all drives.
    pub capacity_bytes: Option<u64>,
    /// Bytes now in use on the file system.
    pub used_bytes: Option<u64>,
}

/// Bytes read below the load in a window, others' included; for writes see [`super::super::written::Written`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBelow {
    /// From the devices at the top.
    pub top_bytes: Option<u64>,
    /// From the drives.
    pub drives_bytes: Option<u64>,
}

impl ReadBelow {
    /// Whether neither is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The devices below these members, each once.
pub fn levels(members: &[Member]) -> Levels {
    let mut all = Levels::default();
    for member in members {
        all.join(match (member.device, &member.path) {
            (Some(number), _) => Levels::below(Path::new("/"), number),
            (None, Some(path)) => Levels::below_path(path),
            (None, None) => Levels::default(),
        });
    }
    all
}

impl LayerProbe {
    /// Starts counting for the devices of these members. `own` says whether only the target uses their file
    /// system, if there is one.
    pub fn open(levels: &Levels, members: &[Member], own: bool) -> Self {
        let counted = |devices: &[crate::host::LevelDevice]| -> Vec<Device> {
            devices.iter().map(|device| Device::open(device.stat.clone())).collect()
        };
        let files = members.iter().filter(|member| member.device.is_none());
        Self {
            top: counted(&levels.top),
            bottom: (levels.bottom != levels.top).then(|| counted(&levels.bottom)),
            capacity_bytes: levels.drives.iter().map(|drive| drive.size_bytes).sum(),
            files: files.filter_map(|member| member.path.clone()).collect(),
            own,
        }
    }

    /// The bytes since the last call, and what is in use now.
    pub fn window(&mut self) -> LayerFigures {
        let top = passed(&mut self.top);
        let drives = self.bottom.as_mut().map_or(top, |bottom| passed(bottom));
        LayerFigures {
            top_bytes: top.map(|top| top.written_bytes),
            drives_bytes: drives.map(|drives| drives.written_bytes),
            read: ReadBelow {
                top_bytes: top.map(|top| top.read_bytes),
                drives_bytes: drives.map(|drives| drives.read_bytes),
            },
            drive_ios: drives.map(|drives| drives.ios),
            capacity_bytes: Some(self.capacity_bytes).filter(|bytes| *bytes > 0),
            used_bytes: if self.own { in_use(&self.files) } else { of_files(&self.files) },
        }
    }
}

fn passed(devices: &mut [Device]) -> Option<Passed> {
    // Read all of them even if one fails, as the next window starts here for each.
    let all: Vec<_> = devices.iter_mut().map(Device::passed).collect();
    let both = |sum: Option<Passed>, more: Option<Passed>| Some(sum?.and(more?));
    all.into_iter().reduce(both).flatten()
}

/// The space in use on the file systems of these files.
fn in_use(files: &[PathBuf]) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut seen = Vec::new();
    let mut bytes = None;
    for file in files {
        let device = std::fs::metadata(file).ok()?.dev();
        if seen.contains(&device) {
            continue;
        }
        seen.push(device);
        let used = rustix::fs::statvfs(file).ok()?;
        *bytes.get_or_insert(0) += used.f_blocks.saturating_sub(used.f_bfree) * used.f_frsize;
    }
    bytes
}

/// The space that these files occupy; for a folder, everything in it.
pub fn of_files(files: &[PathBuf]) -> Option<u64> {
    const BLOCK_BYTES: u64 = 512; // of this count, whatever the file system's blocks are
    let blocks: Option<u64> = files.iter().map(|file| blocks_of(file)).sum();
    blocks.filter(|_| !files.is_empty()).map(|blocks| blocks * BLOCK_BYTES)
}

fn blocks_of(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if !metadata.is_dir() {
        return Some(metadata.blocks());
    }
    // A storage engine can remove files at any time; one that is gone occupies nothing.
    let inside = std::fs::read_dir(path).ok()?.flatten();
    Some(metadata.blocks() + inside.filter_map(|entry| blocks_of(&entry.path())).sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::LevelDevice;
    use std::fs;
    use std::io::Write as _;

    #[test]
    fn each_level_is_the_sum_of_its_devices() {
        let dir = tempfile::tempdir().unwrap();
        let stat = |name: &str| dir.path().join(name);
        let set = |name: &str, sectors: u64| {
            fs::write(stat(name), format!("1 1 {sectors} 1 {sectors} 1 {sectors} 1{sectors} 0 0 0\n"))
                .unwrap();
        };
        let device = |name: &str| LevelDevice { name: name.into(), stat: stat(name) };
        let levels =
            Levels { top: vec![device("md0")], bottom: vec![device("a"), device("b")], drives: Vec::new() };
        ["md0", "a", "b"].iter().for_each(|name| set(name, 100));
        let mut probe = LayerProbe::open(&levels, &[], true);
        set("md0", 110);
        set("a", 110);
        set("b", 111);
        let used = probe.window();
        assert_eq!((used.top_bytes, used.drives_bytes), (Some(10 * 512), Some(21 * 512)));
        assert_eq!((used.read.top_bytes, used.read.drives_bytes), (Some(10 * 512), Some(21 * 512)));
        assert_eq!(used.drive_ios, Some(DriveIos { ios: 21, ms: 21 }), "of all drives together");
        assert_eq!((used.capacity_bytes, used.used_bytes), (None, None));
        fs::remove_file(stat("b")).unwrap();
        let without = probe.window();
        assert_eq!((without.drives_bytes, without.drive_ios), (None, None), "one of them is gone");
        assert_eq!(LayerProbe::default().window(), LayerFigures::default());
    }

    #[test]
    fn use_is_that_of_the_file_system_or_of_the_files() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("data");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let member = Member { name: "data".into(), device: None, path: Some(path.clone()) };
        let of = |own| LayerProbe::open(&Levels::default(), std::slice::from_ref(&member), own).window();
        let files = of(false).used_bytes.unwrap();
        assert!((1 << 20..2 << 20).contains(&files), "{files}");
        // As `df` shows it; other programs may change it meanwhile.
        let out = std::process::Command::new("df")
            .args(["--block-size=1", "--output=used"])
            .arg(&path)
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let df: u64 = text.lines().nth(1).unwrap().trim().parse().unwrap();
        let folder = Member { name: "pairs".into(), device: None, path: Some(dir.path().to_owned()) };
        let below = dir.path().join("below");
        fs::create_dir(&below).unwrap();
        fs::copy(&path, below.join("more")).unwrap();
        let used = LayerProbe::open(&Levels::default(), &[folder], false).window().used_bytes.unwrap();
        assert!((2 << 20..4 << 20).contains(&used), "{used} in the folder and the one below it");
        let own = of(true).used_bytes.unwrap();
        assert!(own.abs_diff(df) <= df / 10 + (64 << 20), "{own} is not {df}");
    }
}
