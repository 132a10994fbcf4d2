//! One recording: the table of classes, the processor, doubts, the turns.

use std::cmp::Reverse;
use std::fmt::Write;

use serde::Serialize;

use super::cells::{NONE, WIDTH, latency, left, paragraph, percent, right};
use super::duel::verdict_of_line;
use crate::class::Class;
use crate::host::Throttling;
use crate::meter::counts::slow::SlowKind;
use crate::meter::window::{
    Change, ClassState, CyclesSource, FigureUnit, Latency, LedgerFigure, LedgerLine, Verdict,
};
use crate::printable;
use crate::runs::record::Recording;
use crate::runs::record::summary::{ClassSummary, Summary};
use crate::settings::Run;
use crate::settings::profile;
use crate::ui::report::{kept_rules, sentences};
use crate::ui::text::{clear_change, interval, ledger_value};
use crate::units::{approx_size, approx_span, format_latency, format_size, grouped, three_digits};

/// What `show --json` prints.
#[derive(Debug, Serialize)]
pub struct Shown<'a> {
    /// The folder.
    pub dir: String,
    /// The totals.
    pub summary: &'a Summary,
    /// The turns.
    pub ledger: &'a [LedgerLine],
    /// How the rules of drives were kept, if the run was traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<&'a serde_json::Value>,
    /// The host.
    pub host: &'a serde_json::Value,
    /// What is missing or damaged.
    pub notes: &'a [String],
}

impl<'a> Shown<'a> {
    /// Everything that is shown of a recording.
    pub fn of(recording: &'a Recording) -> Self {
        Self {
            dir: recording.dir.display().to_string(),
            summary: &recording.summary,
            ledger: &recording.ledger,
            contract: recording.contract.as_ref().map(|contract| &contract.value),
            host: &recording.host,
            notes: &recording.notes,
        }
    }
}

/// A recording as text of at most 80 columns.
pub fn show(recording: &Recording) -> String {
    let summary = &recording.summary;
    let mut out = format!("{}: {}\n", recording.name(), heading(summary));
    let host = |key: &str| recording.host.pointer(key).and_then(serde_json::Value::as_str);
    let hosts = [host("/hostname"), host("/cpu/model"), host("/kernel"), host("/distribution")];
    let line = hosts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    if !line.is_empty() {
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, "  "));
    }
    let host_notes = recording.host["notes"].as_array().into_iter().flatten();
    let notes = recording.notes.iter().map(String::as_str);
    for note in notes.chain(host_notes.filter_map(|note| note.as_str())) {
        let _ = writeln!(out, "{}", paragraph(&format!("note: {note}"), WIDTH, "  "));
    }
    out.push('\n');
    // The array can be turned during a recording, as it does not affect what is measured.
    let settings = profile::parse(&recording.profile_toml, "profile.toml");
    let settings = settings.map(|profile| profile.settings).unwrap_or_default();
    out += &table(summary, &settings.run);
    if let Some(why) = settings.price_missing() {
        let _ = writeln!(out, "{}", paragraph(why, WIDTH, "  "));
    }
    out += &slowest(summary);
    out += &believe(summary);
    out += &recording.contract.as_ref().map_or_else(String::new, kept_rules::text);
    if !recording.ledger.is_empty() {
        out += "\nTurns\n";
        recording.ledger.iter().for_each(|line| out += &turn(line));
    }
    out
}

fn heading(summary: &Summary) -> String {
    let mut text = format!("profile {}, {}", summary.profile, approx_span(summary.duration_s));
    if summary.warmup_windows > 0 {
        let _ = write!(text, " after {} of warm-up", approx_span(summary.warmup_s));
    }
    if summary.interrupted {
        text += ", ended early";
    }
    text
}

/// The table of classes with the totals below it, the cores that the run's array would need, and every flag in words.
pub fn table(summary: &Summary, array: &Run) -> String {
    let mut out = match &summary.program {
        Some(program) => {
            sentences_of(&super::program::program(program, summary.duration_s, &summary.total.cpu))
        }
        None => classes(summary),
    };
    out += &totals(summary, array);
    out += &engine(summary);
    out += &drives(summary);
    out += &levels(summary);
    out += &flags(summary);
    if let Some(why) = &summary.failure {
        let _ = writeln!(out, "{}", paragraph(&format!("failed: {why}"), WIDTH, "  "));
    }
    if let Some(errors) = summary.errors_line() {
        let _ = writeln!(out, "{}", paragraph(&errors, WIDTH, "  "));
    }
    out
}

