//! Section 4.7: polled I/O and I/O from userspace, compared with the kernel's. Table 6 is part of it.

use super::experiment::Says::{About, Less, More};
use super::experiment::{
    Claim, Experiment, ExperimentRow, Published, ROW_TIME, ROW_WARMUP, RowTarget, Says, Setup, Shape, claim,
    row,
};
use super::figure::Figure;
use super::figure::Figure::{CyclesPerByte, PointMbPerS, PointMeanUs, PointP99Us, ScanMbPerS, TotalMbPerS};
use crate::host::system::spdk;
use crate::settings::{Interface, Named};

type Turns = &'static [(&'static str, &'static str)];

/// A way to do I/O: its name in labels, its knobs, and the paper's latencies of reads of 512 B, 4 KiB and 16
/// KiB in µs (Table 6).
struct Way {
    name: &'static str,
    turns: Turns,
    latencies_us: Option<[f64; 3]>,
}

const fn way(name: &'static str, turns: Turns, latencies_us: Option<[f64; 3]>) -> Way {
    Way { name, turns, latencies_us }
}

const IOPOLL: (&str, &str) = ("io.completion", "iopoll");
const SQPOLL: (&str, &str) = ("io.submission", "sqpoll");
/// Every interface that does I/O, the paper's and newer ones.
const WAYS: [Way; 10] = [
    way("SPDK", &[("io.interface", "spdk")], Some([2.7, 6.5, 20.1])),
    way("vfio", &[("io.interface", "vfio")], None),
    way("commands polled", &[("io.interface", "nvme_passthrough"), IOPOLL], None),
    way("commands", &[("io.interface", "nvme_passthrough")], None),
    way("io_uring polled+sqpoll", &[("io.interface", "io_uring"), IOPOLL, SQPOLL], None),
    way("io_uring polled", &[("io.interface", "io_uring"), IOPOLL], None),
    way("io_uring sqpoll", &[("io.interface", "io_uring"), SQPOLL], None),
    way("io_uring", &[("io.interface", "io_uring")], Some([4.4, 8.3, 22.3])),
    way("libaio", &[("io.interface", "libaio")], Some([5.6, 10.3, 26.8])),
    way("pread", &[("io.interface", "sync")], Some([4.9, 8.7, 23.1])),
];
const PAGES: [(&str, &str); 3] = [("512", "512B"), ("4096", "4KiB"), ("16384", "16KiB")];

const POINT_ALONE: Turns =
    &[("scan.enabled", "false"), ("wal.enabled", "false"), ("background.enabled", "false")];
const SCAN_ALONE: Turns =
    &[("point.enabled", "false"), ("wal.enabled", "false"), ("background.enabled", "false")];
/// The paper's depth and batch for slowed polling.
const DEEP: Turns = &[("scan.depth", "1024"), ("scan.batch", "256")];
const SLEEP: Turns = &[("io.poll_sleep", "50us")];
/// As in row 5 of Table 2 and row 7 of Table 5.
const MIX: Turns = &[("io.buffering", "direct"), ("wal.sync", "none")];

const ON_DRIVES: &str = "Interfaces that poll drives use them as they are: rows run on the drives themselves, pages interleaved over them, without RAID (row 7 of Table 5: also 0.76 cycles per byte) and not trimmed first.";
const MEANS: &str = "The paper does not say whether its latencies are means or medians; here they are means of service latency.";

/// Why this build lacks that way, if it does.
fn lacking(turns: Turns) -> Option<&'static str> {
    let interface = Interface::named(turns.iter().find(|(knob, _)| *knob == "io.interface")?.1)?;
    (interface.capabilities().own_process && spdk::BUILT.is_none()).then_some(spdk::HOW_TO_GET)
}

fn on_drives(label: String, words: String, turns: &[Turns], published: Vec<Published>) -> ExperimentRow {
    let lacking = turns.iter().find_map(|turns| lacking(turns));
    ExperimentRow { lacking, ..row(label, words, RowTarget::Drives, &turns.concat(), published) }
}

