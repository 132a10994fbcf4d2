//! The figures of a traced run, from its I/Os to the verdict on a claim: each by hand.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::json;
use crate::meter::flag::FlagKind;
use crate::runs::paper::KeptFigure::{
    self, Discards, FirstQuarter, Gini, Idle, LastQuarter, Length, LengthSegmented, MaxToMean, Miss1, Miss5,
    Miss10, P99ToP50, ReadDepth, ReadDepthHigh, ReadKib, TimesWritten, UnalignedLarge, UnalignedSmall,
    WriteDepth, WriteDepthHigh, WriteKib, WrittenAFlush, Zombies,
};
use crate::runs::paper::{self, Beside, Figure, RowResult, Ruling, Run};
use crate::runs::record::fixture::{self, Like};
use crate::runs::record::{CONTRACT, Outcome, Recording, Writer};
use crate::settings::profile::Sweep;
use crate::trace::{LostEvents, Op, Trace, Traced, TracedDrive, TracedIo, Watched, read_bytes};
use crate::ui::report::contract_kept;
use crate::ui::report::reproduce::Reproduction;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const DRIVE: TracedDrive = TracedDrive(8 << 20);
/// In a form that has completions.
const EVENTS: &str = "7 D write 0 4096 0.000000000 0 True\n0 C write 0 4096 0.000000005 0 True\n";

/// A recording with that file.
fn recorded(dir: &Path, name: &str, kept: Option<&Value>) -> Recording {
    flagged(dir, name, kept, None)
}

/// The same with that flag in each window.
fn flagged(dir: &Path, name: &str, kept: Option<&Value>, flag: Option<FlagKind>) -> Recording {
    let dir = dir.join(name);
    let mut windows = fixture::windows(Like::default());
    for window in &mut windows {
        window.flags.extend(flag.map(|kind| kind.flag("As it is.")));
    }
    let mut writer = Writer::create(&dir, &fixture::header()).unwrap();
    windows.iter().for_each(|window| writer.window(window).unwrap());
    writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
    if let Some(kept) = kept {
        std::fs::write(dir.join(CONTRACT), json::lines(kept).unwrap()).unwrap();
    }
    Recording::open(&dir).unwrap()
}

/// Two blocks of 128 KiB, each at the beginning of a MiB; a flush; a read; half of the first again; half of the second
/// discarded. One after the other: 5 ns each, and 5 ns between.
fn traced() -> Traced {
    let ios = [
        (Op::Write, 0, 128 * KIB),
        (Op::Write, MIB, 128 * KIB),
        (Op::Flush, 0, 0),
        (Op::Read, 0, 4 * KIB),
        (Op::Write, 0, 64 * KIB),
        (Op::Discard, MIB + 64 * KIB, 64 * KIB),
    ];
    let io = |(at, (op, offset_bytes, bytes)): (u64, (Op, u64, u64))| TracedIo {
        issued_ns: 10 * at,
        completed_ns: Some(10 * at + 5),
        offset_bytes,
        bytes: bytes as u32,
        drive: DRIVE,
        pid: 1,
        op,
    };
    let trace = Trace {
        ios: (0..).zip(ios).map(io).collect(),
        processes: Vec::new(),
        form: read_bytes(EVENTS.as_bytes(), "x").unwrap().form,
        lost: LostEvents::default(),
        unpaired: 0,
        requeued: 0,
        notes: Vec::new(),
    };
    Traced { trace, start_ns: 0, overrun: 0, cpu: Duration::ZERO, is_cut: false, is_own: false }
}

fn watched() -> Watched {
    Watched { name: "sda".into(), drive: DRIVE, start_bytes: 0, bytes: 4 * MIB, model: None, serial: None }
}

