//! The tables in the help texts that come from the code.

use std::fmt::Write;

use crate::meter::flag::{self, Scope};
use crate::settings::Settings;
use crate::settings::interface::{Capabilities, Interface, Path};
use crate::settings::knobs;
use crate::settings::profile::builtin::{BUILTIN, builtin};

/// The generated parts: the file in `assets/help` (also the name in its markers) and the text.
pub fn parts() -> Vec<(&'static str, String)> {
    vec![
        ("flags", flag_table()),
        ("interfaces", interface_table()),
        ("knobs", knob_tables()),
        ("profiles", profile_table()),
    ]
}

/// A cell's text, with bars escaped, as one would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The table of flags.
fn flag_table() -> String {
    let mut out = String::from("| flag | of | forbids a verdict | meaning |\n|---|---|---|---|\n");
    for spec in flag::specs() {
        let scope = match spec.scope {
            Scope::Class => "a class",
            Scope::Window => "a window",
            Scope::Run => "a run",
            Scope::Turn => "a turn",
        };
        let forbids = match (spec.forbids_verdict, spec.forbids_cycles) {
            (true, _) => "yes",
            (false, true) => "on cycles and cores",
            (false, false) => "no",
        };
        let marks_run = if spec.marks_run { "; one such window marks the run" } else { "" };
        let _ = writeln!(out, "| `{}` | {scope} | {forbids} | {}{marks_run} |", spec.example(), spec.meaning);
    }
    out
}

/// A table of knobs for each table of a profile.
fn knob_tables() -> String {
    let settings = Settings::default();
    let mut out = String::new();
    let mut section = "";
    for knob in knobs::all() {
        let Some((prefix, key)) = knob.path.rsplit_once('.') else { continue };
        if prefix != section {
            let _ = writeln!(
                out,
                "\n## {prefix}\n\n| knob | turn | accepts | default | does |\n|---|---|---|---|---|"
            );
            section = prefix;
        }
        let value = knob.get(&settings).to_string();
        let value = if value.is_empty() { "none" } else { &value };
        let (accepts, help) = (cell(&knob.expected()), cell(knob.spec.help));
        let _ = writeln!(out, "| `{key}` | {} | {accepts} | {value} | {help} |", knob.spec.scope.name());
    }
    out
}

/// The table of interfaces.
fn interface_table() -> String {
    let mut out = String::from("| interface | is | its I/O passes | polls |\n|---|---|---|---|\n");
    for interface in Interface::all() {
        let Capabilities { name, about, path, polls, rings, .. } = interface.capabilities();
        let passes = match path {
            Path::BlockLayer => "the kernel's block layer",
            Path::NvmeDriver => "the kernel's NVMe driver",
            Path::UserspaceDriver => "a driver outside the kernel",
            Path::Nowhere => "nothing",
            Path::Simulation => "simulated devices",
        };
        let polled = match (polls, rings) {
            (true, _) => "always",
            (false, true) => "by `io.completion`, `io.submission`",
            (false, false) => "never",
        };
        let _ = writeln!(out, "| `{name}` | {} | {passes} | {polled} |", cell(about));
    }
    out
}

/// The table of built-in profiles.
fn profile_table() -> String {
    let mut out = String::from("| profile | is about |\n|---|---|\n");
    for (name, _) in BUILTIN {
        let about = builtin(name).map(|profile| profile.settings.about).unwrap_or_default();
        let _ = writeln!(out, "| `{name}` | {} |", cell(&about));
    }
    out
}
