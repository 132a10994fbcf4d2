//! The plan for building a target, as text.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::cells::{WIDTH, paragraph};
use super::stack_properties;
use crate::printable::Shown as _;
use crate::runs::session::PlanShown;
use crate::units::{approx_size, fine_span};

/// What `record --dry-run --json` prints.
#[derive(Debug, Serialize)]
pub struct PlanFile<'a> {
    /// The commands that take down the current stack, before the first step.
    takes_down: &'a [String],
    /// The steps, in order.
    steps: Vec<StepFile<'a>>,
    /// The devices on which everything is destroyed.
    destroys: Vec<DestroyedFile<'a>>,
    /// Bytes written in total, the fill included; null if unknown.
    writes_bytes: Option<u64>,
    /// How much of each drive's endurance that uses, as sentences.
    wear: Vec<String>,
    /// What the stack survives, holds and costs, as sentences.
    worth: Vec<String>,
    /// How long all steps took last time; null if unknown.
    last_time_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct StepFile<'a> {
    command: &'a str,
    last_time_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct DestroyedFile<'a> {
    path: &'a Path,
    model: Option<&'a str>,
    serial: Option<&'a str>,
    size_bytes: u64,
    content: &'a [String],
}

impl<'a> From<&'a PlanShown> for PlanFile<'a> {
    fn from(plan: &'a PlanShown) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let steps = plan.lines.iter().enumerate().map(|(number, command)| StepFile {
            command,
            last_time_s: seconds(plan.times.get(number).copied().flatten()),
        });
        let destroys = plan.destroys.iter().map(|wanted| DestroyedFile {
            path: &wanted.path,
            model: wanted.model.as_deref(),
            serial: wanted.serial.as_deref(),
            size_bytes: wanted.size_bytes,
            content: &wanted.content,
        });
        Self {
            takes_down: &plan.takes_down,
            steps: steps.collect(),
            destroys: destroys.collect(),
            writes_bytes: plan.writes_bytes,
            wear: stack_properties::wear(&plan.wear),
            worth: properties_of(plan),
            last_time_s: seconds(plan.last_time),
        }
    }
}

/// What the stack survives, holds and costs, as sentences.
pub fn properties_of(plan: &PlanShown) -> Vec<String> {
    plan.properties.as_ref().map(stack_properties::properties).unwrap_or_default()
}

/// The steps, what they destroy and write, and the properties of the stack.
pub fn plan(plan: &PlanShown) -> String {
    let mut text = String::new();
    for (number, line) in plan.lines.iter().enumerate() {
        // Never wrapped, so that it can be copied.
        let _ = writeln!(text, "{:>3}  {line}", number + 1);
        if let Some(time) = plan.times.get(number).copied().flatten() {
            let _ = writeln!(text, "       last time {}", fine_span(time));
        }
    }
    for wanted in &plan.destroys {
        let model = wanted.model.as_deref().unwrap_or("unknown model");
        let serial = wanted.serial.as_deref().unwrap_or("none");
        let content =
            if wanted.content.is_empty() { "nothing found on it".into() } else { wanted.content.join("; ") };
        let (path, size) = (wanted.path.shown(), approx_size(wanted.size_bytes));
        let _ = writeln!(text, "destroys {path}, {model}, serial {serial}, {size}: {content}");
    }
    match plan.writes_bytes {
        Some(bytes) => _ = writeln!(text, "writes about {}", approx_size(bytes)),
        None => text.push_str("how much it writes is unknown\n"),
    }
    for sentence in stack_properties::wear(&plan.wear) {
        let _ = writeln!(text, "{}", paragraph(&sentence, WIDTH, "  "));
    }
    match plan.last_time {
        Some(time) => _ = writeln!(text, "total time: {} last time", fine_span(time)),
        None => text.push_str("total time: unknown, as this has never run here\n"),
    }
    for sentence in properties_of(plan) {
        let _ = writeln!(text, "{}", paragraph(&sentence, WIDTH, "  "));
    }
    text
}
