//! The paper's experiments as data: what each row was, what it gave, and what the paper concludes from it.
//!
//! "The paper" is Haas et al. 2020 throughout. All that this program follows:
//!
//! | cited as | is |
//! |---|---|
//! | Haas et al. 2020 | G. Haas, M. Haubenschild, V. Leis: *Exploiting Directly-Attached NVMe Arrays in DBMS*, CIDR 2020 |
//! | Didona et al. 2021 | D. Didona, N. Ioannou, R. Stoica, K. Kourtis: *Toward a Better Understanding and Evaluation of Tree Structures on Flash SSDs*, PVLDB 14(3), 2021 |
//! | Ransom et al. 2025 | E. Ransom, A. Lim, M. Mitzenmacher: *Multi-Queue SSD I/O Modeling & Its Implications for Data Structure Design*, arXiv:2507.06349, 2025 |
//! | Saha et al. 2021 | M. P. Saha, A. Maruf, B. S. Kim, J. Bhimani: *KV-SSD: What Is It Good For?*, DAC 2021 |
//! | He et al. 2017 | J. He, S. Kannan, A. C. Arpaci-Dusseau, R. H. Arpaci-Dusseau: *The Unwritten Contract of Solid State Drives*, `EuroSys` 2017 |
//!
//! Every number here stands in the paper's tables or text; its source is beside it. Drawings of which
//! only the text is left have no numbers but those of the text.

mod change;
mod curves;
mod deviations;
mod figure;
mod over_time;
mod place;
mod polled;
mod result;
mod tables;
#[cfg(test)]
mod tests;
mod verdict;

use std::time::Duration;

use serde::Serialize;

pub use change::{Change, Changes, Series, changes};
pub use deviations::{Run, deviations, host};
pub use figure::Figure;
pub use place::{Bed, Ground, Hardware, Place, Planned, steps, write_rate_bytes_per_s};
pub use result::{Beside, RowResult, claim_judged};
pub use verdict::{Judged, REPEATS_MIN, Ruling, Side, judge};

/// The machine that a number of the paper is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Setup {
    /// Section 3.1: four consumer drives.
    Consumer,
    /// Appendix A: four enterprise drives.
    Enterprise,
    /// Section 4.7: one drive of persistent memory.
    Optane,
}

impl Setup {
    /// What it was, in a line.
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
        }
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Enterprise => "enterprise",
            Self::Optane => "Optane",
        }
    }
}

/// A number of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    /// Which figure.
    pub figure: Figure,
    /// The number, in the unit of the figure's heading.
    pub value: f64,
    /// The upper end, if the paper gives a range.
    pub to: Option<f64>,
    /// `≈` or `>` where the text says about or more than.
    pub sign: &'static str,
}

impl Published {
    const fn new(figure: Figure, value: f64) -> Self {
        Self { figure, value, to: None, sign: "" }
    }

    /// As the paper prints it.
    pub fn text(&self) -> String {
        let upper = self.to.map_or_else(String::new, |to| format!("–{}", self.figure.published_text(to)));
        format!("{}{}{upper}", self.sign, self.figure.published_text(self.value))
    }
}

/// A row of a table, or a point of a drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its name in the paper (`4b`); for a point its coordinate.
    pub label: String,
    /// What it is, in some words.
    pub words: String,
    /// What it runs on.
    pub place: Place,
    /// The knobs that define it: path and value.
    pub turns: Vec<(&'static str, String)>,
    /// What the paper gives for it.
    pub published: Vec<Published>,
    /// Why this build can't run it on any host, if so.
    pub lacking: Option<&'static str>,
}

impl Row {
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
    /// The factor is about the paper's: no difference, or one of that size.
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
    /// The row above the line, and its figure.
    pub above: (&'static str, Figure),
    /// The row below the line, and its figure.
    pub below: (&'static str, Figure),
    /// Its direction.
    pub says: Says,
    /// The factor, if only the text gives it; otherwise it is that of the rows' published numbers.
    pub stated: Option<f64>,
    /// Whether the paper explains it by the processor, so that a worker at its limit is part of it.
    pub of_processor: bool,
}

impl Claim {
    /// The paper's factor; none if it gives only a direction.
    pub fn factor(&self, rows: &[Row]) -> Option<f64> {
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
    /// With the mix as shares of each class alone.
    Shares,
    /// With charts of figures over a coordinate given by the rows' labels.
    Curves(&'static [Curve]),
    /// One long run, with charts over time and what changed.
    OverTime,
}

/// A chart over the rows: y over x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Curve {
    /// What it shows.
    pub title: &'static str,
    /// The rows whose label is a number followed by this.
    pub after_number: &'static str,
    /// The horizontal figure; none means the number in the row's label.
    pub x: Option<Figure>,
    /// What the number in the label is.
    pub x_name: &'static str,
    /// The vertical figure.
    pub y: Figure,
}

/// A table or a drawing of the paper, as something that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// Table and sections.
    pub source: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// The machine from which most of its numbers are.
    pub setup: Setup,
    /// How it is drawn.
    pub shape: Shape,
    /// The figures of its columns.
    pub columns: &'static [Figure],
    /// Its rows.
    pub rows: Vec<Row>,
    /// What the paper concludes.
    pub claims: Vec<Claim>,
    /// What the paper leaves open, and what is done here, in sentences.
    pub assumptions: &'static [&'static str],
    /// What the paper's text says beyond rows and claims, in sentences.
    pub remarks: &'static [&'static str],
    /// The time that a row is measured by default.
    pub time: Duration,
    /// The warm-up before, by default.
    pub warmup: Duration,
    /// How often each row is run by default.
    pub repeat: u32,
}

/// How long a row is measured by default: shorter than until the paper's drives run out of cache (4.8).
const ROW_TIME: Duration = Duration::from_secs(30);
const ROW_WARMUP: Duration = Duration::from_secs(5);

/// All experiments, in the paper's order.
pub fn all() -> Vec<Experiment> {
    vec![
        tables::table2(),
        tables::table4(),
        tables::table5(),
        polled::section47(),
        polled::table6(),
        tables::table8(),
        tables::table9(),
        curves::solo(),
        curves::figure2(),
        curves::figure3(),
        over_time::figure4(),
        curves::figure5(),
        curves::figure6(),
        over_time::figure7(),
        over_time::figure8(),
    ]
}

/// The experiment of that name.
pub fn find(name: &str) -> Option<Experiment> {
    all().into_iter().find(|experiment| experiment.name == name)
}

/// A row from its parts.
fn row(
    label: impl Into<String>,
    words: impl Into<String>,
    place: Place,
    turns: &[(&'static str, &str)],
    published: Vec<Published>,
) -> Row {
    Row {
        label: label.into(),
        words: words.into(),
        place,
        turns: turns.iter().map(|(knob, value)| (*knob, (*value).to_owned())).collect(),
        published,
        lacking: None,
    }
}

/// The numbers of a table's row, in the order of its columns.
fn numbers(columns: &[Figure], values: &[f64]) -> Vec<Published> {
    columns.iter().zip(values).map(|(&figure, &value)| Published::new(figure, value)).collect()
}

/// A claim on the consumer drives between two rows' same figure.
fn claim(
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
    fn on(self, setup: Setup) -> Self {
        Self { setup, ..self }
    }

    fn stated(self, factor: f64) -> Self {
        Self { stated: Some(factor), ..self }
    }

    fn of_processor(self) -> Self {
        Self { of_processor: true, ..self }
    }
}
