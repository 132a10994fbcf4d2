//! The list of knobs, from the table that defines them.

use std::fmt::Write;

use serde::Serialize;

use super::cells::{WIDTH, paragraph};
use crate::settings::Settings;
use crate::settings::knobs::{self, Conditions, Kind, Knob, Value};

const INDENT: &str = "    ";

/// A knob as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnobRow {
    /// Its key in profiles and for `--set`.
    pub path: String,
    /// What it accepts.
    pub accepts: String,
    /// Its default.
    pub default: String,
    /// `live` or `rebuild`.
    pub scope: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What each value means, if there is a fixed set.
    pub choices: Vec<Choice>,
    /// What the paper found.
    pub paper: Option<&'static str>,
    /// The values that this host does not support on their own, and why.
    pub unavailable: Vec<Unavailable>,
}

/// One value of a fixed set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The value.
    pub value: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A value that this host does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unavailable {
    /// The value.
    pub value: String,
    /// Why.
    pub reason: String,
}

/// All knobs under the default settings on this host.
pub fn rows(conditions: Conditions) -> Vec<KnobRow> {
    let settings = Settings::default();
    knobs::all().iter().map(|knob| row(knob, &settings, conditions)).collect()
}

fn row(knob: &Knob, settings: &Settings, conditions: Conditions) -> KnobRow {
    let spec = knob.spec;
    let inherits = if spec.inherits { ", or default" } else { "" };
    let choices: &[_] = if let Kind::Choice(choices) = spec.kind { choices } else { &[] };
    // A fixed set is small enough to try each value; ranges are shown by what is accepted.
    let values = choices.iter().map(|(name, _)| Value::Choice(name));
    let switch = matches!(spec.kind, Kind::Bool).then_some(Value::Bool(true));
    let unavailable = values.chain(switch).filter_map(|value| {
        let reason = knob.unavailable(&value, settings, conditions)?;
        Some(Unavailable { value: value.to_string(), reason })
    });
    KnobRow {
        path: knob.path.clone(),
        accepts: format!("{}{inherits}", spec.kind.expected()),
        default: knob.get(settings).to_string(),
        scope: spec.scope.name(),
        help: spec.help,
        choices: choices.iter().map(|&(value, meaning)| Choice { value, meaning }).collect(),
        paper: spec.paper,
        unavailable: unavailable.collect(),
    }
}

/// The list as text.
pub fn text(rows: &[KnobRow]) -> String {
    let mut out = String::new();
    let mut say = |text: &str| {
        let _ = writeln!(out, "{}", paragraph(text, WIDTH, INDENT));
    };
    for row in rows {
        let value = if row.default.is_empty() { "none" } else { &row.default };
        say(&format!("{} = {value} ({})", row.path, row.scope));
        say(&format!("{INDENT}{}", row.help));
        say(&format!("{INDENT}Accepts {}.", row.accepts));
        for choice in &row.choices {
            say(&format!("{INDENT}{}: {}", choice.value, choice.meaning));
        }
        if let Some(paper) = row.paper {
            say(&format!("{INDENT}Paper: {paper}"));
        }
        for missing in &row.unavailable {
            say(&format!("{INDENT}Not on this host: {}: {}", missing.value, missing.reason));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Feature;
    use crate::runs::record::fixture::facts;

    #[test]
    fn every_knob_is_listed_within_80_columns() {
        let facts = facts();
        let rows = rows(Conditions { facts: &facts, target: None });
        assert_eq!(rows.len(), knobs::all().len());
        let text = text(&rows);
        for row in &rows {
            assert!(text.contains(&format!("{} = ", row.path)), "{}", row.path);
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_missing_interface_is_listed_with_the_reason() {
        let mut facts = facts();
        let of = |facts: &crate::host::Facts| {
            let rows = rows(Conditions { facts, target: None });
            rows.into_iter().find(|row| row.path == "io.interface").unwrap().unavailable
        };
        assert!(of(&facts).iter().all(|missing| missing.value != "io_uring"));
        facts.io_uring = Feature::Missing("io_uring is disabled by kernel.io_uring_disabled".into());
        let missing = of(&facts).into_iter().find(|missing| missing.value == "io_uring").unwrap();
        assert!(missing.reason.contains("kernel.io_uring_disabled"), "{}", missing.reason);
    }
}
