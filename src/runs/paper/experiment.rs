//! What an experiment consists of: rows with their published numbers, and claims about them.

use std::time::Duration;

use serde::Serialize;

use super::figure::Figure;
use crate::settings::{Filesystem, Raid};

/// How long a row is measured by default: less time than the paper's drives took to run out of cache (4.8).
pub const ROW_TIME: Duration = Duration::from_secs(30);
pub const ROW_WARMUP: Duration = Duration::from_secs(5);

/// The machine behind a number of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Setup {
    /// Section 3.1: four consumer drives.
    Consumer,
    /// Appendix A: four enterprise drives.
    Enterprise,
    /// Section 4.7: one drive of persistent memory.
    Optane,
    /// He et al. 2017: a part of a SATA drive.
    Sata,
}

impl Setup {
    /// Its description, in one line.
    pub fn words(self) -> &'static str {
        match self {
            Self::Consumer => {
                "4 Samsung 970 EVO Plus 1 TB (PCIe 3.0), i9-9900K (8 cores), 64 GB, Linux 5.2.2, fio 3.15"
            }
            Self::Enterprise => {
                "4 Huawei ES3600P V5 1.6 TB (PCIe 3.0), EPYC 7702P (64 cores), Linux 5.2.2, fio 3.15"
            }
            Self::Optane => {
                "1 Intel Optane Memory 16 GB (PCIe, M.2), i9-9900K (8 cores), Linux 5.2.2, fio 3.15"
            }
            Self::Sata => "a partition of 1 GB of an Intel SSD (SATA, 32 slots), 32 cores, Linux 4.5.4",
        }
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Enterprise => "enterprise",
            Self::Optane => "Optane",
            Self::Sata => "SATA",
        }
    }
}

/// A number of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    /// The figure.
    pub figure: Figure,
    /// The number, in the unit of the figure's heading.
    pub value: f64,
    /// The upper end, if the paper gives a range.
    pub to: Option<f64>,
    /// `≈` or `>` if the text says about or more than.
    pub sign: &'static str,
}

impl Published {
    /// A number as printed.
    pub const fn new(figure: Figure, value: f64) -> Self {
        Self { figure, value, to: None, sign: "" }
    }

    /// As the paper prints it.
    pub fn text(&self) -> String {
        let upper = self.to.map_or_else(String::new, |to| format!("–{}", self.figure.published_text(to)));
        format!("{}{}{upper}", self.sign, self.figure.published_text(self.value))
    }
}

/// The storage that a row runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowTarget {
    /// RAID 0 with ext4; files are used as they are, whatever file system they are on.
    Ext4,
    /// RAID 0 without a file system, which is the point of the row: files are not accepted.
    Block,
    /// RAID 0 without a file system; files are accepted.
    AnyBlock,
    /// The drives themselves, as they are, with pages interleaved over them; files are accepted. Interfaces
    /// that poll the drives require this.
    Drives,
    /// The same, but only nine tenths of it; the rest is never written. Files are accepted.
    NinetyPercent,
    /// RAID 0 with exactly this file system, or none; over one loop device on files.
    Filesystem(Filesystem),
    /// Exactly this RAID level, without a file system; over four loop devices on files.
    Raid(Raid),
    /// A part of one drive with exactly this file system; over one small loop device on files.
    Partition(Filesystem),
    /// A device that is a hardware RAID of this level.
    HardwareRaid(&'static str),
}

/// A row of a table, or a point in a drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentRow {
    /// Its name in the paper (`4b`); a point's coordinate.
    pub label: String,
    /// A short description.
    pub words: String,
    /// The storage that it runs on.
    pub place: RowTarget,
    /// The knobs that define it: path and value.
    pub turns: Vec<(&'static str, String)>,
    /// The paper's numbers for it.
    pub published: Vec<Published>,
    /// The memory of its program, in percent of its data; none if the classes are the load.
    pub memory_percent: Option<u64>,
    /// Its turns of its program's own knobs.
    pub command: &'static [(&'static str, &'static str)],
    /// Why this build can't run it on any host, if it can't.
    pub lacking: Option<&'static str>,
}

impl ExperimentRow {
    /// The paper's number for a figure.
    pub fn published(&self, figure: Figure) -> Option<&Published> {
        self.published.iter().find(|published| published.figure == figure)
    }
}

/// The direction of a claim's factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Says {
    /// The first row's figure is larger.
    More,
    /// The first row's figure is smaller.
    Less,
    /// The factor is about the paper's: either no difference, or a difference of that size.
    About,
}

