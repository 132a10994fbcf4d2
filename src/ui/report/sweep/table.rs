//! A sweep as a table, and the order in which it would run.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use super::best::best;
use super::by_step::{FlagShown, StepRow, SweepShown};
use super::charts::charts;
use crate::class::Class;
use crate::meter::spread::Spread;
use crate::printable;
use crate::runs::sweep::Schedule;
use crate::ui::report::cells::{NONE, WIDTH, left, paragraph, right};
use crate::ui::text;
use crate::units::{format_duration, format_latency, three_digits};

const LABEL_WIDTH: usize = 21;
/// Columns that a name of a figure takes.
const METRIC_WIDTH_MIN: usize = 7;
const METRIC_WIDTH_MAX: usize = 12;
/// Figure, headings, width.
type Column<'a> = (&'a str, &'a str, &'a str, usize);

const COLUMNS: [Column<'static>; 8] = [
    ("classes.scan.mb_per_s", "", "scan", 6),
    ("classes.point.mb_per_s", "", "point", 5),
    ("classes.wal.mb_per_s", "MB/s", "wal", 5),
    ("classes.background.mb_per_s", "", "bg", 5),
    ("total.mb_per_s", "", "total", 6),
    ("classes.point.service_ns.p99", "p99 of", "point", 7),
    ("classes.wal.service_ns.p99", "p99 of", "commit", 7),
    ("total.cycles_per_byte", "cycles", "/byte", 6),
];
/// The columns of the second table.
const WRITTEN_COLUMNS: [Column<'static>; 6] = [
    ("total.iops", "", "IOPS", 6),
    ("classes.background.service_ns.p99", "p99 of", "bg", 7),
    ("wa_a", "", "WA-A", 5),
    ("wa_d", "", "WA-D", 5),
    ("wa_total", "end to", "end", 6),
    ("space_amplification", "", "space", 5),
];
/// The columns of programs, beside what they report.
const PROGRAM_COLUMNS: [Column<'static>; 3] = [
    ("program.cpu_cores", "", "cores", 6),
    ("program.drives_read_mb_per_s", "drives", "read", 6),
    ("program.drives_written_mb_per_s", "MB/s", "written", 7),
];

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
    let mut out = format!("{}\n", paragraph(&heading, WIDTH, "  "));
    for note in &shown.notes {
        let _ = writeln!(out, "{}", paragraph(&format!("  note: {note}"), WIDTH, "    "));
    }
    out.push('\n');
    let of_program =
        shown.steps.iter().flat_map(|row| row.figures.keys()).find(|key| key.starts_with("program."));
    if of_program.is_some() {
        out += &programs(shown);
    } else {
        out += &headings(&COLUMNS);
        shown.steps.iter().for_each(|row| out += &step(row, &COLUMNS));
        out += &written(shown);
    }
    out += &footer(shown);
    out += &best(shown);
    out += &all_flags(shown);
    out += &charts(shown);
    out
}

/// The folder's name.
fn name(dir: &str) -> String {
    let path = std::path::Path::new(dir);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    printable::path(path.file_name().map_or(&*path, std::path::Path::new))
}

fn headings(columns: &[Column]) -> String {
    let line = |label: &str, n: &str, first: bool| {
        let mut line = format!("{} {}", left(label, LABEL_WIDTH), right(n, 3));
        for (_, above, below, width) in columns {
            let _ = write!(line, " {}", right(if first { above } else { below }, *width));
        }
        format!("{}\n", line.trim_end())
    };
    line("", "", true) + &line("step", "n", false)
}

/// The table where programs were the load: what they report, as much as there is room for, and what they used.
fn programs(shown: &SweepShown) -> String {
    let of_programs: usize = PROGRAM_COLUMNS.iter().map(|(.., width)| width + 1).sum();
    let mut room = WIDTH - LABEL_WIDTH - 4 - of_programs;
    let keys: BTreeSet<&String> = shown.steps.iter().flat_map(|row| row.figures.keys()).collect();
    let mut columns: Vec<(String, String)> = Vec::new();
    for key in keys {
        let Some(name) = key.strip_prefix("program.metrics.") else { continue };
        let name: String =
            printable::line(name.trim_end_matches(".mean")).chars().take(METRIC_WIDTH_MAX).collect();
        let width = text::width(&name).max(METRIC_WIDTH_MIN);
        if width < room {
            room -= width + 1;
            columns.push((key.clone(), name));
        }
    }
    let width = |name: &String| text::width(name).max(METRIC_WIDTH_MIN);
    let columns: Vec<Column> = columns
        .iter()
        .map(|(key, name)| (key.as_str(), "", name.as_str(), width(name)))
        .chain(PROGRAM_COLUMNS)
        .collect();
    let rows: String = shown.steps.iter().map(|row| step(row, &columns)).collect();
    headings(&columns) + &rows
}

