//! The program of a profile from TOML: `[command]`.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::parse::{Walk, list, whole_number};
use super::parse_layers::value_at;
use crate::printable;
use crate::settings::knobs::nearest_of;
use crate::settings::values::program::{
    Better, METRICS_MAX, Metric, Program, VARIABLES_MAX, WORD_BYTES_MAX, wrong_command, wrong_pattern,
    wrong_word,
};
use crate::units::parse_size;

/// The keys of a program.
pub(super) const KEYS: [&str; 14] = [
    "run",
    "setup",
    "start",
    "ready",
    "stop",
    "ready_within",
    "stop_within",
    "needs",
    "user",
    "memory_max",
    "environment",
    "metrics",
    "knob",
    "probes",
];
/// The most characters in a figure's name, and in its unit.
pub(super) const NAME_CHARS_MAX: usize = 40;

impl Walk<'_> {
    /// The program in the document; none if the classes are the load.
    pub fn program(&mut self, root: &DeTable) -> Option<Program> {
        let value = value_at(root, "command")?;
        let Some(table) = value.get_ref().as_table() else {
            let what = format!("`command` must be a table of {}", list(&KEYS));
            self.refuse(value.span().start, what);
            return None;
        };
        // First, because the other keys name them.
        let knobs = value_at(table, "knob").map(|knobs| self.program_knobs(knobs)).unwrap_or_default();
        let own: Vec<&str> = knobs.iter().map(|knob| knob.name.as_str()).collect();
        let mut program = Program::default();
        for (key, value) in table {
            match &**key.get_ref() {
                "run" => program.run = self.words("run", value, &own),
                "setup" => program.setup = self.words("setup", value, &own),
                "start" => program.start = self.words("start", value, &own),
                "ready" => program.ready = self.words("ready", value, &own),
                "stop" => program.stop = self.words("stop", value, &own),
                "needs" => program.needs = self.words("needs", value, &[]),
                "user" => program.user = self.line("command.user", value),
                "ready_within" => program.ready_within = self.command_time("command.ready_within", value),
                "stop_within" => program.stop_within = self.command_time("command.stop_within", value),
                "memory_max" => program.memory_max_bytes = self.memory_max(value),
                "environment" => program.environment = self.environment(value, &own),
                "metrics" => program.metrics = self.metrics(value),
                "probes" => program.probes = self.probes(value, &own),
                "knob" => {}
                other => {
                    let meant = nearest_of(other, KEYS.into_iter());
                    let meant = meant.map_or_else(
                        || format!("`command` has {}", list(&KEYS)),
                        |near| format!("did you mean `command.{near}`?"),
                    );
                    self.refuse(key.span().start, format!("there is no such key in `command`; {meant}"));
                }
            }
        }
        if self.is_right()
            && program.start.is_empty()
            && !(program.ready.is_empty() && program.stop.is_empty())
        {
            self.refuse(value.span().start, "`command.ready` and `command.stop` need `command.start`");
        }
        program.knobs = knobs;
        self.check_probes(&program, value.span().start);
        if let (true, Some(unused)) = (self.is_right() && !program.run.is_empty(), program.unused_knob()) {
            let what = format!(
                "nothing uses the knob `{unused}`: write {{{unused}}} into a command, or give the knob a `turn`"
            );
            self.refuse(value.span().start, what);
        }
        Some(program)
    }

    /// A command as a list of words.
    pub(super) fn words(&mut self, key: &str, value: &Spanned<DeValue>, own: &[&str]) -> Vec<String> {
        let items = value.get_ref().as_array();
        let words: Option<Vec<String>> = items
            .and_then(|items| items.iter().map(|item| Some(item.get_ref().as_str()?.to_owned())).collect());
        let Some(words) = words else {
            let what = format!(
                "`command.{key}` must be a list of words such as [\"fio\", \"--directory={{dir}}\"]: no shell reads them"
            );
            self.refuse(value.span().start, what);
            return Vec::new();
        };
        // Scripts may have line breaks; nothing may have what a terminal would obey.
        let odd = words.iter().any(|word| !word.lines().all(printable::is_line));
        let odd = odd.then(|| "has a character that can't be shown".to_owned());
        if let Some(why) = odd.or_else(|| wrong_command(&words, own)) {
            self.refuse(value.span().start, format!("`command.{key}` {why}"));
        }
        words
    }

    fn memory_max(&mut self, value: &Spanned<DeValue>) -> Option<u64> {
        let bytes = match value.get_ref() {
            DeValue::String(text) => parse_size(text).ok(),
            other => whole_number(other).and_then(|bytes| u64::try_from(bytes).ok()),
        };
        let bytes = bytes.filter(|bytes| *bytes > 0);
        if bytes.is_none() {
            let what =
                format!("`command.memory_max` must be a size such as \"2GB\", not {}", self.source(value));
            self.refuse(value.span().start, what);
        }
        bytes
    }

    fn environment(&mut self, value: &Spanned<DeValue>, own: &[&str]) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        let table = value.get_ref().as_table().filter(|table| table.len() <= VARIABLES_MAX);
        let Some(table) = table else {
            let what = format!("`command.environment` must be a table of {VARIABLES_MAX} variables at most");
            self.refuse(value.span().start, what);
            return variables;
        };
        for (key, value) in table {
            let name = key.get_ref().to_string();
            let is_name = |name: &str| {
                name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                    && !name.starts_with(|c: char| c.is_ascii_digit())
            };
            let Some(text) = self.line("command.environment", value) else { continue };
            if name.is_empty() || name.len() > NAME_CHARS_MAX || !is_name(&name) {
                self.refuse(key.span().start, "a variable has a name of letters, digits and `_`");
            } else if text.len() > WORD_BYTES_MAX {
                self.refuse(value.span().start, format!("a variable has {WORD_BYTES_MAX} bytes at most"));
            } else if let Some(why) = wrong_word(&text, own) {
                self.refuse(value.span().start, format!("`command.environment.{name}` {why}"));
            }
            variables.insert(name, text);
        }
        variables
    }

    fn metrics(&mut self, value: &Spanned<DeValue>) -> Vec<Metric> {
        let table = value.get_ref().as_table().filter(|table| table.len() <= METRICS_MAX);
        let Some(table) = table else {
            let what = format!("`command.metrics` must be a table of {METRICS_MAX} figures at most");
            self.refuse(value.span().start, what);
            return Vec::new();
        };
        table.iter().filter_map(|(key, value)| self.metric(key, value)).collect()
    }

    fn metric(
        &mut self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue>,
    ) -> Option<Metric> {
        let name = self.figure_name(key)?;
        let table = value.get_ref().as_table();
        let line = table.and_then(|table| value_at(table, "line"));
        let known = table.is_some_and(|table| {
            table.iter().all(|(key, _)| ["line", "unit", "better"].contains(&&**key.get_ref()))
        });
        let (Some(table), Some(line), true) = (table, line, known) else {
            let what =
                format!("`command.metrics.{name}` must be {{ line = 'tps = ([0-9.]+)', unit = \"txn/s\" }}");
            self.refuse(value.span().start, what);
            return None;
        };
        let line = self.line("line", line)?;
        let path = format!("command.metrics.{name}");
        self.metric_of((&path, name), line, table, value.span().start)
    }
}

