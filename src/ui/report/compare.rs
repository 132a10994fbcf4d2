//! Recordings side by side: each figure's change from the first recording, with its spread.
//!
//! The rule is the same as the ledger's ([`crate::meter::turns::estimate`]), for all figures of a recording together. Only
//! clean windows count (one setting, nothing draining, no flag that forbids a verdict).

use std::fmt;

use serde::Serialize;

use super::by_window::by_window;
use super::cells::{NONE, WIDTH, left, paragraph};
use super::differences::{AsRun, Difference, differences, less_durable_by, parsed, unreadable_settings};
use super::figures::{self, Figure, Unit};
use crate::class::Class;
use crate::error::{Error, Result};
use crate::json;
use crate::meter::flag::used_by_others;
use crate::meter::turns::estimate::{self, RECORDING_CHANGE_MIN, Side, Together, WINDOWS_MIN};
use crate::meter::window::Verdict;
use crate::runs::pitfalls::{Circumstances, drive_types};
use crate::runs::record::Recording;
use crate::settings::Better;
use crate::ui::text::{bounds, signed_percent};
use crate::units::approx_span;

/// Windows between two recordings: far enough apart for their windows to have nothing in common.
const GAP_WINDOWS: usize = 60;
const LABEL_WIDTH: usize = 22;
const COLUMNS_MAX: usize = 3;

/// Recordings compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The recordings; the others are compared with the first.
    pub recordings: Vec<Column>,
    /// What differs between the hosts and between the settings.
    pub differences: Vec<Difference>,
    /// What to know before reading the figures, as sentences.
    pub notes: Vec<String>,
    /// The figures that at least one of the recordings has.
    pub rows: Vec<ComparedRow>,
}

/// A recording of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Its letter: `A`, `B`, ….
    pub label: String,
    /// Its folder's name.
    pub name: String,
    /// Its folder.
    pub dir: String,
    /// Its profile's name.
    pub profile: String,
    /// Seconds in the windows that count.
    pub duration_s: f64,
    /// What makes its figures untrustworthy.
    pub flags: Vec<ColumnFlag>,
}

/// A flag of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnFlag {
    /// The class; none means the run.
    pub class: Option<Class>,
    /// Its short text.
    pub text: String,
    /// What it means.
    pub why: String,
    /// Whether it forbids a verdict.
    pub forbids_verdict: bool,
}

/// A figure in all recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRow {
    /// Its path in `summary.json`.
    pub figure: String,
    /// One per recording.
    pub cells: Vec<Cell>,
    /// Which way is better for a program's figure, if a profile says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    #[serde(skip)]
    shape: Shape,
}

/// What a row needs to print a figure.
#[derive(Debug, Clone)]
struct Shape(Figure);

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

/// A figure in a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Over the whole run.
    pub value: Option<f64>,
    /// The smallest and the largest value of the clean windows; for a percentile, of stretches of windows with enough
    /// I/Os. None for fewer than three.
    pub range: Option<(f64, f64)>,
    /// Clean windows that have the figure; for a percentile, such stretches.
    pub windows: usize,
    /// Change of the value from the first recording, as a fraction of it.
    pub change: Option<f64>,
    /// The least and the most that the change may be, likewise.
    pub change_range: Option<(f64, f64)>,
    /// Whether the change is clear.
    pub verdict: Verdict,
    /// Why there is no verdict, or what speaks against one.
    pub why: Option<String>,
    /// Commits are less durable than in the first recording: no gain, whatever the figure.
    pub less_durable: bool,
    /// The values by clean window or stretch.
    #[serde(skip)]
    values: Vec<f64>,
    /// Whether it can have a verdict.
    #[serde(skip)]
    is_judged: bool,
}

/// Compares recordings with the first.
///
/// # Errors
/// Of the kind `Input` for fewer than two.
pub fn compare(recordings: &[Recording]) -> Result<Comparison> {
    let [first, _, ..] = recordings else {
        return Err(
            Error::input("a comparison needs at least two recordings").hint("stacktune compare DIR DIR …")
        );
    };
    let columns: Vec<_> = recordings.iter().enumerate().map(|(i, r)| Column::of(i, r)).collect();
    let summaries: Vec<_> = recordings.iter().map(|recording| &recording.summary).collect();
    let figures = figures::of_runs(&summaries);
    let values: Vec<_> = recordings.iter().map(|recording| by_window(&figures, recording)).collect();
    let mut rows: Vec<ComparedRow> = figures
        .into_iter()
        .enumerate()
        .map(|(at, figure)| {
            let of = |column: usize| values[column][at].clone();
            let base = Cell::of(&figure, first, of(0));
            let others = (1..).zip(&recordings[1..]);
            let others = others.map(|(column, other)| base.beside(&figure, first, (other, of(column))));
            ComparedRow {
                figure: figure.key.clone(),
                cells: std::iter::once(base.clone()).chain(others).collect(),
                better: summaries.iter().rev().find_map(|summary| figure.better(summary)),
                shape: Shape(figure),
            }
        })
        .filter(|row| row.cells.iter().any(|cell| cell.value.is_some() || cell.why.is_some()))
        .collect();
    judge(&mut rows);
    Ok(Comparison {
        notes: notes(recordings, &columns),
        differences: differences(recordings),
        recordings: columns,
        rows,
    })
}

