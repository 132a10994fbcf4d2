//! Reports of made-up reproductions.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::meter::window::{Flag, Window};
use crate::runs::paper::{self, Beside, Figure, RowResult, Ruling, Run};
use crate::runs::pitfalls::Circumstances;
use crate::runs::record::fixture::{self, Like};
use crate::runs::record::{Header, Outcome, Recording, Writer};
use crate::settings::profile::Sweep;

const TOML: &str =
    "[target]\nfiles = { dir = \"/d\", count = 2, size = \"1GiB\" }\n[io]\nbuffering = \"cached\"\n";

fn recorded(dir: &Path, header: &Header, windows: &[Window]) -> Recording {
    let mut writer = Writer::create(dir, header).unwrap();
    for window in windows {
        writer.window(window).unwrap();
    }
    writer.finish(&fixture::totals(windows), &Outcome::Complete).unwrap();
    Recording::open(dir).unwrap()
}

fn header() -> Header {
    let circumstances = Circumstances { cached: true, ..Circumstances::default() };
    Header { profile_toml: TOML.into(), circumstances, ..fixture::header() }
}

/// A row; its repeats have these numbers of scan I/Os per window.
fn row(dir: &Path, label: &str, scans: &[u64], change: &dyn Fn(&mut Window)) -> RowResult {
    let run = |(repeat, &scan_ios): (usize, &u64)| {
        let mut windows = fixture::windows(Like { scan_ios, ..Like::default() });
        windows.iter_mut().for_each(change);
        recorded(&dir.join(format!("{label}-{repeat}")), &header(), &windows)
    };
    RowResult { label: label.into(), runs: scans.iter().enumerate().map(run).collect(), reason: None }
}

fn shown(name: &str, rows: &[RowResult], beside: &[Beside]) -> Reproduction {
    let experiment = paper::find(name).unwrap();
    let sweep = Sweep { warmup: Duration::from_secs(5), repeat: 3, ..Sweep::default() };
    let sets = ["wal.rate=25MB/s".to_owned()];
    let run = Run { experiment: &experiment, sweep: &sweep, sets: &sets, no_cache_limit: Some("no cgroups") };
    Reproduction::of(&run, rows, beside)
}

fn text_of(shown: &Reproduction) -> String {
    let text = reproduction(shown);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    text
}

fn ruling<'a>(shown: &'a Reproduction, words: &str) -> (Ruling, Option<&'a str>) {
    let claim = shown.claims.iter().find(|claim| claim.words == words).unwrap();
    (claim.here.ruling, claim.here.why.as_deref())
}

fn table2(dir: &Path) -> Vec<RowResult> {
    let same = |_: &mut Window| {};
    let flagged = |window: &mut Window| {
        window.classes[0].flags = vec![Flag {
            text: "data fits memory".into(),
            why: "It came from memory.".into(),
            forbids_verdict: true,
        }];
    };
    let mut rows = vec![
        row(dir, "1", &[40_000, 42_000, 41_000], &same),
        row(dir, "2", &[60_000, 61_000, 59_000], &same),
        row(dir, "3", &[70_000, 72_000, 71_000], &same),
        row(dir, "4", &[80_000, 80_500, 81_000], &flagged),
    ];
    rows.push(RowResult { label: "5".into(), runs: Vec::new(), reason: Some("name --devices".into()) });
    rows
}

#[test]
fn a_table_is_shown_beside_the_paper_and_others() {
    let dir = tempfile::tempdir().unwrap();
    let rows = table2(dir.path());
    let other = Beside {
        name: "reproduce-table2".into(),
        rows: vec![row(&dir.path().join("other"), "1", &[30_000], &|_| {})],
        same: true,
    };
    let plain = Beside {
        name: "mine".into(),
        rows: vec![row(&dir.path().join("plain"), "mine (demo)", &[50_000], &|_| {})],
        same: false,
    };
    let shown = shown("table2", &rows, &[other, plain]);
    insta::assert_snapshot!(text_of(&shown));

    assert_eq!(ruling(&shown, "without fdatasync the scan gains"), (Ruling::Holds, None));
    let (ruled, why) = ruling(&shown, "one io_uring thread can't keep up with the scan");
    assert_eq!((ruled, why), (Ruling::Reversed, None));
    let (ruled, why) = ruling(&shown, "without fdatasync point reads gain as much");
    assert_eq!((ruled, why), (Ruling::Unclear, Some("the repeats overlap")));
    let (ruled, why) = ruling(&shown, "traditional I/O costs ten times the cycles");
    assert_eq!((ruled, why), (Ruling::Unclear, Some("row 4: scan flagged `data fits memory`")));
    let (_, why) = ruling(&shown, "without a file system the scan gains");
    assert_eq!(why, Some("row 5 has no runs"));

    let json = serde_json::to_value(&shown).unwrap();
    assert_eq!(json["rows"][0]["published"][0]["value"], 3503.0);
    assert_eq!(json["rows"][0]["published"][0]["figure"], "scan_mb_per_s");
    assert_eq!(json["claims"][1]["ruling"], "holds");
    let scan = rows[0].runs.iter().map(|run| run.summary.classes.scan.mb_per_s).fold(0.0, f64::max);
    assert_eq!(json["rows"][0]["here"]["scan_mb_per_s"]["high"], scan);
}

