//! A sweep: a row a step, with the spread over its repeats, and charts where one or two knobs were turned.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use super::cells::{NOTHING, left, right, wrap};
use super::chart::{self, Bar};
use super::figures::{self, Figure};
use crate::class::Class;
use crate::error::{Error, Result};
use crate::meter::spread::Spread;
use crate::meter::window::CyclesSource;
use crate::runs::record::Recording;
use crate::runs::sweep::{Folder, NotRun, Schedule, State, StepShown};
use crate::settings::knobs;
use crate::units::{SECOND_NS, format_duration, format_latency, three_digits};

const WIDTH: usize = 80;
const LABEL_WIDTH: usize = 21;
/// Figure, headings, width.
type Column = (&'static str, &'static str, &'static str, usize);

const COLUMNS: [Column; 8] = [
    ("classes.scan.mb_per_s", "", "scan", 6),
    ("classes.point.mb_per_s", "", "point", 5),
    ("classes.wal.mb_per_s", "MB/s", "wal", 5),
    ("classes.background.mb_per_s", "", "bg", 5),
    ("total.mb_per_s", "", "total", 6),
    ("classes.point.service_ns.p99", "p99 of", "point", 7),
    ("classes.wal.service_ns.p99", "p99 of", "commit", 7),
    ("total.cycles_per_byte", "cycles", "/byte", 6),
];
/// Of a second table.
const WRITTEN_COLUMNS: [Column; 6] = [
    ("total.iops", "", "IOPS", 6),
    ("classes.background.service_ns.p99", "p99 of", "bg", 7),
    ("wa_a", "", "WA-A", 5),
    ("wa_d", "", "WA-D", 5),
    ("wa_total", "end to", "end", 6),
    ("space_amplification", "", "space", 5),
];
/// What charts show of a sweep over one knob.
const CHARTED: [&str; 4] =
    ["total.mb_per_s", "classes.point.service_ns.p99", "classes.wal.service_ns.p99", "total.cycles_per_byte"];

/// What `show --json` prints of a sweep.
#[derive(Debug, Serialize)]
pub struct SweepShown {
    /// The folder.
    pub dir: String,
    /// The profile's name.
    pub profile: String,
    /// The order of the runs: `shuffled` or `as-written`.
    pub order: String,
    /// What shuffled them.
    pub seed: u64,
    /// Runs on the same stack followed each other.
    pub kept_together: bool,
    /// The steps, as the profile has them.
    pub steps: Vec<StepRow>,
    /// What to know before reading the figures, in sentences.
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
    /// Its figures over the runs that are complete, by their path in `summary.json`.
    pub figures: BTreeMap<String, Spread>,
    /// What makes them untrustworthy.
    pub flags: Vec<FlagShown>,
}

/// A run of a step.
#[derive(Debug, Serialize)]
pub struct RunShown {
    /// Its folder within the sweep's.
    pub dir: String,
    /// Which repeat it is, from 1.
    pub repeat: u32,
    /// `done`, `not_run`, or `left`.
    pub state: &'static str,
    /// Why it has no figures.
    pub not_run: Option<NotRun>,
    /// The I/O errors in it.
    pub errors: Option<String>,
    /// What its recording notes: how warm the drives were when it began, ….
    pub notes: Vec<String>,
    #[serde(skip)]
    recording: Option<Box<Recording>>,
}

/// A flag of a step's runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlagShown {
    /// The class; none is the run.
    pub class: Option<Class>,
    /// Its short text, as the first run has it.
    pub text: String,
    /// What it means.
    pub why: String,
    /// Whether it forbids a verdict.
    pub forbids_verdict: bool,
    /// Runs that have it.
    pub runs: usize,
}

impl SweepShown {
    /// What there is to show of a sweep.
    ///
    /// # Errors
    /// Where a recording can't be read.
    pub fn of(folder: &Folder) -> Result<Self> {
        let schedule = &folder.schedule;
        let steps = schedule.steps.iter().enumerate();
        let steps: Vec<_> =
            steps.map(|(number, step)| StepRow::of(folder, number, step)).collect::<Result<_>>()?;
        Ok(Self {
            dir: folder.dir().display().to_string(),
            profile: schedule.profile.clone(),
            order: schedule.order.clone(),
            seed: schedule.seed,
            kept_together: schedule.kept_together,
            notes: notes(schedule, &steps),
            steps,
        })
    }

