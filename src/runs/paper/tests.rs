//! The data, checked against the paper's tables and text.

use super::*;
use crate::settings::knobs;
use crate::settings::profile::{builtin, parse, to_toml};
use crate::settings::{Filesystem, Settings};

fn bed(storage: Storage, root: bool) -> Bed {
    let drives = if matches!(storage, Storage::Devices(_)) { 4 } else { 0 };
    Bed {
        storage,
        drives_bytes: vec![1_000_000_000_000; drives],
        hardware: vec![Hardware { level: "5".into(), device: "/dev/raid5".into(), bytes: 3_000_000_000_000 }],
        no_cache_limit: None,
        root,
        memory_bytes: 64_000_000_000,
    }
}

fn devices() -> Storage {
    Storage::Devices((0..4).map(|n| format!("/dev/nvme{n}n1")).collect())
}

fn row<'a>(experiment: &'a Experiment, label: &str) -> Option<&'a ExperimentRow> {
    experiment.rows.iter().find(|row| row.label == label)
}

fn planned(name: &str, bed: &Bed) -> Vec<(String, Result<Settings, String>)> {
    let experiment = find(name).unwrap();
    let base = bed.base(&experiment);
    let steps = steps(&experiment, bed, &base, &[]);
    steps.into_iter().map(|p| (p.label, p.step.map(|step| step.settings(&base)))).collect()
}

#[test]
fn every_row_has_existing_knobs_and_valid_values() {
    for experiment in all() {
        for storage in [devices(), Storage::Files("/d".into())] {
            let bed = bed(storage, true);
            for (label, settings) in planned(experiment.name, &bed) {
                let row = row(&experiment, &label).unwrap();
                match settings {
                    Ok(settings) => {
                        let again = parse(&to_toml(&settings.clone().into()), "row.toml").unwrap().settings;
                        assert_eq!(again, settings, "{} {label}", experiment.name);
                        let wrong = |(knob, text): &(&'static str, String)| {
                            knobs::find(knob).is_none_or(|knob| knob.parse(text).is_err())
                        };
                        assert!(!row.turns.iter().any(wrong), "{} {label}", experiment.name);
                    }
                    Err(why) => assert!(!why.ends_with('.') && !why.contains("there is no"), "{why}"),
                }
            }
        }
    }
}

#[test]
fn names_and_labels_are_unique_and_claims_are_about_existing_rows_and_columns() {
    let experiments = all();
    for (at, experiment) in experiments.iter().enumerate() {
        assert!(!experiments[..at].iter().any(|other| other.name == experiment.name));
        assert_eq!(find(experiment.name).as_ref(), Some(experiment));
        for (at, row) in experiment.rows.iter().enumerate() {
            let is_twice = |(at, (path, _)): (usize, &(&str, String))| {
                row.turns[..at].iter().any(|(before, _)| before == path)
            };
            assert!(!row.turns.iter().enumerate().any(is_twice), "{} {}", experiment.name, row.label);
            assert!(experiment.rows[..at].iter().all(|other| other.label != row.label), "{}", row.label);
        }
        for claim in &experiment.claims {
            for (label, figure) in [claim.above, claim.below] {
                assert!(row(experiment, label).is_some(), "{}: {label}", experiment.name);
                assert!(experiment.columns.contains(&figure), "{}: {figure:?}", experiment.name);
            }
        }
    }
}

#[test]
fn the_paper_agrees_with_its_own_claims() {
    for experiment in all() {
        for claim in &experiment.claims {
            let Some(factor) = claim.factor(&experiment.rows) else { continue };
            let agrees = match claim.says {
                Says::More => factor > 1.0,
                Says::Less => factor < 1.0,
                Says::About => claim.stated.is_some() || (factor - 1.0).abs() <= 0.1,
            };
            assert!(agrees, "{}: {}: {factor}", experiment.name, claim.words);
        }
    }
}

