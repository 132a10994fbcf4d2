//! Tables 2, 4, 5, 8 and 9: the mix of four classes on one stack after another.

use super::experiment::Says::{About, Less, More};
use super::experiment::{
    Claim, Experiment, ExperimentRow, Published, ROW_TIME, ROW_WARMUP, RowTarget, Setup, Shape, claim,
    numbers, row,
};
use super::figure::Figure;
use super::figure::Figure::{
    BackgroundMbPerS, CyclesPerByte, FlushMeanUs, PointMbPerS, PointMeanUs, ScanMbPerS, TotalMbPerS,
    WalMbPerS, WriteMbPerS,
};
use crate::settings::{Filesystem, Raid};

/// Derived from the paper's own counts and latencies: 1/578 µs × 16 KiB is 28.3 MB/s, or 27.0 MiB/s.
pub(super) const UNITS: &str = "The paper's MB agree with its latencies and counts only as MiB (27 \"MB/s\" of 16 KiB at 578 µs each, 165 of them at 10,560 reads/s): in the MB of this program its figures would be 4.9% higher. Factors do not change.";
/// Columns of Tables 2, 8 and 9.
const BY_CLASS: &[Figure] =
    &[ScanMbPerS, PointMbPerS, BackgroundMbPerS, WalMbPerS, TotalMbPerS, CyclesPerByte];
/// Columns of Tables 4 and 5.
const BY_SORT: &[Figure] = &[ScanMbPerS, PointMbPerS, WriteMbPerS, TotalMbPerS, CyclesPerByte];

const BASELINE: &[(&str, &str)] =
    &[("io.interface", "sync"), ("io.buffering", "cached"), ("wal.sync", "fdatasync")];
const NO_FDATASYNC: &[(&str, &str)] =
    &[("io.interface", "sync"), ("io.buffering", "cached"), ("wal.sync", "none")];
const ASYNC: &[(&str, &str)] =
    &[("io.interface", "io_uring"), ("io.buffering", "cached"), ("wal.sync", "none")];
/// Rows 4 and 5 of Table 2, and all of Tables 4 and 5.
pub(super) const DIRECT: &[(&str, &str)] =
    &[("io.interface", "libaio"), ("io.buffering", "direct"), ("wal.sync", "none")];
const FOUR_THREADS: (&str, &str) = ("scan.threads", "4");

const WORDS: [&str; 5] = [
    "baseline: pread/pwrite, page cache, fdatasync, ext4",
    "- fdatasync: pread/pwrite, page cache, ext4",
    "+ async. I/O: io_uring, page cache, ext4",
    "+ O_DIRECT: libaio, ext4",
    "- file system: libaio on the block device",
];

fn threads(turns: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [turns, &[FOUR_THREADS]].concat()
}

/// Rows 1 to 3 of Table 2, which Table 8 repeats.
fn buffered(published: [&[f64]; 3]) -> Vec<ExperimentRow> {
    let turns = [BASELINE, NO_FDATASYNC, ASYNC];
    (0..3)
        .map(|at| {
            let label = (at + 1).to_string();
            row(label, WORDS[at], RowTarget::Ext4, turns[at], numbers(BY_CLASS, published[at]))
        })
        .collect()
}

const CONSUMER: [&[f64]; 5] = [
    &[3503.0, 27.0, 250.0, 6.0, 3786.0, 6.92],
    &[5055.0, 39.0, 250.0, 250.0, 5595.0, 10.52],
    &[3439.0, 118.0, 252.0, 251.0, 4059.0, 7.61],
    &[4464.0, 74.0, 250.0, 249.0, 5036.0, 1.01],
    &[5443.0, 52.0, 251.0, 251.0, 5997.0, 0.76],
];

