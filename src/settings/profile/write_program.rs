//! The program of a profile to TOML.

use std::fmt::Write;

use crate::settings::values::Program;
use crate::units::format_duration;

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn list(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

/// The table of the program; parsed again it gives the same.
pub(super) fn push(text: &mut String, program: &Program) {
    text.push_str("\n[command]\n");
    if let Some(user) = &program.user {
        let _ = writeln!(text, "user = {}", quoted(user));
    }
    if let Some(bytes) = program.memory_max_bytes {
        let _ = writeln!(text, "memory_max = {bytes}");
    }
    let needs = [("needs", &program.needs)].into_iter();
    for (key, words) in needs.chain(program.phases()).filter(|(_, words)| !words.is_empty()) {
        let _ = writeln!(text, "{key} = {}", list(words));
    }
    for (key, time) in [("ready_within", program.ready_within), ("stop_within", program.stop_within)] {
        let Some(time) = time else { continue };
        let _ = writeln!(text, "{key} = \"{}\"", format_duration(time));
    }
    if !program.environment.is_empty() {
        text.push_str("\n[command.environment]\n");
    }
    for (name, value) in &program.environment {
        let _ = writeln!(text, "{name} = {}", quoted(value));
    }
    if !program.metrics.is_empty() {
        text.push_str("\n[command.metrics]\n");
    }
    push_metrics(text, program);
    push_own(text, program);
}

fn push_metrics(text: &mut String, program: &Program) {
    for metric in &program.metrics {
        let (name, line, unit) = (&metric.name, quoted(&metric.line), quoted(&metric.unit));
        let better = metric.better.map_or_else(String::new, |it| format!(", better = \"{}\"", it.name()));
        let _ = writeln!(text, "{name} = {{ line = {line}, unit = {unit}{better} }}");
    }
}

/// Its own knobs, and its probes.
fn push_own(text: &mut String, program: &Program) {
    for knob in &program.knobs {
        let (name, values, value) = (quoted(&knob.name), list(&knob.values), quoted(&knob.value));
        let _ = writeln!(text, "\n[[command.knob]]\nname = {name}\nvalues = {values}\nvalue = {value}");
        if !knob.turn.is_empty() {
            let _ = writeln!(text, "turn = {}", list(&knob.turn));
        }
        if !knob.less_durable.is_empty() {
            let _ = writeln!(text, "less_durable = {}", list(&knob.less_durable));
        }
    }
    for probe in &program.probes {
        let metric = &probe.metric;
        let _ = writeln!(
            text,
            "\n[command.probes.{}]\nrun = {}\nline = {}\nunit = {}\nevery = \"{}\"\ntimeout = \"{}\"\nkind = \"{}\"",
            metric.name,
            list(&probe.run),
            quoted(&metric.line),
            quoted(&metric.unit),
            format_duration(probe.every),
            format_duration(probe.timeout),
            probe.kind.name()
        );
        if let Some(better) = metric.better {
            let _ = writeln!(text, "better = \"{}\"", better.name());
        }
    }
}
