//! `RocksDB`'s options for the settings, with names and values as `RocksDB` writes them, and which of them
//! differ between two settings.

use crate::settings::{Compaction, Compression, Rocksdb};

/// A name and a value.
pub type Setting = (&'static str, String);

/// Larger than any file and any level, so that nothing ever moves to a lower level.
const ANY_SIZE: u64 = 1 << 60;

/// Options of the column family that `SetOptions` accepts while the database is open.
pub fn of_pairs(rocksdb: &Rocksdb) -> Vec<Setting> {
    let single = is_single(rocksdb);
    let compression = match rocksdb.compression {
        Compression::None => "kNoCompression",
        Compression::Lz4 => "kLZ4Compression",
        Compression::Zstd => "kZSTD",
    };
    let l0_compact = if single { 1 } else { rocksdb.l0_compact };
    let level_base_bytes = if single { ANY_SIZE } else { rocksdb.level_base_bytes };
    vec![
        ("compression", compression.into()),
        ("write_buffer_size", rocksdb.write_buffer_bytes.to_string()),
        ("max_write_buffer_number", rocksdb.write_buffers.to_string()),
        ("level0_file_num_compaction_trigger", l0_compact.to_string()),
        ("level0_slowdown_writes_trigger", rocksdb.l0_slow.to_string()),
        ("level0_stop_writes_trigger", rocksdb.l0_stop.to_string()),
        ("max_bytes_for_level_base", level_base_bytes.to_string()),
        ("max_bytes_for_level_multiplier", rocksdb.fanout.to_string()),
        ("target_file_size_base", rocksdb.file_bytes.to_string()),
    ]
}

/// Options of table files, which `SetOptions` accepts for files written from then on.
pub fn of_files(rocksdb: &Rocksdb) -> Vec<Setting> {
    let filter = match rocksdb.bloom_bits {
        0 => "nullptr".to_owned(),
        bits => format!("bloomfilter:{bits}:false"),
    };
    vec![("block_size", rocksdb.block_bytes.to_string()), ("filter_policy", filter)]
}

/// Options of the database that `SetDBOptions` accepts while it is open.
pub fn of_database(rocksdb: &Rocksdb) -> Vec<Setting> {
    // `SetDBOptions` reads 0 as 1 MiB.
    let bytes_per_sync = if rocksdb.bytes_per_sync == 0 { ANY_SIZE } else { rocksdb.bytes_per_sync };
    // If either is set, RocksDB ignores the jobs and assumes 1 for the other.
    let is_split = rocksdb.compactions > 0 || rocksdb.flushes > 0;
    let own = |n: u64| if is_split { n.to_string() } else { "-1".to_owned() };
    let (compactions, flushes) = rocksdb.background();
    let [compactions, flushes] = [compactions, flushes].map(own);
    vec![
        ("max_background_jobs", rocksdb.jobs.to_string()),
        ("max_background_compactions", compactions),
        ("max_background_flushes", flushes),
        ("max_subcompactions", rocksdb.subcompactions.to_string()),
        ("bytes_per_sync", bytes_per_sync.to_string()),
        ("wal_bytes_per_sync", rocksdb.wal_bytes_per_sync.to_string()),
    ]
}

/// Options that can't change while the database is open.
pub fn fixed(rocksdb: &Rocksdb) -> Vec<Setting> {
    let mut settings = vec![
        ("use_direct_reads", rocksdb.direct_reads.to_string()),
        ("use_direct_io_for_flush_and_compaction", rocksdb.direct_flush.to_string()),
    ];
    if is_single(rocksdb) {
        settings.push(("num_levels", "2".into()));
        settings.push(("level_compaction_dynamic_level_bytes", "false".into()));
    }
    if rocksdb.compaction == Compaction::Universal {
        settings.push(("compaction_style", "kCompactionStyleUniversal".into()));
    }
    settings
}

/// The settings in the first list that differ from the second.
pub fn changed(new: Vec<Setting>, old: &[Setting]) -> Vec<Setting> {
    new.into_iter().filter(|setting| !old.contains(setting)).collect()
}

/// As one text: `name=value;name=value`.
pub fn text(settings: &[Setting]) -> String {
    let parts: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    parts.join(";")
}

fn is_single(rocksdb: &Rocksdb) -> bool {
    rocksdb.single_level && rocksdb.compaction == Compaction::Level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_changes_only_its_own_option() {
        let old = Rocksdb::default();
        let new = Rocksdb { fanout: 4.0, bloom_bits: 10, jobs: 8, ..old.clone() };
        let names = |list: fn(&Rocksdb) -> Vec<Setting>| text(&changed(list(&new), &list(&old)));
        assert_eq!(names(of_pairs), "max_bytes_for_level_multiplier=4");
        assert_eq!(names(of_files), "filter_policy=bloomfilter:10:false");
        assert_eq!(names(of_database), "max_background_jobs=8");
        assert_eq!(names(fixed), "");
    }

    #[test]
    fn compactions_and_flushes_are_as_many_as_asked_for() {
        let of = |jobs, compactions, flushes| {
            let rocksdb = Rocksdb { jobs, compactions, flushes, ..Rocksdb::default() };
            let all = text(&of_database(&rocksdb));
            let part = |name: &str| all.split(';').find_map(|one| one.strip_prefix(name)).unwrap().to_owned();
            (rocksdb.background(), part("max_background_compactions="), part("max_background_flushes="))
        };
        assert_eq!(of(32, 0, 0), ((24, 8), "-1".into(), "-1".into()), "RocksDB's own split");
        assert_eq!(of(2, 0, 0).0, (1, 1));
        assert_eq!(of(1, 0, 0).0, (1, 1));
        assert_eq!(of(2, 32, 0), ((32, 1), "32".into(), "1".into()));
        assert_eq!(of(16, 0, 2), ((12, 2), "12".into(), "2".into()));
    }

    #[test]
    fn a_single_level_is_merged_at_once_and_never_full() {
        let single = Rocksdb { single_level: true, ..Rocksdb::default() };
        let text = text(&[of_pairs(&single), fixed(&single)].concat());
        for part in ["trigger=1;", "level_base=1152921504606846976;", "num_levels=2"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
