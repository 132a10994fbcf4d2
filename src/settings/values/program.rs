//! A program as the load: what `[command]` of a profile says.

use std::collections::BTreeMap;
use std::time::Duration;

#[cfg(feature = "programs")]
use regex_lite::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::printable;
use crate::units::{format_size, parse_size};

/// The most words of a command.
pub const WORDS_MAX: usize = 256;
/// The most bytes of a word, of a variable, and of a pattern.
pub const WORD_BYTES_MAX: usize = 4096;
/// The most figures that are read from a program's output.
pub const METRICS_MAX: usize = 16;
/// The most bytes that a compiled pattern may take.
#[cfg(feature = "programs")]
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The most variables of a program's environment.
pub const VARIABLES_MAX: usize = 64;

/// The most knobs of a program, and the most probes.
pub const KNOBS_MAX: usize = 32;
/// The most values of a knob.
pub const VALUES_MAX: usize = 64;
/// The name of a knob's value in the command that turns it.
pub const VALUE: &str = "value";
/// The memory limit, which `--set` and steps turn like a knob.
pub const MEMORY_MAX: &str = "memory_max";

/// The placeholders, and what each stands for. A knob's name is one too.
pub const PLACEHOLDERS: [(&str, &str); 5] = [
    ("dir", "the program's folder on the target"),
    ("wal", "its folder in `wal.target`, for its log; without that, the same"),
    ("seconds", "how long it runs, warm-up included"),
    ("memory", "bytes that it may use of memory"),
    ("cpus", "the host's processors"),
];

/// A program that is run as the load, in its phases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    /// Programs that must be installed, besides those that its commands begin with.
    pub needs: Vec<String>,
    /// The command that makes its data, once.
    pub setup: Vec<String>,
    /// The command of a server, which runs until the end.
    pub start: Vec<String>,
    /// The command that succeeds once the server is ready.
    pub ready: Vec<String>,
    /// The command that is measured.
    pub run: Vec<String>,
    /// The command that asks the server to end.
    pub stop: Vec<String>,
    /// The user that it runs as; none means the one who called stacktune.
    pub user: Option<String>,
    /// Bytes of memory that all of it may use, page cache included.
    pub memory_max_bytes: Option<u64>,
    /// How long the server may take to be ready.
    pub ready_within: Option<Duration>,
    /// How long the server may take to end.
    pub stop_within: Option<Duration>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, String>,
    /// The figures read from its output.
    pub metrics: Vec<Metric>,
    /// Its own knobs.
    pub knobs: Vec<ProgramKnob>,
    /// What it is asked from time to time.
    pub probes: Vec<Probe>,
}

/// A knob of a program's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramKnob {
    /// Its name, which commands use in braces.
    pub name: String,
    /// The values that it can have.
    pub values: Vec<String>,
    /// Its current value.
    pub value: String,
    /// The command that turns it while the program runs, `{value}` being the new one; empty if only a restart does.
    pub turn: Vec<String>,
    /// Values under which less survives a crash or a power cut, each less than the one before; the rest are alike.
    pub less_durable: Vec<String>,
}

impl ProgramKnob {
    /// How much survives with its value: more is better, but only against other values of the same knob.
    pub fn durability(&self) -> u8 {
        let place = self.less_durable.iter().position(|value| *value == self.value);
        u8::MAX - place.map_or(0, |place| place as u8 + 1)
    }
}

/// A command that is run from time to time while the program runs, for a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The figure, found in the command's output.
    pub metric: Metric,
    /// The command.
    pub run: Vec<String>,
    /// From one start to the next.
    pub every: Duration,
    /// It is stopped after this.
    pub timeout: Duration,
    /// The kind of number it finds.
    pub kind: ProbeKind,
}

/// The kind of number that a probe finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// A current value.
    Gauge,
    /// A count that grows: the figure is its rate per second.
    Counter,
    /// The same, in bytes that the program wrote by its own account.
    ApplicationBytes,
}

