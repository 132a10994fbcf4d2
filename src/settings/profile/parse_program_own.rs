//! A program's own knobs, and its probes, from TOML: `[[command.knob]]` and `[command.probes]`.

use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::parse::{Walk, list};
use super::parse_layers::value_at;
use super::parse_program::{KEYS, NAME_CHARS_MAX};
use crate::printable;
use crate::settings::values::program::{
    KNOBS_MAX, PLACEHOLDERS, Probe, ProbeKind, Program, ProgramKnob, VALUE, VALUES_MAX, WORD_BYTES_MAX,
    is_placeholder,
};
use crate::units::parse_duration;

const KNOB_KEYS: [&str; 5] = ["name", "values", "value", "turn", "less_durable"];
const PROBE_KEYS: [&str; 7] = ["run", "line", "unit", "better", "every", "timeout", "kind"];
/// What is looked for in the output of a probe without a pattern: a line that is a number.
const NUMBER: &str = r"^\s*(-?[0-9]+(?:\.[0-9]+)?)\s*$";
const EVERY: Duration = Duration::from_secs(5);
/// Any more often, a probe would be a load of its own.
const EVERY_MIN: Duration = Duration::from_millis(500);

impl Walk<'_> {
    pub(super) fn program_knobs(&mut self, value: &Spanned<DeValue>) -> Vec<ProgramKnob> {
        let items = value.get_ref().as_array().filter(|items| items.len() <= KNOBS_MAX);
        let Some(items) = items else {
            let what = format!(
                "`command.knob` must be one or more tables, {KNOBS_MAX} at most: write [[command.knob]]"
            );
            self.refuse(value.span().start, what);
            return Vec::new();
        };
        let mut knobs: Vec<ProgramKnob> = Vec::new();
        for item in items {
            let Some(table) = item.get_ref().as_table() else {
                self.refuse(
                    item.span().start,
                    "`command.knob` must be one or more tables: write [[command.knob]]",
                );
                continue;
            };
            let knob = self.program_knob(table, item.span().start);
            if knobs.iter().any(|known| known.name == knob.name) {
                self.refuse(item.span().start, format!("there is already a knob `{}`", knob.name));
            }
            knobs.push(knob);
        }
        knobs
    }

    /// A knob, even one that is refused: commands that name it are not to blame.
    fn program_knob(&mut self, table: &DeTable, at: usize) -> ProgramKnob {
        let mut knob = ProgramKnob::default();
        let mut value_of = None;
        for (key, value) in table {
            match &**key.get_ref() {
                "name" => knob.name = self.line("command.knob.name", value).unwrap_or_default(),
                "values" => knob.values = self.knob_values("values", value).unwrap_or_default(),
                "less_durable" => {
                    knob.less_durable = self.knob_values("less_durable", value).unwrap_or_default();
                }
                "value" => value_of = self.knob_value(value).map(|text| (text, value.span().start)),
                "turn" => knob.turn = self.words("knob.turn", value, &[VALUE]),
                other => {
                    let what = format!("a knob has {}, not `{}`", list(&KNOB_KEYS), other.escape_debug());
                    self.refuse(key.span().start, what);
                }
            }
        }
        let taken = KEYS.contains(&knob.name.as_str())
            || knob.name == VALUE
            || PLACEHOLDERS.iter().any(|(known, _)| *known == knob.name);
        if !is_placeholder(&knob.name) || knob.name.len() > NAME_CHARS_MAX || taken {
            let what = "a knob's name has lowercase letters, digits and `_`, and is no key of `command` and no placeholder";
            self.refuse(at, what);
        }
        if !table.contains_key("values") {
            self.refuse(at, format!("the knob `{}` has no `values`", knob.name));
        }
        if let Some(unknown) = knob.less_durable.iter().find(|value| !knob.values.contains(value)) {
            let what =
                format!("`less_durable` of the knob `{}`: {unknown} is not one of its values", knob.name);
            self.refuse(at, what);
        }
        knob.value = knob.values.first().cloned().unwrap_or_default();
        if let Some((value, at)) = value_of {
            if !knob.values.contains(&value) {
                self.refuse(
                    at,
                    format!("the knob `{}` has no such value: {}", knob.name, knob.values.join(", ")),
                );
            }
            knob.value = value;
        }
        knob
    }

    fn knob_values(&mut self, key: &str, value: &Spanned<DeValue>) -> Option<Vec<String>> {
        let items = value.get_ref().as_array().filter(|items| (1..=VALUES_MAX).contains(&items.len()));
        let Some(items) = items else {
            self.refuse(
                value.span().start,
                format!("`command.knob.{key}` must be a list of 1 to {VALUES_MAX} values"),
            );
            return None;
        };
        let mut values = Vec::new();
        for item in items {
            let value = self.knob_value(item)?;
            if values.contains(&value) {
                self.refuse(item.span().start, format!("the value {value} is there twice"));
            }
            values.push(value);
        }
        Some(values)
    }

    /// A knob's value: text, or what is written without quotes.
    pub(super) fn knob_value(&mut self, value: &Spanned<DeValue>) -> Option<String> {
        let text = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => Some(self.source(value)),
            _ => None,
        };
        let is_value = |text: &String| {
            printable::is_line(text)
                && text.len() <= WORD_BYTES_MAX
                && text.trim() == text
                && !text.is_empty()
        };
        let text = text.filter(is_value);
        if text.is_none() {
            let what = format!("a value of a program's knob is text or a number, not {}", self.source(value));
            self.refuse(value.span().start, what);
        }
        text
    }

    pub(super) fn probes(&mut self, value: &Spanned<DeValue>, own: &[&str]) -> Vec<Probe> {
        let table = value.get_ref().as_table().filter(|table| table.len() <= KNOBS_MAX);
        let Some(table) = table else {
            self.refuse(
                value.span().start,
                format!("`command.probes` must be a table of {KNOBS_MAX} probes at most"),
            );
            return Vec::new();
        };
        let mut probes = Vec::new();
        for (key, value) in table {
            let Some(name) = self.figure_name(key) else { continue };
            let Some(table) = value.get_ref().as_table() else {
                let what = format!("`command.probes.{name}` must be a table of {}", list(&PROBE_KEYS));
                self.refuse(value.span().start, what);
                continue;
            };
            probes.extend(self.probe(name, table, value.span().start, own));
        }
        probes
    }

    fn probe(&mut self, name: String, table: &DeTable, at: usize, own: &[&str]) -> Option<Probe> {
        let path = format!("command.probes.{name}");
        if let Some((key, _)) = table.iter().find(|(key, _)| !PROBE_KEYS.contains(&&**key.get_ref())) {
            let what = format!("a probe has {}, not `{}`", list(&PROBE_KEYS), key.get_ref().escape_debug());
            self.refuse(key.span().start, what);
            return None;
        }
        let Some(run) = value_at(table, "run") else {
            self.refuse(at, format!("`{path}` has no `run`: the command that prints a number"));
            return None;
        };
        let run = self.words(&format!("probes.{name}.run"), run, own);
        let line = match value_at(table, "line") {
            Some(line) => self.line("line", line)?,
            None => NUMBER.to_owned(),
        };
        let metric = self.metric_of((&path, name), line, table, at)?;
        let every = self.probe_time(&path, "every", table, EVERY)?;
        let timeout = self.probe_time(&path, "timeout", table, every)?;
        if every < EVERY_MIN {
            self.refuse(at, format!("`{path}.every` must be at least 500ms: a probe is load, too"));
        }
        let kind = match value_at(table, "kind") {
            None => ProbeKind::Gauge,
            Some(kind) => {
                let known =
                    ProbeKind::NAMES.into_iter().find(|(_, name)| kind.get_ref().as_str() == Some(name));
                let Some((kind, _)) = known else {
                    let names = ProbeKind::NAMES.map(|(_, name)| name);
                    self.refuse(kind.span().start, format!("`{path}.kind` is one of {}", list(&names)));
                    return None;
                };
                kind
            }
        };
        Some(Probe { metric, run, every, timeout, kind })
    }

    fn probe_time(
        &mut self,
        path: &str,
        key: &str,
        table: &DeTable,
        otherwise: Duration,
    ) -> Option<Duration> {
        let Some(value) = value_at(table, key) else { return Some(otherwise) };
        self.command_time(&format!("{path}.{key}"), value)
    }

    /// A time above 0.
    pub(super) fn command_time(&mut self, path: &str, value: &Spanned<DeValue>) -> Option<Duration> {
        let time = value
            .get_ref()
            .as_str()
            .and_then(|text| parse_duration(text).ok())
            .filter(|time| !time.is_zero());
        if time.is_none() {
            self.refuse(value.span().start, format!("`{path}` must be a time like 5s"));
        }
        time
    }
}

