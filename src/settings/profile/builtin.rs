//! The built-in profiles.

use super::contents::Profile;
use super::parse::parse;
use crate::settings::values::Settings;

/// Name and text of each, in the order of lists.
pub const BUILTIN: [(&str, &str); 36] = [
    ("demo", include_str!("../../../profiles/demo.toml")),
    ("inside-the-drive", include_str!("../../../profiles/inside-the-drive.toml")),
    ("kv-figure4", include_str!("../../../profiles/kv-figure4.toml")),
    ("kv-mix", include_str!("../../../profiles/kv-mix.toml")),
    ("lab", include_str!("../../../profiles/lab.toml")),
    ("lowest-latency", include_str!("../../../profiles/lowest-latency.toml")),
    ("mqssd", include_str!("../../../profiles/mqssd.toml")),
    ("mqssd-table3", include_str!("../../../profiles/mqssd-table3.toml")),
    ("mqssd-table3-scans", include_str!("../../../profiles/mqssd-table3-scans.toml")),
    ("mqssd-table4", include_str!("../../../profiles/mqssd-table4.toml")),
    ("rocksdb", include_str!("../../../profiles/rocksdb.toml")),
    ("run-aerospike", include_str!("../../../profiles/run-aerospike.toml")),
    ("run-db_bench", include_str!("../../../profiles/run-db_bench.toml")),
    ("run-duckdb", include_str!("../../../profiles/run-duckdb.toml")),
    ("run-fio", include_str!("../../../profiles/run-fio.toml")),
    ("run-leanstore", include_str!("../../../profiles/run-leanstore.toml")),
    ("run-leveldb", include_str!("../../../profiles/run-leveldb.toml")),
    ("run-mariadb", include_str!("../../../profiles/run-mariadb.toml")),
    ("run-mysql", include_str!("../../../profiles/run-mysql.toml")),
    ("run-pgbench", include_str!("../../../profiles/run-pgbench.toml")),
    ("run-redis", include_str!("../../../profiles/run-redis.toml")),
    ("run-sqlite", include_str!("../../../profiles/run-sqlite.toml")),
    ("run-sqlite-random", include_str!("../../../profiles/run-sqlite-random.toml")),
    ("run-tpcc", include_str!("../../../profiles/run-tpcc.toml")),
    ("run-varmail", include_str!("../../../profiles/run-varmail.toml")),
    ("section4-7-sleep", include_str!("../../../profiles/section4-7-sleep.toml")),
    ("table2-1-baseline", include_str!("../../../profiles/table2-1-baseline.toml")),
    ("table2-2-no-fdatasync", include_str!("../../../profiles/table2-2-no-fdatasync.toml")),
    ("table2-3-async", include_str!("../../../profiles/table2-3-async.toml")),
    ("table2-4-direct", include_str!("../../../profiles/table2-4-direct.toml")),
    ("table2-5-block", include_str!("../../../profiles/table2-5-block.toml")),
    ("tree-default", include_str!("../../../profiles/tree-default.toml")),
    ("tree-figure6", include_str!("../../../profiles/tree-figure6.toml")),
    ("tree-figure8", include_str!("../../../profiles/tree-figure8.toml")),
    ("tree-mixed", include_str!("../../../profiles/tree-mixed.toml")),
    ("tree-small-values", include_str!("../../../profiles/tree-small-values.toml")),
];