fn classes(summary: &Summary) -> String {
    let mut out = row("class", ["MB/s", "target", "IOPS", "p50", "p99", "p99.9", "max", "errors"]);
    for class in Class::ALL {
        out += &class_rows(class, summary);
    }
    out
}

fn sentences_of(lines: &[String]) -> String {
    lines.iter().map(|line| paragraph(line, WIDTH, "  ") + "\n").collect()
}

fn row(label: &str, cells: [&str; 8]) -> String {
    let mut line = left(label, 16);
    for cell in cells {
        line.push(' ');
        line += &right(cell, 7);
    }
    format!("{}\n", line.trim_end())
}

fn class_rows(class: Class, summary: &Summary) -> String {
    let figures = summary.class(class);
    if figures.state == ClassState::Off && figures.ios == 0 {
        return row(class.name(), ["off", "", "", "", "", "", "", ""]);
    }
    let target = figures.target_mb_per_s.map(three_digits).unwrap_or_default();
    let (mb, iops, errors) =
        (three_digits(figures.mb_per_s), three_digits(figures.iops), figures.errors.to_string());
    let [p50, p99, p999, max] = latencies(figures.service_ns.as_ref());
    let mut out = row(class.name(), [&mb, &target, &iops, &p50, &p99, &p999, &max, &errors]);
    out += &far_tail(figures.service_ns.as_ref());
    out += &response_row(figures);
    if class == Class::Wal {
        let wal = &summary.classes.wal;
        for (label, latency) in [("  write", &wal.write_ns), ("  flush", &wal.flush_ns)] {
            if let Some(latency) = latency {
                out += &latency_row(label, latency);
            }
        }
    }
    if let Some(polls) = figures.polls.and_then(|polls| sentences::polls_of(polls, summary.duration_s)) {
        let _ = writeln!(out, "  polls {polls}");
    }
    if let Some(incidents) = figures.incidents {
        let _ = writeln!(out, "  {incidents}");
    }
    if figures.slow_ios > 0 {
        let _ = writeln!(out, "  {} as slow as run.slow_log, or slower", figures.slow_ios);
    }
    if figures.missed > 0 {
        let _ = writeln!(out, "  missed {} of {} intended starts", figures.missed, figures.intended);
    }
    let end = match &figures.state {
        ClassState::Stopped(why) => Some(format!("  stopped: {why}")),
        ClassState::Failed(why) => Some(format!("  failed: {why}")),
        _ => None,
    };
    if let Some(end) = end {
        let _ = writeln!(out, "{}", paragraph(&end, WIDTH, "  "));
    }
    out
}

/// The percentiles beyond those of the table, where there are samples.
fn far_tail(latency: Option<&Latency>) -> String {
    let Some(Latency { p9999, p99999, p999999, .. }) = latency else { return String::new() };
    let known = [("p99.99", p9999), ("p99.999", p99999), ("p99.9999", p999999)].into_iter();
    let known: Vec<_> =
        known.filter_map(|(name, ns)| Some(format!("{name} {}", format_latency((*ns)?)))).collect();
    if known.is_empty() { String::new() } else { format!("  {}\n", known.join(", ")) }
}

fn response_row(figures: &ClassSummary) -> String {
    match &figures.response_ns {
        _ if figures.response_not_held => row("  response", ["", "", "", "not held", "", "", "", ""]),
        Some(latency) => latency_row("  response", latency),
        None => String::new(),
    }
}

fn latency_row(label: &str, latency: &Latency) -> String {
    let [p50, p99, p999, max] = latencies(Some(latency));
    row(label, ["", "", "", &p50, &p99, &p999, &max, ""])
}

fn latencies(of: Option<&Latency>) -> [String; 4] {
    let none = Latency::default();
    let of = of.unwrap_or(&none);
    [of.p50, of.p99, of.p999, of.max].map(latency)
}

