//! The figures of a sweep, one row per step: what `show --json` prints.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::class::Class;
use crate::error::Error;
use crate::meter::spread::Spread;
use crate::meter::window::CyclesSource;
use crate::runs::record::Recording;
use crate::runs::sweep::{Folder, NotRun, Schedule, State, StepShown};
use crate::short_list;
use crate::ui::report::figures;

/// What `show --json` prints of a sweep.
#[derive(Debug, Serialize)]
pub struct SweepShown {
    /// The folder.
    pub dir: String,
    /// The profile's name.
    pub profile: String,
    /// The order of the runs: `shuffled` or `as-written`.
    pub order: String,
    /// The seed that shuffled them.
    pub seed: u64,
    /// Whether runs on the same stack followed each other.
    pub kept_together: bool,
    /// The steps, in the profile's order.
    pub steps: Vec<StepRow>,
    /// What to know before reading the figures, as sentences.
    pub notes: Vec<String>,
}

/// A step with its figures.
#[derive(Debug, Serialize)]
pub struct StepRow {
    /// The step.
    #[serde(flatten)]
    pub step: StepShown,
    /// Its runs, by repeat.
    pub runs: Vec<RunShown>,
    /// Its figures over the complete runs, by their path in `summary.json`.
    pub figures: BTreeMap<String, Spread>,
    /// What makes the figures untrustworthy.
    pub flags: Vec<FlagShown>,
}

/// A run of a step.
#[derive(Debug, Serialize)]
pub struct RunShown {
    /// Its folder within the sweep's.
    pub dir: String,
    /// The number of the repeat, from 1.
    pub repeat: u32,
    /// `done`, `not_run`, `damaged`, or `left`.
    pub state: &'static str,
    /// Why it has no figures.
    pub not_run: Option<NotRun>,
    /// Its I/O errors.
    pub errors: Option<String>,
    /// The notes of its recording: how warm the drives were when it began, ….
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(super) recording: Option<Box<Recording>>,
}

/// A flag of a step's runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlagShown {
    /// The class; none means the run.
    pub class: Option<Class>,
    /// Its short text, as the first run has it.
    pub text: String,
    /// What it means.
    pub why: String,
    /// Whether it forbids a verdict.
    pub forbids_verdict: bool,
    /// The number of runs that have it.
    pub runs: usize,
}

impl SweepShown {
    /// Everything that is shown of a sweep.
    pub fn of(folder: &Folder) -> Self {
        let schedule = &folder.schedule;
        let steps = schedule.steps.iter().enumerate();
        let steps: Vec<_> = steps.map(|(number, step)| StepRow::of(folder, number, step)).collect();
        Self {
            dir: folder.dir().display().to_string(),
            profile: schedule.profile.clone(),
            order: schedule.order.clone(),
            seed: schedule.seed,
            kept_together: schedule.kept_together,
            notes: notes(schedule, &steps),
            steps,
        }
    }

    /// What failed in it, which decides how the program that ran it ends; none if every run succeeded, or some are
    /// still to be done.
    pub fn failure(&self) -> Option<Error> {
        let runs = || self.steps.iter().flat_map(|row| &row.runs);
        let not_run = || runs().filter_map(|run| run.not_run.as_ref());
        let failed = not_run().filter(|not_run| not_run.kind == "failed").count();
        let errors = runs().filter(|run| run.errors.is_some()).count();
        if failed > 0 {
            return Some(Error::failed(format!("{failed} of {} runs failed", runs().count())));
        }
        if errors > 0 {
            return Some(Error::failed(format!("{errors} of {} runs had I/O errors", runs().count())));
        }
        if runs().any(|run| run.state != "not_run") {
            return None;
        }
        let first = not_run().next()?;
        let what = format!("no step could be run: {}", first.why);
        Some(if first.kind == "refused" { Error::refused(what) } else { Error::input(what) })
    }
}

impl StepRow {
    fn of(folder: &Folder, number: usize, step: &StepShown) -> Self {
        let mut of_step: Vec<_> = folder.schedule.runs.iter().filter(|run| run.step == number).collect();
        short_list::sort_by_key(&mut of_step, |run| run.repeat);
        // Only the first complete run of a single step gets a chart over time; others' windows only take memory.
        let mut is_charted = folder.schedule.steps.len() == 1;
        let of_run = |run| {
            let mut shown = RunShown::of(folder, run);
            if let Some(recording) = &mut shown.recording
                && !std::mem::take(&mut is_charted)
            {
                recording.windows = Vec::new();
            }
            shown
        };
        let runs: Vec<_> = of_step.into_iter().map(of_run).collect();
        let recordings = || runs.iter().filter_map(|run| run.recording.as_deref());
        let summaries: Vec<_> = recordings().map(|recording| &recording.summary).collect();
        let figures = figures::of_runs(&summaries).into_iter().filter_map(|figure| {
            let values: Vec<_> =
                recordings().filter_map(|recording| figure.of_run(&recording.summary)).collect();
            Some((figure.key.clone(), Spread::of(&values)?))
        });
        Self {
            step: step.clone(),
            figures: figures.collect(),
            flags: flags(&recordings().collect::<Vec<_>>()),
            runs,
        }
    }

