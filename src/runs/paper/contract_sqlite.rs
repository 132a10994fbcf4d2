//! `SQLite` of He et al. 2017, which runs as a program: what figures 3 and 5 to 8 say of its two journals on three file
//! systems.

use super::contract::{BY_MODEL, THAN, says};
use super::experiment::Says::{Less, More};
use super::experiment::{Claim, Experiment, ExperimentRow, ROW_WARMUP, RowTarget, Setup, Shape, row};
use super::figure::Figure;
use super::figure::Figure::Kept;
use super::kept_figure::KeptFigure::{Discards, Length, LengthSegmented, Miss1, UnalignedSmall, WriteKib};
use crate::settings::Filesystem;
use std::time::Duration;

/// The profile of the rows.
const PROFILE: &str = "run-sqlite-random";

/// What rows are called, what they are, and what they turn of the program's knobs.
type Journal = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const JOURNALS: [Journal; 2] = [
    ("sqlite-rb", "SQLite with a rollback journal", &[("journal", "delete")]),
    ("sqlite-wal", "SQLite with a write-ahead log", &[("journal", "wal")]),
];
const FILESYSTEMS: [(Filesystem, &str, &str); 3] =
    [(Filesystem::Ext4, "ext4", "ext4"), (Filesystem::Xfs, "xfs", "XFS"), (Filesystem::F2fs, "f2fs", "F2FS")];

const LOAD: &str = "The load is the paper's rand/L: inserts of pairs of 16 B and 100 B at random places, ten in a transaction, pages of 1 KiB; sqlite3's shell is begun anew after every 500 transactions.";
const RUNS: &str = "Each run begins with an empty database on a new file system, on a partition of one drive, or on a loop device of 1 GiB with --files. What mkfs and the making of the database wrote is not traced; what is left in memory at the end is written back and traced.";

fn rows() -> Vec<ExperimentRow> {
    let of = |(journal, words, command): Journal, (filesystem, name, on): (Filesystem, &str, &str)| {
        let turns = [("stack.mount_options", "discard")];
        let place = RowTarget::Partition(filesystem);
        let row = row(format!("{journal} {name}"), format!("{words} on {on}"), place, &turns, Vec::new());
        ExperimentRow { command, ..row }
    };
    JOURNALS.iter().flat_map(|journal| FILESYSTEMS.map(|on| of(*journal, on))).collect()
}

fn claims() -> Vec<Claim> {
    const COUNTED: [(&str, &str, &str); 4] = [
        ("sqlite-rb ext4", "segments shorten the curve: with a rollback journal on ext4", "O19"),
        ("sqlite-rb xfs", "… on XFS", "O19"),
        ("sqlite-wal ext4", "… with a write-ahead log on ext4", "O19"),
        ("sqlite-wal xfs", "… on XFS, too", "O19"),
    ];
    let of = |source, words, figure: Figure, above, below, direction| {
        says(source, words, figure, (above, below), direction)
    };
    let (rb, wal) =
        (["sqlite-rb ext4", "sqlite-rb xfs", "sqlite-rb f2fs"], ["sqlite-wal ext4", "sqlite-wal xfs"]);
    let reused =
        "SQLite uses its write-ahead log again, and discards less than with a rollback journal, on ext4";
    let mut claims = vec![
        of("O8", reused, Kept(Discards), wal[0], rb[0], Less),
        of("O8", "… on XFS", Kept(Discards), wal[1], rb[1], Less),
        of(
            "O8",
            "the rollback journal is discarded at once by ext4, later by F2FS",
            Kept(Discards),
            rb[0],
            rb[2],
            More,
        ),
        of("O8", "… and at once by XFS", Kept(Discards), rb[1], rb[2], More),
        of(
            "O10",
            "XFS uses space again: a rollback journal misses less than on ext4",
            Kept(Miss1),
            rb[1],
            rb[0],
            Less,
        ),
        of("O10", "… than on F2FS", Kept(Miss1), rb[1], rb[2], Less),
        of("O10", "… and so does a write-ahead log, against ext4", Kept(Miss1), wal[1], wal[0], Less),
        of("O13", "F2FS spreads SQLite's data", Kept(Miss1), rb[2], rb[0], More),
        of("O15", "F2FS is not sequential for SQLite", Kept(UnalignedSmall), rb[2], rb[0], More),
    ];
    claims.extend(COUNTED.map(|(label, words, source)| Claim {
        above: (label, Kept(LengthSegmented)),
        ..says(source, words, Kept(Length), (label, label), Less)
    }));
    claims
}

/// `SQLite` on each file system.
pub(super) fn sqlite() -> Experiment {
    Experiment {
        name: "contract-sqlite",
        source: "Figures 3 and 5 to 8 (He et al. 2017), SQLite",
        about: "its two journals: sizes, discards, misses, unaligned bytes, zombies",
        setup: Setup::Sata,
        shape: Shape::Program(PROFILE),
        columns: &[
            Kept(WriteKib),
            Kept(Discards),
            Kept(Miss1),
            Kept(UnalignedSmall),
            Kept(Length),
            Kept(LengthSegmented),
        ],
        rows: rows(),
        claims: claims(),
        assumptions: &[LOAD, RUNS, BY_MODEL, THAN],
        remarks: &[],
        time: Duration::from_mins(1),
        warmup: ROW_WARMUP,
        repeat: 3,
    }
}
