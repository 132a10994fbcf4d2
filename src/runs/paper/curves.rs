//! The classes alone, and Figures 2, 3, 5 and 6: one knob over its values.

use super::experiment::Says::{About, Less, More};
use super::experiment::{
    Claim, Curve, Experiment, ExperimentRow, Published, ROW_TIME, ROW_WARMUP, RowTarget, Setup, Shape, claim,
    row,
};
use super::figure::Figure;
use super::figure::Figure::{
    BackgroundMbPerS, CyclesPerByte, FlushMeanUs, FlushP99Us, PointMbPerS, PointMeanUs, PointP99Us,
    ScanMbPerS, ScanMeanUs, ScanP99Us, TotalMbPerS, WalMbPerS,
};
use super::tables::{DIRECT, UNITS};

const SCAN_ALONE: [(&str, &str); 3] =
    [("point.enabled", "false"), ("wal.enabled", "false"), ("background.enabled", "false")];
const POINT_ALONE: [(&str, &str); 3] =
    [("scan.enabled", "false"), ("wal.enabled", "false"), ("background.enabled", "false")];

fn and(turns: &[(&'static str, &str)], more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    turns.iter().chain(more).map(|(knob, value)| (*knob, (*value).to_owned())).collect()
}

fn point(
    label: String,
    words: String,
    turns: Vec<(&'static str, String)>,
    published: Vec<Published>,
) -> ExperimentRow {
    let place = RowTarget::AnyBlock;
    ExperimentRow { label, words, place, turns, published, memory_percent: None, command: &[], lacking: None }
}

fn about(figure: Figure, value: f64) -> Published {
    Published { figure, value, to: None, sign: "≈" }
}

fn between(figure: Figure, value: f64, to: f64) -> Published {
    Published { figure, value, to: Some(to), sign: "" }
}

/// Each class alone, and the mix: the upper bounds of section 3.2.
pub(super) fn solo() -> Experiment {
    let base = [("io.interface", "libaio"), ("io.buffering", "direct"), ("wal.sync", "fdatasync")];
    let classes = ["scan", "point", "wal", "background"];
    let only = |class: &str| {
        let mut turns = and(&base, &[]);
        for (at, other) in classes.iter().enumerate() {
            const ENABLED: [&str; 4] = ["scan.enabled", "point.enabled", "wal.enabled", "background.enabled"];
            if *other != class && class != "mix" {
                turns.push((ENABLED[at], "false".into()));
            }
        }
        turns
    };
    let of = |class: &str, words: &str, published: Vec<Published>| ExperimentRow {
        label: class.into(),
        words: words.into(),
        place: RowTarget::Ext4,
        turns: only(class),
        published,
        memory_percent: None,
        command: &[],
        lacking: None,
    };
    Experiment {
        name: "solo",
        source: "section 3.2",
        about: "each class alone, and what is left of it in the mix",
        setup: Setup::Consumer,
        shape: Shape::Shares,
        columns: &[ScanMbPerS, PointMbPerS, BackgroundMbPerS, WalMbPerS, PointMeanUs, FlushMeanUs],
        rows: vec![
            of("scan", "the scan alone, 128 reads in flight", vec![Published::new(ScanMbPerS, 6800.0)]),
            of("point", "point reads alone, one at a time", vec![Published::new(PointMbPerS, 165.0)]),
            of("wal", "the WAL alone, fdatasync after each write", vec![between(WalMbPerS, 12.0, 14.0)]),
            of("background", "the background writer alone, at its rate", vec![]),
            of("mix", "all four together", vec![]),
        ],
        claims: vec![],
        assumptions: &[
            "The paper does not give interface and buffering of its upper bounds; here they are libaio and O_DIRECT on ext4, as in row 4 of Table 2, with fdatasync.",
            "The WAL and the background writer keep their rate of 250 MB/s when run alone.",
        ],
        remarks: &[
            UNITS,
            "Alone, the paper's point reads reached 10,560 a second, and its WAL 800 to 900 writes a second, each with a flush.",
        ],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

const READS_ASSUMED: &str = "The paper does not give interface and stack of these reads; here they are libaio and O_DIRECT on the array without a file system, by one thread.";

/// Figure 2: latency against throughput by depth.
pub(super) fn figure2() -> Experiment {
    let depths = [1_u64, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    let rows = depths.map(|depth| {
        let (text, batch) = (depth.to_string(), depth.min(32).to_string());
        let turns = and(&and_str(DIRECT), &[]);
        let mut turns = [turns, and(&SCAN_ALONE, &[])].concat();
        turns.extend([("scan.depth", text.clone()), ("scan.batch", batch)]);
        point(text.clone(), format!("random reads of 16 KiB, {text} in flight"), turns, vec![])
    });
    Experiment {
        name: "figure2",
        source: "Figure 2, section 4.4",
        about: "latency of random reads against their throughput, by depth",
        setup: Setup::Consumer,
        shape: Shape::Curves(&[
            Curve {
                title: "mean latency, µs, over scan MB/s",
                after_number: "",
                x: Some(ScanMbPerS),
                x_name: "depth",
                y: ScanMeanUs,
            },
            Curve {
                title: "99th percentile of latency, µs, over scan MB/s",
                after_number: "",
                x: Some(ScanMbPerS),
                x_name: "depth",
                y: ScanP99Us,
            },
        ]),
        columns: &[ScanMbPerS, ScanMeanUs, ScanP99Us, CyclesPerByte],
        rows: rows.to_vec(),
        claims: vec![],
        assumptions: &[
            READS_ASSUMED,
            "Reads are submitted in batches of 32, or of the depth if that is less.",
        ],
        remarks: &[
            "Only the text around the drawing gives figures: for more throughput mean latency rises by 80 µs and its 99th percentile by 300 µs; between which depths is unknown, so there is no factor to judge.",
        ],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

fn and_str(turns: &'static [(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    turns.to_vec()
}

/// The scan at depth 128 and single reads at depth 1, of each page size.
fn page_sizes(published: &[(&str, Published)]) -> Vec<ExperimentRow> {
    let mut rows = Vec::new();
    for kib in [4, 8, 16, 32, 64, 128, 256] {
        let (page, label) = (format!("{kib}KiB"), format!("{kib}K"));
        let given = published.iter().filter(|(of, _)| *of == label).map(|(_, number)| *number);
        let mut turns = [and(&and_str(DIRECT), &[]), and(&SCAN_ALONE, &[])].concat();
        turns.push(("io.page_size", page.clone()));
        let words = format!("random reads of {kib} KiB, 128 in flight");
        rows.push(point(label.clone(), words, turns, given.collect()));
        let mut turns = [and(&and_str(DIRECT), &[]), and(&POINT_ALONE, &[])].concat();
        turns.push(("io.page_size", page));
        rows.push(point(
            format!("{label} d1"),
            format!("random reads of {kib} KiB, one at a time"),
            turns,
            vec![],
        ));
    }
    rows
}

const PAGE_CURVES: &[Curve] = &[
    Curve {
        title: "MB/s, 128 in flight",
        after_number: "K",
        x: None,
        x_name: "page size, KiB",
        y: ScanMbPerS,
    },
    Curve {
        title: "cycles/byte, 128 in flight",
        after_number: "K",
        x: None,
        x_name: "page size, KiB",
        y: CyclesPerByte,
    },
    Curve {
        title: "mean latency, µs, one at a time",
        after_number: "K d1",
        x: None,
        x_name: "page size, KiB",
        y: PointMeanUs,
    },
];
const PAGE_COLUMNS: &[Figure] = &[ScanMbPerS, CyclesPerByte, ScanMeanUs, PointMeanUs, PointP99Us];
const LATENCY_ASSUMED: &str = "The paper does not say at which depth it took the latency of a page size; here it is depth 1, as in appendix A.1.";

/// Figure 3: page size on the consumer drives.
pub(super) fn figure3() -> Experiment {
    Experiment {
        name: "figure3",
        source: "Figure 3, section 4.5",
        about: "throughput, cycles and latency of random reads by page size",
        setup: Setup::Consumer,
        shape: Shape::Curves(PAGE_CURVES),
        columns: PAGE_COLUMNS,
        rows: page_sizes(&[
            ("4K", about(ScanMbPerS, 5000.0)),
            ("16K", about(ScanMbPerS, 6000.0)),
            ("64K", Published { sign: ">", ..about(ScanMbPerS, 11_000.0) }),
        ]),
        claims: vec![
            claim("4.5", "pages of 16 KiB read faster than of 4 KiB", ScanMbPerS, ("16K", "4K"), More),
            claim("4.5", "pages of 64 KiB read faster than of 16 KiB", ScanMbPerS, ("64K", "16K"), More),
            claim("4.5", "larger pages cost fewer cycles", CyclesPerByte, ("64K", "4K"), Less),
            claim("4.5", "64 KiB wait longer than 16 KiB", PointMeanUs, ("64K d1", "16K d1"), More)
                .stated(1.57),
        ],
        assumptions: &[READS_ASSUMED, LATENCY_ASSUMED],
        remarks: &["The paper's array reached 12 GB/s at most."],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

/// Figure 5: page size on both kinds of drives.
pub(super) fn figure5() -> Experiment {
    let half = claim("A.1", "16 KiB read about half of the peak", ScanMbPerS, ("16K", "256K"), About);
    let most = claim("A.1", "16 KiB read close to 90% of the peak", ScanMbPerS, ("16K", "256K"), About);
    Experiment {
        name: "figure5",
        source: "Figure 5, appendix A.1",
        about: "random reads by page size, consumer against enterprise drives",
        setup: Setup::Enterprise,
        shape: Shape::Curves(PAGE_CURVES),
        columns: PAGE_COLUMNS,
        rows: page_sizes(&[]),
        claims: vec![half.stated(0.5), most.on(Setup::Enterprise).stated(0.9)],
        assumptions: &[
            READS_ASSUMED,
            LATENCY_ASSUMED,
            "The peak is assumed to be what pages of 256 KiB reach; the paper compares with the specified 3,500 MB/s per drive.",
        ],
        remarks: &["At depth 1 the paper's enterprise drive waited slightly longer than its consumer drive."],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

/// Figure 6: the scan, with flushes that become rarer.
pub(super) fn figure6() -> Experiment {
    let every = ["1", "2", "4", "8", "16", "32", "64", "128", "256", "512"];
    let base = [("io.interface", "libaio"), ("io.buffering", "direct"), ("wal.sync", "fdatasync")];
    let mut rows: Vec<_> = every
        .into_iter()
        .map(|n| {
            let published = if n == "1" { vec![between(FlushMeanUs, 1000.0, 3000.0)] } else { vec![] };
            let turns = and(&base, &[("wal.sync_every", n)]);
            point(n.into(), format!("one fdatasync for every {n} writes of the WAL"), turns, published)
        })
        .collect();
    rows.push(row("none", "no fdatasync", RowTarget::AnyBlock, DIRECT, vec![]));
    let rarer = claim("A.1", "fewer flushes restore the scan's MB/s", ScanMbPerS, ("128", "1"), More);
    let alike = Claim { setup: Setup::Enterprise, stated: Some(1.0), says: About, ..rarer.clone() };
    Experiment {
        name: "figure6",
        source: "Figure 6, appendix A.1",
        about: "the scan while a WAL flushes ever more rarely",
        setup: Setup::Consumer,
        shape: Shape::Curves(&[
            Curve {
                title: "scan MB/s",
                after_number: "",
                x: None,
                x_name: "writes to a flush",
                y: ScanMbPerS,
            },
            Curve {
                title: "mean flush, µs",
                after_number: "",
                x: None,
                x_name: "writes to a flush",
                y: FlushMeanUs,
            },
        ]),
        columns: &[ScanMbPerS, WalMbPerS, TotalMbPerS, FlushMeanUs, FlushP99Us],
        rows,
        claims: vec![rarer, Claim { words: "fewer flushes do nothing for the scan", ..alike }],
        assumptions: &[
            "The paper does not give interface and stack of this load; here they are libaio and O_DIRECT on the array without a file system.",
        ],
        remarks: &[
            "A flush took 1 to 3 ms on the consumer drives, by whether their SLC cache was used up, and about 20 µs on the enterprise drives.",
        ],
        time: ROW_TIME,
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}
