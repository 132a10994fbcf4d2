//! The applications of He et al. 2017 that run as programs: figures 3 and 5 to 8 for `SQLite` with two
//! journal modes, `LevelDB` and Varmail, each on three file systems.

use std::time::Duration;

use super::contract::{self, BY_MODEL, FILESYSTEMS, SPREAD, THAN, says};
use super::experiment::Says::{Less, More};
use super::experiment::{Claim, Experiment, ExperimentRow, RowTarget, Shape, row};
use super::figure::Figure;
use super::figure::Figure::Kept;
use super::kept_figure::KeptFigure::{
    Discards, Length, LengthSegmented, Miss1, UnalignedLarge, UnalignedSmall, WriteKib,
};
use crate::settings::Named as _;
use crate::settings::values::program::MEMORY_MAX;

/// The rows' name, description, and turns of the program's knobs.
type Load = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const COLUMNS: &[Figure] =
    &[Kept(WriteKib), Kept(Discards), Kept(Miss1), Kept(UnalignedSmall), Kept(Length), Kept(LengthSegmented)];

const RUNS: &str = "Each run begins with new data on a new file system, on a partition of one drive, or on a loop device of 1 GiB with --files. Writes by mkfs and by creating the data are not traced; what is left in memory at the end is written back and traced.";

/// Rows of a load on each file system: `leveldb ext4`.
fn rows((name, words, command): Load) -> impl Iterator<Item = ExperimentRow> {
    FILESYSTEMS.into_iter().map(move |(filesystem, on)| {
        let turns = [("stack.mount_options", "discard")];
        let label = format!("{name} {}", filesystem.name());
        let row =
            row(label, format!("{words} on {on}"), RowTarget::Partition(filesystem), &turns, Vec::new());
        ExperimentRow { command, ..row }
    })
}

/// An experiment whose rows run the program of that profile.
fn experiment(
    [name, source, about, profile]: [&'static str; 4],
    rows_and_claims: (Vec<ExperimentRow>, Vec<Claim>),
    assumptions: &'static [&'static str],
) -> Experiment {
    Experiment {
        shape: Shape::Program(profile),
        assumptions,
        time: Duration::from_mins(1),
        ..contract::experiment(name, source, about, COLUMNS, rows_and_claims)
    }
}

/// The claim that segments shorten a row's curve.
fn segmented(words: &'static str, label: &'static str) -> Claim {
    Claim { above: (label, Kept(LengthSegmented)), ..says("O19", words, Kept(Length), (label, label), Less) }
}

/// `SQLite` on each file system.
pub(super) fn sqlite() -> Experiment {
    const LOAD: &str = "The load is the paper's rand/L: inserts of pairs of 16 B and 100 B at random places, ten in a transaction, pages of 1 KiB; sqlite3's shell is restarted after every 500 transactions.";
    const LOADS: [Load; 2] = [
        ("sqlite-rb", "SQLite with a rollback journal", &[("journal", "delete")]),
        ("sqlite-wal", "SQLite with a write-ahead log", &[("journal", "wal")]),
    ];
    let (rb, wal) =
        (["sqlite-rb ext4", "sqlite-rb xfs", "sqlite-rb f2fs"], ["sqlite-wal ext4", "sqlite-wal xfs"]);
    let discards = |words, rows, direction| says("O8", words, Kept(Discards), rows, direction);
    let misses = |source, words, rows, direction| says(source, words, Kept(Miss1), rows, direction);
    let reused = "SQLite reuses its write-ahead log, and discards less than with a rollback journal, on ext4";
    let claims = vec![
        discards(reused, (wal[0], rb[0]), Less),
        discards("… on XFS", (wal[1], rb[1]), Less),
        discards("the rollback journal is discarded at once by ext4, later by F2FS", (rb[0], rb[2]), More),
        discards("… and at once by XFS", (rb[1], rb[2]), More),
        misses("O10", "XFS reuses space: a rollback journal misses less than on ext4", (rb[1], rb[0]), Less),
        misses("O10", "… than on F2FS", (rb[1], rb[2]), Less),
        misses("O10", "… and so does a write-ahead log, against ext4", (wal[1], wal[0]), Less),
        says("O15", "F2FS is not sequential for SQLite", Kept(UnalignedSmall), (rb[2], rb[0]), More),
        segmented("segments shorten the curve: with a rollback journal on ext4", rb[0]),
        segmented("… on XFS", rb[1]),
        segmented("… with a write-ahead log on ext4", wal[0]),
        segmented("… on XFS, too", wal[1]),
    ];
    let of = experiment(
        [
            "contract-sqlite",
            "Figures 3 and 5 to 8 (He et al. 2017), SQLite",
            "its two journals: sizes, discards, misses, unaligned bytes, zombies",
            "run-sqlite-random",
        ],
        (LOADS.into_iter().flat_map(rows).collect(), claims),
        &[LOAD, RUNS, BY_MODEL, THAN],
    );
    Experiment { remarks: &[SPREAD], ..of }
}