/// The factors that the paper's text gives beside its tables.
#[test]
fn factors_of_tables_are_those_of_the_text() {
    let factor = |name: &str, words: &str| {
        let experiment = find(name).unwrap();
        let claim = experiment.claims.iter().find(|claim| claim.words == words).unwrap();
        format!("{:.2}", claim.factor(&experiment.rows).unwrap())
    };
    assert_eq!(factor("table2", "without fdatasync the scan gains"), "1.44");
    assert_eq!(factor("table2", "without fdatasync point reads gain as much"), "1.44");
    assert_eq!(factor("table2", "without a file system the scan gains"), "1.22");
    assert_eq!(factor("table2", "ext4 costs a third more cycles"), "1.33");
    assert_eq!(factor("table4", "XFS scans faster than ext4"), "1.21");
    assert_eq!(factor("table5", "RAID 5 nearly doubles the cycles"), "1.72");
    assert_eq!(factor("table6", "libaio waits twice as long as SPDK, 512 B"), "2.07");
    assert_eq!(factor("figure3", "64 KiB wait longer than 16 KiB"), "1.57");
}

/// In each row of a table with a total, the parts sum to it, within the rounding of its numbers.
#[test]
fn the_classes_sum_to_the_papers_totals() {
    let parts = [Figure::ScanMbPerS, Figure::PointMbPerS, Figure::BackgroundMbPerS, Figure::WalMbPerS];
    let mut summed = 0;
    for experiment in all() {
        for row in &experiment.rows {
            let of = |figure: Figure| row.published(figure).map(|published| published.value);
            let Some(total) = of(Figure::TotalMbPerS) else { continue };
            let writes = of(Figure::WriteMbPerS).unwrap_or(0.0);
            let sum: f64 = parts.into_iter().filter_map(of).sum::<f64>() + writes;
            assert!((sum - total).abs() <= 2.0, "{} {}: {sum} {total}", experiment.name, row.label);
            summed += 1;
        }
    }
    assert_eq!(summed, 5 + 5 + 7 + 7 + 5);
}

#[test]
fn the_same_row_of_two_tables_has_the_same_numbers() {
    let number = |table: &str, label: &str, figure| {
        row(&find(table).unwrap(), label).unwrap().published(figure).copied()
    };
    for figure in [Figure::ScanMbPerS, Figure::PointMbPerS, Figure::TotalMbPerS, Figure::CyclesPerByte] {
        for (a, b) in [
            (("table2", "4"), ("table4", "4")),
            (("table2", "5"), ("table4", "5")),
            (("table4", "5"), ("table5", "5")),
            (("table2", "1"), ("table8", "1")),
        ] {
            assert!(number(a.0, a.1, figure).is_some());
            assert_eq!(number(a.0, a.1, figure), number(b.0, b.1, figure), "{a:?} {b:?}");
        }
    }
    let point = number("table2", "1", Figure::PointMbPerS).unwrap().value;
    // Section 4.1 gives the latency of row 1's point reads, which matches its MB/s only if these are MiB/s.
    let mean = number("table2", "1", Figure::PointMeanUs).unwrap().value;
    assert!((16_384.0 / mean * 1e6 / f64::from(1 << 20) - point).abs() < 0.5);
}

#[test]
fn rows_of_table_2_are_the_built_in_profiles() {
    let names =
        ["table2-1-baseline", "table2-2-no-fdatasync", "table2-3-async", "table2-4-direct", "table2-5-block"];
    let rows = planned("table2", &bed(devices(), true));
    assert_eq!(rows.len(), names.len());
    for (name, (label, settings)) in names.into_iter().zip(rows) {
        let (profile, settings) = (builtin(name).unwrap().settings, settings.unwrap());
        assert!(name.starts_with(&format!("table2-{label}-")));
        assert_eq!(settings.io.interface, profile.io.interface, "{name}");
        assert_eq!(settings.io.buffering, profile.io.buffering, "{name}");
        assert_eq!(settings.io.page_size_bytes, profile.io.page_size_bytes, "{name}");
        assert_eq!(settings.wal, profile.wal, "{name}");
        assert_eq!(settings.classes, profile.classes, "{name}");
    }
}

