//! A program as the load: what `[command]` of a profile says.

use std::collections::BTreeMap;

use regex_lite::{Regex, RegexBuilder};

/// Words of a command.
pub const WORDS_MAX: usize = 256;
/// Bytes of a word, of a variable and of a pattern.
pub const WORD_BYTES_MAX: usize = 4096;
/// Figures that are read from a program's output.
pub const METRICS_MAX: usize = 16;
/// Bytes that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Variables of a program's environment.
pub const VARIABLES_MAX: usize = 64;

/// The placeholders, and what stands for each.
pub const PLACEHOLDERS: [(&str, &str); 4] = [
    ("dir", "the program's folder on the target"),
    ("seconds", "how long it runs, warm-up included"),
    ("memory", "bytes that it may use of memory"),
    ("cpus", "the host's processors"),
];

/// A program that is run as the load, in its phases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    /// Programs that must be there, beside those that its commands begin with.
    pub needs: Vec<String>,
    /// What makes its data, once.
    pub setup: Vec<String>,
    /// A server, which runs until the end.
    pub start: Vec<String>,
    /// Succeeds once that server is ready.
    pub ready: Vec<String>,
    /// What is measured.
    pub run: Vec<String>,
    /// What asks the server to end.
    pub stop: Vec<String>,
    /// The user that it runs as; none for who called stacktune.
    pub user: Option<String>,
    /// Bytes of memory that all of it may use, page cache included.
    pub memory_max_bytes: Option<u64>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, String>,
    /// What is read from its output.
    pub metrics: Vec<Metric>,
}

/// A figure in a program's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// What it is called.
    pub name: String,
    /// A regular expression that finds it in a line: the first group is the number.
    pub line: String,
    /// Its unit; may be empty.
    pub unit: String,
}

impl Program {
    /// The programs that it needs, as far as they are known before it runs.
    pub fn programs(&self) -> Vec<&str> {
        let firsts = self.phases().into_iter().filter_map(|(_, words)| words.first());
        // What is on the target is not there yet.
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

/// A word with its placeholders replaced. `{{` stands for a brace; a brace that begins no name is itself.
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
        let is_name = |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
        if let Some((name, after)) = from.split_once('}').filter(|(name, _)| is_name(name)) {
            out.push_str(&value_of(name).ok_or_else(|| name.to_owned())?);
            rest = after;
        } else {
            out.push('{');
            rest = from;
        }
    }
    Ok(out + rest)
}

/// A pattern of a figure, compiled.
///
/// # Errors
/// What is wrong with it, as the rest of a sentence about it.
pub fn pattern(line: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(line).size_limit(PATTERN_BYTES_MAX).build();
    let pattern = compiled.map_err(|error| format!("is no regular expression: {error}"))?;
    match pattern.captures_len() {
        2.. => Ok(pattern),
        _ => Err("has no group, and the first one is the number: `([0-9.]+)`".to_owned()),
    }
}

/// Why a command can't be a program's; none if it can.
pub fn wrong_command(words: &[String]) -> Option<String> {
    if words.first().is_none_or(String::is_empty) {
        return Some("names no program".to_owned());
    }
    if words.len() > WORDS_MAX || words.iter().any(|word| word.len() > WORD_BYTES_MAX) {
        return Some(format!("has more than {WORDS_MAX} words, or one of more than {WORD_BYTES_MAX} bytes"));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Some("has a NUL in it".to_owned());
    }
    words.iter().find_map(|word| wrong_word(word))
}

/// Why a word can't be one of a program's; none if it can.
pub fn wrong_word(word: &str) -> Option<String> {
    let is_known = |name: &str| PLACEHOLDERS.iter().any(|(known, _)| *known == name);
    let unknown = filled(word, |name| is_known(name).then(String::new)).err()?;
    let known = PLACEHOLDERS.map(|(known, _)| known);
    let far = |known: &str| strsim::damerau_levenshtein(&unknown, known);
    let near = known.into_iter().min_by_key(|known| far(known)).filter(|known| far(known) <= 2);
    let meant = match near {
        Some(near) => format!("did you mean {{{near}}}?"),
        None => format!("there are {}", known.map(|name| format!("{{{name}}}")).join(", ")),
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
        assert!(wrong_word("{dri}/x").unwrap().contains("did you mean {dir}?"));
        assert!(wrong_word("{zzzzzzzz}").unwrap().contains("there are {dir}, {seconds}"));
    }

    #[test]
    fn a_command_names_a_program() {
        let wrong =
            |words: &[&str]| wrong_command(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(wrong(&["sh", "-c", "exit 1"]), None);
        for words in [&[][..], &[""], &["a", "b\0"], &["a", "{x}"]] {
            assert!(wrong(words).is_some(), "{words:?}");
        }
        assert!(wrong(&["x"; 257]).is_some());
    }
}
