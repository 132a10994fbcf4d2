//! Figures 3 to 9 of He et al. 2017: how well applications on file systems keep the rules of drives. Of the
//! drawings, only the directions given in the text are reproduced.

use std::time::Duration;

use super::experiment::Says::{Less, More};
use super::experiment::{
    Claim, Experiment, ExperimentRow, Published, ROW_WARMUP, RowTarget, Says, Setup, Shape, claim, row,
};
use super::figure::Figure;
use super::figure::Figure::Kept;
use super::kept_figure::KeptFigure::{
    Discards, FirstQuarter, Gini, Idle, LastQuarter, Length, LengthSegmented, MaxToMean, Miss1, Miss5,
    Miss10, P99ToP50, ReadDepth, ReadDepthHigh, ReadKib, TimesWritten, UnalignedLarge, UnalignedSmall,
    WriteDepth, WriteDepthHigh, WriteKib, WrittenAFlush, Zombies,
};
use crate::settings::{Filesystem, Named};

type Turns = &'static [(&'static str, &'static str)];
type Rows = (&'static str, &'static str);

/// The paper's file systems.
pub(super) const FILESYSTEMS: [(Filesystem, &str); 3] =
    [(Filesystem::Ext4, "ext4"), (Filesystem::Xfs, "XFS"), (Filesystem::F2fs, "F2FS")];

/// Common to all rows of RocksDB: pairs as in the paper; files, memtables and L1 as small as `LevelDB`'s, so
/// that a space of 1 GiB has several levels.
const ROCKSDB: Turns = &[
    ("stack.mount_options", "discard"),
    ("load.engine", "rocksdb"),
    ("kv.key_size", "16B"),
    ("kv.value_size", "100B"),
    ("rocksdb.direct_reads", "false"),
    ("rocksdb.direct_flush", "false"),
    ("rocksdb.compression", "none"),
    ("rocksdb.file_size", "2MiB"),
    ("rocksdb.write_buffer", "4MiB"),
    ("rocksdb.level_base", "10MiB"),
    ("rocksdb.compactions", "16"),
    ("rocksdb.block_cache", "8MiB"),
    ("scan.enabled", "false"),
    ("point.enabled", "false"),
    ("wal.enabled", "false"),
    ("background.enabled", "false"),
];

/// Puts to keys drawn from all loaded ones, as fast as possible.
const UPDATE: Turns = &[
    ("kv.pairs", "2000000"),
    ("kv.order", "random"),
    ("background.enabled", "true"),
    ("background.depth", "4"),
    ("background.rate", "none"),
];
/// Puts of ascending keys, at a rate that does not fill the space before the end.
const INSERT: Turns = &[
    ("kv.pairs", "1000"),
    ("kv.order", "sequential"),
    ("wal.enabled", "true"),
    ("wal.sync", "none"),
    ("wal.rate", "3MB/s"),
];
/// Gets of random keys, one after the other.
const GET: Turns =
    &[("kv.pairs", "2000000"), ("kv.order", "random"), ("point.enabled", "true"), ("point.depth", "1")];
/// All pairs in key order.
const SCAN: Turns = &[
    ("kv.pairs", "2000000"),
    ("kv.order", "sequential"),
    ("scan.enabled", "true"),
    ("scan.depth", "1"),
    ("scan.whole", "true"),
];

/// Sequential reads of pages, one after the other.
const PAGES: Turns = &[
    ("io.interface", "sync"),
    ("io.page_size", "1MiB"),
    ("stack.data", "512MiB"),
    ("scan.depth", "1"),
    ("point.enabled", "false"),
    ("wal.enabled", "false"),
    ("background.enabled", "false"),
];

const NO_LEVELDB: &str = "LevelDB runs as a program: --beside takes its rows from contract-leveldb";
const NO_SQLITE: &str = "SQLite runs as a program: --beside takes its rows from contract-sqlite";
const NO_VARMAIL: &str = "Varmail runs as a program: --beside takes its rows from contract-varmail";

const ON_FILES: &str = "Rows are RocksDB's alone, on a partition of one drive, or on a loop device of 1 GiB with --files. The paper also has LevelDB, SQLite and Varmail: --beside adds rows of contract-leveldb, contract-sqlite and contract-varmail from the same host, so that conclusions about both are judged.";
const SMALL_FILES: &str = "RocksDB has files of 2 MiB, memtables of 4 MiB and an L1 of 10 MiB, so that a small space has several levels; the paper gives none of its options but 16 threads that compact.";
const FROM_RUN: &str = "Each trace begins when the data is loaded: what mkfs and the loading wrote is on no drive by model. What is still in memory at the end has not reached the drive.";
pub(super) const BY_MODEL: &str = "Misses, unaligned bytes and zombies are counted on drives of flash by model, with the authors' parameters; `stacktune help contract` explains each.";