/// The built-in profile of that name, even if the user has one of the same name.
pub fn builtin(name: &str) -> Option<Profile> {
    let (name, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    parse(text, &format!("{name}.toml")).ok()
}

/// Whether these are the settings of the built-in demo, unchanged.
pub fn is_demo(settings: &Settings) -> bool {
    builtin("demo").is_some_and(|demo| demo.settings == *settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
    use crate::settings::knobs::Conditions;
    use crate::settings::profile::check::{Problem, check};
    use crate::settings::profile::write::to_toml;
    use crate::settings::testing::capable_host;
    use crate::settings::{Buffering, Interface, Sync};
    use crate::units::GIB;

    #[test]
    fn all_are_valid_and_round_trip() {
        let facts = capable_host();
        for (name, text) in BUILTIN {
            let profile = parse(text, name).unwrap();
            assert_eq!(profile.settings.name, name);
            assert!(!profile.settings.about.is_empty(), "{name}");
            assert_eq!(builtin(name).as_ref(), Some(&profile));
            assert_eq!(parse(&to_toml(&profile), name).unwrap(), profile);
            let problems = check(&profile.settings, Conditions { facts: &facts, target: None });
            // A build without RocksDB reports that for the profiles that need it, and no other problem.
            let other = |problem: &&Problem| cfg!(feature = "rocksdb") || problem.knob != "load.engine";
            assert_eq!(problems.iter().find(other), None, "{name}");
        }
    }

    #[test]
    fn every_file_in_the_folder_is_built_in() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, BUILTIN.map(|(name, _)| name));
    }

    #[test]
    fn the_demo_is_gentle_to_the_disk() {
        let demo = builtin("demo").unwrap().settings;
        assert_eq!((demo.target.count, demo.target.size_bytes), (4, GIB));
        assert_eq!(demo.target.dir, "~/.cache/stacktune/demo");
        assert!(demo.target.devices.is_empty());
        assert_eq!(demo.run.max_writes_bytes, Some(20 * GIB));
        for class in Class::ALL {
            let rate = demo.classes[class.index()].rate_bytes_per_s;
            assert_eq!(rate, class.writes().then_some(25_000_000), "{class}");
        }
    }

    #[test]
    fn the_practice_array_uses_names_that_no_real_drive_has() {
        let lab = builtin("lab").unwrap().settings;
        assert_eq!(lab.target.devices.len(), 4);
        for (number, device) in lab.target.devices.iter().enumerate() {
            assert_eq!(*device, format!("/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RIG{number}_1"));
        }
    }

    #[test]
    fn the_polling_profiles_are_the_papers_and_its_opposite() {
        let of = |name: &str| {
            let s = builtin(name).unwrap().settings;
            assert_eq!(s.driven_by(), Some(Interface::Vfio));
            let mut on = Class::ALL.into_iter().filter(|class| s.classes[class.index()].enabled);
            let class = on.next().unwrap();
            assert!(on.next().is_none() && !class.writes());
            let own = &s.classes[class.index()];
            (s.io.poll_sleep.as_micros(), own.depth, own.batch, own.threads)
        };
        assert_eq!(of("section4-7-sleep"), (50, 1024, 256, 1));
        assert_eq!(of("lowest-latency"), (0, 1, 1, 1));
    }

    #[test]
    fn the_rows_of_table_2_differ_as_in_the_paper() {
        let row = |name: &str| {
            let s = builtin(name).unwrap().settings;
            assert_eq!(s.io.page_size_bytes, 16 << 10);
            assert_eq!(s.classes.each_ref().map(|c| c.depth * c.threads), [128, 1, 1, 1]);
            for class in Class::ALL {
                let rate = s.classes[class.index()].rate_bytes_per_s;
                assert_eq!(rate, class.writes().then_some(250_000_000), "{name} {class}");
            }
            (s.io.interface, s.io.buffering, s.wal.sync, s.target.devices.is_empty())
        };
        let (cached, direct) = (Buffering::Cached, Buffering::Direct);
        assert_eq!(row("table2-1-baseline"), (Interface::Sync, cached, Sync::Fdatasync, true));
        assert_eq!(row("table2-2-no-fdatasync"), (Interface::Sync, cached, Sync::None, true));
        assert_eq!(row("table2-3-async"), (Interface::IoUring, cached, Sync::None, true));
        assert_eq!(row("table2-4-direct"), (Interface::Libaio, direct, Sync::None, true));
        assert_eq!(row("table2-5-block"), (Interface::Libaio, direct, Sync::None, false));
    }
}
