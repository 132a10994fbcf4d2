//! What a report on an experiment shows, from this host's runs and the others.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use crate::class::Class;
use crate::meter::spread::Spread;
use crate::meter::window::CyclesSource;
use crate::runs::paper::{
    self, Beside, Changes, Claim, Experiment, ExperimentRow, Figure, Judged, Published, RowResult, Run, Says,
    Series, Setup, Shape,
};
use crate::runs::record::Recording;
use crate::runs::sweep::is_unmet;
use crate::settings::profile;

/// What `reproduce --json` and `show --json` print of a reproduction.
#[derive(Debug, Serialize)]
pub struct Reproduction {
    /// The experiment's name.
    pub name: &'static str,
    /// The table and sections in the paper.
    pub source: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The machine on which the paper measured.
    pub paper_setup: &'static str,
    /// This host; none if nothing has run.
    pub here: Option<String>,
    /// How the set-up differs from the paper's.
    pub deviations: Vec<String>,
    /// What the paper leaves open, and what is done here.
    pub assumptions: &'static [&'static str],
    /// Figures from the paper's text.
    pub remarks: &'static [&'static str],
    /// The figures in the columns.
    pub columns: &'static [Figure],
    /// The rows.
    pub rows: Vec<RowShown>,
    /// The other recordings, each with its letter.
    pub beside: Vec<BesideShown>,
    /// The claims.
    pub claims: Vec<ClaimShown>,
    /// What each class keeps of its throughput in the mix.
    pub shares: Vec<Share>,
    /// When a long run changed.
    pub over_time: Option<OverTime>,
    #[serde(skip)]
    pub(super) shape: Shape,
}

/// Figures by their key.
pub type Figures = BTreeMap<&'static str, Spread>;

/// A row.
#[derive(Debug, Serialize)]
pub struct RowShown {
    /// Its name in the paper.
    pub label: String,
    /// What it is.
    pub words: String,
    /// The paper's numbers.
    pub published: Vec<Published>,
    /// This host's figures.
    pub here: Figures,
    /// Whether its cycles are an estimate.
    pub cycles_estimated: bool,
    /// The number of its runs.
    pub runs: usize,
    /// Why it has no runs, or fewer than it should.
    pub reason: Option<String>,
    /// What makes its figures untrustworthy, with the classes (or `run`) concerned.
    pub flags: Vec<String>,
    /// The other recordings' figures, in the same order.
    pub beside: Vec<Figures>,
}

/// Another recording.
#[derive(Debug, Serialize)]
pub struct BesideShown {
    /// Its letter in the table.
    pub letter: String,
    /// Its folder's name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Whether its cycles are an estimate.
    pub cycles_estimated: bool,
    /// Its figures by label, if it is not a reproduction of the same experiment.
    pub own_rows: Vec<(String, Figures)>,
}