#[test]
fn each_figure_is_that_of_the_trace() {
    let dir = tempfile::tempdir().unwrap();
    let kept = contract_kept(&traced(), &[watched()], Some(256 * KIB));
    let recording = recorded(dir.path(), "run", Some(&kept));
    assert!(recording.notes.is_empty(), "{:?}", recording.notes);
    // 4 of 194 lookups miss: the two MiB alternate, except for the read and the write in a row in the first.
    let misses = 400.0 / 194.0;
    let expected: [(KeptFigure, f64); 23] = [
        (ReadKib, 4.0),
        (WriteKib, 128.0),
        (ReadDepth, 1.0),
        (WriteDepth, 1.0),
        (ReadDepthHigh, 1.0),
        (WriteDepthHigh, 1.0),
        // Five I/Os of 5 ns take 25 of the 55 ns; a flush takes no place.
        (Idle, 100.0 * 30.0 / 55.0),
        (WrittenAFlush, 0.327_68),
        (Discards, 20.0),
        (Miss1, misses),
        (Miss5, misses),
        (Miss10, misses),
        // The 64 pages of the first block lie in two flash blocks, or out of place; of 256 KiB of files.
        (UnalignedSmall, 0.5),
        (UnalignedLarge, 0.5),
        // 16 blocks of 64 pages have something of the 96 valid pages, in a space of 2,048.
        (Length, 0.5),
        (LengthSegmented, 0.5),
        (Zombies, 100.0 * (1.0 - 96.0 / 1024.0)),
        // 32 pages were written twice, 96 once.
        (P99ToP50, 2.0),
        (MaxToMean, 1.6),
        (Gini, 0.15),
        (TimesWritten, 160.0 / 2048.0),
        // 64 of the 512 pages of the first quarter, and none of the last.
        (FirstQuarter, 12.5),
        (LastQuarter, 0.0),
    ];
    for (figure, expected) in expected {
        let found = figure.of_run(&recording).unwrap_or(f64::NAN);
        assert!((found - expected).abs() < 1e-9, "{figure:?}: {found} for {expected}");
        assert_eq!(Figure::Kept(figure).of_run(&recording), Some(found));
    }
    let obstacle = |figure: KeptFigure| figure.obstacle(&recording).unwrap_or_default();
    assert_eq!(obstacle(Miss1), "");
    assert!(obstacle(Length).contains("the zombie curve still moves"), "{}", obstacle(Length));
    assert!(obstacle(Gini).contains("written 0.1 times, not 50"), "{}", obstacle(Gini));
}

#[test]
fn what_is_not_whole_has_no_figures() {
    let dir = tempfile::tempdir().unwrap();
    let why = |name: &str, kept: Option<&Value>| {
        let recording = recorded(dir.path(), name, kept);
        assert_eq!(Miss1.of_run(&recording), None, "{name}");
        Miss1.obstacle(&recording).unwrap()
    };
    assert_eq!(why("untraced", None), "the run was not traced");
    let mut lost = traced();
    lost.trace.lost = LostEvents { all: 7, completions: 6 };
    let lost = contract_kept(&lost, &[watched()], None);
    assert_eq!(why("lost", Some(&lost)), "events are missing from its trace: 7");
    // Without completions, figures that go by issues are still known.
    let mut ends = traced();
    ends.trace.lost = LostEvents { all: 7, completions: 7 };
    let recording = recorded(dir.path(), "ends", Some(&contract_kept(&ends, &[watched()], None)));
    assert_eq!((Miss1.obstacle(&recording), WriteKib.obstacle(&recording)), (None, None));
    assert_eq!(WriteKib.of_run(&recording), Some(128.0));
    assert_eq!((WriteDepth.of_run(&recording), Idle.of_run(&recording)), (None, None));
    assert_eq!(WriteDepth.obstacle(&recording).unwrap(), "completions are missing from its trace: 7");
    let cut = contract_kept(&Traced { is_cut: true, ..traced() }, &[watched()], None);
    assert_eq!(why("cut", Some(&cut)), "its trace ended before the run did");
    let other = Watched { name: "sdb".into(), drive: TracedDrive(9 << 20), ..watched() };
    let two = contract_kept(&traced(), &[watched(), other.clone()], None);
    assert_eq!(why("two", Some(&two)), "its trace is of 2 drives");
    let none = contract_kept(&traced(), &[other], None);
    assert_eq!(why("none", Some(&none)), "sdb: nothing was issued to it");
}