/// What the paper says of rows 1 to 3, in sections 4.1 to 4.3.
fn claims_of_buffered() -> Vec<Claim> {
    let wal_of_rate = Claim {
        below: ("1", BackgroundMbPerS),
        ..claim("4.1", "with fdatasync the WAL gets a fraction of its rate", WalMbPerS, ("1", "1"), Less)
    };
    vec![
        wal_of_rate,
        claim("4.2", "without fdatasync the scan gains", ScanMbPerS, ("2", "1"), More),
        claim("4.2", "without fdatasync point reads gain as much", PointMbPerS, ("2", "1"), More),
        claim("4.2", "without fdatasync the WAL reaches its rate", WalMbPerS, ("2", "1"), More),
        claim("4.3", "one io_uring thread can't keep up with the scan", ScanMbPerS, ("3", "2"), Less)
            .of_processor(),
        claim("4.3", "io_uring alone saves some of the cycles", CyclesPerByte, ("3", "2"), Less),
    ]
}

fn also(mut row: ExperimentRow, more: &[(Figure, f64)]) -> ExperimentRow {
    row.published.extend(more.iter().map(|&(figure, value)| Published::new(figure, value)));
    row
}

/// Table 2: from the traditional stack to asynchronous I/O on the block device.
pub(super) fn table2() -> Experiment {
    let mut rows = buffered([CONSUMER[0], CONSUMER[1], CONSUMER[2]]);
    rows[0] = also(rows[0].clone(), &[(PointMeanUs, 578.0), (FlushMeanUs, 2600.0)]);
    rows.push(row("4", WORDS[3], RowTarget::Ext4, DIRECT, numbers(BY_CLASS, CONSUMER[3])));
    rows.push(row("5", WORDS[4], RowTarget::Block, DIRECT, numbers(BY_CLASS, CONSUMER[4])));
    let mut claims = claims_of_buffered();
    claims.extend([
        claim("4.3", "the page cache costs cycles that O_DIRECT saves", CyclesPerByte, ("3", "4"), More),
        claim("4.3", "traditional I/O costs ten times the cycles", CyclesPerByte, ("2", "4"), More),
        claim("4.4", "without a file system the scan gains", ScanMbPerS, ("5", "4"), More),
        claim("4.4", "ext4 costs a third more cycles", CyclesPerByte, ("4", "5"), More),
        claim("4.4", "point reads wait longer while the scan is faster", PointMbPerS, ("5", "4"), Less),
    ]);
    Experiment {
        name: "table2",
        source: "Table 2, sections 4.1 to 4.4",
        about: "the OS I/O stack, removed layer by layer",
        setup: Setup::Consumer,
        shape: Shape::Table,
        columns: BY_CLASS,
        rows,
        claims,
        assumptions: &[],
        remarks: &[UNITS],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

/// Table 4: file systems.
pub(super) fn table4() -> Experiment {
    let on = RowTarget::Filesystem;
    let at = |label: &str, words: &str, place, values: &[f64]| {
        row(label, words, place, DIRECT, numbers(BY_SORT, values))
    };
    Experiment {
        name: "table4",
        source: "Table 4, section 4.4",
        about: "what each file system costs",
        setup: Setup::Consumer,
        shape: Shape::Table,
        columns: BY_SORT,
        rows: vec![
            at("4", "ext4", on(Filesystem::Ext4), &[4464.0, 74.0, 499.0, 5036.0, 1.01]),
            at("4b", "XFS", on(Filesystem::Xfs), &[5395.0, 53.0, 502.0, 5950.0, 0.79]),
            at(
                "4c",
                "Btrfs, without copy-on-write",
                on(Filesystem::Btrfs),
                &[3364.0, 94.0, 500.0, 3957.0, 2.42],
            ),
            at("4d", "F2FS", on(Filesystem::F2fs), &[4786.0, 67.0, 504.0, 5358.0, 0.99]),
            at("5", "block device", on(Filesystem::None), &[5443.0, 52.0, 502.0, 5997.0, 0.76]),
        ],
        claims: vec![
            claim("4.4", "without a file system the scan gains on ext4", ScanMbPerS, ("5", "4"), More),
            claim("4.4", "ext4 costs a third more cycles than none", CyclesPerByte, ("4", "5"), More),
            claim("4.4", "XFS scans faster than ext4", ScanMbPerS, ("4b", "4"), More),
            claim("4.4", "XFS moves nearly what the block device does", TotalMbPerS, ("4b", "5"), About),
            claim("4.4", "XFS costs hardly more cycles than none", CyclesPerByte, ("4b", "5"), About),
            claim("4.4", "ext4 moves less than XFS", TotalMbPerS, ("4", "4b"), Less),
            claim("4.4", "Btrfs moves less than XFS", TotalMbPerS, ("4c", "4b"), Less),
            claim("4.4", "F2FS moves less than XFS", TotalMbPerS, ("4d", "4b"), Less),
            claim("4.4", "Btrfs moves least: less than ext4", TotalMbPerS, ("4c", "4"), Less),
            claim("4.4", "Btrfs moves least: less than F2FS", TotalMbPerS, ("4c", "4d"), Less),
            claim("4.4", "Btrfs costs the most cycles: more than ext4", CyclesPerByte, ("4c", "4"), More),
        ],
        assumptions: &["The paper gives no options of mkfs and mount; here they are the tools' defaults."],
        remarks: &[],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

/// Table 5: RAID levels, in software and in hardware.
pub(super) fn table5() -> Experiment {
    let raid = RowTarget::Raid;
    let at = |label: &str, words: &str, place, values: &[f64]| {
        row(label, words, place, DIRECT, numbers(BY_SORT, values))
    };
    Experiment {
        name: "table5",
        source: "Table 5, section 4.6",
        about: "what each RAID level costs, in software and in hardware",
        setup: Setup::Consumer,
        shape: Shape::Table,
        columns: BY_SORT,
        rows: vec![
            at("5", "md RAID 0", raid(Raid::Md0), &[5443.0, 52.0, 502.0, 5997.0, 0.76]),
            at("5b", "md RAID 5", raid(Raid::Md5), &[4511.0, 45.0, 493.0, 5049.0, 1.31]),
            at("5c", "md RAID 10", raid(Raid::Md10), &[4974.0, 50.0, 498.0, 5522.0, 0.89]),
            at("6", "hardware RAID 0", RowTarget::HardwareRaid("0"), &[5553.0, 56.0, 502.0, 6111.0, 1.66]),
            at("6b", "hardware RAID 5", RowTarget::HardwareRaid("5"), &[132.0, 1.0, 217.0, 350.0, 7.57]),
            at("6c", "hardware RAID 10", RowTarget::HardwareRaid("10"), &[4107.0, 44.0, 510.0, 4661.0, 0.48]),
            at("7", "no RAID, pages interleaved", raid(Raid::None), &[5665.0, 53.0, 499.0, 6217.0, 0.76]),
        ],
        claims: vec![
            claim("4.6", "md RAID 0 moves nearly what the drives do", TotalMbPerS, ("5", "7"), About),
            claim("4.6", "md RAID 0 costs no noticeable cycles", CyclesPerByte, ("5", "7"), About),
            claim("4.6", "RAID 5 moves less than RAID 0", TotalMbPerS, ("5b", "5"), Less),
            claim("4.6", "RAID 5 nearly doubles the cycles", CyclesPerByte, ("5b", "5"), More),
            claim("4.6", "RAID 10 moves less than RAID 0", TotalMbPerS, ("5c", "5"), Less),
            claim("4.6", "RAID 10 slows the scan down", ScanMbPerS, ("5c", "5"), Less),
            claim("4.6", "hardware RAID 0 costs more cycles than md", CyclesPerByte, ("6", "5"), More),
            claim("4.6", "hardware RAID 5 moves less than md", TotalMbPerS, ("6b", "5b"), Less),
            claim("4.6", "hardware RAID 10 moves less than md", TotalMbPerS, ("6c", "5c"), Less),
        ],
        assumptions: &[
            "The paper gives no chunk size; here it is stack.chunk (by default mdadm's 512 KiB).",
            "The paper does not say whether its redundant arrays had been resynchronised; here they are assumed clean (stack.assume_clean).",
        ],
        remarks: &[],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

const DEPTH_OF_THREADS: &str = "The paper does not give the depth of each of its four scan threads; here each keeps 128 reads in flight.";

/// Table 8: the consumer drives with four scan threads in rows 4 and 5.
pub(super) fn table8() -> Experiment {
    let mut rows = buffered([CONSUMER[0], CONSUMER[1], CONSUMER[2]]);
    let four = threads(DIRECT);
    let (ext4, block) = (
        numbers(BY_CLASS, &[6527.0, 20.0, 252.0, 251.0, 7049.0, 1.43]),
        numbers(BY_CLASS, &[6685.0, 17.0, 249.0, 249.0, 7200.0, 1.03]),
    );
    rows.push(row("4", format!("{}, four scan threads", WORDS[3]), RowTarget::Ext4, &four, ext4));
    rows.push(row("5", format!("{}, four scan threads", WORDS[4]), RowTarget::Block, &four, block));
    let one = |label: &str, at: usize, place| {
        let words = format!("{}, one scan thread (Table 2)", WORDS[at]);
        row(label, words, place, DIRECT, numbers(BY_CLASS, CONSUMER[at]))
    };
    rows.extend([one("4×1", 3, RowTarget::Ext4), one("5×1", 4, RowTarget::Block)]);
    let mut claims = claims_of_buffered();
    claims.extend([
        claim("A.2", "one scan thread had left drives idle (ext4)", ScanMbPerS, ("4", "4×1"), More)
            .of_processor(),
        claim("A.2", "one scan thread had left drives idle (block)", ScanMbPerS, ("5", "5×1"), More)
            .of_processor(),
        claim("A.2", "saturated, the scan is alike with and without ext4", ScanMbPerS, ("5", "4"), About),
    ]);
    Experiment {
        name: "table8",
        source: "Table 8, appendix A.2",
        about: "Table 2 with four scan threads, on consumer drives",
        setup: Setup::Consumer,
        shape: Shape::Table,
        columns: BY_CLASS,
        rows,
        claims,
        assumptions: &[DEPTH_OF_THREADS],
        remarks: &[],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

/// Table 9: the same on enterprise drives.
pub(super) fn table9() -> Experiment {
    let mut rows = buffered([
        &[1513.0, 12.0, 6.0, 76.0, 1608.0, 228.60],
        &[1474.0, 12.0, 13.0, 250.0, 1749.0, 209.23],
        &[565.0, 16.0, 37.0, 159.0, 778.0, 262.26],
    ]);
    rows[2].turns.push((FOUR_THREADS.0, FOUR_THREADS.1.to_owned()));
    let four = threads(DIRECT);
    let (ext4, block) = (
        numbers(BY_CLASS, &[5445.0, 77.0, 250.0, 249.0, 6021.0, 1.71]),
        numbers(BY_CLASS, &[9806.0, 27.0, 246.0, 250.0, 10328.0, 1.03]),
    );
    rows.push(row("4", format!("{}, four scan threads", WORDS[3]), RowTarget::Ext4, &four, ext4));
    rows.push(row("5", format!("{}, four scan threads", WORDS[4]), RowTarget::Block, &four, block));
    let here = |source, words, figure, of, says| claim(source, words, figure, of, says).on(Setup::Enterprise);
    Experiment {
        name: "table9",
        source: "Table 9, appendix A.2",
        about: "Table 2 with four scan threads, on enterprise drives",
        setup: Setup::Enterprise,
        shape: Shape::Table,
        columns: BY_CLASS,
        rows,
        claims: vec![
            here("A.2", "the page cache slows the scan down", ScanMbPerS, ("3", "4"), Less).of_processor(),
            here("A.2", "the page cache costs cycles in its locks", CyclesPerByte, ("3", "4"), More),
            here("A.2", "ext4 is still slower than none", ScanMbPerS, ("4", "5"), Less).of_processor(),
            here("A.2", "ext4 costs more cycles than none", CyclesPerByte, ("4", "5"), More),
        ],
        assumptions: &[
            DEPTH_OF_THREADS,
            "The paper does not say which rows ran four scan threads here; these are 3, 4 and 5, as rows 1 and 2 have 128 anyway.",
        ],
        remarks: &[],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}