fn totals(summary: &Summary, array: &Run) -> String {
    let (total, cpu) = (&summary.total, &summary.total.cpu);
    // No class moved anything where a program was the load.
    let classes = summary.program.is_none();
    let mut out = if classes {
        row("total", [&three_digits(total.mb_per_s), "", "", "", "", "", "", ""])
    } else {
        String::new()
    };
    let estimate = total.cycles_source == CyclesSource::Estimate;
    let (sign, source) = match (estimate, &cpu.frequency_source, cpu.frequency_hz) {
        (false, ..) => ("", "performance-monitoring unit".to_owned()),
        (true, Some(source), Some(hz)) => {
            ("≈", format!("busy CPU time at {} GHz from {source}", three_digits(hz / 1e9)))
        }
        (true, ..) => ("≈", "busy CPU time".to_owned()),
    };
    let figure = |x: f64| format!("{sign}{}", three_digits(x));
    let per_op = total.cycles_per_op.map_or_else(String::new, |x| format!(", cycles/op {}", figure(x)));
    let ours = total.attributable_cycles_per_byte;
    let ours =
        ours.map_or_else(String::new, |x| format!(" of the whole system, {} without others", figure(x)));
    // Simulated devices and idle runs have no cycles, whatever the source.
    let cycles = total.cycles_per_byte.map_or_else(
        || format!("cycles/byte {NONE}"),
        |x| format!("cycles/byte {}{ours}{per_op} ({source})", figure(x)),
    );
    let cycles = format!("{cycles}; {} moved", approx_size(total.bytes));
    let shares = format!(
        "CPU busy {}: user {}, system {}, interrupt {}, steal {}; {} of {} cores ours",
        percent(total.cpu_busy),
        percent(cpu.user),
        percent(cpu.system),
        percent(cpu.interrupt),
        percent(cpu.steal),
        three_digits(cpu.own_cores),
        cpu.cpus,
    );
    if classes {
        let _ = writeln!(out, "\n{}", paragraph(&cycles, WIDTH, "  "));
    }
    let _ = writeln!(out, "{}", paragraph(&shares, WIDTH, "  "));
    if cpu.cpus > 0 {
        let mut cores = format!("cores {}", sentences::cores(cpu));
        if let Some(others) = sentences::others(cpu) {
            let _ = write!(cores, "; others {others}");
        }
        let own = total.attributable_cycles_per_byte.or(total.cycles_per_byte);
        if let Some(needed) = sentences::cores_needed(cpu, own, summary.duration_s, array) {
            let _ = write!(cores, "; needs {needed}");
        }
        let _ = writeln!(out, "{}", paragraph(&cores, WIDTH, "  "));
    }
    out
}

/// What the storage engine did, by its own counts and clocks.
fn engine(summary: &Summary) -> String {
    let Some(engine) = &summary.engine else { return String::new() };
    let mut out = String::new();
    for line in sentences::engine(engine, summary.duration_s, true) {
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, "  "));
    }
    for time in &engine.times_us {
        let us = |us: f64| format_latency((us * 1e3) as u64);
        let (name, count) = (&time.name, time.count);
        let (p50, p99, max) = (us(time.p50), us(time.p99), us(time.max));
        let line = format!("{name}: {count} since it was opened, p50 {p50}, p99 {p99}, max {max}");
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, "  "));
    }
    out
}

/// How warm the drives got and whether they throttled, what others did on them, and what they cost; empty if none of
/// that is known.
fn drives(summary: &Summary) -> String {
    let mut out = String::new();
    for member in &summary.members {
        let Some(celsius) = member.temperature_c else { continue };
        let text = match member.throttling {
            Some(Throttling::Yes) => "throttled, by its own count",
            Some(Throttling::Hot) => "was hot enough to have throttled (inferred)",
            Some(Throttling::No) => "did not throttle, by its own count",
            None => "throttling unknown",
        };
        let line = format!("{}: up to {celsius:.0} °C, {text}", member.name);
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, "  "));
    }
    for of in &summary.others_io {
        let line = sentences::others_io(of, summary.duration_s);
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, "  "));
    }
    if let Some(cost) = &summary.cost {
        let per =
            |price: Option<f64>, of: &str| price.map(|price| format!("${} per {of}", three_digits(price)));
        let parts = [per(cost.per_usable_tb, "usable TB"), per(cost.per_scan_gb_per_s, "GB/s of scan")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let line = format!("price ${}: {}", three_digits(cost.price), parts.join(", "));
        let _ = writeln!(out, "{}", paragraph(&line, WIDTH, "  "));
    }
    out
}

/// What was amplified, whether it was steady, and how much it varied.
fn levels(summary: &Summary) -> String {
    let mut lines = sentences::amplification(&summary.written);
    lines.extend(sentences::steadiness(&summary.steady));
    lines.extend(sentences::variability(&summary.variability));
    sentences_of(&lines)
}

/// The seven pitfalls; empty for recordings without them.
fn believe(summary: &Summary) -> String {
    let mut out = String::new();
    if !summary.pitfalls.is_empty() {
        out += "\nCan I believe it?\n";
    }
    for pitfall in &summary.pitfalls {
        let wrapped = |text: &str| paragraph(text, WIDTH - 6, "      ");
        let figure = format!("{}: {}", pitfall.name, pitfall.figure);
        let _ = writeln!(out, "{:<6}{}", pitfall.light.word(), wrapped(&figure));
        if !pitfall.advice.is_empty() {
            let _ = writeln!(out, "      {}", wrapped(&pitfall.advice));
        }
    }
    out
}

