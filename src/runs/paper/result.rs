//! The result of an experiment here: each row's runs, or why there are none, and the rulings on the claims.

use crate::class::Class;
use crate::meter::flag::{FlagKind, used_by_others};
use crate::meter::spread::Spread;
use crate::runs::record::{Recording, Summary};

use super::experiment::{Claim, Experiment};
use super::figure::Figure;
use super::verdict::{Judged, Side, judge, not_judged};

/// The results for a row.
#[derive(Debug, Clone, Default)]
pub struct RowResult {
    /// The row's label.
    pub label: String,
    /// Its readable runs, by repeat.
    pub runs: Vec<Recording>,
    /// Why it was not run, or one of its runs failed, as a sentence without a full stop.
    pub reason: Option<String>,
}

/// The rows of another host, or of a plain recording.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Its name: the folder's.
    pub name: String,
    /// Its rows; for a plain recording just one, named after the recording.
    pub rows: Vec<RowResult>,
    /// Whether its rows belong to the same experiment.
    pub same: bool,
}

impl RowResult {
    /// The figure in each run that ended normally.
    pub fn values(&self, figure: Figure) -> Vec<f64> {
        self.whole().filter_map(|run| figure.of_run(run)).collect()
    }

    /// The figure's spread.
    pub fn spread(&self, figure: Figure) -> Option<Spread> {
        Spread::of(&self.values(figure))
    }

    fn whole(&self) -> impl Iterator<Item = &Recording> {
        self.runs.iter().filter(|run| is_whole(&run.summary))
    }

    /// Why a figure allows no verdict, in words.
    fn obstacle(&self, figure: Figure, of_processor: bool) -> Option<String> {
        if self.runs.is_empty() {
            return Some(format!("row {} has no runs", self.label));
        }
        let mut runs = self.whole();
        let why = runs.find_map(|run| {
            let of_trace = if let Figure::Kept(of) = figure { of.obstacle(run) } else { None };
            let summary = &run.summary;
            of_trace.or_else(|| held(summary, figure)).or_else(|| forbidding(summary, figure, of_processor))
        })?;
        Some(format!("row {}: {why}", self.label))
    }

    fn side(&self, figure: Figure, of_processor: bool) -> Side {
        // Counts are real even on an emulated drive.
        let unreal = self.whole().find_map(|run| unreal(&run.summary)).filter(|_| !is_count(figure));
        Side { values: self.values(figure), obstacle: self.obstacle(figure, of_processor), unreal }
    }
}

/// Flags that only say that the load waited, or may have: they concern how much it did, not what was counted of it.
const WAITED: [FlagKind; 6] = [
    FlagKind::ProcessorsFull,
    FlagKind::Late,
    FlagKind::Steal,
    FlagKind::OthersIo,
    FlagKind::Hot,
    FlagKind::Throttled,
];

/// Whether a figure is a count that depends on no clock.
fn is_count(figure: Figure) -> bool {
    matches!(figure, Figure::Kept(of) if of.is_count())
}

/// Whether it ended normally, without a failure, and without I/O errors.
fn is_whole(summary: &Summary) -> bool {
    !summary.interrupted && !summary.rebuilt && summary.failure.is_none() && summary.errors_line().is_none()
}

/// The kind of its drives, if they were not real.
fn unreal(summary: &Summary) -> Option<&'static str> {
    // A program's run has the flag itself, because its classes are off.
    let flags = || Class::ALL.into_iter().flat_map(|class| &summary.class(class).flags).chain(&summary.flags);
    let kinds = [FlagKind::Simulated, FlagKind::Emulated].map(FlagKind::text);
    kinds.into_iter().find(|kind| flags().any(|flag| flag == kind))
}

/// Whether a class whose MB/s the paper left free had a rate here, which then determines its figures.
fn held(summary: &Summary, figure: Figure) -> Option<String> {
    let reads = figure.classes().iter().filter(|class| !class.writes());
    let rated = reads.filter(|&&class| summary.class(class).target_mb_per_s.is_some());
    rated.map(|class| format!("{class} was limited to a rate")).next()
}

/// A flag that forbids a verdict on the figure.
fn forbidding(summary: &Summary, figure: Figure, of_processor: bool) -> Option<String> {
    let of_classes = Class::ALL
        .into_iter()
        .filter(|class| figure.classes().contains(class))
        .flat_map(|class| summary.class(class).flags.iter().map(move |flag| (class.name(), flag)));
    let of_run = summary.flags.iter().map(|flag| ("run", flag));
    of_classes
        .chain(of_run)
        .find(|(_, flag)| {
            let forbids = summary.flag_notes.get(*flag).is_some_and(|note| note.forbids_verdict);
            // Such a claim is about a worker at its limit.
            let is_of_processor = of_processor && flag.as_str() == FlagKind::WorkerBound.text();
            let waited = is_count(figure) && FlagKind::of(flag).is_some_and(|kind| WAITED.contains(&kind));
            forbids && !is_of_processor && !waited
        })
        .map(|(of, flag)| format!("{of} flagged `{flag}`"))
        .or_else(|| {
            let flags = summary.flags.iter().map(String::as_str).filter(|_| figure.is_cycles());
            used_by_others(flags)
        })
}

/// Judges a claim by the rows of an experiment, in its order, with those borrowed for it.
pub fn claim_judged(claim: &Claim, experiment: &Experiment, rows: &[RowResult]) -> Judged {
    let has_runs = |label: &str| rows.iter().any(|row| row.label == label && !row.runs.is_empty());
    let row = |(label, _): (&str, Figure)| {
        experiment.rows.iter().find(|row| row.label == label && !has_runs(label))
    };
    let lacking = |side| {
        let row = row(side)?;
        let said = rows.iter().find(|of| of.label == row.label).and_then(|of| of.reason.as_deref());
        row.lacking.map(|why| said.unwrap_or(why))
    };
    if let Some(why) = [claim.above, claim.below].into_iter().find_map(lacking) {
        return not_judged(why);
    }
    let side = |(label, figure): (&str, Figure)| {
        let row = rows.iter().find(|row| row.label == label);
        let obstacle = || Some(format!("row {label} has no runs"));
        let missing = || Side { values: Vec::new(), obstacle: obstacle(), unreal: None };
        row.map_or_else(missing, |row| row.side(figure, claim.of_processor))
    };
    let (mut above, below) = (side(claim.above), side(claim.below));
    if claim.above.1.is_cycles() && above.obstacle.is_none() && differ_in_cycles(claim, rows) {
        above.obstacle = Some("the rows' cycles were counted differently".into());
    }
    judge(claim.says, claim.factor(&experiment.rows), &above, &below)
}

fn differ_in_cycles(claim: &Claim, rows: &[RowResult]) -> bool {
    let labels = [claim.above.0, claim.below.0];
    let concerned = rows.iter().filter(|row| labels.contains(&row.label.as_str()));
    let mut sources = concerned.flat_map(RowResult::whole).map(|run| run.summary.total.cycles_source);
    let first = sources.next();
    sources.any(|source| Some(source) != first)
}
