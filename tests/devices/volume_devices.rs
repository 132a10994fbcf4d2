//! Volumes on loop devices and on a Btrfs of its own: tests that need root.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::common::devices::{Loop, Loops, Mount, run};
use stacktune::testing::error::Kind;
use stacktune::testing::host::Feature;
use stacktune::testing::load::volume::{MemberSource, Request, Volume, is_ours_at};
use stacktune::testing::units::MIB;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// A member of a volume.
struct Member {
    path: PathBuf,
    size_bytes: u64,
    device: Loop,
}

impl Member {
    fn new(loops: &Loops, size_mib: u64) -> Self {
        let device = loops.blank(size_mib);
        Self { path: PathBuf::from(&device.path), size_bytes: size_mib * MIB, device }
    }

    fn open(&self, read_only: bool) -> File {
        let flags = if read_only { 0 } else { libc::O_EXCL };
        let mut options = OpenOptions::new();
        options.read(true).write(!read_only).custom_flags(flags);
        // A program that a concurrent test starts holds all descriptors open here until it is executed.
        let patience_ends = Instant::now() + Duration::from_secs(5);
        loop {
            match options.open(&self.path) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < patience_ends => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                opened => return opened.unwrap(),
            }
        }
    }

    fn source(&self, read_only: bool) -> MemberSource {
        let file = self.open(read_only);
        MemberSource::Device { path: self.path.clone(), file, size_bytes: self.size_bytes }
    }
}

fn open(members: &[&Member]) -> stacktune::testing::error::Result<Volume> {
    Volume::open(Request::of_devices(members.iter().map(|member| member.source(false)).collect()))
}

#[test]
fn devices_have_header_wal_and_data_and_keep_their_fill_in_any_order() {
    let Some(loops) = Loops::take("devices_have_header_wal_and_data_and_keep_their_fill_in_any_order", 2)
    else {
        return;
    };
    let (a, b) = (Member::new(&loops, 32), Member::new(&loops, 40));
    let mut volume = open(&[&a, &b]).unwrap();
    assert!(volume.facts.devices && volume.facts.direct == Feature::Present);
    assert_eq!(volume.facts.medium, "block device");
    assert_eq!(volume.facts.quietly_buffered, None);
    // The smallest member counts: 31 MiB after the header, 20% of it for the WAL.
    assert_eq!((volume.wal.extent_bytes, volume.data.extent_bytes), (6 * MIB, 25 * MIB));
    assert_eq!((volume.wal.extents[1].offset_bytes, volume.data.extents[1].offset_bytes), (MIB, 7 * MIB));
    let outcome = volume.fill(&mut |_| {}, &GO_ON).unwrap();
    assert_eq!((outcome.written_bytes, outcome.complete), (62 * MIB, true));
    let report = volume.verify(&mut |_| {}, &GO_ON).unwrap();
    assert!(report.is_clean(), "{report}");
    drop(volume);

    let volume = open(&[&b, &a]).unwrap();
    assert!(volume.missing_fill().is_none());
    assert_eq!(volume.data.extents[0].path, a.path);
    assert_eq!(volume.data.extents[0].member, 1);
    assert!(volume.verify(&mut |_| {}, &GO_ON).unwrap().is_clean());
    let mut sector = [0; 512];
    for at in [0, MIB, 20 * MIB, 32 * MIB - 512] {
        a.open(true).read_exact_at(&mut sector, at).unwrap();
        assert!(is_ours_at(&sector, at), "{at}");
    }
    // The rest of the larger device was never touched.
    b.open(true).read_exact_at(&mut sector, 32 * MIB).unwrap();
    assert_eq!(sector, [0; 512]);
}

#[test]
fn a_device_is_locked_and_serves_as_the_wal_alone() {
    let Some(loops) = Loops::take("a_device_is_locked_and_serves_as_the_wal_alone", 2) else { return };
    let (data, wal) = (Member::new(&loops, 16), Member::new(&loops, 8));
    let request =
        || Request { wal: Some(wal.source(false)), ..Request::of_devices(vec![data.source(false)]) };
    let mut volume = Volume::open(request()).unwrap();
    assert_eq!((volume.wal.bytes(), volume.data.bytes()), (7 * MIB, 12 * MIB));
    assert_eq!(volume.wal.extents[0].member, 1);
    volume.fill(&mut |_| {}, &GO_ON).unwrap();
    assert!(volume.verify(&mut |_| {}, &GO_ON).unwrap().is_clean());
    let second =
        MemberSource::Device { path: data.path.clone(), file: data.open(true), size_bytes: data.size_bytes };
    let reader = Request { read_only: true, ..Request::of_devices(vec![second]) };
    assert_eq!(Volume::open(reader).unwrap_err().kind, Kind::Failed);
    drop(volume);
    // Without a WAL of its own the reserved region is used, and it alone still has to be filled.
    let volume = open(&[&data]).unwrap();
    assert_eq!(volume.missing_fill().unwrap().bytes, 3 * MIB);
}

#[test]
fn an_unfilled_device_is_read_whole_and_stays_as_it_is() {
    let Some(loops) = Loops::take("an_unfilled_device_is_read_whole_and_stays_as_it_is", 1) else { return };
    let device = Member::new(&loops, 8);
    let source = device.source(true);
    let request =
        Request { read_only: true, mounted: Some("/mnt".into()), ..Request::of_devices(vec![source]) };
    let volume = Volume::open(request).unwrap();
    assert_eq!((volume.data.bytes(), volume.wal.bytes()), (8 * MIB, 0));
    assert_eq!((volume.facts.mounted.as_deref(), volume.facts.read_only), (Some("/mnt"), true));
    assert!(!volume.notes.is_empty());
    assert!(fs::read(&device.device.backing).unwrap().iter().all(|&byte| byte == 0));
}

#[test]
fn btrfs_is_flagged_unless_copy_on_write_is_off() {
    let Some(loops) = Loops::take("btrfs_is_flagged_unless_copy_on_write_is_off", 1) else { return };
    let device = loops.device(256, |file| drop(run("mkfs.btrfs", &["--quiet", file.to_str().unwrap()])));
    let mount = Mount::of(&device, "rw");
    for (name, cow) in [("cow", true), ("nocow", false)] {
        let dir = mount.at.path().join(name);
        fs::create_dir(&dir).unwrap();
        if !cow {
            run("chattr", &["+C", dir.to_str().unwrap()]);
        }
        let mut volume = Volume::open(Request::of_files(&dir, 1, 8 * MIB)).unwrap();
        assert_eq!(volume.facts.medium, "Btrfs");
        assert_eq!(volume.facts.quietly_buffered.is_some(), cow, "{:?}", volume.facts);
        volume.fill(&mut |_| {}, &GO_ON).unwrap();
        assert!(volume.verify(&mut |_| {}, &GO_ON).unwrap().is_clean());
    }
}
