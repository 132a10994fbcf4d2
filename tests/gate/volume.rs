//! Volumes on real files: created, filled, interrupted, damaged, verified; and others' files left alone.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

use crate::common::{skip, this_test};
use stacktune::testing::error::{Kind, Result};
use stacktune::testing::host::Feature;
use stacktune::testing::load::volume::{
    MemberSource, Region, Request, Stamper, Volume, affordable_size, is_ours_at,
};
use stacktune::testing::units::MIB;
use tempfile::TempDir;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// A folder on a real disk: in the build folder, as /tmp may be in memory.
fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn open(dir: &Path, count: u64, size_mib: u64) -> Result<Volume> {
    Volume::open(Request::of_files(dir, count, size_mib * MIB))
}

fn open_read_only(dir: &Path, count: u64) -> Result<Volume> {
    Volume::open(Request { read_only: true, ..Request::of_files(dir, count, 0) })
}

fn fill(volume: &mut Volume) -> u64 {
    let outcome = volume.fill(&mut |_| {}, &GO_ON).unwrap();
    assert!(outcome.complete);
    outcome.written_bytes
}

fn missing(volume: &Volume) -> u64 {
    volume.missing_fill().map_or(0, |plan| plan.bytes)
}

fn verify(volume: &Volume) -> stacktune::testing::load::volume::VerifyReport {
    volume.verify(&mut |_| {}, &GO_ON).unwrap()
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

/// The write map of the volume in a folder.
fn map(dir: &TempDir) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).open(dir.path().join("map")).unwrap()
}

#[test]
fn files_are_made_filled_once_and_verified() {
    let dir = folder();
    let target = dir.path().join("a/set");
    let mut volume = open(&target, 2, 16).unwrap();
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!((volume.data.bytes(), volume.wal.bytes()), (30 * MIB, 8 * MIB));
    assert_eq!(
        volume.members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(),
        ["data-0", "data-1", "wal"]
    );
    assert_eq!(volume.wal.extents[0].member, 2);

    volume.keep_map(map(&dir), [4096; 2], "1").unwrap();
    let mut last = None;
    let outcome = volume.fill(&mut |progress| last = Some(progress), &GO_ON).unwrap();
    assert_eq!((outcome.written_bytes, outcome.complete), (38 * MIB, true));
    let last = last.unwrap();
    assert_eq!((last.done_bytes, last.all_bytes), (38 * MIB, 38 * MIB));
    let set = volume.set;
    let report = verify(&volume);
    assert!(report.is_clean() && report.write_map.compared, "{report}");
    assert_eq!((report.sectors_ok * 512, report.sectors_unchecked), (38 * MIB, 0));
    drop(volume);
    // A run without a write map.
    let mut volume = open(&target, 2, 16).unwrap();
    let base = volume.next_sequence_base().unwrap();
    drop(volume);

    let mut volume = open(&target, 2, 16).unwrap();
    assert_eq!((volume.set, missing(&volume)), (set, 0));
    assert!(volume.next_sequence_base().unwrap() > base);
    let report = verify(&volume);
    assert!(report.is_clean() && !report.write_map.compared, "{report}");
    assert_eq!((report.sectors_ok, report.sectors_unchecked * 512), (0, 38 * MIB));
    volume.compare_with(map(&dir), "1");
    assert!(verify(&volume).to_string().contains("its write map is older than the data"));
}