    /// How many of its runs were steady.
    pub(super) fn steady(&self) -> String {
        let states: Vec<_> = self
            .runs
            .iter()
            .filter_map(|run| Some(run.recording.as_ref()?.summary.steady.is_steady()))
            .collect();
        match (states.iter().filter(|steady| **steady).count(), states.len()) {
            (0, _) => "no".into(),
            (steady, all) if steady == all => "yes".into(),
            (steady, all) => format!("{steady} of {all}"),
        }
    }

    pub(super) fn done(&self) -> usize {
        self.runs.iter().filter(|run| run.recording.is_some()).count()
    }

    pub(super) fn is_estimated(&self) -> bool {
        let mut recordings = self.runs.iter().filter_map(|run| run.recording.as_ref());
        recordings.any(|recording| recording.summary.total.cycles_source == CyclesSource::Estimate)
    }
}

impl RunShown {
    fn of(folder: &Folder, run: &crate::runs::sweep::ScheduledRun) -> Self {
        let shown = Self {
            dir: run.dir.clone(),
            repeat: run.repeat,
            state: "left",
            not_run: None,
            errors: None,
            notes: Vec::new(),
            recording: None,
        };
        match folder.state(run) {
            State::Open | State::HalfDone => shown,
            State::NotRun(not_run) => Self { state: "not_run", not_run: Some(not_run), ..shown },
            State::Damaged(why) => Self { state: "damaged", not_run: Some(why), ..shown },
            State::Done(recording) => {
                let notes = recording.host["notes"].as_array().into_iter().flatten();
                let notes = notes.filter_map(|note| Some(note.as_str()?.to_owned()));
                let notes = notes.chain(recording.notes.iter().cloned()).collect();
                let errors = recording.summary.errors_line();
                Self { state: "done", errors, notes, recording: Some(recording), ..shown }
            }
        }
    }
}

/// Each flag of the runs, with the number of runs that have it.
fn flags(recordings: &[&Recording]) -> Vec<FlagShown> {
    let mut found: Vec<FlagShown> = Vec::new();
    for recording in recordings {
        let summary = &recording.summary;
        let of_classes = Class::ALL.into_iter().map(|class| (Some(class), &summary.class(class).flags));
        for (class, text) in of_classes
            .chain([(None, &summary.flags)])
            .flat_map(|(class, flags)| flags.iter().map(move |text| (class, text)))
        {
            let kind = crate::meter::flag::stem(text);
            let same =
                |flag: &&mut FlagShown| flag.class == class && crate::meter::flag::stem(&flag.text) == kind;
            if let Some(flag) = found.iter_mut().find(same) {
                flag.runs += 1;
                continue;
            }
            let note = summary.flag_notes.get(text);
            found.push(FlagShown {
                class,
                text: text.clone(),
                why: summary.why(class, text).to_owned(),
                forbids_verdict: note.is_some_and(|note| note.forbids_verdict),
                runs: 1,
            });
        }
    }
    found
}

fn notes(schedule: &Schedule, steps: &[StepRow]) -> Vec<String> {
    let mut notes = Vec::new();
    if schedule.kept_together {
        notes.push("repeats ran on the same stack: the spread does not include rebuilding it".into());
    }
    let recordings = || steps.iter().flat_map(|row| &row.runs).filter_map(|run| run.recording.as_deref());
    for (what, key) in [("hosts", "/hostname"), ("processors", "/cpu/model"), ("kernels", "/kernel")] {
        let mut values: Vec<_> =
            recordings().filter_map(|recording| recording.host.pointer(key)?.as_str()).collect();
        values.sort_unstable();
        values.dedup();
        if values.len() > 1 {
            notes.push(format!("the runs are of different {what}: {}", values.join(", ")));
        }
    }
    // Each run notes how it began; a note that all share is shown once.
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    steps.iter().flat_map(|row| &row.runs).flat_map(|run| &run.notes).for_each(|note| {
        *counted.entry(note).or_default() += 1;
    });
    let all = recordings().count();
    notes.extend(counted.into_iter().map(|(note, count)| match count {
        count if count == all => note.to_owned(),
        count => format!("{note} ({count} of {all} runs)"),
    }));
    notes
}