/// The rows of Table 6, for each interface.
fn latencies() -> Vec<ExperimentRow> {
    let mut rows = Vec::new();
    for (at, (bytes, page)) in PAGES.into_iter().enumerate() {
        for Way { name, turns, latencies_us } in &WAYS {
            let read: [(&'static str, &'static str); 2] =
                [("io.buffering", "direct"), ("io.page_size", page)];
            let published = latencies_us.map(|us| Published::new(PointMeanUs, us[at]));
            let words = format!("{name}, one read of {page} at a time");
            let mut row = on_drives(
                format!("{name} {bytes}"),
                words,
                &[POINT_ALONE, turns],
                published.into_iter().collect(),
            );
            row.turns.extend(read.map(|(knob, value)| (knob, value.to_owned())));
            rows.push(row);
        }
    }
    rows
}

/// The paper's statements about two interfaces in Table 6; those about SPDK also for `vfio`.
fn claims_of_latencies() -> Vec<Claim> {
    let of = |words, rows, says| claim("4.7, Table 6", words, PointMeanUs, rows, says).on(Setup::Optane);
    vec![
        of("libaio waits twice as long as SPDK, 512 B", ("libaio 512", "SPDK 512"), More),
        of("io_uring waits longer than SPDK, 512 B", ("io_uring 512", "SPDK 512"), More),
        of("io_uring waits longer than SPDK, 16 KiB", ("io_uring 16384", "SPDK 16384"), More),
        of("libaio waits twice as long as vfio, for SPDK, 512 B", ("libaio 512", "vfio 512"), More)
            .stated(5.6 / 2.7),
        of("io_uring waits longer than vfio, for SPDK, 512 B", ("io_uring 512", "vfio 512"), More)
            .stated(4.4 / 2.7),
        of("io_uring waits longer than vfio, for SPDK, 16 KiB", ("io_uring 16384", "vfio 16384"), More)
            .stated(22.3 / 20.1),
        of("libaio waits longer than io_uring, 512 B", ("libaio 512", "io_uring 512"), More),
        of("libaio waits longer than io_uring, 4 KiB", ("libaio 4096", "io_uring 4096"), More),
        of("libaio waits longer than io_uring, 16 KiB", ("libaio 16384", "io_uring 16384"), More),
        of("pread waits longer than io_uring, 512 B", ("pread 512", "io_uring 512"), More),
        of("pread waits longer than io_uring, 4 KiB", ("pread 4096", "io_uring 4096"), More),
        of("pread waits longer than io_uring, 16 KiB", ("pread 16384", "io_uring 16384"), More),
    ]
}