impl ProbeKind {
    /// Every kind with its name in profiles.
    pub const NAMES: [(Self, &'static str); 3] =
        [(Self::Gauge, "gauge"), (Self::Counter, "counter"), (Self::ApplicationBytes, "application-bytes")];

    /// The name in profiles.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("?", |(_, name)| name)
    }
}

/// A figure in a program's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// A regular expression that finds it in a line: the first group is the number.
    pub line: String,
    /// Its unit; may be empty.
    pub unit: String,
    /// Which direction is better; none if only its user knows.
    pub better: Option<Better>,
}

/// Which direction of a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The higher, the better.
    Higher,
    /// The lower, the better.
    Lower,
}

impl Better {
    /// Both with their names in profiles.
    pub const NAMES: [(Self, &'static str); 2] = [(Self::Higher, "higher"), (Self::Lower, "lower")];

    /// The name in profiles.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(better, _)| *better == self).map_or("?", |(_, name)| name)
    }

    /// The order in which figures stand for a program: those that are better if higher, as rates are, come first.
    pub fn rank(of: Option<Self>) -> u8 {
        match of {
            Some(Self::Higher) => 0,
            Some(Self::Lower) => 1,
            None => 2,
        }
    }

    /// Whether a figure that went that way got better.
    pub fn is_gain(self, went_higher: bool) -> bool {
        went_higher == (self == Self::Higher)
    }
}

impl Program {
    /// The programs that it needs, as far as they are known before it runs.
    pub fn programs(&self) -> Vec<&str> {
        let turns = self.knobs.iter().map(|knob| &knob.turn);
        let words = self.phases().into_iter().map(|(_, words)| words).chain(turns);
        let firsts =
            words.chain(self.probes.iter().map(|probe| &probe.run)).filter_map(|words| words.first());
        // Programs on the target are not there yet.
        let firsts = firsts.filter(|word| !word.contains('{'));
        let mut programs: Vec<&str> = self.needs.iter().chain(firsts).map(String::as_str).collect();
        programs.sort_unstable();
        programs.dedup();
        programs
    }

    /// Its commands by phase, in the order in which they run.
    pub fn phases(&self) -> [(&'static str, &Vec<String>); 5] {
        [
            ("setup", &self.setup),
            ("start", &self.start),
            ("ready", &self.ready),
            ("run", &self.run),
            ("stop", &self.stop),
        ]
    }
}

impl Program {
    /// Turns one of its own knobs, or its memory limit.
    ///
    /// # Errors
    /// What is wrong, as a sentence without a full stop.
    pub fn turn(&mut self, name: &str, value: &str) -> Result<(), String> {
        let value = value.trim();
        if name == MEMORY_MAX {
            let bytes = parse_size(value).ok().filter(|bytes| *bytes > 0);
            self.memory_max_bytes = Some(bytes.ok_or_else(|| {
                format!(
                    "`command.{MEMORY_MAX}` must be a size such as 2GB, not \"{}\"",
                    printable::line(value)
                )
            })?);
            return Ok(());
        }
        let names = || self.knobs.iter().map(|knob| knob.name.as_str()).chain([MEMORY_MAX]);
        let Some(at) = self.knobs.iter().position(|knob| knob.name == name) else {
            let known: Vec<_> = names().map(|name| format!("`command.{name}`")).collect();
            return Err(format!(
                "there is no `command.{}`; there are {}",
                printable::line(name),
                known.join(", ")
            ));
        };
        let knob = &mut self.knobs[at];
        if !knob.values.iter().any(|known| known == value) {
            let values = knob.values.join(", ");
            return Err(format!("`command.{name}` is one of {values}, not \"{}\"", printable::line(value)));
        }
        value.clone_into(&mut knob.value);
        Ok(())
    }

    /// A knob's value.
    pub fn value_of(&self, name: &str) -> Option<&str> {
        self.knobs.iter().find(|knob| knob.name == name).map(|knob| knob.value.as_str())
    }

