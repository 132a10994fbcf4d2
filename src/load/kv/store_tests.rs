//! The store on a real database, in a temporary folder.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::load::kv::acks::Losses;
use crate::settings::{Compaction, Compression, LoadEngine};

fn small() -> Kv {
    let mut kv = Kv { engine: LoadEngine::Rocksdb, ..Kv::default() };
    (kv.pairs.count, kv.pairs.value_bytes) = (Some(3000), 200);
    (kv.rocksdb.direct_reads, kv.rocksdb.direct_flush) = (false, false);
    kv
}

fn loaded(dir: &Path, kv: &Kv) -> (Store, Vec<String>) {
    let (store, notes) = Store::open(dir, kv, false).unwrap();
    assert!(store.load(&mut |_| {}, &AtomicBool::new(false)).unwrap());
    (store, notes)
}

/// The newest of the files to which RocksDB writes its options.
fn options_of(store: &Store) -> String {
    let files = std::fs::read_dir(store.place.database()).unwrap().flatten().map(|file| file.path());
    let newest = files.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    std::fs::read_to_string(newest).unwrap()
}

#[track_caller]
fn assert_has(options: &str, lines: &[&str]) {
    for line in lines {
        assert!(options.lines().any(|l| l.trim() == *line), "{line} is not in {options}");
    }
}

/// A slow checksum would distort every figure of the engine; RocksDB's log says which one it uses.
#[cfg(target_arch = "x86_64")]
#[test]
fn checksums_use_the_cpus_own_instructions() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (store, _) = Store::open(dir.path(), &small(), false).unwrap();
    let log = std::fs::read_to_string(store.place.database().join("LOG")).unwrap();
    let line = log.lines().find(|line| line.contains("Fast CRC32 supported")).unwrap_or_default();
    assert!(line.ends_with("Fast CRC32 supported: Supported on x86"), "{line:?}");
}

const TURNED: [&str; 18] = [
    "compression=kLZ4Compression",
    "write_buffer_size=1048576",
    "max_write_buffer_number=5",
    "level0_file_num_compaction_trigger=3",
    "level0_slowdown_writes_trigger=11",
    "level0_stop_writes_trigger=17",
    "max_bytes_for_level_base=2097152",
    "max_bytes_for_level_multiplier=4.000000",
    "target_file_size_base=524288",
    "max_background_jobs=7",
    "max_subcompactions=3",
    "bytes_per_sync=131072",
    "wal_bytes_per_sync=262144",
    "max_background_compactions=4",
    "max_background_flushes=2",
    "block_size=8192",
    "filter_policy=bloomfilter:10:false",
    "use_direct_reads=false",
];

fn turned() -> Rocksdb {
    Rocksdb {
        direct_reads: false,
        direct_flush: false,
        block_bytes: 8192,
        block_cache_bytes: 1 << 20,
        compression: Compression::Lz4,
        write_buffer_bytes: 1 << 20,
        write_buffers: 5,
        l0_compact: 3,
        l0_slow: 11,
        l0_stop: 17,
        level_base_bytes: 2 << 20,
        fanout: 4.0,
        file_bytes: 512 << 10,
        compaction: Compaction::Level,
        single_level: false,
        jobs: 7,
        compactions: 4,
        flushes: 2,
        subcompactions: 3,
        bytes_per_sync: 128 << 10,
        wal_bytes_per_sync: 256 << 10,
        bloom_bits: 10,
    }
}

#[test]
fn every_knob_reaches_rocksdb_live_and_on_opening() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let kv = small();
    let (store, _) = loaded(dir.path(), &kv);
    let before = options_of(&store);
    store.turn(&turned()).unwrap();
    assert_has(&options_of(&store), &TURNED);
    store.turn(&kv.rocksdb).unwrap();
    let lines = |text: &str| {
        let wanted = TURNED.map(|line| line.split_once('=').unwrap().0);
        let of = |line: &&str| wanted.iter().any(|name| line.trim().starts_with(&format!("{name}=")));
        text.lines().filter(of).map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lines(&options_of(&store)), lines(&before));
    store.reopen(&turned()).unwrap();
    // For a filter set through the C interface, the file has only its name.
    let opened =
        TURNED.map(|line| if line.starts_with("filter") { "filter_policy=bloomfilter" } else { line });
    assert_has(&options_of(&store), &opened);
    assert!(store.verify(&mut |_| {}, &AtomicBool::new(false)).unwrap().is_clean());
}