/// Table 6: latency at depth 1, by interface and page size.
pub(super) fn table6() -> Experiment {
    Experiment {
        name: "table6",
        source: "Table 6, section 4.7",
        about: "latency of one read at a time, by interface and page size",
        setup: Setup::Optane,
        shape: Shape::Table,
        columns: &[PointMeanUs, PointP99Us, PointMbPerS],
        rows: latencies(),
        claims: claims_of_latencies(),
        assumptions: &[MEANS, ON_DRIVES],
        remarks: &[],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

/// The mix of four classes, and reads alone in large batches, through the kernel and bypassing it.
fn mixes() -> Vec<ExperimentRow> {
    let number = |figure, value| Published::new(figure, value);
    let over = |sign, figure, value| Published { sign, ..Published::new(figure, value) };
    let at = |label: &str, words: &str, turns: &[Turns], published: Vec<Published>| {
        on_drives(label.into(), words.into(), turns, published)
    };
    let (spdk, vfio) = (WAYS[0].turns, WAYS[1].turns);
    let libaio: Turns = &[("io.interface", "libaio")];
    // As in row 7 of Table 5.
    let kernel = vec![number(ScanMbPerS, 5665.0), number(PointMbPerS, 53.0), number(CyclesPerByte, 0.76)];
    let slowed = vec![over(">", ScanMbPerS, 7000.0), number(CyclesPerByte, 0.12)];
    let reads: Turns = &[("io.buffering", "direct")];
    vec![
        at("kernel", "the mix over libaio (Table 5, row 7)", &[MIX, libaio], kernel),
        at(
            "SPDK",
            "the mix over SPDK, polled without sleep",
            &[MIX, spdk],
            vec![number(CyclesPerByte, 2.76)],
        ),
        at("vfio", "the mix over vfio, polled without sleep", &[MIX, vfio], vec![]),
        at(
            "SPDK slowed",
            "reads of 16 KiB over SPDK, 50 µs of sleep",
            &[SCAN_ALONE, DEEP, SLEEP, reads, spdk],
            slowed,
        ),
        at(
            "vfio slowed",
            "reads of 16 KiB over vfio, 50 µs of sleep",
            &[SCAN_ALONE, DEEP, SLEEP, reads, vfio],
            vec![],
        ),
        at("SPDK busy", "the same reads over SPDK without sleep", &[SCAN_ALONE, DEEP, reads, spdk], vec![]),
        at("vfio busy", "the same reads over vfio without sleep", &[SCAN_ALONE, DEEP, reads, vfio], vec![]),
        at("kernel reads", "the same reads over libaio", &[SCAN_ALONE, DEEP, reads, libaio], vec![]),
    ]
}

/// The paper's findings on polling in 4.7, for SPDK and for `vfio` instead.
fn claims_of_mixes() -> Vec<Claim> {
    let of = |words, figure: Figure, rows, says: Says| claim("4.7", words, figure, rows, says);
    let (more, slowed) = (2.76 / 0.76, 0.12 / 0.76);
    vec![
        of("over SPDK the mix costs more cycles", CyclesPerByte, ("SPDK", "kernel"), More),
        of("over vfio, for SPDK, the mix costs more cycles", CyclesPerByte, ("vfio", "kernel"), More)
            .stated(more),
        of("over SPDK the scan is no faster", ScanMbPerS, ("SPDK", "kernel"), About).stated(1.0),
        of("over vfio, for SPDK, the scan is no faster", ScanMbPerS, ("vfio", "kernel"), About).stated(1.0),
        of("slowed polling over SPDK costs few cycles", CyclesPerByte, ("SPDK slowed", "kernel"), Less),
        of("slowed polling over vfio costs few cycles", CyclesPerByte, ("vfio slowed", "kernel"), Less)
            .stated(slowed),
        of(
            "slowed, SPDK still reads at the drives' full rate",
            ScanMbPerS,
            ("SPDK slowed", "SPDK busy"),
            About,
        )
        .stated(1.0),
        of(
            "slowed, vfio still reads at the drives' full rate",
            ScanMbPerS,
            ("vfio slowed", "vfio busy"),
            About,
        )
        .stated(1.0),
    ]
}

/// Section 4.7: the cost of polling from userspace, the savings by sleeping, and Table 6.
pub(super) fn section47() -> Experiment {
    Experiment {
        name: "section4.7",
        source: "section 4.7, with Table 6",
        about: "drives driven from userspace: cycles of polling, slowed polling, latency",
        setup: Setup::Consumer,
        shape: Shape::Table,
        columns: &[ScanMbPerS, PointMbPerS, TotalMbPerS, CyclesPerByte, PointMeanUs],
        rows: [mixes(), latencies()].concat(),
        claims: [claims_of_mixes(), claims_of_latencies()].concat(),
        assumptions: &[
            ON_DRIVES,
            MEANS,
            "The paper's mix over SPDK ran in fio with four polling threads; here each class has one.",
        ],
        remarks: &["With SPDK and slowed polling the paper read over 7 GB/s of its four drives."],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}