    /// The value of one of its own knobs, or its memory limit.
    pub fn text_of(&self, name: &str) -> Option<String> {
        match name {
            MEMORY_MAX => self.memory_max_bytes.map(format_size),
            _ => self.value_of(name).map(str::to_owned),
        }
    }

    /// How much survives with the value of each of its knobs, by the knob's index.
    pub fn durabilities(&self) -> [u8; KNOBS_MAX] {
        let mut all = [0; KNOBS_MAX];
        for (durability, knob) in all.iter_mut().zip(&self.knobs) {
            *durability = knob.durability();
        }
        all
    }

    /// A knob that nothing uses: no word, no variable and no command that turns it.
    pub fn unused_knob(&self) -> Option<&str> {
        let words = self.phases().into_iter().flat_map(|(_, words)| words);
        let words = words.chain(self.environment.values());
        let words: Vec<&String> = words.chain(self.probes.iter().flat_map(|probe| &probe.run)).collect();
        let names =
            |knob: &&ProgramKnob| words.iter().any(|word| word.contains(&format!("{{{}}}", knob.name)));
        let unused = self.knobs.iter().find(|knob| knob.turn.is_empty() && !names(knob));
        unused.map(|knob| knob.name.as_str())
    }

    /// What makes its data, which tells data sets apart: the words, with the values of its knobs.
    pub fn setup_words(&self) -> String {
        let word = |word: &String| {
            let keep = |name: &str| format!("{{{name}}}");
            filled(word, |name| Some(self.value_of(name).map_or_else(|| keep(name), str::to_owned)))
        };
        self.setup.iter().filter_map(|text| word(text).ok()).collect::<Vec<_>>().join("\n")
    }
}

/// A word with its placeholders replaced. `{{` stands for a brace; a brace that starts no name stands for itself.
///
/// # Errors
/// The unknown name.
pub fn filled(word: &str, value_of: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), word);
    while let Some((text, from)) = rest.split_once('{') {
        out.push_str(text);
        if let Some(after) = from.strip_prefix('{') {
            out.push('{');
            rest = after;
            continue;
        }
        if let Some((name, after)) = from.split_once('}').filter(|(name, _)| is_placeholder(name)) {
            out.push_str(&value_of(name).ok_or_else(|| name.to_owned())?);
            rest = after;
        } else {
            out.push('{');
            rest = from;
        }
    }
    Ok(out + rest)
}