#[test]
fn fixed_options_apply_after_reopening_which_a_worker_prevents() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (store, _) = loaded(dir.path(), &small());
    let direct = Rocksdb { direct_flush: true, ..small().rocksdb };
    store.turn(&direct).unwrap();
    assert_eq!(store.opened_with(), Some(OpenedWith { direct_reads: false, direct_flush: false }));
    let handle = store.handle().unwrap();
    assert!(store.reopen(&direct).unwrap_err().to_string().contains("a worker still uses it"));
    drop(handle);
    let written = store.figures().unwrap().counts.flush_bytes;
    store.reopen(&direct).unwrap();
    assert_eq!(store.opened_with(), Some(OpenedWith { direct_reads: false, direct_flush: true }));
    assert_has(&options_of(&store), &["use_direct_io_for_flush_and_compaction=true"]);
    assert!(written > 0 && store.figures().unwrap().counts.flush_bytes >= written, "counts go on");
}

#[test]
fn a_single_level_has_one_and_universal_merges_runs() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut kv = small();
    kv.rocksdb.single_level = true;
    let (store, _) = loaded(dir.path(), &kv);
    assert_has(&options_of(&store), &["num_levels=2", "level0_file_num_compaction_trigger=1"]);
    drop(store);
    kv.rocksdb.compaction = Compaction::Universal;
    let (store, notes) = loaded(dir.path(), &kv);
    assert!(notes[0].contains("in another layout (single level,"), "{notes:?}");
    assert_has(&options_of(&store), &["compaction_style=kCompactionStyleUniversal"]);
    assert!(store.verify(&mut |_| {}, &AtomicBool::new(false)).unwrap().is_clean());
}

#[test]
fn losses_are_counted_and_reported_once() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut kv = small();
    kv.acks = Some(dir.path().join("acks").display().to_string());
    let set = dir.path().join("set");
    let (store, _) = loaded(&set, &kv);
    let (data, handle) = (store.data(), store.handle().unwrap());
    let mut key = super::super::keys::Key::new(data.key_bytes);
    let mut values = super::super::values::Values::new(store.set(), data.value_bytes);
    for put in 0..10 {
        let (slot, sequence) = store.next_logged(data.logged());
        // Two of them are recorded but missing.
        if put % 5 > 0 {
            handle.put(key.of(data.pairs + slot), values.of(data.pairs + slot, sequence), true).unwrap();
        }
        store.note(slot, sequence).unwrap();
    }
    assert_eq!(store.count_losses().unwrap(), Some(Losses { acknowledged: 10, lost: 2 }));
    assert_eq!(store.count_losses().unwrap(), None);
    // A pair that a later run has overwritten says nothing about the earlier run.
    let sequence = store.sequence_base();
    for (slot, run) in [(0, 0), (1, 1 << 38), (2, 0)] {
        handle.put(key.of(data.pairs + slot), values.of(data.pairs + slot, sequence + run), true).unwrap();
        store.note(slot, sequence + 1).unwrap();
    }
    assert_eq!(store.count_losses().unwrap(), Some(Losses { acknowledged: 2, lost: 2 }));
}

#[test]
fn damaged_and_missing_pairs_are_found() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (store, _) = loaded(dir.path(), &small());
    let mut key = super::super::keys::Key::new(16);
    let db = store.db().unwrap();
    let mut value = db.get(key.of(7)).unwrap().unwrap();
    value[100] ^= 1;
    db.put(key.of(7), &value).unwrap();
    let nine = db.get(key.of(9)).unwrap().unwrap();
    db.put(key.of(8), nine).unwrap();
    db.delete(key.of(2999)).unwrap();
    db.delete(key.of(0)).unwrap();
    db.put(b"somebody's", b"else").unwrap();
    drop(db);
    let report = store.verify(&mut |_| {}, &AtomicBool::new(false)).unwrap();
    let found = (report.pairs_ok, report.missing, report.foreign, report.misplaced, report.damaged);
    assert_eq!(found, (2996, 2, 1, 1, 1), "{report}");
}