/// A claim and its ruling.
#[derive(Debug, Serialize)]
pub struct ClaimShown {
    /// Where the paper makes it.
    pub source: &'static str,
    /// What it says.
    pub words: &'static str,
    /// The machine that it is about.
    pub setup: Setup,
    /// The figure and row of the numerator.
    pub above: (&'static str, Figure),
    /// The figure and row of the denominator.
    pub below: (&'static str, Figure),
    /// Its direction.
    pub says: Says,
    /// The paper's factor; none if it gives only a direction.
    pub paper: Option<f64>,
    /// The factor here, its spread and the verdict.
    #[serde(flatten)]
    pub here: Judged,
}

/// A class in the mix, compared with the class alone.
#[derive(Debug, Serialize)]
pub struct Share {
    /// The class.
    pub class: Class,
    /// Its MB/s alone.
    pub alone: Option<Spread>,
    /// Its MB/s in the mix.
    pub mixed: Option<Spread>,
    /// Mixed over alone; can exceed 1.
    pub share: Option<f64>,
    /// The smallest and the largest share between any two repeats.
    pub range: Option<(f64, f64)>,
}

/// A long run.
#[derive(Debug, Serialize)]
pub struct OverTime {
    /// When it changed.
    pub changes: Changes,
    /// Its figures over time.
    pub series: Vec<Series>,
    /// The number of identified drives that are not emulated; none for files.
    pub drives: Option<usize>,
    /// The same for the other recordings that have windows.
    pub beside: Vec<BesideOverTime>,
}

/// Another recording over time.
#[derive(Debug, Serialize)]
pub struct BesideOverTime {
    /// Its letter.
    pub letter: String,
    /// When it changed.
    pub changes: Changes,
    /// Its figures over time.
    pub series: Vec<Series>,
}

impl Reproduction {
    /// Everything that the report shows. `rows` are the experiment's, in its order.
    pub fn of(run: &Run, rows: &[RowResult], beside: &[Beside]) -> Self {
        let experiment = run.experiment;
        let first = rows.iter().find_map(|row| row.runs.first());
        let lent = paper::lent(experiment, rows, beside);
        let of_others = lent.iter().filter(|(_, row)| !row.runs.is_empty()).map(|(name, row)| {
            format!(
                "row {} is of {name}: it ran at another time, in no random order with the others",
                row.label
            )
        });
        let deviations =
            paper::deviations(run, rows).into_iter().chain(warm(rows)).chain(of_others).collect();
        let find = |row: &RowResult| lent.iter().find(|(_, other)| other.label == row.label);
        let with_lent = || rows.iter().map(|row| find(row).map_or(row, |(_, other)| other).clone()).collect();
        let rows = if lent.is_empty() { Cow::Borrowed(rows) } else { Cow::Owned(with_lent()) };
        let rows = &*rows;
        Self {
            name: experiment.name,
            source: experiment.source,
            about: experiment.about,
            paper_setup: experiment.setup.words(),
            here: first.map(paper::host),
            deviations,
            assumptions: experiment.assumptions,
            remarks: experiment.remarks,
            columns: experiment.columns,
            rows: experiment.rows.iter().map(|row| RowShown::of(row, experiment, rows, beside)).collect(),
            beside: beside
                .iter()
                .enumerate()
                .map(|(at, other)| BesideShown::of((at, other), experiment, &lent))
                .collect(),
            claims: experiment.claims.iter().map(|claim| ClaimShown::of(claim, experiment, rows)).collect(),
            shares: if experiment.shape == Shape::Shares { shares(rows) } else { Vec::new() },
            over_time: (experiment.shape == Shape::OverTime).then(|| OverTime::of(rows, beside)).flatten(),
            shape: experiment.shape,
        }
    }
}

/// The rows in which a run began with drives that were not known to be as cool as requested, once per sentence.
fn warm(rows: &[RowResult]) -> Vec<String> {
    let mut said: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in rows {
        let notes = row.runs.iter().flat_map(|run| run.host["notes"].as_array().into_iter().flatten());
        for note in notes.filter_map(Json::as_str).filter(|note| is_unmet(note)) {
            let labels = said.entry(note).or_default();
            if labels.last() != Some(&row.label.as_str()) {
                labels.push(&row.label);
            }
        }
    }
    let sentence = |(note, labels): (&str, Vec<&str>)| match labels.as_slice() {
        labels if labels.len() == rows.iter().filter(|row| !row.runs.is_empty()).count() => note.to_owned(),
        [label] => format!("row {label}: {note}"),
        labels => format!("rows {}: {note}", labels.join(", ")),
    };
    said.into_iter().map(sentence).collect()
}

fn figures_of(row: &RowResult, figures: impl Iterator<Item = Figure>) -> Figures {
    figures.filter_map(|figure| Some((figure.key(), row.spread(figure)?))).collect()
}

impl RowShown {
    fn of(row: &ExperimentRow, experiment: &Experiment, rows: &[RowResult], beside: &[Beside]) -> Self {
        let wanted = || {
            let more = row.published.iter().map(|published| published.figure);
            experiment.columns.iter().copied().chain(more)
        };
        let empty = RowResult::default();
        let find = |rows: &[RowResult]| rows.iter().find(|of| of.label == row.label).cloned();
        let here = rows.iter().find(|of| of.label == row.label).unwrap_or(&empty);
        let others = beside.iter().map(|other| find(&other.rows).filter(|_| other.same));
        Self {
            label: row.label.clone(),
            words: row.words.clone(),
            published: row.published.clone(),
            here: figures_of(here, wanted()),
            cycles_estimated: is_estimated(here),
            runs: here.runs.len(),
            reason: here.reason.clone(),
            flags: flags(here),
            beside: others
                .map(|row| row.map_or_else(Figures::new, |row| figures_of(&row, wanted())))
                .collect(),
        }
    }
}

fn is_estimated(row: &RowResult) -> bool {
    row.runs.iter().any(|run| run.summary.total.cycles_source == CyclesSource::Estimate)
}

/// The flags of a row's runs, each kind once with its classes: `cache: scan, point`.
fn flags(row: &RowResult) -> Vec<String> {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in &row.runs {
        let of_classes = Class::ALL.into_iter().map(|class| (class.name(), &run.summary.class(class).flags));
        for (of, flags) in of_classes.chain([("run", &run.summary.flags)]) {
            for kind in flags.iter().map(|flag| crate::meter::flag::stem(flag)) {
                match kinds.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, holders)) if holders.contains(&of) => {}
                    Some((_, holders)) => holders.push(of),
                    None => kinds.push((kind, vec![of])),
                }
            }
        }
    }
    kinds.iter().map(|(kind, holders)| format!("{kind}: {}", holders.join(", "))).collect()
}