/// `LevelDB` on each file system.
pub(super) fn leveldb() -> Experiment {
    const LOAD: &str = "The load is the paper's rand/L: puts of pairs of 16 B and 100 B to keys drawn from a million loaded ones, not compressed and not flushed; LevelDB is the distribution's, called from Python, with its own options. The paper had version 1.18.";
    const GETS: &str = "Gets of random keys have 64 MB of memory for data of 116 MB, so that they reach the drive; the paper does not give its memory.";
    const LEVELDB: Load = ("leveldb", "LevelDB", &[("pairs", "1000000")]);
    // One row of these the paper compares with RocksDB's.
    const GET: Load = (
        "leveldb-get",
        "LevelDB: gets of random keys",
        &[("pairs", "1000000"), ("access", "get"), (MEMORY_MAX, "64MB")],
    );
    let [ext4, xfs, f2fs] = ["leveldb ext4", "leveldb xfs", "leveldb f2fs"];
    let by_block = |words, label| Claim {
        above: (label, Kept(UnalignedLarge)),
        ..says("O14", words, Kept(UnalignedSmall), (label, label), More)
    };
    let aligned = |words, rows| says("O14", words, Kept(UnalignedSmall), rows, Less);
    let claims = vec![
        says("O8", "ext4 discards at once, F2FS later and together", Kept(Discards), (ext4, f2fs), More),
        says("O8", "… and so does XFS", Kept(Discards), (xfs, f2fs), More),
        says("O10", "XFS reuses space: writes miss less than on ext4", Kept(Miss1), (xfs, ext4), Less),
        says("O10", "… than on F2FS", Kept(Miss1), (xfs, f2fs), Less),
        by_block("larger blocks are less aligned, on ext4", ext4),
        by_block("… on XFS", xfs),
        by_block("… on F2FS", f2fs),
        aligned("F2FS is more aligned than ext4", (f2fs, ext4)),
        aligned("… than XFS", (f2fs, xfs)),
        segmented("segments shorten the curve, on ext4", ext4),
        segmented("… on XFS", xfs),
        segmented("… on F2FS", f2fs),
        says("O21", "F2FS discards late: a longer curve than ext4's", Kept(Length), (f2fs, ext4), More),
        says("O21", "… than XFS's", Kept(Length), (f2fs, xfs), More),
    ];
    let leveldb = experiment(
        [
            "contract-leveldb",
            "Figures 5 to 8 (He et al. 2017), LevelDB",
            "puts of random keys: discards, misses, unaligned bytes, zombies",
            "run-leveldb",
        ],
        (rows(LEVELDB).chain(rows(GET).take(1)).collect(), claims),
        &[LOAD, GETS, RUNS, BY_MODEL, THAN],
    );
    Experiment {
        columns: &[
            Kept(Discards),
            Kept(Miss1),
            Kept(UnalignedSmall),
            Kept(UnalignedLarge),
            Kept(Length),
            Kept(LengthSegmented),
        ],
        ..leveldb
    }
}

/// Varmail on each file system.
pub(super) fn varmail() -> Experiment {
    const LOAD: &str = "The load does what filebench's varmail does, with its 16 threads and means of 16 KiB: delete a mail, deliver one, read one and answer it, and read another, each delivery and answer flushed. Here it is a Python program, with 10,000 mails; the paper does not say how many it had.";
    const VARMAIL: Load = ("varmail", "Varmail", &[("files", "10000")]);
    let [ext4, xfs, f2fs] = ["varmail ext4", "varmail xfs", "varmail f2fs"];
    let misses = |source, words, rows, direction| says(source, words, Kept(Miss1), rows, direction);
    let claims = vec![
        says("O8", "ext4 discards a mail at once, F2FS later", Kept(Discards), (ext4, f2fs), More),
        says("O8", "… and so does XFS", Kept(Discards), (xfs, f2fs), More),
        misses("O11", "ext4's locality groups scatter mails: more misses than on XFS", (ext4, xfs), More),
        misses("O11", "… than on F2FS", (ext4, f2fs), More),
        misses("O12", "F2FS in its in-place mode scatters mails: more misses than on XFS", (f2fs, xfs), More),
        says(
            "O16",
            "appending on F2FS is not sequential: less aligned than ext4",
            Kept(UnalignedSmall),
            (f2fs, ext4),
            More,
        ),
        segmented("segments shorten the curve, on ext4", ext4),
        segmented("… on XFS", xfs),
        segmented("… on F2FS", f2fs),
    ];
    let varmail = experiment(
        [
            "contract-varmail",
            "Figures 5 to 8 (He et al. 2017), Varmail",
            "a mail server's files: sizes, discards, misses, unaligned bytes, zombies",
            "run-varmail",
        ],
        (rows(VARMAIL).collect(), claims),
        &[LOAD, RUNS, BY_MODEL, THAN],
    );
    Experiment {
        remarks: &[
            "Observation 22 has a factor of 23 for Varmail on ext4, between its journal and its data, which a trace does not tell apart.",
        ],
        ..varmail
    }
}