/// A row with these misses at 1%, in percent.
fn row(dir: &Path, label: &str, misses: &[f64], lost: u64) -> RowResult {
    let run = |(at, percent): (usize, &f64)| {
        let drive = json!({ "name": "sda", "locality": [{ "ratio": percent / 100.0 }] });
        let kept = json!({ "schema": 1, "lost": lost, "is_cut": false, "drives": [drive] });
        recorded(dir, &format!("{label}-{at}"), Some(&kept))
    };
    RowResult { label: label.into(), runs: misses.iter().enumerate().map(run).collect(), reason: None }
}

#[test]
fn claims_are_judged_by_traces_that_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let experiment = paper::find("contract-figure6").unwrap();
    let judged = |words: &str, rows: &[RowResult]| {
        let claim = experiment.claims.iter().find(|claim| claim.words == words).unwrap();
        paper::claim_judged(claim, &experiment, rows)
    };
    let xfs = "XFS reuses space: writes miss less than on ext4";
    let rows = |lost| {
        [row(dir.path(), "update ext4", &[2.0, 2.05, 1.95], 0), {
            let mut of = row(dir.path(), &format!("update xfs lost {lost}"), &[1.0, 1.02, 0.98], lost);
            of.label = "update xfs".into();
            of
        }]
    };
    let whole = judged(xfs, &rows(0));
    assert_eq!((whole.ruling, whole.why), (Ruling::Holds, None));
    assert!((whole.factor.unwrap() - 0.5).abs() < 1e-9);
    std::fs::remove_dir_all(dir.path()).unwrap();
    std::fs::create_dir(dir.path()).unwrap();
    let lost = judged(xfs, &rows(3));
    let why = lost.why.unwrap();
    assert_eq!(
        (lost.ruling, &*why),
        (Ruling::Unclear, "row update xfs: events are missing from its trace: 3")
    );
    // Counts do not depend on what the load waited for, but on whether the drive was in order.
    let flagged_rows = |kind: FlagKind| {
        [("update ext4", [2.0, 2.05, 1.95]), ("update xfs", [1.0, 1.02, 0.98])].map(|(label, misses)| {
            let run = |(at, percent): (usize, f64)| {
                let drive = json!({ "name": "sda", "locality": [{ "ratio": percent / 100.0 }] });
                let kept = json!({ "schema": 1, "lost": 0, "is_cut": false, "drives": [drive] });
                flagged(dir.path(), &format!("{kind:?}-{label}-{at}"), Some(&kept), Some(kind))
            };
            let runs = misses.into_iter().enumerate().map(run).collect();
            RowResult { label: label.into(), runs, reason: None }
        })
    };
    assert_eq!(judged(xfs, &flagged_rows(FlagKind::ProcessorsFull)).ruling, Ruling::Holds);
    let degraded = judged(xfs, &flagged_rows(FlagKind::Degraded));
    assert_eq!(degraded.ruling, Ruling::Unclear);
    assert!(degraded.why.unwrap().contains("degraded"));
    let varmail = judged("ext4's locality groups scatter Varmail's files", &[]);
    assert_eq!(varmail.ruling, Ruling::NotJudged);
    assert!(varmail.why.unwrap().contains("--beside takes its rows from contract-varmail"));
}

