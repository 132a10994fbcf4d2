//! What a trace holds: `stacktune trace --from TRACE`.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::trace::{HeldOperation, Holdings, Trace, Watched};
use crate::ui::text::{NONE, WIDTH, left, paragraph, right};
use crate::units::{approx_size, fine_span, format_latency, grouped, mb_per_s, three_digits};

const INDENT: &str = "  ";
const DRIVE: usize = 10;
const OPERATION: usize = 10;
const COUNT: usize = 12;
const FIGURE: usize = 9;
const PROCESS: usize = 24;
/// As many processes as are of interest.
const PROCESSES: usize = 10;

/// What a trace holds, as text.
pub fn held(name: &str, trace: &Trace, parts: &[Watched]) -> String {
    let of = Holdings::of(trace);
    let (ios, form) = (grouped(trace.ios.len() as u64), trace.form.name());
    let time = if of.duration_ns > 0 { format!(" in {}", span(of.duration_ns)) } else { String::new() };
    let mut out = paragraph(&format!("{name}: {ios} I/Os{time}, from {form}"), WIDTH, INDENT);
    out.push('\n');
    for note in notes(trace, parts) {
        let _ = writeln!(out, "{}", paragraph(&note, WIDTH, INDENT));
    }
    out.push_str(&operations(&of));
    out.push_str(&processes(&of));
    if !of.phases.is_empty() {
        let _ = writeln!(out, "\n{}{}{}", left("phase", PROCESS), right("from", COUNT), right("I/Os", COUNT));
        for phase in &of.phases {
            let (from, ios) = (span(phase.from_ns), grouped(phase.ios));
            let _ =
                writeln!(out, "{}{}{}", left(&phase.name, PROCESS), right(&from, COUNT), right(&ios, COUNT));
        }
    }
    out
}

fn span(ns: u64) -> String {
    fine_span(Duration::from_nanos(ns))
}

/// What is missing, and what was traced.
fn notes(trace: &Trace, parts: &[Watched]) -> Vec<String> {
    let mut notes = vec![trace.lost.in_words()];
    let counted = [
        (trace.open(), "open at the end"),
        (trace.unpaired, "completions of nothing that was issued in it"),
        (trace.requeued, "handed back by the drive's driver"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    notes.extend(counted.map(|(count, what)| format!("{} {what}", grouped(count))));
    let mut notes = vec![notes.join("; ")];
    notes.extend(parts.iter().map(|part| {
        let drive = [&part.model, &part.serial].into_iter().flatten().map(String::as_str);
        let about: Vec<&str> = drive.collect();
        let about = if about.is_empty() { String::new() } else { format!(", {}", about.join(" ")) };
        format!(
            "{} ({}{about}): {} from byte {} on",
            part.name,
            part.drive,
            approx_size(part.bytes),
            part.start_bytes
        )
    }));
    notes
}

fn operations(of: &Holdings) -> String {
    let mut out = String::from("\n");
    let heads = ["MB/s", "I/Os/s", "p50 KiB", "p50", "p99"].map(|head| right(head, FIGURE)).concat();
    let _ = writeln!(
        out,
        "{}{}{}{heads}",
        left("drive", DRIVE),
        left("operation", OPERATION),
        right("I/Os", COUNT)
    );
    for operation in &of.operations {
        let HeldOperation { drive, op, ios, bytes, median_bytes, latency_ns } = operation;
        let rate = |per_s: f64| if of.duration_ns > 0 { three_digits(per_s) } else { NONE.to_owned() };
        let time = |at: usize| latency_ns.map_or_else(|| NONE.to_owned(), |ns| format_latency(ns[at]));
        let figures = [
            rate(mb_per_s(*bytes, of.duration_ns.max(1))),
            rate(*ios as f64 * 1e9 / of.duration_ns.max(1) as f64),
            three_digits(*median_bytes as f64 / 1024.0),
            time(0),
            time(1),
        ];
        let figures = figures.map(|figure| right(&figure, FIGURE)).concat();
        let (drive, op) = (left(&drive.to_string(), DRIVE), left(op.name(), OPERATION));
        let _ = writeln!(out, "{drive}{op}{}{figures}", right(&grouped(*ios), COUNT));
    }
    out
}

fn processes(of: &Holdings) -> String {
    let mut out = String::from("\n");
    let heads = ["I/Os", "read", "written"].map(|head| right(head, COUNT)).concat();
    let _ = writeln!(out, "{}{heads}", left("process", PROCESS));
    for process in of.processes.iter().take(PROCESSES) {
        let name = format!("{} {}", if process.name.is_empty() { NONE } else { &process.name }, process.pid);
        let figures =
            [grouped(process.ios), approx_size(process.read_bytes), approx_size(process.written_bytes)];
        let figures = figures.map(|figure| right(&figure, COUNT)).concat();
        let _ = writeln!(out, "{}{figures}", left(&name, PROCESS));
    }
    let more = of.processes.len().saturating_sub(PROCESSES);
    if more > 0 {
        let _ = writeln!(out, "{more} more");
    }
    out
}

/// What a trace holds, as JSON.
pub fn held_json(name: &str, trace: &Trace, parts: &[Watched]) -> Value {
    let of = Holdings::of(trace);
    let operations = of.operations.iter().map(|operation| {
        json!({
            "drive": operation.drive.to_string(),
            "operation": operation.op.name(),
            "ios": operation.ios,
            "bytes": operation.bytes,
            "median_bytes": operation.median_bytes,
            "p50_ns": operation.latency_ns.map(|ns| ns[0]),
            "p99_ns": operation.latency_ns.map(|ns| ns[1]),
        })
    });
    let processes = of.processes.iter().map(|process| {
        json!({
            "pid": process.pid,
            "name": process.name,
            "ios": process.ios,
            "read_bytes": process.read_bytes,
            "written_bytes": process.written_bytes,
        })
    });
    let phases = of.phases.iter().map(|phase| {
        json!({ "name": phase.name, "from_ns": phase.from_ns, "ios": phase.ios, "bytes": phase.bytes })
    });
    json!({
        "trace": name,
        "form": trace.form.name(),
        "drives": parts.iter().map(Watched::to_json).collect::<Vec<_>>(),
        "duration_ns": of.duration_ns,
        "ios": trace.ios.len(),
        "completed": trace.completed(),
        "open": trace.open(),
        "unpaired": trace.unpaired,
        "requeued": trace.requeued,
        "lost": trace.lost.all,
        "lost_completions": trace.lost.completions,
        "operations": operations.collect::<Vec<_>>(),
        "processes": processes.collect::<Vec<_>>(),
        "phases": phases.collect::<Vec<_>>(),
        "notes": trace.notes.iter().map(|note| json!({ "at_ns": note.at_ns, "text": note.text })).collect::<Vec<_>>(),
    })
}