#[test]
fn files_that_are_no_longer_at_their_paths_are_not_verified() {
    let dir = folder();
    let mut volume = open(&dir.path().join("set"), 2, 8).unwrap();
    fill(&mut volume);
    assert!(verify(&volume).is_clean());
    let path = volume.members[1].path.clone();
    let copy = dir.path().join("copy");
    fs::copy(&path, &copy).unwrap();
    let refused = |expected: &str| {
        let error = volume.verify(&mut |_| {}, &GO_ON).unwrap_err();
        assert_eq!(error.kind, Kind::Failed, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    fs::rename(&copy, &path).unwrap();
    refused("another file is at its path");
    fs::remove_file(&path).unwrap();
    refused("removed or replaced while it was in use");
}

#[test]
fn random_pages_over_a_filled_target_are_kept_in_its_map() {
    let dir = folder();
    let mut volume = open(&dir.path().join("set"), 2, 8).unwrap();
    volume.keep_map(map(&dir), [4096, 16384], "1").unwrap();
    fill(&mut volume);
    let before = fs::read(&volume.members[0].path).unwrap();
    let outcome = volume.scatter(&mut |_| {}, &GO_ON).unwrap();
    assert_eq!((outcome.written_bytes, outcome.complete), (2 * 18 * MIB, true));
    let report = verify(&volume);
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.sectors_ok * 512, report.sectors_unchecked), (18 * MIB, 0));
    // About 1 − 1/e² of the pages are rewritten.
    let after = fs::read(&volume.members[0].path).unwrap();
    let pages = before.chunks(4096).zip(after.chunks(4096)).skip(256);
    let (all, changed) = (pages.len(), pages.filter(|(before, after)| before != after).count());
    assert!((0.8..0.92).contains(&(changed as f64 / all as f64)), "{changed} of {all}");
}

