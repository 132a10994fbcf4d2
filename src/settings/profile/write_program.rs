//! The program of a profile to TOML.

use std::fmt::Write;

use crate::settings::values::Program;

/// The table of the program; parsed again it gives the same.
pub(super) fn push(text: &mut String, program: &Program) {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    text.push_str("\n[command]\n");
    if let Some(user) = &program.user {
        let _ = writeln!(text, "user = {}", quoted(user));
    }
    if let Some(bytes) = program.memory_max_bytes {
        let _ = writeln!(text, "memory_max = {bytes}");
    }
    let needs = [("needs", &program.needs)].into_iter();
    for (key, words) in needs.chain(program.phases()).filter(|(_, words)| !words.is_empty()) {
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(text, "{key} = [{}]", words.join(", "));
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
    for metric in &program.metrics {
        let (name, line, unit) = (&metric.name, quoted(&metric.line), quoted(&metric.unit));
        let _ = writeln!(text, "{name} = {{ line = {line}, unit = {unit} }}");
    }
}