impl Walk<'_> {
    /// Refuses probes that could be confused with others.
    pub(super) fn check_probes(&mut self, program: &Program, at: usize) {
        let twice = program
            .probes
            .iter()
            .find(|probe| program.metrics.iter().any(|metric| metric.name == probe.metric.name));
        if let Some(twice) = twice {
            let what =
                format!("`{}` is a figure of both `command.metrics` and `command.probes`", twice.metric.name);
            self.refuse(at, what);
        }
        let of_application = program.probes.iter().filter(|probe| probe.kind == ProbeKind::ApplicationBytes);
        if of_application.count() > 1 {
            self.refuse(at, "at most one probe is of the kind `application-bytes`");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::profile::{parse, to_toml};
    use crate::settings::values::program::ProbeKind;

    const KNOBS: &str = r#"
[command]
run = ["bench", "--cache={cache}"]
ready_within = "10m"
stop_within = "90s"
[[command.knob]]
name = "cache"
values = ["1GB", "4GB", 7]
value = "4GB"
[[command.knob]]
name = "sync_commit"
values = ["on", "off"]
turn = ["psql", "-c", "alter system set x = '{value}'"]
less_durable = ["off"]
[command.probes]
wal = { run = ["psql", "-Atc", "select {sync_commit}"], every = "2s", timeout = "1s", kind = "application-bytes", unit = "B", better = "lower" }
depth = { run = ["cat", "/proc/loadavg"], line = '^([0-9.]+)' }
[sweep.product]
command.cache = ["1GB", 7]
"command.memory_max" = ["1GB", "2GB"]
[[step]]
label = "a"
command.sync_commit = "off"
"#;

    #[test]
    fn knobs_and_probes_are_read_and_written_again() {
        let profile = parse(KNOBS, "p.toml").unwrap();
        let program = profile.settings.program.as_ref().unwrap();
        assert_eq!((program.value_of("cache"), program.value_of("sync_commit")), (Some("4GB"), Some("on")));
        assert_eq!(
            (program.knobs[0].less_durable.len(), &program.knobs[1].less_durable[..]),
            (0, &["off".to_owned()][..])
        );
        let wal = &program.probes[1];
        assert_eq!(
            (wal.metric.name.as_str(), wal.kind, wal.timeout.as_secs()),
            ("wal", ProbeKind::ApplicationBytes, 1)
        );
        assert_eq!((program.probes[0].kind, program.probes[0].every.as_secs()), (ProbeKind::Gauge, 5));
        assert_eq!(parse(&to_toml(&profile), "p.toml").unwrap(), profile, "{}", to_toml(&profile));
        let steps = profile.sweep.as_ref().unwrap().all_steps();
        let labels: Vec<&str> = steps.iter().map(|step| step.label.as_str()).collect();
        assert_eq!(labels[..2], ["a cache=1GB memory_max=1GB", "a cache=1GB memory_max=2GB"]);
        let settings = steps[3].settings(&profile.settings);
        let program = settings.program.unwrap();
        assert_eq!((program.value_of("cache"), program.value_of("sync_commit")), (Some("7"), Some("off")));
        assert_eq!((steps.len(), program.memory_max_bytes), (4, Some(2_000_000_000)));
    }

    #[test]
    fn a_wrong_knob_or_probe_is_refused_with_its_place() {
        for (from, to, why) in [
            ("name = \"cache\"", "name = \"dir\"", "no key of `command` and no placeholder"),
            ("name = \"cache\"", "name = \"memory_max\"", "no key of `command` and no placeholder"),
            ("name = \"cache\"", "name = \"Cache\"", "lowercase letters"),
            ("value = \"4GB\"", "value = \"5GB\"", "no such value: 1GB, 4GB, 7"),
            ("[\"1GB\", \"4GB\", 7]", "[\"1GB\", \"1GB\"]", "there twice"),
            ("[\"1GB\", \"4GB\", 7]", "[]", "1 to 64 values"),
            ("--cache={cache}", "--cache=1", "nothing uses the knob `cache`"),
            ("--cache={cache}", "--cache={cach}", "did you mean {cache}?"),
            ("'{value}'", "'{valu}'", "did you mean {value}?"),
            ("turn = [", "turns = [", "a knob has `name`"),
            ("less_durable = [\"off\"]", "less_durable = [\"of\"]", "of is not one of its values"),
            ("less_durable = [\"off\"]", "less_durable = \"off\"", "must be a list of 1 to 64"),
            ("kind = \"application-bytes\"", "kind = \"x\"", "is one of `gauge`"),
            ("every = \"2s\"", "every = \"1ms\"", "at least 500ms"),
            ("line = '^([0-9.]+)'", "line = '^[0-9.]+'", "has no group"),
            ("command.cache = [\"1GB\", 7]", "command.cache = [\"2GB\"]", "is one of 1GB, 4GB, 7"),
            ("command.cache = [\"1GB\", 7]", "command.cach = [\"1GB\"]", "there is no `command.cach`"),
            ("command.sync_commit = \"off\"", "command.sync_commit = \"maybe\"", "is one of on, off"),
            ("command.sync_commit = \"off\"", "command.cache = \"1GB\"", "already turned by the product"),
        ] {
            assert!(KNOBS.contains(from), "{from}");
            // The last one, as a value may also stand in a product.
            let at = KNOBS.find(from).unwrap();
            let text = format!("{}{to}{}", &KNOBS[..at], &KNOBS[at + from.len()..]);
            // Only the first of several mistakes is reported, so no command may name a refused knob.
            let text = if from.starts_with("name") { text.replace("{cache}", "{seconds}") } else { text };
            let error = parse(&text, "p.toml").unwrap_err();
            assert!(error.what.starts_with("p.toml:") && error.what.contains(why), "{why}: {}", error.what);
        }
    }
}