pub(super) const SPREAD: &str = "Observation 13, that F2FS spreads SQLite's data, is not judged: it is about queries, and SQLite's load here inserts.";
pub(super) const THAN: &str =
    "Where the text calls a row high without naming another, it is compared with ext4's, and with XFS's.";

fn rocksdb(name: &str, words: &str, (filesystem, on): (Filesystem, &str), turns: Turns) -> ExperimentRow {
    let label = format!("{name} {}", filesystem.name());
    let words = format!("RocksDB on {on}: {words}");
    let own = |(path, _): &&(&str, &str)| turns.iter().any(|(turned, _)| turned == path);
    let common = ROCKSDB.iter().filter(|turn| !own(turn)).copied();
    let turns: Vec<_> = common.chain(turns.iter().copied()).collect();
    row(label, words, RowTarget::Partition(filesystem), &turns, Vec::new())
}

fn updates() -> Vec<ExperimentRow> {
    FILESYSTEMS.map(|on| rocksdb("update", "puts of random keys", on, UPDATE)).into()
}

fn inserts() -> Vec<ExperimentRow> {
    FILESYSTEMS.map(|on| rocksdb("insert", "puts of ascending keys", on, INSERT)).into()
}

fn gets() -> Vec<ExperimentRow> {
    FILESYSTEMS.map(|on| rocksdb("get", "gets of random keys", on, GET)).into()
}

fn scans() -> Vec<ExperimentRow> {
    FILESYSTEMS.map(|on| rocksdb("scan", "all pairs by their keys", on, SCAN)).into()
}

/// Rows of applications that this program does not have.
fn lacking(labels: &[&'static str]) -> Vec<ExperimentRow> {
    let of = |label: &&'static str| {
        let (words, why) = match label.split(' ').next() {
            Some("leveldb") => ("LevelDB", NO_LEVELDB),
            Some("leveldb-get") => ("LevelDB: gets of random keys", NO_LEVELDB),
            Some("sqlite-rb") => ("SQLite with a rollback journal", NO_SQLITE),
            Some("sqlite-wal") => ("SQLite with a write-ahead log", NO_SQLITE),
            _ => ("Varmail", NO_VARMAIL),
        };
        let row = row(*label, words, RowTarget::Partition(Filesystem::Ext4), &[], Vec::new());
        ExperimentRow { lacking: Some(why), ..row }
    };
    labels.iter().map(of).collect()
}

pub(super) fn says(
    source: &'static str,
    words: &'static str,
    figure: Figure,
    rows: Rows,
    says: Says,
) -> Claim {
    Claim { of_processor: false, ..claim(source, words, figure, rows, says).on(Setup::Sata) }
}

/// An experiment of these rows, figures and claims.
pub(super) fn experiment(
    name: &'static str,
    source: &'static str,
    about: &'static str,
    columns: &'static [Figure],
    (rows, claims): (Vec<ExperimentRow>, Vec<Claim>),
) -> Experiment {
    Experiment {
        name,
        source,
        about,
        setup: Setup::Sata,
        shape: Shape::Table,
        columns,
        rows,
        claims,
        assumptions: &[ON_FILES, SMALL_FILES, FROM_RUN, BY_MODEL, THAN],
        remarks: &[],
        time: Duration::from_mins(2),
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}

/// Figure 3: sizes and depth.
pub(super) fn figure3() -> Experiment {
    let pages = |label: &str, words: &str, buffering: &'static str, published| {
        let turns = [PAGES, &[("io.buffering", buffering)]].concat();
        row(label, words, RowTarget::Partition(Filesystem::Ext4), &turns, published)
    };
    let read_ahead = vec![Published::new(Kept(ReadKib), 128.0)];
    let mut rows = [updates(), gets(), scans()].concat();
    rows.push(pages("cached ext4", "pages of 1 MiB read through the page cache", "cached", read_ahead));
    rows.push(pages("direct ext4", "the same past it", "direct", Vec::new()));
    rows.extend(lacking(&[
        "leveldb ext4",
        "leveldb-get ext4",
        "sqlite-rb ext4",
        "sqlite-rb f2fs",
        "sqlite-wal ext4",
        "varmail ext4",
    ]));
    let writes = |words, above, below| says("O1", words, Kept(WriteKib), (above, below), More);
    let (rocksdb, leveldb) = ("update ext4", "leveldb ext4");
    let claims = vec![
        writes("RocksDB writes more at once than SQLite's rollback journal", rocksdb, "sqlite-rb ext4"),
        writes("… than its write-ahead log", rocksdb, "sqlite-wal ext4"),
        writes("… than Varmail", rocksdb, "varmail ext4"),
        writes("LevelDB writes more at once than SQLite's rollback journal", leveldb, "sqlite-rb ext4"),
        writes("… than its write-ahead log, too", leveldb, "sqlite-wal ext4"),
        writes("… than Varmail, too", leveldb, "varmail ext4"),
        says(
            "O2",
            "with read-ahead LevelDB's reads are larger than RocksDB's",
            Kept(ReadKib),
            ("leveldb-get ext4", "get ext4"),
            More,
        ),
        says(
            "O5",
            "direct reads reach the drive whole, cached ones by read-ahead",
            Kept(ReadKib),
            ("direct ext4", "cached ext4"),
            More,
        ),
    ];
    let columns = &[Kept(ReadKib), Kept(WriteKib), Kept(ReadDepth), Kept(WriteDepth)];
    let of = experiment(
        "contract-figure3",
        "Figure 3 (He et al. 2017)",
        "request scale: sizes of requests, and depth",
        columns,
        (rows, claims),
    );
    Experiment {
        remarks: &[
            "Observation 6, that barriers of file systems limit requests further, is not judged: it is about flushes for each fsync of an application.",
            "Observation 7, that F2FS fragments B-trees, is not judged: it is about sequential queries, and SQLite's load here inserts.",
        ],
        ..of
    }
}