/// Whether it can be a placeholder's name: a lowercase letter, then also digits and `_`.
pub fn is_placeholder(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// A figure's pattern, compiled.
///
/// # Errors
/// What is wrong with it, as the rest of a sentence about it.
#[cfg(feature = "programs")]
pub fn pattern(line: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(line).size_limit(PATTERN_BYTES_MAX).build();
    let pattern = compiled.map_err(|error| format!("is not a regular expression: {error}"))?;
    match pattern.captures_len() {
        2.. => Ok(pattern),
        _ => Err("has no group: the first one must match the number, as in `([0-9.]+)`".to_owned()),
    }
}

/// Why a pattern can't be a figure's; none if it can. A build that runs no programs does not check.
pub fn wrong_pattern(line: &str) -> Option<String> {
    #[cfg(feature = "programs")]
    return pattern(line).err();
    #[cfg(not(feature = "programs"))]
    line.is_empty().then(|| "is empty".to_owned())
}

/// Why a command can't be a program's; none if it can. `own` names placeholders besides [`PLACEHOLDERS`].
pub fn wrong_command(words: &[String], own: &[&str]) -> Option<String> {
    if words.first().is_none_or(String::is_empty) {
        return Some("names no program".to_owned());
    }
    if words.len() > WORDS_MAX || words.iter().any(|word| word.len() > WORD_BYTES_MAX) {
        return Some(format!("has more than {WORDS_MAX} words, or one of more than {WORD_BYTES_MAX} bytes"));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Some("has a NUL in it".to_owned());
    }
    words.iter().find_map(|word| wrong_word(word, own))
}

/// Why a word can't be one of a program's; none if it can.
pub fn wrong_word(word: &str, own: &[&str]) -> Option<String> {
    let known: Vec<&str> = PLACEHOLDERS.iter().map(|(known, _)| *known).chain(own.iter().copied()).collect();
    let unknown = filled(word, |name| known.contains(&name).then(String::new)).err()?;
    let far = |known: &str| strsim::damerau_levenshtein(&unknown, known);
    let near = known.iter().min_by_key(|known| far(known)).filter(|known| far(known) <= 2);
    let meant = match near {
        Some(near) => format!("did you mean {{{near}}}?"),
        None => format!(
            "there are {}",
            known.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
        ),
    };
    Some(format!("has the unknown placeholder {{{unknown}}}; {meant} (`{{{{` stands for a brace)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_other_braces_stay() {
        let value = |name: &str| (name == "dir").then(|| "/d".to_owned());
        for (word, whole) in [
            ("{dir}/f", "/d/f"),
            ("a{dir}b{dir}", "a/db/d"),
            ("{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"),
            ("${{dir}", "${dir}"),
            ("{ print $1 }", "{ print $1 }"),
            ("{", "{"),
            ("", ""),
        ] {
            assert_eq!(filled(word, value).as_deref(), Ok(whole), "{word}");
        }
        assert_eq!(filled("{dri}", value), Err("dri".to_owned()));
        assert!(wrong_word("{dri}/x", &[]).unwrap().contains("did you mean {dir}?"));
        assert!(wrong_word("{zzzzzzzz}", &[]).unwrap().contains("there are {dir}, {wal}, {seconds}"));
    }

    #[test]
    fn a_knob_has_one_of_its_values() {
        let knob = ProgramKnob {
            name: "pool".into(),
            values: vec!["1GB".into(), "4GB".into()],
            value: "1GB".into(),
            ..ProgramKnob::default()
        };
        let setup = vec!["initdb".to_owned(), "{dir}".to_owned(), "pool={pool}".to_owned()];
        let mut program = Program { knobs: vec![knob], setup, ..Program::default() };
        assert_eq!(program.setup_words(), "initdb\n{dir}\npool=1GB");
        assert_eq!(program.turn("pool", " 4GB "), Ok(()));
        assert_eq!((program.value_of("pool"), program.setup_words().ends_with("=4GB")), (Some("4GB"), true));
        assert!(program.turn("pool", "5GB").unwrap_err().contains("is one of 1GB, 4GB"));
        assert!(program.turn("pol", "4GB").unwrap_err().contains("`command.pool`, `command.memory_max`"));
        assert_eq!(
            (program.turn(MEMORY_MAX, "2GB"), program.memory_max_bytes),
            (Ok(()), Some(2_000_000_000))
        );
        assert!(program.turn(MEMORY_MAX, "0").is_err());
    }

    #[test]
    fn each_value_that_is_less_durable_keeps_less_than_those_before() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let durability = |value: &str| {
            let (values, less_durable) = (words(&["everysec", "always", "no"]), words(&["everysec", "no"]));
            ProgramKnob { value: value.into(), values, less_durable, ..ProgramKnob::default() }.durability()
        };
        assert!(durability("always") > durability("everysec") && durability("everysec") > durability("no"));
        let knob = ProgramKnob { value: "b".into(), ..ProgramKnob::default() };
        let program = Program { knobs: vec![knob], ..Program::default() };
        assert_eq!((program.durabilities()[0], program.durabilities()[1]), (u8::MAX, 0));
    }

    #[test]
    fn a_command_names_a_program() {
        let wrong = |words: &[&str]| {
            wrong_command(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), &["pool"])
        };
        assert_eq!(wrong(&["sh", "-c", "exit {pool}"]), None);
        for words in [&[][..], &[""], &["a", "b\0"], &["a", "{x}"]] {
            assert!(wrong(words).is_some(), "{words:?}");
        }
        assert!(wrong(&["x"; 257]).is_some());
    }
}