/// Gives each recording's figures their verdicts, which depend on how many there are.
fn judge(rows: &mut [ComparedRow]) {
    for column in 1..rows.first().map_or(0, |row| row.cells.len()) {
        let judged = rows.iter().filter(|row| row.cells[column].is_judged).count();
        for row in rows.iter_mut() {
            if let [base, others @ ..] = &mut row.cells[..] {
                others[column - 1].judge(base, judged);
            }
        }
    }
}

fn notes(recordings: &[Recording], columns: &[Column]) -> Vec<String> {
    let mut notes = Vec::new();
    for (recording, column) in recordings.iter().zip(columns) {
        let label = &column.label;
        notes.extend(recording.notes.iter().map(|note| format!("{label}: {note}")));
        notes.extend(unreadable_settings(recording).map(|note| format!("{label}: {note}")));
        if is_turned(recording) {
            notes.push(format!("{label}: knobs were turned during the recording: no verdict."));
        }
        let less = less_durable(recording, &recordings[0]);
        if !less.is_empty() {
            let by = less.join(", ");
            notes.push(format!("{label} is less durable than A ({by}): no change counts as a gain."));
        }
        notes
            .extend(others(recording).map(|why| format!("{label}: cycles and cores are not judged: {why}.")));
        if recording.summary.total.cycles_source != recordings[0].summary.total.cycles_source {
            notes.push(format!("{label} and A count cycles differently: cycles/byte has no verdict."));
        }
    }
    notes.extend(unsteady(recordings, columns));
    notes.extend(types(recordings));
    notes
}

/// What makes data less durable than in the first recording; nothing is known of settings that can't be read.
fn less_durable(recording: &Recording, first: &Recording) -> Vec<String> {
    AsRun::of(recording)
        .map(|run| less_durable_by(&run, &parsed(first).unwrap_or_default()))
        .unwrap_or_default()
}

/// Why cycles and cores of a recording are not judged, if others used the processor.
fn others(recording: &Recording) -> Option<String> {
    used_by_others(recording.summary.flags.iter().map(String::as_str))
}