/// Operations, amplification, and whether it was steady; empty if no step has run.
fn written(shown: &SweepShown) -> String {
    if shown.steps.iter().all(|row| row.done() == 0) {
        return String::new();
    }
    let mut out = format!("\n{}  steady\n", headings(&WRITTEN_COLUMNS).trim_end());
    for row in shown.steps.iter().filter(|row| row.done() > 0) {
        let label = row.step.label.as_str();
        let fits = text::width(label) <= LABEL_WIDTH;
        if !fits {
            let _ = writeln!(out, "{}", paragraph(label, WIDTH, "  "));
        }
        let label = if fits { label } else { "" };
        let line = cells(row, &WRITTEN_COLUMNS, label, &row.done().to_string(), |spread| spread.median);
        let _ = writeln!(out, "{}  {}", line.trim_end(), row.steady());
    }
    out
}

/// The rows of a step: its medians, the lowest and the highest if there are several runs, and why it has no figures if
/// it has none.
fn step(row: &StepRow, columns: &[Column]) -> String {
    let mut out = String::new();
    let label = &row.step.label;
    let fits = text::width(label) <= LABEL_WIDTH;
    if !fits {
        let _ = writeln!(out, "{}", paragraph(label, WIDTH, "  "));
    }
    let label = if fits { label.as_str() } else { "" };
    let done = row.done();
    out += &cells(row, columns, label, &done.to_string(), |spread| spread.median);
    if done > 1 {
        out += &cells(row, columns, "  lowest", "", |spread| spread.low);
        out += &cells(row, columns, "  highest", "", |spread| spread.high);
    }
    let mut shown_reasons: Vec<&str> = Vec::new();
    for (repeat, not_run) in row.runs.iter().filter_map(|run| Some((run.repeat, run.not_run.as_ref()?))) {
        if shown_reasons.contains(&not_run.why.as_str()) {
            continue;
        }
        shown_reasons.push(&not_run.why);
        let which = if done > 0 { format!("repeat {repeat} ") } else { String::new() };
        let failed = if not_run.kind == "failed" { "failed" } else { "not run" };
        let _ = writeln!(out, "{}", paragraph(&format!("  {which}{failed}: {}", not_run.why), WIDTH, "    "));
    }
    for (repeat, errors) in row.runs.iter().filter_map(|run| Some((run.repeat, run.errors.as_ref()?))) {
        let _ = writeln!(out, "{}", paragraph(&format!("  repeat {repeat}: {errors}"), WIDTH, "    "));
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
        let text = row.figures.get(*key).map_or_else(|| NONE.to_owned(), |spread| text(row, key, of(spread)));
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

/// What the figures are, and how far the spread can be trusted.
fn footer(shown: &SweepShown) -> String {
    let most = shown.steps.iter().map(StepRow::done).max().unwrap_or(0);
    let mut text = match most {
        0 => return String::new(),
        1 => "One run of each step: how much the figures vary is unknown.".to_owned(),
        n => {
            // A run is above the true median with probability 1/2; all n are on one side of it with 2^(1-n).
            let share = (1.0 - 0.5_f64.powi(n as i32 - 1)) * 100.0;
            format!(
                "Median, lowest and highest of n runs: with n = {n} the true median lies between the two in \
                 {share:.0} of 100 cases."
            )
        }
    };
    let lacking = |row: &&StepRow| row.figures.values().any(|spread| spread.runs < row.done());
    let labels: Vec<_> = shown.steps.iter().filter(lacking).map(|row| row.step.label.as_str()).collect();
    if !labels.is_empty() {
        let _ = write!(text, " Not every run has every figure of: {}.", labels.join(", "));
    }
    format!("\n{}\n", paragraph(&text, WIDTH, ""))
}

/// Each flag once, with its steps.
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
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, "  "));
    }
    out
}

/// The order in which a sweep would run.
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
        out += "runs on the same target follow each other, so it is built or filled once\n";
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
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, "     "));
    }
    out
}