/// Figure 4: depth while RocksDB compacts.
pub(super) fn figure4() -> Experiment {
    let mut rows = updates();
    let published = Published { sign: "≈", ..Published::new(Kept(WrittenAFlush), 2.0) };
    rows[0].published.push(published);
    rows.extend(lacking(&["leveldb ext4"]));
    let claims = vec![says(
        "O3",
        "RocksDB's compactions use few more slots than LevelDB's",
        Kept(WriteDepthHigh),
        ("update ext4", "leveldb ext4"),
        More,
    )];
    let columns = &[Kept(ReadDepthHigh), Kept(WriteDepthHigh), Kept(Idle), Kept(WrittenAFlush)];
    let of = experiment(
        "contract-figure4",
        "Figure 4 (He et al. 2017)",
        "request scale: depth during compactions",
        columns,
        (rows, claims),
    );
    Experiment {
        remarks: &[
            "Observation 4, that barriers drain the queue, is no factor between two rows: the table has the share of time with nothing open, and the bytes written for each flush, about 2 MB in the paper. A drive without a write cache gets no flushes.",
        ],
        ..of
    }
}

/// Figure 5: discards.
pub(super) fn figure5() -> Experiment {
    let mut rows = updates();
    rows.extend(lacking(&["sqlite-rb ext4", "sqlite-rb f2fs", "sqlite-wal ext4"]));
    let claims = vec![
        says(
            "O8",
            "ext4 discards at once, F2FS later and together",
            Kept(Discards),
            ("update ext4", "update f2fs"),
            More,
        ),
        says("O8", "… and so does XFS", Kept(Discards), ("update xfs", "update f2fs"), More),
        says(
            "O8",
            "SQLite's rollback journal is discarded at once by ext4, later by F2FS",
            Kept(Discards),
            ("sqlite-rb ext4", "sqlite-rb f2fs"),
            More,
        ),
        says(
            "O8",
            "SQLite reuses its write-ahead log, and discards little",
            Kept(Discards),
            ("sqlite-wal ext4", "sqlite-rb ext4"),
            Less,
        ),
    ];
    experiment(
        "contract-figure5",
        "Figure 5 (He et al. 2017)",
        "request scale: the share of discards",
        &[Kept(Discards)],
        (rows, claims),
    )
}

/// Figure 6: misses of a mapping cache.
pub(super) fn figure6() -> Experiment {
    let mut rows = [updates(), gets()].concat();
    rows.extend(lacking(&[
        "leveldb-get ext4",
        "sqlite-rb f2fs",
        "sqlite-rb ext4",
        "varmail ext4",
        "varmail xfs",
        "varmail f2fs",
    ]));
    let misses = |source, words, rows, direction| says(source, words, Kept(Miss1), rows, direction);
    let claims = vec![
        misses(
            "O9",
            "without read-ahead RocksDB's queries miss more than LevelDB's",
            ("get ext4", "leveldb-get ext4"),
            More,
        ),
        misses("O10", "XFS reuses space: writes miss less than on ext4", ("update xfs", "update ext4"), Less),
        misses("O10", "… than on F2FS", ("update xfs", "update f2fs"), Less),
        misses("O10", "… and so do queries, against ext4", ("get xfs", "get ext4"), Less),
        misses("O10", "… against F2FS", ("get xfs", "get f2fs"), Less),
        misses(
            "O11",
            "ext4's locality groups scatter Varmail's files",
            ("varmail ext4", "varmail xfs"),
            More,
        ),
        misses(
            "O12",
            "F2FS in its in-place mode scatters Varmail's files",
            ("varmail f2fs", "varmail xfs"),
            More,
        ),
    ];
    let columns = &[Kept(Miss1), Kept(Miss5), Kept(Miss10)];
    let of = experiment(
        "contract-figure6",
        "Figure 6 (He et al. 2017)",
        "locality: misses of a mapping cache",
        columns,
        (rows, claims),
    );
    Experiment { remarks: &[SPREAD], ..of }
}