#[test]
fn pages_of_a_run_verify_among_those_of_the_fill() {
    let dir = folder();
    let mut volume = open(dir.path(), 2, 4).unwrap();
    fill(&mut volume);
    let base = volume.next_sequence_base().unwrap();
    for (region, page_bytes) in [(&volume.data, 16 << 10), (&volume.data, 512), (&volume.wal, 4096)] {
        let stamper = Stamper::new(region.set, region.id);
        let mut page = vec![0; page_bytes];
        for n in [0, 7, region.pages(page_bytes as u64) - 1] {
            let (extent, place) = region.place(n, page_bytes as u64);
            stamper.stamp(&mut page, extent as u32, place, base + n);
            overwrite(&region.extents[extent].path, place, &page);
        }
    }
    let report = verify(&volume);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn faults_are_found_counted_and_named() {
    let dir = folder();
    let mut volume = open(dir.path(), 1, 4).unwrap();
    fill(&mut volume);
    let path = dir.path().join("data-0");
    let mut sector = [0; 512];
    File::open(&path).unwrap().read_exact_at(&mut sector, 2 * MIB).unwrap();
    assert!(is_ours_at(&sector, 2 * MIB) && !is_ours_at(&sector, MIB));
    overwrite(&path, 3 * MIB, &sector);
    overwrite(&path, MIB + 100, b"?");
    overwrite(&path, 2 * MIB + 512, &[0; 1024]);
    overwrite(&path, 2 * MIB + 8192, &[0x77; 512]);
    let report = verify(&volume);
    assert!(!report.is_clean());
    let counts = report.kinds().map(|(_, faults)| faults.sectors);
    assert_eq!(counts, [2, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(report.misplaced.first[0].offset_bytes, 3 * MIB);
    let text = report.to_string();
    assert!(text.contains("1 page damaged (512 B), first at data-0 + 1048576 (data)"), "{text}");
    assert!(text.starts_with("lost writes: not checked: it has no write map\n"), "{text}");
    assert_eq!(serde_json::to_value(&report).unwrap()["foreign"]["sectors"], 1);
}

#[test]
fn a_stopped_fill_goes_on_where_it_was() {
    let dir = folder();
    let mut volume = open(dir.path(), 1, 16).unwrap();
    let all = missing(&volume);
    let stop = AtomicBool::new(true);
    let outcome = volume.fill(&mut |_| {}, &stop).unwrap();
    assert_eq!((outcome.written_bytes, outcome.complete, missing(&volume)), (0, false, all));
    // The WAL is filled first; on a fast disk the data too, so larger sizes are tried until they aren't.
    for size_mib in [32, 64, 128, 256, 512] {
        let dir = folder();
        let mut volume = open(dir.path(), 1, size_mib).unwrap();
        let all = missing(&volume);
        let stop = AtomicBool::new(false);
        let halt = |progress: stacktune::testing::runs::session::Progress| {
            stop.store(progress.done_bytes > 0, std::sync::atomic::Ordering::Relaxed);
        };
        let outcome = volume.fill(&mut { halt }, &stop).unwrap();
        assert_eq!(missing(&volume), all - outcome.written_bytes);
        if !outcome.complete && outcome.written_bytes > 0 {
            drop(volume);
            let mut volume = open(dir.path(), 1, size_mib).unwrap();
            assert_eq!(fill(&mut volume), all - outcome.written_bytes);
            assert!(verify(&volume).is_clean());
            return;
        }
    }
    panic!("no fill could be stopped in the middle");
}

#[test]
fn a_measured_start_counts_and_gives_the_time_left() {
    let dir = folder();
    let mut volume = open(dir.path(), 2, 16).unwrap();
    let all = volume.missing_fill().unwrap();
    assert_eq!((all.to_string().as_str(), all.rate_bytes_per_s), ("38.0 MiB to fill on 3 members", None));
    let (outcome, plan) = volume.measure_fill(&GO_ON).unwrap();
    assert!(outcome.written_bytes > 0);
    let left = plan.map_or(0, |plan| {
        assert!(plan.time_s().unwrap() > 0.0);
        plan.bytes
    });
    assert_eq!(fill(&mut volume), left);
    assert_eq!(left + outcome.written_bytes, all.bytes);
    assert!(verify(&volume).is_clean());
}

const CHILD_DIR: &str = "STACKTUNE_TEST_FILL_DIR";

/// A helper process for the test below: fills until it is killed.
#[test]
fn child_that_is_killed_while_it_fills() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let mut volume = open(Path::new(&dir), 4, 32).unwrap();
    let kill = |progress: stacktune::testing::runs::session::Progress| {
        if progress.done_bytes > 0 {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap();
        }
    };
    volume.fill(&mut { kill }, &GO_ON).unwrap();
}

#[test]
fn a_fill_that_was_killed_goes_on_and_its_lock_is_free() {
    let dir = folder();
    let mut killed = this_test(module_path!(), "child_that_is_killed_while_it_fills");
    killed.env(CHILD_DIR, dir.path());
    let status = killed.stdout(Stdio::null()).status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    let mut volume = open(dir.path(), 4, 32).unwrap();
    let left = missing(&volume);
    assert_eq!(fill(&mut volume), left);
    let report = verify(&volume);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn one_run_at_a_time_and_readers_beside_readers() {
    let dir = folder();
    let held = open(dir.path(), 1, 4).unwrap();
    let mut request = Request::of_files(dir.path(), 1, 4 * MIB);
    let early = [request.refuse_locked().unwrap_err(), request.take_lock().unwrap_err()];
    let late = [open(dir.path(), 1, 4).unwrap_err(), open_read_only(dir.path(), 1).unwrap_err()];
    for error in early.into_iter().chain(late) {
        assert_eq!(error.kind, Kind::Failed);
        let named = error.what.contains(&format!("process {}", std::process::id()));
        assert!(named || error.what.contains("another process"), "{error}");
    }
    drop(held);
    let reader = open_read_only(dir.path(), 1).unwrap();
    open_read_only(dir.path(), 1).unwrap();
    assert_eq!(open(dir.path(), 1, 4).unwrap_err().kind, Kind::Failed);
    assert_eq!(request.refuse_locked().unwrap_err().kind, Kind::Failed, "readers count too");
    drop(reader);
    request.refuse_locked().unwrap();
    request.take_lock().unwrap();
    assert_eq!(open(dir.path(), 1, 4).unwrap_err().kind, Kind::Failed, "the lock is held from then on");
    drop(Volume::open(request).unwrap());
    open(dir.path(), 1, 4).unwrap();
}

#[test]
fn what_is_not_ours_is_refused_and_stays_as_it_is() {
    let dir = folder();
    let path = dir.path().join("data-1");
    fs::write(&path, b"somebody's").unwrap();
    let error = open(dir.path(), 2, 4).unwrap_err();
    assert_eq!(error.kind, Kind::Refused);
    assert_eq!(fs::read(&path).unwrap(), b"somebody's");
    // Large enough to hold a header, too.
    fs::write(&path, vec![9; 4 << 20]).unwrap();
    assert_eq!(open(dir.path(), 2, 4).unwrap_err().kind, Kind::Refused);
    assert_eq!(fs::read(&path).unwrap(), vec![9; 4 << 20]);
}

/// A folder's entries, with their content.
fn content(dir: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries.map(|e| (e.file_name(), fs::read(e.path()).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn where_a_foreign_file_is_in_the_way_nothing_is_made() {
    for name in ["data-0", "data-1", "wal", "stacktune-set"] {
        for text in ["", "somebody's"] {
            let dir = folder();
            fs::write(dir.path().join(name), text).unwrap();
            let before = content(dir.path());
            assert_eq!(open(dir.path(), 2, 4).unwrap_err().kind, Kind::Refused, "{name}");
            assert_eq!(content(dir.path()), before, "{name}");
        }
    }
}

#[test]
fn files_beside_those_of_the_target_are_left_alone() {
    let dir = folder();
    for name in ["data-0.new", "data-1.new", "wal.new"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    drop(open(dir.path(), 2, 4).unwrap());
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    let all = ["data-0", "data-0.new", "data-1", "data-1.new", "stacktune-set", "wal", "wal.new"];
    assert_eq!(names, all);
}

/// Puts something odd in the place of one of our files.
type Make = fn(&Path, &Path) -> std::io::Result<()>;

#[test]
fn links_folders_and_a_foreign_lock_file_are_refused() {
    let other = folder();
    drop(open(other.path(), 1, 4).unwrap());
    let ours = other.path().join("data-0");
    let odd: [(&str, Make); 5] = [
        ("data-0", |ours, path| symlink(ours, path)),
        ("data-0", |ours, path| fs::hard_link(ours, path)),
        ("data-0", |_, path| fs::create_dir(path)),
        ("stacktune-set", |_, path| fs::write(path, "mine")),
        ("stacktune-set", |ours, path| symlink(ours, path)),
    ];
    let before = fs::read(&ours).unwrap();
    for (name, make) in odd {
        let dir = folder();
        make(&ours, &dir.path().join(name)).unwrap();
        assert_eq!(open(dir.path(), 1, 4).unwrap_err().kind, Kind::Refused, "{name}");
    }
    assert!(fs::read(&ours).unwrap() == before);
}

#[test]
fn a_damaged_header_means_fill_again_of_that_member() {
    let dir = folder();
    let mut volume = open(dir.path(), 2, 4).unwrap();
    fill(&mut volume);
    drop(volume);
    let path = dir.path().join("data-1");
    overwrite(&path, 40, &[0xff]);
    assert_eq!(missing(&open(dir.path(), 2, 4).unwrap()), 0, "the second copy counts");
    overwrite(&path, 40, &[0xff]);
    overwrite(&path, MIB / 2 + 40, &[0xff]);
    let mut volume = open(dir.path(), 2, 4).unwrap();
    assert_eq!(fill(&mut volume), 3 * MIB);
    assert!(verify(&volume).is_clean());
}

#[test]
fn another_size_or_count_begins_anew_with_our_own_files() {
    let dir = folder();
    for (count, size_mib, wal_mib) in [(4, 8, 8), (2, 8, 4), (2, 4, 2)] {
        let mut volume = open(dir.path(), count, size_mib).unwrap();
        assert_eq!(fill(&mut volume), (count * (size_mib - 1) + wal_mib) * MIB);
        assert!(verify(&volume).is_clean());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count() as u64, count + 2);
    }
}

#[test]
fn read_only_takes_what_is_there_and_writes_nothing() {
    let dir = folder();
    let path = dir.path().join("data-0");
    fs::write(&path, vec![1; 3_500_000]).unwrap();
    let volume = open_read_only(dir.path(), 1).unwrap();
    assert_eq!((volume.data.bytes(), volume.data.extents[0].offset_bytes), (3 * MIB, 0));
    assert!(volume.facts.read_only && volume.missing_fill().is_none() && !volume.notes.is_empty());
    assert_eq!(volume.verify(&mut |_| {}, &GO_ON).unwrap_err().kind, Kind::Failed);
    let mut volume = volume;
    assert_eq!(volume.next_sequence_base().unwrap_err().kind, Kind::Refused);
    assert_eq!(volume.fill(&mut |_| {}, &GO_ON).unwrap_err().kind, Kind::Refused);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(fs::read(&path).unwrap() == vec![1; 3_500_000]);
}

#[test]
fn read_only_finds_the_regions_of_a_set_and_verifies_it() {
    let dir = folder();
    let mut volume = open(dir.path(), 2, 4).unwrap();
    let unfilled = {
        drop(volume);
        open_read_only(dir.path(), 2).unwrap().notes
    };
    assert_eq!(unfilled.len(), 2);
    volume = open(dir.path(), 2, 4).unwrap();
    fill(&mut volume);
    let (data, wal) = (volume.data.clone(), volume.wal.clone());
    drop(volume);
    let volume = open_read_only(dir.path(), 2).unwrap();
    assert_eq!((&volume.data, &volume.wal), (&data, &wal));
    assert!(volume.notes.is_empty() && verify(&volume).is_clean());
}

#[test]
fn the_wal_has_its_own_file_on_request() {
    let (dir, elsewhere) = (folder(), folder());
    let path = elsewhere.path().join("my-wal");
    let request = || {
        let wal = Some(MemberSource::File { path: path.clone() });
        Request { wal, ..Request::of_files(dir.path(), 2, 8 * MIB) }
    };
    let mut volume = Volume::open(request()).unwrap();
    assert_eq!((volume.wal.extents[0].path.as_path(), volume.wal.bytes()), (path.as_path(), 4 * MIB));
    assert_eq!(fill(&mut volume), 18 * MIB);
    // Another target with the same WAL.
    let third = folder();
    let wal = Some(MemberSource::File { path: path.clone() });
    let error = Volume::open(Request { wal, ..Request::of_files(third.path(), 2, 8 * MIB) }).unwrap_err();
    assert_eq!(error.kind, Kind::Failed);
    drop(volume);
    // Back to the folder's own WAL: the data stays filled.
    assert_eq!(missing(&open(dir.path(), 2, 8).unwrap()), 4 * MIB);
    assert_eq!(missing(&Volume::open(request()).unwrap()), 0);
    assert!(!elsewhere.path().join("stacktune-set").exists());
}

#[test]
fn the_wal_cannot_be_one_of_the_data_files() {
    let dir = folder();
    let wal = Some(MemberSource::File { path: dir.path().join("data-0") });
    let error = Volume::open(Request { wal, ..Request::of_files(dir.path(), 2, 4 * MIB) }).unwrap_err();
    assert_eq!(error.kind, Kind::Input);
}

#[test]
fn another_target_s_files_are_no_wal_target() {
    let (dir, other) = (folder(), folder());
    let held = open(other.path(), 1, 4).unwrap();
    for (name, kind) in [("data-0", Kind::Refused), ("wal", Kind::Failed)] {
        let wal = Some(MemberSource::File { path: other.path().join(name) });
        let error = Volume::open(Request { wal, ..Request::of_files(dir.path(), 1, 4 * MIB) }).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(!dir.path().join("data-0").exists());
    }
    assert_eq!(missing(&held), 4 * MIB);
}

#[test]
fn a_target_beyond_the_disk_is_refused_before_anything_is_made() {
    let dir = folder();
    let error = open(dir.path(), 4, 1 << 30).unwrap_err();
    assert_eq!(error.kind, Kind::Failed);
    assert!(error.what.contains("free"), "{error}");
    assert!(!dir.path().join("data-0").exists());
}

#[test]
fn the_demo_takes_a_quarter_of_the_disk_at_most() {
    let dir = folder();
    assert_eq!(affordable_size(dir.path(), 2, 16 * MIB).unwrap(), (16 * MIB, None));
    let (size, note) = affordable_size(dir.path(), 4, 1 << 50).unwrap();
    assert!(size < 1 << 50 && size.is_multiple_of(16 * MIB));
    assert!(note.unwrap().contains("instead of 1024TiB"));
}

#[test]
fn the_target_s_facts_are_found_by_trying() {
    let dir = folder();
    let volume = open(dir.path(), 1, 4).unwrap();
    let facts = &volume.facts;
    assert!(!facts.devices && !facts.read_only);
    if facts.medium == "ext4" || facts.medium == "XFS" {
        assert_eq!(facts.direct, Feature::Present);
        assert!(facts.direct_align_bytes.is_power_of_two());
        assert_eq!(facts.quietly_buffered, None);
    } else {
        skip("the_target_s_facts_are_found_by_trying", &format!("direct I/O on {}", facts.medium));
    }
    assert_eq!(volume.data.id, Region::DATA);
}