#[test]
fn on_drives_rows_have_the_papers_stack_and_no_more_data() {
    use crate::settings::{DriveState, Raid};
    let bed = bed(devices(), false);
    for (label, settings) in planned("table2", &bed) {
        let stack = settings.unwrap().stack;
        assert_eq!((stack.state, stack.raid), (DriveState::Trimmed, Raid::Md0), "{label}");
        let bare = label == "5";
        assert_eq!(stack.filesystem, if bare { Filesystem::None } else { Filesystem::Ext4 }, "{label}");
        // 13% of 4 TB are the 500 GB of the two files.
        assert_eq!(stack.use_percent, if bare { 13 } else { 100 });
    }
    let rows = planned("table5", &bed);
    let of = |label: &str| rows.iter().find(|(of, _)| of == label).unwrap().1.clone();
    let raid = |label: &str| of(label).unwrap().stack.raid;
    assert_eq!(
        [raid("5"), raid("5b"), raid("5c"), raid("7")],
        [Raid::Md0, Raid::Md5, Raid::Md10, Raid::None]
    );
    let percent = |label: &str| of(label).unwrap().stack.use_percent;
    assert_eq!([percent("5"), percent("5b"), percent("5c"), percent("7")], [13, 17, 25, 13]);
    assert_eq!(of("6b").unwrap().target.devices, ["/dev/raid5"]);
    assert_eq!(percent("6b"), 17, "of what that device holds");
    assert_eq!(of("6").unwrap_err(), "no hardware RAID 0 was given: add --hardware-raid 0=DEVICE");
    for name in ["figure4", "figure7", "figure8"] {
        let (_, settings) = planned(name, &bed).remove(0);
        assert_eq!(settings.unwrap().stack.use_percent, 90);
    }
    let single = Bed { drives_bytes: vec![1 << 40], storage: Storage::Devices(vec!["/dev/a".into()]), ..bed };
    let rows = planned("table5", &single);
    assert_eq!(rows[1].1.as_ref().unwrap_err(), "md5 needs at least 3 drives");
    assert_eq!(planned("table2", &single)[0].1.as_ref().unwrap().stack.raid, Raid::None);
}

#[test]
fn on_files_a_row_is_adapted_or_refused_with_the_reason() {
    let reasons = |name: &str, root: bool| {
        let rows = planned(name, &bed(Storage::Files("/d".into()), root));
        rows.into_iter().filter_map(|(label, row)| Some((label, row.err()?))).collect::<Vec<_>>()
    };
    let [(label, why)] = &reasons("table2", false)[..] else { panic!() };
    assert!(label == "5" && why.contains("give --devices"), "{label} {why}");
    assert!(reasons("table4", false).iter().all(|(_, why)| why.contains("root")));
    assert_eq!(reasons("table4", true), []);
    assert_eq!(reasons("figure4", false), []);
    let lacking: Vec<_> = reasons("table6", false).into_iter().map(|(label, _)| label).collect();
    let without: &[&str] = &["SPDK 512", "SPDK 4096", "SPDK 16384"];
    assert_eq!(lacking, if crate::host::system::spdk::BUILT.is_none() { without } else { &[] });
    for (_, settings) in planned("table4", &bed(Storage::Files("/d".into()), true)) {
        let settings = settings.unwrap();
        assert!(settings.stack.is_built() && settings.target.count == 1);
    }
}

#[test]
fn no_row_overrides_the_operators_knobs() {
    let experiment = find("table2").unwrap();
    let bed = bed(Storage::Files("/d".into()), false);
    let mut base = bed.base(&experiment);
    base.wal.sync = crate::settings::Sync::Dsync;
    base.run.cache_limit_bytes = None;
    for planned in steps(&experiment, &bed, &base, &["wal.sync", "run.cache_limit"]) {
        let Ok(step) = planned.step else { continue };
        let settings = step.settings(&base);
        assert_eq!((settings.wal.sync, settings.run.cache_limit_bytes), (base.wal.sync, None));
    }
}

#[test]
fn the_page_cache_has_the_papers_ratio_to_the_data() {
    let limit = |bytes| super::place::cache_limit_bytes(bytes);
    assert_eq!(limit(400_000_000_000), 10_000_000_000);
    assert_eq!(limit(4_000_000_000_000), 10_000_000_000);
    assert_eq!(limit(40_000_000_000), 1_000_000_000);
    assert_eq!(limit(1 << 30), 256 << 20, "and leaves stacktune itself some memory");
    let of = |name: &str, label: &str| {
        let small = Bed { drives_bytes: vec![25_000_000_000; 4], ..bed(devices(), true) };
        let rows = planned(name, &small);
        rows.into_iter().find(|(of, _)| of == label).unwrap().1.unwrap().run.cache_limit_bytes
    };
    // Four fifths of 100 GB, of 75 GB beside parity, and of the hardware RAID's 400 GB.
    assert_eq!(of("table2", "1"), Some(2_000_000_000));
    assert_eq!(of("table5", "5b"), Some(1_500_000_000));
    assert_eq!(of("table5", "6b"), Some(10_000_000_000));
}