#[test]
fn what_was_put_into_simulated_and_emulated_drives_proves_no_claim() {
    use crate::meter::flag::FlagKind;
    // Where a program is the load, the window has the flag, and no class does.
    for (kind, why, of_program) in [
        (FlagKind::Simulated, "simulated", false),
        (FlagKind::Emulated, "emulated", false),
        (FlagKind::Emulated, "emulated", true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let unreal = |window: &mut Window| {
            let flags = vec![kind.flag("They are not real.")];
            if of_program {
                window.flags = flags;
            } else {
                window.classes.iter_mut().for_each(|class| class.flags.clone_from(&flags));
            }
        };
        let rows = [("1", 40_000), ("2", 60_000)]
            .map(|(label, scan)| row(dir.path(), label, &[scan, scan + 100, scan + 200], &unreal));
        let shown = shown("table2", &rows, &[]);
        assert_eq!(ruling(&shown, "without fdatasync the scan gains"), (Ruling::NotJudged, Some(why)));
        let text = text_of(&shown);
        assert!(
            text.contains(&format!("not judged ({why})")) && text.contains("0 holds, 0 reversed"),
            "{text}"
        );
        assert_eq!(serde_json::to_value(&shown).unwrap()["claims"][1]["ruling"], "not_judged");
    }
}

#[test]
fn a_worker_at_its_limit_supports_only_claims_about_the_processor() {
    let dir = tempfile::tempdir().unwrap();
    let bound = |window: &mut Window| {
        window.classes[0].flags = vec![Flag {
            text: crate::meter::flag::FlagKind::WorkerBound.text().into(),
            why: "It may be the limit.".into(),
            forbids_verdict: true,
        }];
    };
    let rows = [("1", 40_000), ("2", 60_000), ("3", 50_000)]
        .map(|(label, scan)| row(dir.path(), label, &[scan, scan + 100, scan + 200], &bound));
    let shown = shown("table2", &rows, &[]);
    assert_eq!(ruling(&shown, "one io_uring thread can't keep up with the scan").0, Ruling::Holds);
    let (ruled, why) = ruling(&shown, "without fdatasync the scan gains");
    assert_eq!((ruled, why), (Ruling::Unclear, Some("row 2: scan flagged `worker-bound`")));
}

#[test]
fn a_scan_limited_to_a_rate_has_no_ruling() {
    let dir = tempfile::tempdir().unwrap();
    let rated = |window: &mut Window| window.classes[0].target_mb_per_s = Some(1000.0);
    let rows = [("1", 40_000), ("2", 60_000)]
        .map(|(label, scan)| row(dir.path(), label, &[scan, scan + 100, scan + 200], &rated));
    let shown = shown("table2", &rows, &[]);
    let (ruled, why) = ruling(&shown, "without fdatasync the scan gains");
    assert_eq!((ruled, why), (Ruling::Unclear, Some("row 2: scan was limited to a rate")));
    let (_, why) = ruling(&shown, "without fdatasync the WAL reaches its rate");
    assert_eq!(why, Some("the repeats overlap"), "a rate is what the paper gave the WAL");
}

#[test]
fn a_row_that_began_with_warm_drives_is_a_deviation() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = table2(dir.path());
    let warm = "nvme1n1 is still at 60 °C after 30m: not cooled down to 45 °C";
    let cool = "the drives were at 45 °C or below when the run began";
    for (row, note) in [(0, cool), (1, warm), (2, warm)] {
        rows[row].runs[1].host["notes"] = serde_json::json!([note]);
    }
    let shown = shown("table2", &rows, &[]);
    let warnings: Vec<_> = shown.deviations.iter().filter(|text| text.contains("°C")).collect();
    assert_eq!(warnings, [&format!("rows 2, 3: {warm}")]);
}

#[test]
fn failed_runs_do_not_count_as_repeats() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = table2(dir.path());
    let summary = &mut rows[0].runs[1].summary;
    summary.classes.scan.errors = 1;
    rows[0].reason = Some("the drive is gone".into());
    let shown = shown("table2", &rows, &[]);
    let (_, why) = ruling(&shown, "without fdatasync the scan gains");
    assert_eq!(why, Some("2 repeats, but 3 are needed"));
    assert!(text_of(&shown).contains("not all runs: the drive is gone"));
}

#[test]
fn the_mix_is_shown_as_a_share_of_each_class_alone() {
    let dir = tempfile::tempdir().unwrap();
    let rows = vec![
        row(dir.path(), "scan", &[80_000, 81_000, 82_000], &|_| {}),
        row(dir.path(), "mix", &[40_000, 40_000, 40_500], &|_| {}),
    ];
    let shown = shown("solo", &rows, &[]);
    let scan = &shown.shares[0];
    let figure = |row: usize| rows[row].spread(Figure::ScanMbPerS).unwrap();
    assert_eq!(scan.share, Some(figure(1).median / figure(0).median));
    assert_eq!(scan.range.map(|(low, _)| low), Some(figure(1).low / figure(0).high));
    assert!(shown.shares[3].share.is_none(), "the background writer was not run alone");
    let text = text_of(&shown);
    insta::assert_snapshot!(text[text.find("% of solo").unwrap()..]);
}