#[test]
fn the_shortest_and_the_longest_keys_and_values_are_read_back() {
    for (key_bytes, value_bytes, pairs) in [(4, 0, 3000), (255, 8, 3000), (16, 2 << 20, 6)] {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut kv = small();
        let of = &mut kv.pairs;
        (of.key_bytes, of.value_bytes, of.count) = (key_bytes, value_bytes, Some(pairs));
        let (store, _) = loaded(dir.path(), &kv);
        let report = store.verify(&mut |_| {}, &AtomicBool::new(false)).unwrap();
        assert!(report.is_clean() && report.pairs_ok == pairs, "{key_bytes} + {value_bytes} B: {report}");
        assert_eq!(store.stored_bytes(), pairs * (key_bytes + value_bytes));
    }
}

#[test]
fn what_the_wal_put_in_earlier_runs_counts_as_stored() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let put = |puts: u64| {
        let (store, _) = loaded(dir.path(), &small());
        let (data, handle) = (store.data(), store.handle().unwrap());
        let (mut key, before) = (Key::new(data.key_bytes), store.stored_bytes());
        for _ in 0..puts {
            let (slot, _) = store.next_logged(data.logged());
            handle.put(key.of(data.pairs + slot), &[7; 200], false).unwrap();
        }
        let pairs = |bytes: u64| (bytes - data.bytes()) / data.pair_bytes();
        (pairs(before), pairs(store.stored_bytes()))
    };
    assert_eq!(put(300), (0, 300));
    assert_eq!(put(100), (300, 300), "over the same ones");
    assert_eq!(put(5000), (300, 1024), "round and round");
    assert_eq!(put(0), (1024, 1024));
}

#[test]
fn a_foreign_database_beside_the_marker_is_refused_and_a_missing_one_is_reloaded() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (store, _) = loaded(dir.path(), &small());
    let database = store.place.database();
    drop(store);
    let refused = |why: &str| {
        let error = Store::open(dir.path(), &small(), true).err().expect(why);
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.kind, crate::error::Kind::Refused);
    };
    // Another database in its place.
    let aside = dir.path().join("aside");
    std::fs::rename(&database, &aside).unwrap();
    drop(DB::open_default(&database).unwrap());
    refused("is not the database");
    // A database restored from a checkpoint has no id of its own yet.
    std::fs::remove_file(database.join("IDENTITY")).unwrap();
    refused("is not the database");
    std::fs::remove_dir_all(&database).unwrap();
    std::os::unix::fs::symlink(&aside, &database).unwrap();
    refused("is not a folder");
    assert!(aside.join("CURRENT").exists());
    std::fs::remove_file(&database).unwrap();
    let (store, _) = loaded(dir.path(), &small());
    assert!(store.verify(&mut |_| {}, &AtomicBool::new(false)).unwrap().is_clean());
    drop(store);
    assert_eq!(Store::open(dir.path(), &small(), false).unwrap().0.missing_bytes(), None);
}

#[test]
fn pairs_that_a_turn_laid_out_otherwise_are_not_used_again_silently() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let kv = small();
    let (store, _) = loaded(dir.path(), &kv);
    store.turn(&Rocksdb { jobs: 7, ..kv.rocksdb.clone() }).unwrap();
    drop(store);
    let (store, notes) = Store::open(dir.path(), &kv, false).unwrap();
    assert_eq!(notes, [""; 0], "the number of threads lays nothing out");
    // Turned and turned back: files written in between keep their layout.
    store.turn(&Rocksdb { block_bytes: 32 << 10, ..kv.rocksdb.clone() }).unwrap();
    store.turn(&kv.rocksdb).unwrap();
    drop(store);
    for _ in 0..2 {
        let (_, notes) = Store::open(dir.path(), &kv, false).unwrap();
        assert!(notes.len() == 1 && notes[0].contains("blocks of 32KiB"), "{notes:?}");
    }
    let (_, notes) = Store::open(dir.path(), &kv, true).unwrap();
    assert_eq!(notes, [""; 0], "they are loaded anew");
}
