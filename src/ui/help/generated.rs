//! The tables in the help texts that come from the code: knobs, and interfaces.

use crate::settings::knobs;
use crate::settings::profile::Settings;

/// The parts of the help that are generated: the file in `assets/help`, the name in its marks, and the text.
pub fn parts() -> Vec<(&'static str, &'static str, String)> {
    vec![("knobs", "knobs", knob_tables())]
}

/// A table of knobs for each table of a profile.
fn knob_tables() -> String {
    let settings = Settings::default();
    let mut out = String::new();
    let mut section = "";
    for knob in knobs::all() {
        let Some((prefix, key)) = knob.path.rsplit_once('.') else { continue };
        if prefix != section {
            out += &format!(
                "\n## {prefix}\n\n| knob | turn | accepts | default | does |\n|---|---|---|---|---|\n"
            );
            section = prefix;
        }
        let value = knob.get(&settings).to_string();
        let value = if value.is_empty() { "none" } else { &value };
        let cell = |text: &str| text.replace('|', "\\|");
        let (accepts, help) = (cell(&knob.expected()), cell(knob.spec.help));
        out += &format!("| `{key}` | {} | {accepts} | {value} | {help} |\n", knob.spec.scope.name());
    }
    out
}
