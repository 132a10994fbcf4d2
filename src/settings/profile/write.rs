//! From a profile to readable TOML: the main keys, and everything else that is not at its default.

use std::fmt::Write;

use super::contents::Profile;
use super::toml_value::to_value;
use super::{write_layers, write_program, write_sweep};
use crate::settings::knobs::{self, Knob, Value};
use crate::settings::values::Settings;

/// Keys that are written even at their defaults.
const MAIN_KEYS: [&str; 13] = [
    "files.dir",
    "files.count",
    "files.size",
    "raid",
    "filesystem",
    "interface",
    "buffering",
    "page_size",
    "enabled",
    "depth",
    "rate",
    "sync",
    "max_writes",
];

/// The profile's text. Parsed again it gives the same profile, except for the files of a target of devices:
/// those are left out.
pub fn to_toml(profile: &Profile) -> String {
    let settings = &profile.settings;
    let mut text = String::from("# A profile of stacktune. `stacktune knobs` explains each key;\n");
    text.push_str("# a key that is missing here has its default.\n");
    push_entry(&mut text, "name", &settings.name.as_str().into());
    push_entry(&mut text, "about", &settings.about.as_str().into());

    let defaults = Settings::default();
    let written: Vec<_> = knobs::all().iter().filter(|k| is_written(k, settings, &defaults)).collect();
    for section in written.chunk_by(|a, b| table_of(a).0 == table_of(b).0) {
        let _ = writeln!(text, "\n[{}]", table_of(section[0]).0);
        push_section(&mut text, section, settings);
    }
    write_layers::push(&mut text, &settings.stack.by_commands);
    if let Some(program) = &settings.program {
        write_program::push(&mut text, program);
    }
    if let Some(sweep) = &profile.sweep {
        write_sweep::push(&mut text, sweep);
    }
    text
}

fn push_section(text: &mut String, section: &[&Knob], settings: &Settings) {
    // Keys of two parts with the same first part make an inline table.
    for group in section.chunk_by(|a, b| inline_of(a).is_some() && inline_of(a) == inline_of(b)) {
        let Some(table) = inline_of(group[0]) else {
            push_entry(text, group[0].spec.key, &to_value(&group[0].get(settings)));
            continue;
        };
        let item = |knob: &&Knob| {
            let key = &knob.spec.key[table.len() + 1..];
            format!("{key} = {}", to_value(&knob.get(settings)))
        };
        let items: Vec<_> = group.iter().map(item).collect();
        let _ = writeln!(text, "{table} = {{ {} }}", items.join(", "));
    }
}

fn is_written(knob: &Knob, settings: &Settings, defaults: &Settings) -> bool {
    let value = knob.get(settings);
    if knob.path.starts_with("target.files.") && !settings.target.devices.is_empty() {
        return false;
    }
    value != knob.get(defaults) || (MAIN_KEYS.contains(&knob.spec.key) && value != Value::Inherit)
}

/// The table and the key in it.
fn table_of(knob: &Knob) -> (&str, &str) {
    knob.path.split_once('.').unwrap_or(("", &knob.path))
}

fn inline_of(knob: &Knob) -> Option<&'static str> {
    knob.spec.key.split_once('.').map(|(table, _)| table)
}

fn push_entry(text: &mut String, key: &str, value: &toml::Value) {
    match value {
        toml::Value::Array(items) if items.len() > 1 => {
            // One device per line.
            let _ = writeln!(text, "{key} = [");
            for item in items {
                let _ = writeln!(text, "    {item},");
            }
            text.push_str("]\n");
        }
        _ => {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