    /// What of it failed, as the end of the program that ran it; none where all could be done, or where
    /// something is left.
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
    fn of(folder: &Folder, number: usize, step: &StepShown) -> Result<Self> {
        let of_step = folder.schedule.runs.iter().filter(|run| run.step == number);
        let mut runs: Vec<_> = of_step.map(|run| RunShown::of(folder, run)).collect::<Result<_>>()?;
        runs.sort_by_key(|run| run.repeat);
        let recordings = || runs.iter().filter_map(|run| run.recording.as_deref());
        let figures = figures::all().into_iter().filter_map(|figure| {
            let values: Vec<_> =
                recordings().filter_map(|recording| figure.of_run(&recording.summary)).collect();
            Some((figure.key.clone(), Spread::of(&values)?))
        });
        Ok(Self {
            step: step.clone(),
            figures: figures.collect(),
            flags: flags(&recordings().collect::<Vec<_>>()),
            runs,
        })
    }

    /// Whether its runs were steady.
    fn steady(&self) -> String {
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

    fn done(&self) -> usize {
        self.runs.iter().filter(|run| run.recording.is_some()).count()
    }

    fn is_estimated(&self) -> bool {
        let mut recordings = self.runs.iter().filter_map(|run| run.recording.as_ref());
        recordings.any(|recording| recording.summary.total.cycles_source == CyclesSource::Estimate)
    }
}

impl RunShown {
    fn of(folder: &Folder, run: &crate::runs::sweep::Run) -> Result<Self> {
        let shown = Self {
            dir: run.dir.clone(),
            repeat: run.repeat,
            state: "left",
            not_run: None,
            errors: None,
            notes: Vec::new(),
            recording: None,
        };
        Ok(match folder.state(run)? {
            State::Open | State::HalfDone => shown,
            State::NotRun(not_run) => Self { state: "not_run", not_run: Some(not_run), ..shown },
            State::Done(recording) => {
                let notes = recording.host["notes"].as_array().into_iter().flatten();
                let notes = notes.filter_map(|note| Some(note.as_str()?.to_owned())).collect();
                let errors = recording.summary.errors_line();
                Self { state: "done", errors, notes, recording: Some(recording), ..shown }
            }
        })
    }
}

/// Each flag of the runs, with how many have it.
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
                why: note.map_or_else(String::new, |note| note.why.clone()),
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
        notes.push(
            "runs on the same stack followed each other: their spread has nothing of building it anew".into(),
        );
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
    // Every run notes how it began; what they all say is said once.
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

/// A sweep as text of at most 80 columns.
pub fn sweep(shown: &SweepShown) -> String {
    let count: usize = shown.steps.iter().map(|row| row.runs.len()).sum();
    let done: usize = shown.steps.iter().map(StepRow::done).sum();
    let order = if shown.order == "shuffled" {
        format!("shuffled by seed {}", shown.seed)
    } else {
        shown.order.clone()
    };
    let heading = format!(
        "{}: profile {}, {} steps, {done} of {count} runs, {order}",
        name(&shown.dir),
        shown.profile,
        shown.steps.len()
    );
    let mut out = format!("{}\n", wrap(&heading, WIDTH, "  "));
    for note in &shown.notes {
        let _ = writeln!(out, "{}", wrap(&format!("  note: {note}"), WIDTH, "    "));
    }
    out.push('\n');
    out += &headings(&COLUMNS);
    shown.steps.iter().for_each(|row| out += &step(row));
    out += &written(shown);
    out += &footer(shown);
    out += &all_flags(shown);
    out += &charts(shown);
    out
}

/// The folder's own name.
fn name(dir: &str) -> String {
    let path = std::path::Path::new(dir);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.file_name().map_or_else(|| dir.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn headings(columns: &[Column]) -> String {
    let line = |label: &str, n: &str, of: fn(&Column) -> &'static str| {
        let mut line = format!("{} {}", left(label, LABEL_WIDTH), right(n, 3));
        columns.iter().for_each(|column| _ = write!(line, " {}", right(of(column), column.3)));
        format!("{}\n", line.trim_end())
    };
    line("", "", |column| column.1) + &line("step", "n", |column| column.2)
}

/// Operations, what was written on the way, and whether it was steady; nothing where no step has run.
fn written(shown: &SweepShown) -> String {
    if shown.steps.iter().all(|row| row.done() == 0) {
        return String::new();
    }
    let mut out = format!("\n{}  steady\n", headings(&WRITTEN_COLUMNS).trim_end());
    for row in shown.steps.iter().filter(|row| row.done() > 0) {
        let label = row.step.label.as_str();
        let fits = label.chars().count() <= LABEL_WIDTH;
        if !fits {
            let _ = writeln!(out, "{}", wrap(label, WIDTH, "  "));
        }
        let label = if fits { label } else { "" };
        let line = cells(row, &WRITTEN_COLUMNS, label, &row.done().to_string(), |spread| spread.median);
        let _ = writeln!(out, "{}  {}", line.trim_end(), row.steady());
    }
    out
}

/// The rows of a step: its medians, then the lowest and the highest where there are several runs, and
/// why it has no figures where it has none.
fn step(row: &StepRow) -> String {
    let mut out = String::new();
    let label = &row.step.label;
    let fits = label.chars().count() <= LABEL_WIDTH;
    if !fits {
        let _ = writeln!(out, "{}", wrap(label, WIDTH, "  "));
    }
    let label = if fits { label.as_str() } else { "" };
    let done = row.done();
    out += &cells(row, &COLUMNS, label, &done.to_string(), |spread| spread.median);
    if done > 1 {
        out += &cells(row, &COLUMNS, "  lowest", "", |spread| spread.low);
        out += &cells(row, &COLUMNS, "  highest", "", |spread| spread.high);
    }
    let mut told: Vec<&str> = Vec::new();
    for (repeat, not_run) in row.runs.iter().filter_map(|run| Some((run.repeat, run.not_run.as_ref()?))) {
        if told.contains(&not_run.why.as_str()) {
            continue;
        }
        told.push(&not_run.why);
        let which = if done > 0 { format!("repeat {repeat} ") } else { String::new() };
        let failed = if not_run.kind == "failed" { "failed" } else { "not run" };
        let _ = writeln!(out, "{}", wrap(&format!("  {which}{failed}: {}", not_run.why), WIDTH, "    "));
    }
    for (repeat, errors) in row.runs.iter().filter_map(|run| Some((run.repeat, run.errors.as_ref()?))) {
        let _ = writeln!(out, "{}", wrap(&format!("  repeat {repeat}: {errors}"), WIDTH, "    "));
    }
    match row.runs.iter().filter(|run| run.state == "left").count() {
        0 => {}
        left => _ = writeln!(out, "  {left} of {} runs left to do", row.runs.len()),
    }
    out
}

fn cells(row: &StepRow, columns: &[Column], label: &str, n: &str, of: fn(&Spread) -> f64) -> String {
    let mut line = format!("{} {}", left(label, LABEL_WIDTH), right(n, 3));
    for (key, _, _, width) in columns {
        let text =
            row.figures.get(*key).map_or_else(|| NOTHING.to_owned(), |spread| text(row, key, of(spread)));
        let _ = write!(line, " {}", right(&text, *width));
    }
    format!("{}\n", line.trim_end())
}

/// A figure as text, by its path.
fn text(row: &StepRow, key: &str, value: f64) -> String {
    if key.contains("_ns.") {
        return format_latency(value.round() as u64);
    }
    let estimate = key == "total.cycles_per_byte" && row.is_estimated();
    format!("{}{}", if estimate { "≈" } else { "" }, three_digits(value))
}

/// What the figures are, and how much the spread says.
fn footer(shown: &SweepShown) -> String {
    let most = shown.steps.iter().map(StepRow::done).max().unwrap_or(0);
    let mut text = match most {
        0 => return String::new(),
        1 => "One run of each step: nothing tells how much the figures vary.".to_owned(),
        n => {
            // A run is above the true median with a half; all of n are on one side with 2^(1-n).
            let share = (1.0 - 0.5_f64.powi(n as i32 - 1)) * 100.0;
            format!(
                "The median of n runs, the lowest and the highest of them: with n = {n} the true median lies \
                 between them in {share:.0} of 100 cases."
            )
        }
    };
    let lacking = |row: &&StepRow| row.figures.values().any(|spread| spread.runs < row.done());
    let labels: Vec<_> = shown.steps.iter().filter(lacking).map(|row| row.step.label.as_str()).collect();
    if !labels.is_empty() {
        let _ = write!(text, " Not every run has every figure of: {}.", labels.join(", "));
    }
    format!("\n{}\n", wrap(&text, WIDTH, ""))
}

/// Each flag once, with the steps that have it.
fn all_flags(shown: &SweepShown) -> String {
    let mut groups: Vec<(&FlagShown, Vec<String>)> = Vec::new();
    for row in &shown.steps {
        for flag in &row.flags {
            let (done, label) = (row.done(), &row.step.label);
            let of =
                if flag.runs < done { format!("{label} ({} of {done})", flag.runs) } else { label.clone() };
            let same = |known: &FlagShown| {
                known.class == flag.class
                    && crate::meter::flag::stem(&known.text) == crate::meter::flag::stem(&flag.text)
            };
            match groups.iter_mut().find(|(known, _)| same(known)) {
                Some((_, labels)) => labels.push(of),
                None => groups.push((flag, vec![of])),
            }
        }
    }
    let mut out = String::new();
    for (flag, labels) in groups {
        let steps = if labels.len() == shown.steps.len()
            && shown.steps.len() > 1
            && !labels.iter().any(|l| l.ends_with(')'))
        {
            "all steps".to_owned()
        } else {
            labels.join(", ")
        };
        let class = flag.class.map_or("run", Class::name);
        let line = format!("! {class}: {}: {} [{steps}]", flag.text, flag.why);
        let _ = writeln!(out, "{}", wrap(&line, WIDTH, "  "));
    }
    out
}

/// Bars over the values of the one or two knobs that the steps turn, where one is a number; a sweep of
/// one step is shown over time.
fn charts(shown: &SweepShown) -> String {
    if let [row] = &shown.steps[..] {
        return over_time(row);
    }
    let Some((knobs, rows)) = by_knobs(shown) else { return String::new() };
    let mut out = String::new();
    for figure in charted() {
        let bars: Vec<_> = rows.iter().map(|(value, row)| bar(value, row, &figure)).collect();
        if bars.iter().any(|bar| bar.value.is_some()) {
            let _ = write!(out, "\n{}", chart::bars(&format!("{} by {knobs}", figure.label), &bars));
        }
    }
    out
}

fn charted() -> impl Iterator<Item = Figure> {
    let all = figures::all();
    CHARTED.into_iter().filter_map(move |key| all.iter().find(|figure| figure.key == key).cloned())
}

fn bar(value: &str, row: &StepRow, figure: &Figure) -> Bar {
    let spread = row.figures.get(&figure.key);
    let words = |spread: &Spread| {
        let range = (spread.runs > 1).then_some((spread.low, spread.high));
        let estimate = if figure.is_cycles() && row.is_estimated() { "≈" } else { "" };
        format!("{estimate}{}", figure.text(spread.median, range))
    };
    Bar {
        label: value.to_owned(),
        value: spread.map(|spread| spread.median),
        text: spread.map(words).unwrap_or_default(),
    }
}

/// The one or two knobs that all steps turn and nothing else, as text, with each step by its values in
/// order; none where no one of them is a number. Of two, the one with more numbers turns fastest.
fn by_knobs(shown: &SweepShown) -> Option<(String, Vec<(String, &StepRow)>)> {
    let paths: Vec<&str> = shown.steps.first()?.step.turns.iter().map(|(path, _)| path.as_str()).collect();
    let alike =
        |row: &StepRow| row.step.turns.iter().map(|(path, _)| path.as_str()).eq(paths.iter().copied());
    if !(1..=2).contains(&paths.len()) || !shown.steps.iter().all(alike) {
        return None;
    }
    let mut axes: Vec<_> = (0..paths.len()).map(|at| Axis::of(shown, at)).collect();
    axes.sort_by_key(|axis| (axis.numbers, axis.values.len()));
    if !axes.last()?.numbers {
        return None;
    }
    let mut rows: Vec<_> = shown.steps.iter().collect();
    rows.sort_by_key(|row| axes.iter().map(|axis| axis.rank(row)).collect::<Vec<_>>());
    let label = |row: &StepRow| axes.iter().map(|axis| axis.value(row)).collect::<Vec<_>>().join(" ");
    let title = axes.iter().map(|axis| paths[axis.at]).collect::<Vec<_>>().join(" and ");
    Some((title, rows.into_iter().map(|row| (label(row), row)).collect()))
}

/// A knob that all steps turn.
struct Axis<'a> {
    /// Which of their turns it is.
    at: usize,
    /// Its values: numbers ascending, others as they come.
    values: Vec<&'a str>,
    /// Whether they are numbers.
    numbers: bool,
}

impl<'a> Axis<'a> {
    fn of(shown: &'a SweepShown, at: usize) -> Self {
        let mut values: Vec<&str> = Vec::new();
        for (_, value) in shown.steps.iter().map(|row| &row.step.turns[at]) {
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        let knob = shown.steps.first().and_then(|row| knobs::find(&row.step.turns[at].0));
        let number = |value: &&str| knob?.parse(value).ok()?.as_number();
        let numbers = values.iter().all(|value| number(value).is_some());
        if numbers {
            values.sort_by(|one, other| number(one).partial_cmp(&number(other)).unwrap_or(Ordering::Equal));
        }
        Self { at, values, numbers }
    }

    fn value<'b>(&self, row: &'b StepRow) -> &'b str {
        &row.step.turns[self.at].1
    }