#[test]
fn page_sizes_are_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<_> = [("4K", 50_000), ("16K", 60_000), ("64K", 110_000), ("64K d1", 9_000)]
        .map(|(label, scan)| row(dir.path(), label, &[scan], &|_| {}))
        .into();
    let text = text_of(&shown("figure3", &rows, &[]));
    let chart = &text[text.find("MB/s, 128 in flight").unwrap()..text.find("Claims of the paper").unwrap()];
    insta::assert_snapshot!(chart);
}

#[test]
fn latency_is_drawn_over_throughput_with_the_depth_at_each_point() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<_> = [("1", 10_000), ("16", 50_000), ("128", 80_000)]
        .map(|(label, scan)| row(dir.path(), label, &[scan], &|_| {}))
        .into();
    let text = text_of(&shown("figure2", &rows, &[]));
    let chart = &text[text.find("mean latency, µs, over").unwrap()..text.find("99th percentile of").unwrap()];
    assert_eq!(chart.matches('●').count(), 3, "{chart}");
    insta::assert_snapshot!(chart);
}

/// A row of 60 one-second windows, whose scan drops after 30.
fn falling(dir: &Path, to: u64, header: &Header) -> RowResult {
    let scan_ios = |second: u64| if second < 30 { 60_000 } else { to };
    let windows: Vec<_> = (0..60)
        .map(|second| {
            fixture::window(second, Like { scan_ios: scan_ios(second), warmup: 0, ..Like::default() })
        })
        .collect();
    let run = recorded(&dir.join(to.to_string()), header, &windows);
    RowResult { label: "5".into(), runs: vec![run], reason: None }
}

#[test]
fn changes_of_a_long_run_are_shown_with_the_bytes_written_until_then() {
    let dir = tempfile::tempdir().unwrap();
    let toml = "[target]\ndevices = [\"/dev/nvme0n1\", \"/dev/nvme1n1\"]\n[stack]\nstate = \"trimmed\"\n";
    let drives = Header { profile_toml: toml.into(), ..fixture::header() };
    let fell = shown("figure7", &[falling(dir.path(), 30_000, &drives)], &[]);
    let found = &fell.over_time.as_ref().unwrap().changes.found;
    assert_eq!((found.len(), found[0].at_s), (1, 30.0));
    assert_eq!(found[0].written_bytes, 30 * 2 * (25_000_000 / 16_384) * 16_384);
    let text = text_of(&fell);
    insta::assert_snapshot!(text[text.find("scan MB/s\n").unwrap()..]);

    let steady = text_of(&shown("figure7", &[falling(dir.path(), 60_000, &drives)], &[]));
    assert!(steady.contains("scan MB/s: no change seen within 3.00 GB written in 1m 00s"), "{steady}");
    assert!(!steady.contains("SLC cache that is full"), "{steady}");

    let other = Beside {
        name: "old-drives".into(),
        rows: vec![falling(&dir.path().join("other"), 20_000, &drives)],
        same: true,
    };
    let both = shown("figure7", &[falling(&dir.path().join("both"), 60_000, &drives)], &[other]);
    assert_eq!(both.over_time.as_ref().unwrap().beside[0].letter, "A");
    let both = text_of(&both);
    assert!(both.contains("\nA: scan MB/s\n"), "{both}");
    assert!(both.contains("  scan MB/s: no change seen"), "{both}");
    assert!(both.contains("  A: scan MB/s: 991 → 336 (−66%) at 30s"), "{both}");

    let on_files = falling(&dir.path().join("files"), 30_000, &header());
    let on_files = text_of(&shown("figure7", &[on_files], &[]));
    assert!(on_files.contains("says nothing of a drive's cache"), "{on_files}");
    assert!(!on_files.contains("SLC cache that is full"), "{on_files}");
}

#[test]
fn what_has_not_run_has_no_figures_and_no_verdicts() {
    for experiment in paper::all() {
        let shown = shown(experiment.name, &[], &[]);
        let text = text_of(&shown);
        let lacking =
            |label: &str| experiment.rows.iter().any(|row| row.label == label && row.lacking.is_some());
        for claim in &shown.claims {
            // A claim that this build can't run says so.
            let never = lacking(claim.above.0) || lacking(claim.below.0);
            let ruling = if never { Ruling::NotJudged } else { Ruling::Unclear };
            assert_eq!(claim.here.ruling, ruling, "{}", claim.words);
        }
        assert!(!text.contains("\n  here "), "{text}");
        for row in &experiment.rows {
            assert!(text.contains(&format!("\n{} ", row.label)), "{}: {}", experiment.name, row.label);
        }
    }
}

#[test]
fn the_list_fits_and_names_all() {
    let text = list(&paper::all());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}