fn flags(summary: &Summary) -> String {
    let of_classes = Class::ALL.into_iter().map(|class| (Some(class), &summary.class(class).flags));
    let mut out = String::new();
    for (class, flags) in of_classes.chain([(None, &summary.flags)]) {
        let name = class.map_or("run", Class::name);
        for flag in flags {
            let why = summary.why(class, flag);
            let _ = writeln!(out, "{}", paragraph(&format!("! {name}: {flag}: {why}"), WIDTH, "  "));
        }
    }
    out
}

/// The slowest I/Os that were kept, the slowest first; empty if there are none.
fn slowest(summary: &Summary) -> String {
    if summary.slowest.is_empty() {
        return String::new();
    }
    let mut ios = summary.slowest.clone();
    ios.sort_by_key(|io| Reverse(io.service_ns));
    let mut out = "\nSlowest I/Os (run.slow_log)\n".to_owned();
    for io in ios {
        let at = format!("{:.3}s", io.at_ns as f64 / 1e9);
        let (class, kind, time) = (io.class.name(), io.kind.name(), format_latency(io.service_ns));
        let member = usize::try_from(io.member).ok().and_then(|at| summary.members.get(at));
        let place = match (io.kind, member) {
            (SlowKind::Flush, _) | (_, None) => String::new(),
            (_, Some(member)) => {
                let (bytes, offset) = (format_size(io.bytes), grouped(io.offset_bytes));
                format!(", {bytes} at {offset} of {}, depth {}", member.name, io.depth)
            }
        };
        let _ = writeln!(out, "  {at:>10}  {class} {kind} {time}{place}");
    }
    out
}

/// A ledger line: the turn, then each figure before and after.
fn turn(line: &LedgerLine) -> String {
    let undo = if line.undo { " (undo)" } else { "" };
    let at = approx_span(line.at_ns as f64 / 1e9);
    let mut out = format!("{:>3}. at {at}: {}{undo}\n", line.number, line.turned());
    if let Some(said) = verdict_of_line(line) {
        let _ = writeln!(out, "     {said}");
    }
    if line.less_durable {
        out += "     less durable than before\n";
    }
    if line.more_durable {
        out += "     more durable than before\n";
    }
    for less in &line.survives_less {
        let _ = writeln!(out, "     {less}");
    }
    for (figure, change) in line.changes() {
        let text = |value| ledger_value(figure.unit, value);
        if let (Some(before), Some(after)) = (change.before, change.after) {
            let spread = |range: Option<(f64, f64)>| {
                range.map_or_else(String::new, |(low, high)| format!(" [{}–{}]", text(low), text(high)))
            };
            let (from, to) =
                (text(before) + &spread(change.before_range), text(after) + &spread(change.after_range));
            let _ = writeln!(out, "     {figure:<13} {from} → {to}: {}", verdict(figure, change, line));
        }
    }
    for (name, change) in &line.metrics {
        let name = printable::line(name);
        if let (Some(before), Some(after)) = (change.before, change.after) {
            let said = match change.verdict {
                Verdict::None if line.open => "not known yet".to_owned(),
                Verdict::None => "no verdict".to_owned(),
                Verdict::NoClearChange => format!("no clear change{}", interval(change)),
                Verdict::Higher => format!("higher{}{}", interval(change), word(change)),
                Verdict::Lower => format!("lower{}{}", interval(change), word(change)),
            };
            let _ =
                writeln!(out, "     {name:<13} {} → {}: {said}", three_digits(before), three_digits(after));
        }
    }
    if !line.flags.is_empty() {
        let _ = writeln!(out, "     flags: {}", line.flags.join(", "));
    }
    if line.open {
        out += "     still collecting windows when the recording ended\n";
    }
    out
}

/// Whether a clear change of a program's figure is for the better.
fn word(change: &Change) -> &'static str {
    match change.is_gain() {
        Some(true) => ", better",
        Some(false) => ", worse",
        None => ", different",
    }
}

fn verdict(figure: LedgerFigure, change: &Change, line: &LedgerLine) -> String {
    match change.verdict {
        Verdict::None if line.open => "not known yet".into(),
        Verdict::None => {
            let others = line.cycles_not_judged().filter(|_| figure.unit == FigureUnit::CyclesPerByte);
            others.unwrap_or_else(|| "no verdict".into())
        }
        Verdict::NoClearChange => format!("no clear change{}", interval(change)),
        Verdict::Higher | Verdict::Lower => clear_change(figure, change).unwrap_or_default(),
    }
}