/// Which recordings are not steady.
fn unsteady(recordings: &[Recording], columns: &[Column]) -> Option<String> {
    let named = recordings.iter().zip(columns).filter_map(|(recording, column)| {
        let steady = &recording.summary.steady;
        (steady.is_known() && !steady.is_steady()).then(|| format!("{} ({steady})", column.label))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("not steady, possibly a burst: {}.", named.join(", ")))
}

/// How many types of drives the recordings ran on, if they all say.
fn types(recordings: &[Recording]) -> Option<String> {
    let circumstances = recordings
        .iter()
        .map(|recording| json::read_value::<Circumstances>(&recording.host["circumstances"]).ok());
    let circumstances: Vec<_> = circumstances.collect::<Option<_>>()?;
    if circumstances.iter().all(|of| of.drives.is_empty()) {
        return None;
    }
    let mut types: Vec<&str> = circumstances.iter().flat_map(Circumstances::types).collect();
    types.sort_unstable();
    types.dedup();
    let pitfall = drive_types(types.len(), &types.join(", "));
    Some(format!("drive types: {}. {}", pitfall.figure, pitfall.advice).trim_end().to_owned())
}

impl Column {
    fn of(index: usize, recording: &Recording) -> Self {
        let summary = &recording.summary;
        let of_classes = Class::ALL.into_iter().map(|class| (Some(class), &summary.class(class).flags));
        let flags = of_classes.chain([(None, &summary.flags)]).flat_map(|(class, flags)| {
            flags.iter().map(move |text| {
                let note = summary.flag_notes.get(text);
                ColumnFlag {
                    class,
                    text: text.clone(),
                    why: summary.why(class, text).to_owned(),
                    forbids_verdict: note.is_some_and(|note| note.forbids_verdict),
                }
            })
        });
        Self {
            label: label(index),
            name: recording.name(),
            dir: recording.dir.display().to_string(),
            profile: summary.profile.clone(),
            duration_s: summary.duration_s,
            flags: flags.collect(),
        }
    }
}

/// `A` to `Z`, then `A2`, `B2`, ….
fn label(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    if index < 26 { letter.into() } else { format!("{letter}{}", index / 26 + 1) }
}

/// Whether its totals cover more than one setting.
fn is_turned(recording: &Recording) -> bool {
    let mut counted = recording.windows.iter().filter(|window| !window.warmup);
    let first = counted.next().map(|window| window.setting);
    first.is_some() && counted.any(|window| window.turned || Some(window.setting) != first)
}

/// Whether a flag forbids a verdict on the figure in this run.
fn is_forbidden(figure: &Figure, recording: &Recording) -> bool {
    let summary = &recording.summary;
    let concerned = |class: &Class| figure.class.is_none_or(|own| own == *class);
    summary.forbids_verdict(&summary.flags)
        || Class::ALL
            .iter()
            .filter(|c| concerned(c))
            .any(|&c| summary.forbids_verdict(&summary.class(c).flags))
}

impl Cell {
    fn of(figure: &Figure, recording: &Recording, values: Vec<f64>) -> Self {
        let value = figure.of_run(&recording.summary);
        // The percentile of all windows together may lie outside its stretches', if only by the width of a bucket.
        let whole = value.filter(|_| figure.one_in().is_some() && !values.is_empty());
        let range = values.iter().copied().chain(whole).fold(None, |range: Option<(f64, f64)>, x| {
            Some(range.map_or((x, x), |(low, high)| (low.min(x), high.max(x))))
        });
        Self {
            value,
            range: range.filter(|_| figure.unit != Unit::Count && values.len() >= WINDOWS_MIN),
            windows: values.len(),
            why: figure.is_not_held(&recording.summary).then(|| "not held".into()),
            values,
            ..Self::default()
        }
    }

    /// The other recording's cell beside this one, without its verdict.
    fn beside(&self, figure: &Figure, first: &Recording, (other, values): (&Recording, Vec<f64>)) -> Self {
        let mut cell = Self::of(figure, other, values);
        cell.less_durable = !less_durable(other, first).is_empty();
        let (Some(before), Some(after)) = (self.value, cell.value) else { return cell };
        if figure.unit == Unit::Count {
            return cell;
        }
        cell.change = (before > 0.0).then(|| after / before - 1.0);
        let differ = first.summary.total.cycles_source != other.summary.total.cycles_source;
        let obstacle = if is_turned(first) || is_turned(other) {
            Some("knobs turned")
        } else if is_forbidden(figure, first) || is_forbidden(figure, other) {
            Some("flagged")
        } else if figure.is_of_processor() && (others(first).is_some() || others(other).is_some()) {
            Some("others' CPU")
        } else if figure.is_cycles() && differ {
            Some("other source")
        } else if figure.is_cumulative() {
            Some("cumulative")
        } else if self.windows.min(cell.windows) < WINDOWS_MIN {
            Some("few windows")
        } else {
            None
        };
        cell.why = obstacle.map(String::from);
        cell.is_judged = obstacle.is_none();
        cell
    }

    /// Judges it against the first recording's, as one of `figures` that are judged.
    fn judge(&mut self, base: &Self, figures: usize) {
        let (true, Some(before), Some(after)) = (self.is_judged, base.value, self.value) else { return };
        let together = Together { figures, gap: GAP_WINDOWS, change_min: RECORDING_CHANGE_MIN };
        let sides = (Side::of(&base.values), Side::of(&self.values));
        let Some(estimate) = estimate::estimate(sides.0, sides.1, together) else { return };
        let estimate = estimate.of_wholes((before, after), together);
        self.change_range = Some((estimate.low, estimate.high));
        self.verdict = estimate.verdict();
    }

    fn value_text(&self, figure: &Figure) -> String {
        match (self.value, &self.why) {
            (Some(value), _) => figure.text(value, self.range),
            (None, Some(why)) => why.clone(),
            (None, None) => NONE.into(),
        }
    }

    fn change_text(&self) -> String {
        let bounds =
            || self.change_range.map_or_else(String::new, |range| format!(" {}", bounds(self.change, range)));
        match (self.verdict, self.change, &self.why) {
            (Verdict::NoClearChange, ..) => "no clear change".into(),
            (Verdict::Higher | Verdict::Lower, Some(change), _) => signed_percent(change) + &bounds(),
            (Verdict::Higher, None, _) => "higher".into(),
            (Verdict::Lower, None, _) => "lower".into(),
            (Verdict::None, Some(change), Some(why)) => format!("({why}) {}", signed_percent(change)),
            (Verdict::None, ..) => String::new(),
        }
    }
}

impl ComparedRow {
    /// Whether a program's figure is better than the first recording's: `better`, `worse`, or `different` if no
    /// profile says which way is better. Empty without a clear change, and for other figures.
    fn word(&self, cell: &Cell) -> String {
        let is_gain = self.better.map(|better| better.is_gain(cell.verdict == Verdict::Higher));
        let word = match is_gain {
            _ if !cell.verdict.is_clear() || !self.shape.0.is_metric() => "",
            Some(true) if cell.less_durable => "",
            Some(true) => "better",
            Some(false) => "worse",
            None => "different",
        };
        word.to_owned()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for column in &self.recordings {
            let span = approx_span(column.duration_s);
            writeln!(f, "{:<3}{}: profile {}, {span}", column.label, column.name, column.profile)?;
        }
        self.fmt_differences(f)?;
        for note in &self.notes {
            writeln!(f, "{}", paragraph(&format!("note: {note}"), WIDTH, "  "))?;
        }
        for column in &self.recordings {
            for flag in &column.flags {
                let class = flag.class.map_or("run", Class::name);
                let text = format!("! {} {class}: {}: {}", column.label, flag.text, flag.why);
                writeln!(f, "{}", paragraph(&text, WIDTH, "  "))?;
            }
        }
        // Each block repeats the first recording next to as many others as fit.
        let others: Vec<_> = (1..self.recordings.len()).collect();
        for block in others.chunks(COLUMNS_MAX - 1) {
            let columns: Vec<_> = std::iter::once(0).chain(block.iter().copied()).collect();
            self.fmt_block(f, &columns)?;
        }
        writeln!(
            f,
            "\nfigures cover the whole run; [a–b]: smallest and largest of its clean windows,\nif there are three (of a percentile: of stretches of windows with enough I/Os);\nchange against A, in (…) its interval; (…) before it: why no verdict"
        )
    }
}

impl Comparison {
    /// The figures of the second recording that differ clearly from the first one's, by how much:
    /// `scan MB/s +33% (+31 to +35%)`.
    pub fn clear_changes(&self) -> Vec<String> {
        let clear = self.rows.iter().filter(|row| row.shape.0.in_text && row.cells[1].verdict.is_clear());
        clear
            .map(|row| format!("{} {}", row.shape.0.label.trim_start(), row.cells[1].change_text()))
            .collect()
    }

    fn fmt_differences(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differences.is_empty() {
            return writeln!(f, "\nThe same host and settings, as far as recorded.");
        }
        writeln!(f, "\nDifferent")?;
        for difference in &self.differences {
            let mut groups: Vec<(Vec<&str>, &Option<String>)> = Vec::new();
            for (column, value) in self.recordings.iter().zip(&difference.values) {
                match groups.iter_mut().find(|(_, known)| *known == value) {
                    Some((labels, _)) => labels.push(&column.label),
                    None => groups.push((vec![&column.label], value)),
                }
            }
            let groups = groups.into_iter().map(|(labels, value)| {
                format!("{} {}", labels.join(","), value.as_deref().unwrap_or("(not given)"))
            });
            let text = format!("  {}: {}", difference.what, groups.collect::<Vec<_>>().join(" | "));
            writeln!(f, "{}", paragraph(&text, WIDTH, "    "))?;
        }
        Ok(())
    }

    fn fmt_block(&self, f: &mut fmt::Formatter<'_>, columns: &[usize]) -> fmt::Result {
        let width = (WIDTH - LABEL_WIDTH) / columns.len();
        let line = |label: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| left(cell, width)).collect();
            format!("{}{cells}", left(label, LABEL_WIDTH)).trim_end().to_owned()
        };
        let head = columns.iter().map(|&column| self.recordings[column].label.clone()).collect();
        writeln!(f, "\n{}", line("", head))?;
        for row in self.rows.iter().filter(|row| row.shape.0.in_text) {
            let cells = || columns.iter().map(|&column| &row.cells[column]);
            let is_idle = |cell: &Cell| cell.value.is_none_or(|value| value == 0.0);
            if row.shape.0.unit == Unit::Count && cells().all(is_idle) {
                continue;
            }
            let values = cells().map(|cell| cell.value_text(&row.shape.0)).collect();
            writeln!(f, "{}", line(&row.shape.0.label, values))?;
            let changes: Vec<_> = cells().map(Cell::change_text).collect();
            if changes.iter().any(|change| !change.is_empty()) {
                writeln!(f, "{}", line("", changes))?;
            }
            let words: Vec<_> = cells().map(|cell| row.word(cell)).collect();
            if words.iter().any(|word| !word.is_empty()) {
                writeln!(f, "{}", line("", words))?;
            }
        }
        Ok(())
    }
}
