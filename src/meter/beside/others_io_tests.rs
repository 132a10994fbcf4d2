//! A fake host: a drive with two partitions, another drive, and an array of both.

use std::fs;

use super::*;

const MB: u64 = 1_000_000;
const SECTOR: u64 = 512;

struct Host {
    root: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let host = Self { root: tempfile::tempdir().unwrap() };
        for folder in ["nvme0n1", "nvme0n1/nvme0n1p1", "nvme0n1/nvme0n1p2", "sda", "md0"] {
            fs::create_dir_all(host.stat(folder).parent().unwrap()).unwrap();
            host.moved(folder, 0, 0);
        }
        for part in ["nvme0n1/nvme0n1p1", "nvme0n1/nvme0n1p2"] {
            fs::write(host.stat(part).with_file_name("partition"), "1\n").unwrap();
        }
        host.own(0, 0, 0);
        host
    }

    fn stat(&self, device: &str) -> PathBuf {
        self.root.path().join("sys/block").join(device).join("stat")
    }

    /// What a device has read and written so far.
    fn moved(&self, device: &str, read: u64, written: u64) {
        let (read, written) = (read * MB / SECTOR, written * MB / SECTOR);
        fs::write(self.stat(device), format!("9 0 {read} 1 9 0 {written} 1 0 0 0\n")).unwrap();
    }

    /// What this process has submitted, made dirty and dropped so far.
    fn own(&self, read: u64, write: u64, dropped: u64) {
        let path = self.root.path().join("proc/self/io");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let [read, write, dropped] = [read, write, dropped].map(|mb| mb * MB);
        let text = format!(
            "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: {read}\nwrite_bytes: {write}\ncancelled_write_bytes: {dropped}\n"
        );
        fs::write(path, text).unwrap();
    }

    fn probe(&self, top: &[&str], bottom: &[&str], files: bool, own: bool) -> OthersIoProbe {
        let device = |name: &&str| LevelDevice {
            name: name.rsplit('/').next().unwrap().to_owned(),
            stat: self.stat(name),
        };
        let levels = Levels {
            top: top.iter().map(device).collect(),
            bottom: bottom.iter().map(device).collect(),
            drives: Vec::new(),
        };
        let member = Member { name: "it".into(), device: (!files).then_some((8, 0)), path: None };
        OthersIoProbe::open(self.root.path(), &levels, &[member], own)
    }
}

/// The drive, and megabytes that others read and wrote on it.
fn shown(found: &[OthersIo]) -> Vec<(&str, Option<u64>, Option<u64>)> {
    let mb = |bytes: Option<u64>| bytes.map(|bytes| (bytes + MB / 2) / MB);
    found.iter().map(|of| (of.drive.as_str(), mb(of.read_bytes), mb(of.written_bytes))).collect()
}

fn at(probe: &mut OthersIoProbe, second: u64, others_mb: Option<u64>) -> Vec<OthersIo> {
    probe.window(second * SECOND_NS, true, others_mb.map(|mb| mb * MB))
}

#[test]
fn the_rest_of_a_drive_is_others_even_beside_a_stack_of_ours() {
    let host = Host::new();
    let mut probe = host.probe(&["md0"], &["nvme0n1/nvme0n1p1", "sda"], false, true);
    host.moved("nvme0n1", 150, 60);
    host.moved("nvme0n1/nvme0n1p1", 100, 50);
    host.moved("sda", 500, 500);
    let found = at(&mut probe, 1, None);
    assert_eq!(shown(&found), [("nvme0n1", Some(50), Some(10))], "the other drive is the target's, whole");
    assert_eq!(found[0].bytes / SECTOR, 210 * MB / SECTOR - 1, "of all that it moved");
    host.moved("nvme0n1/nvme0n1p1", 101, 50);
    host.moved("nvme0n1", 151, 60);
    assert_eq!(shown(&at(&mut probe, 2, None)), [("nvme0n1", Some(0), Some(0))]);
    let mut whole = host.probe(&["sda"], &["sda"], false, true);
    host.moved("sda", 900, 900);
    assert!(at(&mut whole, 3, None).is_empty(), "nobody else can use it");
}

#[test]
fn what_this_process_did_not_submit_is_others() {
    let host = Host::new();
    let mut probe = host.probe(&["sda"], &["sda"], false, false);
    // 30 MB are still in flight, and others moved 20 MB.
    host.own(100, 40, 0);
    host.moved("sda", 90, 40);
    assert_eq!(shown(&at(&mut probe, 1, None)), [("sda", Some(0), Some(0))]);
    host.own(200, 80, 0);
    host.moved("sda", 220, 80);
    assert_eq!(shown(&at(&mut probe, 2, None)), [("sda", Some(20), Some(0))], "later, and not lost");
    host.own(300, 120, 0);
    host.moved("sda", 320, 155);
    assert_eq!(shown(&at(&mut probe, 3, None)), [("sda", Some(0), Some(35))]);
}