    fn rank(&self, row: &StepRow) -> Option<usize> {
        self.values.iter().position(|value| *value == self.value(row))
    }
}

/// The first complete run of a step, window by window.
fn over_time(row: &StepRow) -> String {
    let Some(recording) = row.runs.iter().find_map(|run| run.recording.as_deref()) else {
        return String::new();
    };
    let mut out = String::new();
    for figure in charted() {
        let points: Vec<_> = recording
            .windows
            .iter()
            .filter_map(|window| {
                let at_s = (window.start_ns + window.duration_ns) as f64 / SECOND_NS as f64;
                Some((at_s, figure.of_window(window)?))
            })
            .collect();
        // Fewer show nothing that the table does not.
        if points.len() >= 10 {
            let title = format!("{} over time, {}", figure.label, recording.name());
            let _ = write!(out, "\n{}", chart::over_time(&title, &points, &|value| figure.text(value, None)));
        }
    }
    out
}

/// The order of the runs that a sweep would have.
pub fn schedule(schedule: &Schedule) -> String {
    let mut out = format!(
        "{}: {} steps, {} runs, {}\n",
        schedule.profile,
        schedule.steps.len(),
        schedule.runs.len(),
        if schedule.order == "shuffled" {
            format!("shuffled by seed {}", schedule.seed)
        } else {
            schedule.order.clone()
        }
    );
    if schedule.kept_together {
        out += "runs on the same target follow each other: it is built or filled once for all of them\n";
    }
    let number_width = schedule.runs.len().to_string().len().max(3);
    for (at, run) in schedule.runs.iter().enumerate() {
        let step = &schedule.steps[run.step];
        let span = |seconds: f64| format_duration(Duration::from_secs_f64(seconds));
        let warmup = if step.warmup_s > 0.0 { format!("{} + ", span(step.warmup_s)) } else { String::new() };
        let line = format!(
            "{:>number_width$}  {} (repeat {}, target {}): {warmup}{}",
            at + 1,
            step.label,
            run.repeat,
            run.target + 1,
            span(step.for_s)
        );
        let _ = writeln!(out, "{}", wrap(&line, WIDTH, "     "));
    }
    out
}