/// A statement of the paper about two rows, as a factor between their figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Where the paper makes it.
    pub source: &'static str,
    /// The statement, in our words.
    pub words: &'static str,
    /// The machine that it is about.
    pub setup: Setup,
    /// The numerator: a row, and its figure.
    pub above: (&'static str, Figure),
    /// The denominator: a row, and its figure.
    pub below: (&'static str, Figure),
    /// Its direction.
    pub says: Says,
    /// The factor, if only the text gives it; otherwise it is computed from the rows' published numbers.
    pub stated: Option<f64>,
    /// Whether the paper explains it by the processor, so that a worker at its limit is part of the claim.
    pub of_processor: bool,
}

impl Claim {
    /// The paper's factor; none if it only gives a direction.
    pub fn factor(&self, rows: &[ExperimentRow]) -> Option<f64> {
        let number = |(label, figure): (&str, Figure)| {
            rows.iter().find(|row| row.label == label)?.published(figure).map(|published| published.value)
        };
        self.stated.or_else(|| Some(number(self.above)? / number(self.below)?))
    }
}

/// How an experiment is drawn besides its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Only as a table.
    Table,
    /// With each class of the mix as a share of that class alone.
    Shares,
    /// With charts of figures over a coordinate, which the rows' labels give.
    Curves(&'static [Curve]),
    /// Only as a table: the load is the program of that built-in profile.
    Program(&'static str),
    /// One long run, with charts over time and the changes found.
    OverTime,
}

/// A chart over the rows: y over x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Curve {
    /// What it shows.
    pub title: &'static str,
    /// Selects the rows whose label is a number followed by this.
    pub after_number: &'static str,
    /// The horizontal figure; none means the number in the row's label.
    pub x: Option<Figure>,
    /// The meaning of the number in the label.
    pub x_name: &'static str,
    /// The vertical figure.
    pub y: Figure,
}

/// A table or drawing of the paper, as something that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// Table and sections.
    pub source: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// The machine that most of its numbers are from.
    pub setup: Setup,
    /// How it is drawn.
    pub shape: Shape,
    /// The figures of its columns.
    pub columns: &'static [Figure],
    /// Its rows.
    pub rows: Vec<ExperimentRow>,
    /// The paper's conclusions.
    pub claims: Vec<Claim>,
    /// The assumptions made where the paper leaves something open, in sentences.
    pub assumptions: &'static [&'static str],
    /// Further statements of the paper's text beyond rows and claims, in sentences.
    pub remarks: &'static [&'static str],
    /// How long a row is measured by default.
    pub time: Duration,
    /// The warm-up before, by default.
    pub warmup: Duration,
    /// How often each row is run by default.
    pub repeat: u32,
}

impl Experiment {
    /// Whether its runs are traced: then all of its figures come from the trace.
    pub fn is_traced(&self) -> bool {
        self.setup == Setup::Sata
    }
}

/// A row from its parts.
pub fn row(
    label: impl Into<String>,
    words: impl Into<String>,
    place: RowTarget,
    turns: &[(&'static str, &str)],
    published: Vec<Published>,
) -> ExperimentRow {
    ExperimentRow {
        label: label.into(),
        words: words.into(),
        place,
        turns: turns.iter().map(|(knob, value)| (*knob, (*value).to_owned())).collect(),
        published,
        memory_percent: None,
        command: &[],
        lacking: None,
    }
}

/// The numbers of a table's row, in the order of its columns.
pub fn numbers(columns: &[Figure], values: &[f64]) -> Vec<Published> {
    columns.iter().zip(values).map(|(&figure, &value)| Published::new(figure, value)).collect()
}

/// A claim about the consumer drives, comparing the same figure of two rows.
pub fn claim(
    source: &'static str,
    words: &'static str,
    figure: Figure,
    rows: (&'static str, &'static str),
    says: Says,
) -> Claim {
    Claim {
        source,
        words,
        setup: Setup::Consumer,
        above: (rows.0, figure),
        below: (rows.1, figure),
        says,
        stated: None,
        of_processor: figure.is_cycles(),
    }
}

impl Claim {
    /// The claim on another machine.
    pub fn on(self, setup: Setup) -> Self {
        Self { setup, ..self }
    }

    /// A claim with a factor that only the text gives.
    pub fn stated(self, factor: f64) -> Self {
        Self { stated: Some(factor), ..self }
    }

    /// A claim that the paper explains by the processor.
    pub fn of_processor(self) -> Self {
        Self { of_processor: true, ..self }
    }
}