/// Figure 7: unaligned bytes.
pub(super) fn figure7() -> Experiment {
    let mut rows = [updates(), inserts()].concat();
    rows.extend(lacking(&["sqlite-rb ext4", "sqlite-rb f2fs", "varmail ext4", "varmail f2fs"]));
    let small = |source, words, rows, direction| says(source, words, Kept(UnalignedSmall), rows, direction);
    let by_block = |words, label| Claim {
        above: (label, Kept(UnalignedLarge)),
        ..small("O14", words, (label, label), More)
    };
    let claims = vec![
        by_block("larger blocks are less aligned, on ext4", "update ext4"),
        by_block("… on XFS", "update xfs"),
        by_block("… on F2FS", "update f2fs"),
        small("O14", "F2FS is more aligned than ext4", ("update f2fs", "update ext4"), Less),
        small("O14", "… than XFS", ("update f2fs", "update xfs"), Less),
        small("O15", "F2FS is not sequential for SQLite", ("sqlite-rb f2fs", "sqlite-rb ext4"), More),
        small("O16", "appending on F2FS is not sequential: Varmail", ("varmail f2fs", "varmail ext4"), More),
    ];
    let columns = &[Kept(UnalignedSmall), Kept(UnalignedLarge)];
    experiment(
        "contract-figure7",
        "Figure 7 (He et al. 2017)",
        "alignment: unaligned bytes by those of the files",
        columns,
        (rows, claims),
    )
}

/// Figure 8: the zombie curve.
pub(super) fn figure8() -> Experiment {
    let rows = [updates(), inserts()].concat();
    let segmented = |words, label| Claim {
        above: (label, Kept(LengthSegmented)),
        ..says("O19", words, Kept(Length), (label, label), Less)
    };
    let length = |words, rows| says("O21", words, Kept(Length), rows, More);
    let claims = vec![
        says(
            "O17",
            "log structure does not avoid zombies: random keys leave more than ascending ones",
            Kept(Zombies),
            ("update ext4", "insert ext4"),
            More,
        ),
        segmented("segments shorten the curve, on ext4", "update ext4"),
        segmented("… on XFS", "update xfs"),
        segmented("… on F2FS", "update f2fs"),
        length("F2FS discards late: a longer curve than ext4's", ("update f2fs", "update ext4")),
        length("… than XFS's", ("update f2fs", "update xfs")),
    ];
    let columns = &[Kept(Length), Kept(LengthSegmented), Kept(Zombies)];
    let of = experiment(
        "contract-figure8",
        "Figure 8 (He et al. 2017)",
        "grouping by death time: zombies",
        columns,
        (rows, claims),
    );
    Experiment {
        remarks: &[
            "Observations 18 and 20, that journals and directories are mixed with other data, are not judged: they take SQLite, and two instances on a file system.",
        ],
        ..of
    }
}

/// Figure 9: writes of pages.
pub(super) fn figure9() -> Experiment {
    let mut rows = updates();
    rows.extend(lacking(&["sqlite-rb ext4", "sqlite-rb f2fs"]));
    let spread = |source, words, rows| says(source, words, Kept(MaxToMean), rows, More);
    let biased = |words, label| Claim {
        above: (label, Kept(FirstQuarter)),
        ..says("O23", words, Kept(LastQuarter), (label, label), More)
    };
    let claims = vec![
        spread(
            "O22",
            "F2FS has peaks with RocksDB, as it writes checkpoints to fixed places: more than ext4",
            ("update f2fs", "update ext4"),
        ),
        spread("O22", "… than XFS", ("update f2fs", "update xfs")),
        biased(
            "ext4 allocates from low addresses on: its first quarter is written more than its last",
            "update ext4",
        ),
        biased("… and so does XFS", "update xfs"),
        spread(
            "O24",
            "file systems that write in place keep lifetimes apart",
            ("sqlite-rb ext4", "sqlite-rb f2fs"),
        ),
    ];
    let columns = &[
        Kept(TimesWritten),
        Kept(P99ToP50),
        Kept(MaxToMean),
        Kept(Gini),
        Kept(FirstQuarter),
        Kept(LastQuarter),
    ];
    let of = experiment(
        "contract-figure9",
        "Figure 9 (He et al. 2017)",
        "uniform data lifetime: writes of pages",
        columns,
        (rows, claims),
    );
    Experiment {
        remarks: &[
            "The factors of observation 22 (20, 23 and 2,600) are of SQLite and Varmail, by areas of the file system, which a trace does not show.",
        ],
        time: Duration::from_mins(10),
        ..of
    }
}
