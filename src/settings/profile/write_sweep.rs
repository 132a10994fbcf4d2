//! The steps of a profile to TOML.

use std::fmt::Write;
use std::time::Duration;

use super::sweep::{Sweep, SweepStep};
use super::toml_value::to_value;
use crate::units::format_duration;

/// The tables of the steps; parsed again they give the same steps.
pub(super) fn push(text: &mut String, sweep: &Sweep) {
    let defaults = Sweep::default();
    let between = &sweep.between;
    text.push_str("\n[sweep]\n");
    push_time(text, "for", Some(sweep.time));
    push_time(text, "warmup", Some(sweep.warmup));
    let _ = writeln!(text, "repeat = {}", sweep.repeat);
    let _ = writeln!(text, "order = \"{}\"", sweep.order.name());
    let _ = writeln!(text, "seed = {}", sweep.seed);
    if !between.idle.is_zero() {
        push_time(text, "idle", Some(between.idle));
    }
    if let Some(degrees) = between.cool_to_c {
        let _ = writeln!(text, "cool_to = {}", toml::Value::from(degrees));
    }
    if between.cool_within != defaults.between.cool_within {
        push_time(text, "cool_within", Some(between.cool_within));
    }
    if between.rebuild {
        text.push_str("rebuild = true\n");
    }
    if !(sweep.product.is_empty() && sweep.program.is_empty()) {
        text.push_str("\n[sweep.product]\n");
        for (name, values) in &sweep.program {
            let values: Vec<_> =
                values.iter().map(|value| toml::Value::from(value.as_str()).to_string()).collect();
            let _ = writeln!(text, "\"command.{name}\" = [{}]", values.join(", "));
        }
        for axis in &sweep.product {
            let values: Vec<_> = axis.values.iter().map(|value| to_value(value).to_string()).collect();
            let _ = writeln!(text, "\"{}\" = [{}]", axis.knob, values.join(", "));
        }
    }
    sweep.steps.iter().for_each(|step| push_step(text, step));
}

fn push_step(text: &mut String, step: &SweepStep) {
    let _ = writeln!(text, "\n[[step]]\nlabel = {}", toml::Value::from(step.label.as_str()));
    push_time(text, "for", step.time);
    push_time(text, "warmup", step.warmup);
    if let Some(repeat) = step.repeat {
        let _ = writeln!(text, "repeat = {repeat}");
    }
    for (path, value) in &step.turns {
        let _ = writeln!(text, "{path} = {}", to_value(value));
    }
    for (name, value) in &step.program {
        let _ = writeln!(text, "command.{name} = {}", toml::Value::from(value.as_str()));
    }
}

fn push_time(text: &mut String, key: &str, time: Option<Duration>) {
    if let Some(time) = time {
        let _ = writeln!(text, "{key} = \"{}\"", format_duration(time));
    }
}