/// Figure 6 of these rows, with other reproductions beside it.
fn figure6(rows: &[RowResult], beside: Vec<Vec<RowResult>>) -> Reproduction {
    let experiment = paper::find("contract-figure6").unwrap();
    let sweep = Sweep::default();
    let run = Run { experiment: &experiment, sweep: &sweep, sets: &[], no_cache_limit: None };
    let other = |rows| Beside { name: "programs".into(), rows, same: false };
    Reproduction::of(&run, rows, &beside.into_iter().map(other).collect::<Vec<_>>())
}

fn left_out(label: &str, why: &str) -> RowResult {
    RowResult { label: label.into(), reason: Some(why.into()), ..RowResult::default() }
}

#[test]
fn rows_that_an_experiment_lacks_are_taken_from_another_on_the_same_host_alone() {
    let dir = tempfile::tempdir().unwrap();
    let lacked = left_out("leveldb-get ext4", "a program");
    let rows = [row(dir.path(), "get ext4", &[2.0, 2.05, 1.95], 0), lacked];
    let leveldb = row(dir.path(), "leveldb-get ext4", &[1.0, 1.02, 0.98], 0);
    let judged = |rows_of_other: Vec<RowResult>| {
        let shown = figure6(&rows, vec![rows_of_other]);
        let claim = shown.claims.iter().find(|claim| claim.source == "O9").unwrap();
        let row = shown.rows.iter().find(|row| row.label == "leveldb-get ext4").unwrap();
        (claim.here.ruling, row.runs, shown.deviations.join("\n"), shown.beside[0].own_rows.len())
    };
    let (ruling, runs, deviations, own) = judged(vec![leveldb.clone()]);
    assert_eq!((ruling, runs, own), (Ruling::Holds, 3, 0));
    assert!(
        deviations.contains("row leveldb-get ext4 is of programs: it ran at another time"),
        "{deviations}"
    );

    let move_host = |run: &mut Recording| run.host["hostname"] = json!("another");
    let move_folder = |run: &mut Recording| {
        run.profile_toml.push_str("[target]\nfiles = { dir = \"/elsewhere\", count = 1, size = \"1GiB\" }\n");
    };
    for change in [&move_host as &dyn Fn(&mut Recording), &move_folder] {
        let mut elsewhere = leveldb.clone();
        change(&mut elsewhere.runs[1]);
        let (ruling, runs, deviations, own) = judged(vec![elsewhere]);
        assert_eq!((ruling, runs, own), (Ruling::NotJudged, 0, 1));
        assert!(!deviations.contains("programs"), "{deviations}");
    }
}

#[test]
fn a_row_that_could_not_run_there_either_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let rows = [row(dir.path(), "get ext4", &[2.0], 0), left_out("varmail f2fs", "a program")];
    let no_f2fs = left_out("varmail f2fs", "this kernel has no f2fs");
    let mut others = vec![row(dir.path(), "varmail ext4", &[1.0], 0), no_f2fs];
    let shown = |beside: &[&[RowResult]]| {
        let shown = figure6(&rows, beside.iter().map(|rows| rows.to_vec()).collect());
        let claim = shown.claims.iter().find(|claim| claim.source == "O12").unwrap();
        let row = shown.rows.iter().find(|row| row.label == "varmail f2fs").unwrap();
        (row.runs, row.reason.clone(), claim.here.why.clone(), shown.deviations.join("\n"))
    };
    let why = Some("this kernel has no f2fs".to_owned());
    let (runs, reason, of_claim, deviations) = shown(&[&others]);
    assert_eq!((runs, &reason, &of_claim), (0, &why, &why));
    assert!(!deviations.contains("varmail f2fs"), "{deviations}");
    let ran = [row(dir.path(), "varmail f2fs", &[1.0], 0)];
    assert_eq!(shown(&[&others, &ran]).0, 1, "runs come before a reason, in any order");
    others[0].runs[0].host["hostname"] = json!("another");
    let reason = shown(&[&others]).1;
    assert_eq!(reason.as_deref(), Some("a program"), "another host's kernel says nothing of this one's");
}
