//! Writes that the block layer acknowledges but drops, halves or misplaces: verification finds exactly those
//! that are missing from the drive according to device-mapper's own log of the writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;
use stacktune::testing::load::volume::is_ours_at;
use tempfile::TempDir;

use crate::common::machine::{missing, output_of};
use crate::common::recorded::json;
use crate::common::{self, LEFT_TO_SOAK, is_soak};
use crate::machines::{ROOT, rig};

const SETTINGS: [&str; 5] =
    ["io_uring/direct", "io_uring/cached", "libaio/direct", "sync/direct", "nvme_passthrough/direct"];
const MIB: u64 = 1 << 20;
/// Of the drive and of the log, for each setting.
const SIZE_MIB: u64 = 64;
const LOG_MIB: u64 = 120;
const SECTOR: usize = 512;
const PAGE: u64 = 16 << 10;

/// Where in the log the last write to each sector is.
fn logged(log: &File, begin: u64) -> BTreeMap<u64, u64> {
    const MAGIC: u64 = 0x006a_7366_7773_6872;
    const DISCARD: u64 = 4;
    const MARK: u64 = 8;
    let words = |at: u64| {
        let mut sector = [0; SECTOR];
        log.read_exact_at(&mut sector, begin + at).unwrap();
        <[u64; 4]>::try_from(
            sector.as_chunks::<8>().0[..4].iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>(),
        )
        .unwrap()
    };
    let [magic, version, entries, sector_bytes] = words(0);
    assert_eq!((magic, version, sector_bytes as u32), (MAGIC, 1, SECTOR as u32));
    let (mut last, mut at) = (BTreeMap::new(), SECTOR as u64);
    for _ in 0..entries {
        let [sector, sectors, flags, _] = words(at);
        at += SECTOR as u64;
        assert!(at < LOG_MIB * MIB, "the log is full");
        if flags & (DISCARD | MARK) == 0 {
            for n in 0..sectors {
                last.insert(sector + n, begin + at + n * SECTOR as u64);
            }
            at += sectors * SECTOR as u64;
        }
    }
    last
}

/// The number of the write that a sector is from: later writes have greater numbers.
fn sequence(sector: &[u8; SECTOR]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|n| sector[16 + n])) & ((1 << 56) - 1)
}

/// Pages of the drive that differ from their last write: older, mixed from two writes, or from another place.
fn differing(drive: &File, log: &File, number: u64) -> [BTreeSet<u64>; 3] {
    let begin = number * SIZE_MIB * MIB;
    let last = logged(log, number * LOG_MIB * MIB);
    let mut differing: [BTreeSet<u64>; 3] = Default::default();
    let (mut is, mut wanted) = ([0; SECTOR], [0; SECTOR]);
    for page in (MIB..SIZE_MIB * MIB).step_by(PAGE as usize) {
        let (mut known, mut other, mut elsewhere) = (0, 0, 0);
        for at in (page..page + PAGE).step_by(SECTOR) {
            drive.read_exact_at(&mut is, begin + at).unwrap();
            elsewhere += u64::from(!is_ours_at(&is, at));
            if let Some(place) = last.get(&(at / SECTOR as u64)) {
                log.read_exact_at(&mut wanted, *place).unwrap();
                known += 1;
                // Of two overlapping writes, either may be last: the log is in order of completion.
                other += u64::from(is != wanted && sequence(&is) <= sequence(&wanted));
            }
        }
        match (elsewhere, other) {
            (1.., _) => differing[2].insert(page),
            (0, 0) => false,
            (0, _) => differing[usize::from(other < known)].insert(page),
        };
    }
    differing
}

/// Verification found these pages and nothing else.
#[track_caller]
fn finds(report: &Value, [lost, torn, misplaced]: &[BTreeSet<u64>; 3], setting: &str) {
    let pages = |kind: &str| report[kind]["pages"].as_u64().unwrap();
    let found = [pages("lost") + pages("stale"), pages("torn"), pages("misplaced")];
    let wanted = [lost, torn, misplaced].map(|places| places.len() as u64);
    assert_eq!(found, wanted, "{setting}: {report:#}");
    for (kind, places) in [("lost", lost), ("stale", lost), ("torn", torn), ("misplaced", misplaced)] {
        for place in report[kind]["first"].as_array().unwrap() {
            let at = place["offset_bytes"].as_u64().unwrap();
            assert!(places.contains(&(at / PAGE * PAGE)), "{setting}: {kind} at {at}: {report:#}");
        }
    }
    for kind in ["never_written", "foreign", "damaged", "unreadable"] {
        assert_eq!(report[kind]["sectors"], 0, "{setting}: {kind}: {report:#}");
    }
    assert_eq!(report["write_map"]["compared"], true, "{setting}: {report:#}");
    println!("{setting}: {} lost, {} torn, {} misplaced, each found", wanted[0], wanted[1], wanted[2]);
}

#[test]
fn writes_that_a_device_drops_halves_or_misplaces_are_found_and_nothing_else() {
    const NAME: &str = "writes_that_a_device_drops_halves_or_misplaces_are_found_and_nothing_else";
    if !is_soak() {
        return common::skip(NAME, LEFT_TO_SOAK);
    }
    if let Some(reason) = missing() {
        return common::skip(NAME, &reason);
    }
    if !common::devices::has("dmsetup") {
        return common::skip(NAME, "needs dmsetup");
    }
    let [share, images] = [(); 2].map(|()| TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let said = output_of(
        "dropped",
        rig(&share)
            .args(["--drives", "2", "--size", "640M", "--append", "nvme_core.multipath=N", "--images"])
            .arg(images.path())
            .args(["--", "bash", &format!("{ROOT}/tests/lab/dropped.sh"), env!("CARGO_BIN_EXE_stacktune")])
            .args([SIZE_MIB, LOG_MIB].map(|mib| mib.to_string()))
            .args(SETTINGS),
    );
    let open = |name: &str| File::open(images.path().join(name)).unwrap();
    let (drive, log) = (open("drive0"), open("drive1"));
    let mut all = [0; 3];
    for (number, setting) in SETTINGS.iter().enumerate() {
        let report = share.path().join(setting.replace('/', "-")).with_extension("json");
        assert!(report.exists(), "{setting}: {said}");
        let places = differing(&drive, &log, number as u64);
        finds(&json(Path::new(&report)), &places, setting);
        all.iter_mut().zip(&places).for_each(|(all, places)| *all += places.len());
    }
    assert!(all.iter().all(|count| *count >= 100), "{all:?}");
}