#[test]
fn what_the_load_made_dirty_is_its_own_when_it_is_written_back() {
    let host = Host::new();
    let mut probe = host.probe(&["sda"], &["sda"], true, false);
    host.own(0, 500, 0);
    assert_eq!(shown(&at(&mut probe, 1, Some(50))), [("sda", Some(0), Some(0))]);
    host.moved("sda", 0, 450);
    assert_eq!(shown(&at(&mut probe, 2, Some(50))), [("sda", Some(0), Some(0))], "nobody can tell yet");
    // Half of the rest was dropped along with its file.
    host.own(0, 500, 25);
    host.moved("sda", 0, 515);
    assert_eq!(shown(&at(&mut probe, 3, Some(0))), [("sda", Some(0), Some(40))]);
}

#[test]
fn on_a_file_system_others_wrote_what_their_own_counts_account_for() {
    let host = Host::new();
    let mut probe = host.probe(&["nvme0n1/nvme0n1p1"], &["nvme0n1/nvme0n1p1"], true, false);
    let mut second = 0;
    let mut next = |written: u64, others| {
        second += 1;
        host.moved("nvme0n1/nvme0n1p1", 0, written);
        host.moved("nvme0n1", 0, written + 2 * second);
        shown(&at(&mut probe, second, others)).iter().map(|of| of.2).collect::<Vec<_>>()
    };
    assert_eq!(next(10, Some(0)), [Some(2)], "a journal's, for all that is known, and 2 MB beside it");
    assert_eq!(next(30, Some(15)), [Some(17)]);
    assert_eq!(next(60, None), [Some(2)], "unknown on it, and known beside it");
    // What programs made dirty is written back before long.
    assert_eq!(next(60, Some(100)), [Some(2)]);
    assert_eq!(next(130, Some(0)), [Some(72)]);
    for _ in 0..40 {
        assert_eq!(next(130, Some(0)), [Some(2)]);
    }
    assert_eq!(next(160, Some(0)), [Some(2)], "30 MB have gone to where there is no drive");
}

#[test]
fn what_went_to_another_drive_is_no_evidence() {
    let host = Host::new();
    for drive in ["sda", "nvme0n1"] {
        fs::create_dir(host.stat(drive).with_file_name("device")).unwrap();
    }
    let mut probe = host.probe(&["nvme0n1"], &["nvme0n1"], true, false);
    host.moved("nvme0n1", 0, 5);
    host.moved("sda", 0, 80);
    assert_eq!(shown(&at(&mut probe, 1, Some(80))), [("nvme0n1", Some(0), Some(0))], "a journal");
    host.moved("nvme0n1", 0, 45);
    host.moved("sda", 0, 90);
    assert_eq!(shown(&at(&mut probe, 2, Some(50))), [("nvme0n1", Some(0), Some(40))]);
    // What a loop device writes, the drive below it writes too; 80 MB more went elsewhere.
    fs::create_dir(host.stat("md0").with_file_name("loop")).unwrap();
    let mut on_loop = host.probe(&["md0"], &["md0"], true, false);
    host.moved("md0", 0, 30);
    host.moved("sda", 0, 90 + 110);
    assert_eq!(shown(&at(&mut on_loop, 1, Some(105))), [("md0", Some(0), Some(25))]);
}

#[test]
fn what_is_not_counted_is_unknown_not_zero() {
    let host = Host::new();
    let mut probe = host.probe(&["nvme0n1/nvme0n1p1"], &["nvme0n1/nvme0n1p1"], false, false);
    let mut whole = host.probe(&["sda"], &["sda"], false, false);
    host.moved("nvme0n1/nvme0n1p1", 100, 100);
    host.moved("nvme0n1", 130, 110);
    host.moved("sda", 100, 100);
    let commands = |probe: &mut OthersIoProbe| probe.window(SECOND_NS, false, None);
    assert_eq!(shown(&commands(&mut probe)), [("nvme0n1", Some(30), Some(10))], "known beside it alone");
    assert!(commands(&mut whole).is_empty());
    host.moved("sda", 150, 100);
    assert_eq!(shown(&at(&mut whole, 2, None)), [("sda", Some(50), Some(0))], "from then on");
    fs::remove_file(host.stat("sda")).unwrap();
    assert!(at(&mut whole, 3, None).is_empty());
    assert!(at(&mut OthersIoProbe::default(), 1, None).is_empty());
}

#[test]
fn devices_that_cannot_be_told_apart_are_named_together() {
    let host = Host::new();
    let both = ["nvme0n1", "sda"];
    let mut probe = host.probe(&both, &both, false, false);
    host.moved("sda", 70, 0);
    assert_eq!(shown(&at(&mut probe, 1, None)), [("nvme0n1+sda", Some(70), Some(0))]);
    let array = host.probe(&["md0"], &both, true, false);
    assert_eq!(array.top.unwrap().name, "md0");
    let many: Vec<_> = (0..5).map(|n| LevelDevice { name: format!("sd{n}"), stat: PathBuf::new() }).collect();
    assert_eq!(name_of(&[], &many), "sd0+sd1+sd2+2 more");
}

#[test]
fn this_process_s_own_count_is_read() {
    let own = IoCounts::read(Path::new("/proc/self/io"));
    // Kernels without task accounting don't have it.
    assert!(own.is_some() || !Path::new("/proc/self/io").exists(), "{own:?}");
}