/// The letter for the recording of that number.
fn letter(at: usize) -> String {
    char::from(b'A' + (at % 26) as u8).to_string()
}

impl BesideShown {
    fn of((at, other): (usize, &Beside), experiment: &Experiment, lent: &[(&str, &RowResult)]) -> Self {
        let is_lent = |row: &RowResult| lent.iter().any(|(_, lent)| std::ptr::eq(*lent, row));
        let own = other.rows.iter().filter(|row| !other.same && !row.runs.is_empty() && !is_lent(row));
        let first = other.rows.iter().find_map(|row| row.runs.first());
        Self {
            letter: letter(at),
            name: other.name.clone(),
            host: first.map(paper::host).unwrap_or_default(),
            cycles_estimated: other.rows.iter().any(is_estimated),
            own_rows: own
                .map(|row| (row.label.clone(), figures_of(row, experiment.columns.iter().copied())))
                .collect(),
        }
    }
}

impl ClaimShown {
    fn of(claim: &Claim, experiment: &Experiment, rows: &[RowResult]) -> Self {
        Self {
            source: claim.source,
            words: claim.words,
            setup: claim.setup,
            above: claim.above,
            below: claim.below,
            says: claim.says,
            paper: claim.factor(&experiment.rows),
            here: paper::claim_judged(claim, experiment, rows),
        }
    }
}

/// The mix against each class alone (Haas et al. 2020, section 3.2).
fn shares(rows: &[RowResult]) -> Vec<Share> {
    let spread = |label: &str, figure| rows.iter().find(|row| row.label == label)?.spread(figure);
    let of = |class: Class| {
        let figure = match class {
            Class::Scan => Figure::ScanMbPerS,
            Class::Point => Figure::PointMbPerS,
            Class::Wal => Figure::WalMbPerS,
            Class::Background => Figure::BackgroundMbPerS,
        };
        let (alone, mixed) = (spread(class.name(), figure), spread("mix", figure));
        let both = alone.zip(mixed).filter(|(alone, _)| alone.low > 0.0);
        Share {
            class,
            alone,
            mixed,
            share: both.map(|(alone, mixed)| mixed.median / alone.median),
            range: both.map(|(alone, mixed)| (mixed.low / alone.high, mixed.high / alone.low)),
        }
    };
    Class::ALL.map(of).into()
}

/// The figures shown over time.
const OVER_TIME: [Figure; 2] = [Figure::ScanMbPerS, Figure::PointP99Us];

impl OverTime {
    fn of(rows: &[RowResult], beside: &[Beside]) -> Option<Self> {
        let recording = rows.first()?.runs.first()?;
        let settings = profile::parse(&recording.profile_toml, "profile.toml").ok()?.settings;
        let emulated = recording.host.pointer("/target/emulated").is_some_and(serde_json::Value::is_string);
        let devices = settings.target.devices.len();
        let others = beside.iter().enumerate();
        Some(Self {
            changes: paper::changes(&OVER_TIME, &recording.windows),
            series: series(recording),
            drives: (devices > 0 && !emulated && !settings.is_simulated()).then_some(devices),
            beside: others.filter_map(|(at, other)| BesideOverTime::of(letter(at), other)).collect(),
        })
    }
}

impl BesideOverTime {
    fn of(letter: String, other: &Beside) -> Option<Self> {
        let recording = other.rows.first()?.runs.first()?;
        let changes = paper::changes(&OVER_TIME, &recording.windows);
        Some(Self { letter, changes, series: series(recording) })
    }
}

fn series(recording: &Recording) -> Vec<Series> {
    OVER_TIME.map(|figure| Series::of(figure, &recording.windows)).into()
}