impl Walk<'_> {
    /// A figure's name.
    pub(super) fn figure_name(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>) -> Option<String> {
        let name = key.get_ref().to_string();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_name) {
            self.refuse(key.span().start, "a figure has a name of letters, digits, `-` and `_`");
            return None;
        }
        Some(name)
    }

    /// A figure with its pattern and the unit in its table.
    pub(super) fn metric_of(
        &mut self,
        (path, name): (&str, String),
        line: String,
        table: &DeTable,
        at: usize,
    ) -> Option<Metric> {
        let unit = match value_at(table, "unit") {
            Some(unit) => self.line("unit", unit)?,
            None => String::new(),
        };
        let better = match value_at(table, "better") {
            None => None,
            Some(better) => {
                let known =
                    Better::NAMES.into_iter().find(|(_, name)| better.get_ref().as_str() == Some(name));
                let Some((better, _)) = known else {
                    self.refuse(better.span().start, format!("`{path}.better` is `higher` or `lower`"));
                    return None;
                };
                Some(better)
            }
        };
        let long = unit.chars().count() > NAME_CHARS_MAX || line.len() > WORD_BYTES_MAX;
        let long = long.then(|| "has a pattern or a unit that is too long".to_owned());
        if let Some(why) = long.or_else(|| wrong_pattern(&line)) {
            self.refuse(at, format!("`{path}` {why}"));
            return None;
        }
        Some(Metric { name, line, unit, better })
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::profile::{parse, to_toml};

    const SERVER: &str = r#"
[command]
user = "postgres"
memory_max = "2GB"
setup = ["initdb", "-D", "{dir}/pg"]
start = ["postgres", "-D", "{dir}/pg"]
ready = ["pg_isready"]
run = ["sh", "-c", "for i in 1 2\ndo echo ${{i}; done"]
stop = ["pg_ctl", "stop"]

[command.environment]
PGUSER = "postgres"

[command.metrics]
tps = { line = 'tps = ([0-9.]+)', unit = "txn/s", better = "higher" }
latency = { line = 'lat ([0-9.]+)' }
"#;

    #[test]
    fn a_program_is_read_and_written_again() {
        let profile = parse(SERVER, "p.toml").unwrap();
        let program = profile.settings.program.as_ref().unwrap();
        assert_eq!((program.memory_max_bytes, program.metrics.len()), (Some(2_000_000_000), 2));
        assert_eq!((program.run.len(), program.environment["PGUSER"].as_str()), (3, "postgres"));
        assert_eq!(parse(&to_toml(&profile), "p.toml").unwrap(), profile);
        assert_eq!(parse("", "p.toml").unwrap().settings.program, None);
    }

    #[test]
    fn a_wrong_program_is_refused_with_its_place() {
        for (from, to, why) in [
            ("memory_max", "memry_max", "did you mean `command.memory_max`?"),
            ("\"2GB\"", "0", "must be a size"),
            ("[\"pg_isready\"]", "\"pg_isready\"", "no shell"),
            ("{dir}/pg\"]\nstart", "{dri}/pg\"]\nstart", "did you mean {dir}?"),
            ("start = [\"postgres\", \"-D\", \"{dir}/pg\"]", "", "need `command.start`"),
            ("PGUSER = \"postgres\"", "\"PG USER\" = \"x\"", "letters, digits and `_`"),
            ("([0-9.]+)', unit", "([0-9.+', unit", "not a regular expression"),
            ("'lat ([0-9.]+)'", "'lat [0-9.]+'", "has no group"),
            ("\"higher\"", "\"more\"", "is `higher` or `lower`"),
            ("latency = { line", "latency = { lines", "must be { line"),
            ("\"-D\", \"{dir}/pg\"]\nready", "\"\\u001b\"]\nready", "can't be shown"),
        ] {
            assert!(SERVER.contains(from), "{from}");
            let error = parse(&SERVER.replacen(from, to, 1), "p.toml").unwrap_err();
            assert!(error.what.starts_with("p.toml:") && error.what.contains(why), "{}", error.what);
        }
        assert!(parse("command = 3", "p.toml").unwrap_err().what.contains("must be a table"));
        assert!(parse("[command]\nx = 3", "p.toml").unwrap_err().what.contains("`command` has"));
        let long = format!("[command.metrics]\nx = {{ line = '((({}){{1000}}){{1000}}){{1000}}' }}", "a");
        assert!(parse(&long, "p.toml").is_err(), "a pattern takes bounded memory");
    }
}
