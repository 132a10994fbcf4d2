//! TOML to settings. Every key except `name`, `about` and those of the steps (see [`super::parse_sweep`]) is
//! a knob's path; every error has its position in the file.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::contents::Profile;
use crate::error::{Error, Result};
use crate::printable;
use crate::settings::knobs::{self, Kind, Knob, Value};
use crate::settings::values::Settings;
use crate::short_list;

/// Longer paths and values are cut in messages.
const SHOWN_CHARS_MAX: usize = 60;

/// Parses a profile; `file` names it in errors.
///
/// Anything not given has its default; a profile without a `name` is named after its file. The first mistake
/// is an error of the kind `Input` that begins with `file:line:column:`, columns counting characters.
pub fn parse(text: &str, file: &str) -> Result<Profile> {
    let root = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        let what = error.message().replace('\n', ", ");
        let what = match text.get(span.clone()) {
            Some(key) if what == "duplicate key" => format!("{what} `{}`", shown(key)),
            _ => what,
        };
        refusal(text, file, span.start, &what)
    })?;
    let mut walk = Walk { text, name: None, about: None, found: Vec::new(), wrong: Vec::new() };
    walk.table(root.get_ref(), "", GivenIn::Profile);
    let mut settings = walk.settings(file);
    settings.stack.by_commands = walk.layers(root.get_ref());
    settings.program = walk.program(root.get_ref());
    let sweep = walk.sweep(root.get_ref(), settings.program.as_ref());
    match walk.wrong.into_iter().min_by_key(|(at, _)| *at) {
        Some((at, what)) => Err(refusal(text, file, at, &what.text())),
        None => Ok(Profile { settings, sweep }),
    }
}

/// [`parse`] for a file's content, which may not be text.
pub fn parse_bytes(bytes: &[u8], file: &str) -> Result<Profile> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text, file),
        Err(error) => {
            let valid = &bytes[..error.valid_up_to()];
            let text = String::from_utf8_lossy(valid);
            Err(refusal(&text, file, text.len(), "this is not text (UTF-8 was expected)"))
        }
    }
}

fn refusal(text: &str, file: &str, at: usize, what: &str) -> Error {
    let (line, column) = position(text, at);
    Error::input(format!("{}:{line}:{column}: {}", printable::line(file), printable::line(what)))
}

/// Line and column of a byte offset, both from 1, the column in characters.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    // A byte order mark does not count.
    let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
    (line, column)
}

/// A knob in the profile.
pub(super) struct Found {
    /// Its index in the table of knobs.
    pub index: usize,
    /// Where in the text its key is.
    pub key_at: usize,
    pub value: Value,
}

/// Places in a profile where knobs can be set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenIn {
    Profile,
    Step,
}

impl GivenIn {
    /// The keys at this place that are neither knobs nor tables of knobs.
    fn own_keys(self) -> &'static [&'static str] {
        match self {
            Self::Profile => &["name", "about", "sweep", "step", "stack.layer", "command"],
            Self::Step => &["label", "for", "warmup", "repeat", "command"],
        }
    }
}

/// Everything found in a document.
pub(super) struct Walk<'a> {
    text: &'a str,
    name: Option<String>,
    about: Option<String>,
    pub found: Vec<Found>,
    /// The mistakes, with their positions.
    wrong: Vec<(usize, Mistake)>,
}

/// A mistake in a document.
pub(super) enum Mistake {
    /// In words.
    Text(String),
    /// There is no such path, and it is not one of the place's own keys. The words for it are made only once,
    /// as others may have written any number of them.
    Unknown(String, &'static [&'static str]),
}

impl Mistake {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Unknown(path, others) => unknown(&path, others),
        }
    }
}

impl<T: Into<String>> From<T> for Mistake {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl Walk<'_> {
    /// Records a mistake at a position of the text.
    pub fn refuse(&mut self, at: usize, what: impl Into<Mistake>) {
        self.wrong.push((at, what.into()));
    }

    /// Whether there has been no mistake so far.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    /// The knobs that a table gives; `prefix` is the path before them. Keys that belong to the place itself
    /// are left to others.
    pub fn table(&mut self, table: &DeTable, prefix: &str, place: GivenIn) {
        for (key, value) in table {
            let at = key.span().start;
            if key.get_ref().contains('.') {
                // Joined into a path, it would look like several keys.
                let key = shown(&format!("{:?}", key.get_ref()));
                self.refuse(at, format!("there is no {key}: a quoted key cannot contain dots"));
                continue;
            }
            let path = format!("{prefix}{}", key.get_ref());
            match path.as_str() {
                "name" if place == GivenIn::Profile => self.name = self.line(&path, value),
                "about" if place == GivenIn::Profile => self.about = self.line(&path, value),
                own if place.own_keys().contains(&own) => {}
                _ => self.entry(&path, at, value, place),
            }
        }
    }

    fn entry(&mut self, path: &str, at: usize, value: &Spanned<DeValue>, place: GivenIn) {
        if let Some(index) = knobs::all().iter().position(|knob| knob.path == path) {
            let knob = &knobs::all()[index];
            match value_of(knob, value.get_ref()) {
                Some(value) => self.found.push(Found { index, key_at: at, value }),
                None => self.refuse(value.span().start, knob.refusal(&self.source(value))),
            }
            return;
        }
        let keys = keys_of(path);
        match value.get_ref() {
            _ if keys.is_empty() => self.refuse(at, Mistake::Unknown(path.to_owned(), place.own_keys())),
            DeValue::Table(inner) => self.table(inner, &format!("{path}."), place),
            _ => {
                let what = format!("`{path}` must be a table of {}, not {}", list(&keys), self.source(value));
                self.refuse(value.span().start, what);
            }
        }
    }

    /// A single line of text that a terminal can show.
    pub fn line(&mut self, key: &str, value: &Spanned<DeValue>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if printable::is_line(text) => Some(text.to_string()),
            _ => {
                let what = format!("`{key}` must be a single line of text, not {}", self.source(value));
                self.refuse(value.span().start, what);
                None
            }
        }
    }

    /// A value as written in the file.
    pub fn source(&self, value: &Spanned<DeValue>) -> String {
        if value.get_ref().is_table() {
            return "a table".into();
        }
        self.text.get(value.span()).map_or_else(|| value.get_ref().type_str().into(), shown)
    }

    /// The settings, after the checks that concern several keys.
    fn settings(&mut self, file: &str) -> Settings {
        // In the table's order, as a knob may depend on an earlier one, whatever their order in the file.
        short_list::sort_by_key(&mut self.found, |found| found.index);
        let mut settings = Settings::default();
        for found in &self.found {
            knobs::all()[found.index].set(&mut settings, found.value.clone());
        }
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        if let Some(name) = self.name.take().or(stem.filter(|stem| !stem.is_empty())) {
            settings.name = printable::line(&name).into_owned();
        }
        settings.about = self.about.take().unwrap_or_default();
        self.check_target(&settings);
        settings
    }

    fn check_target(&mut self, settings: &Settings) {
        let target = &settings.target;
        let places = |prefix: &str| {
            let of_prefix = |f: &&Found| knobs::all()[f.index].path.starts_with(prefix);
            self.found.iter().filter(of_prefix).map(|f| f.key_at).max()
        };
        let mut wrong = Vec::new();
        if let (Some(files), Some(devices)) = (places("target.files."), places("target.devices"))
            && !target.devices.is_empty()
        {
            let what = "a target is either `files` or `devices`, but both are given: keep one".to_owned();
            wrong.push((files.max(devices), Mistake::Text(what)));
        }
        if let (Some(serials), Some(what)) = (places("target.serials"), target.serials_mismatch()) {
            wrong.push((serials, Mistake::Text(what)));
        }
        self.wrong.extend(wrong);
    }
}

/// The knob's value from a TOML value, if it is valid.
pub(super) fn value_of(knob: &Knob, value: &DeValue) -> Option<Value> {
    let within = |value: Value| knob.spec.kind.bounds(&value).is_ok().then_some(value);
    let text_of = |item: &DeValue| whole_number(item).map(|n| n.to_string());
    match (&knob.spec.kind, value) {
        // Taken as is, since a path may begin with a space.
        (Kind::Text(_), DeValue::String(text)) => within(Value::Text(text.to_string())),
        (Kind::List(_), DeValue::Array(items)) => {
            let texts = items.iter().map(|item| item.get_ref().as_str().map(String::from));
            texts.collect::<Option<_>>().map(Value::List).and_then(within)
        }
        (Kind::List(_), _) => None,
        (Kind::Cpus, DeValue::Array(items)) => {
            let ids: Option<Vec<_>> = items.iter().map(|item| text_of(item.get_ref())).collect();
            knob.parse(&ids?.join(",")).ok()
        }
        (Kind::Bool, DeValue::Boolean(on)) => Some(Value::Bool(*on)),
        (Kind::Int { .. } | Kind::Float { .. } | Kind::Size { .. } | Kind::Cpus, DeValue::Integer(_)) => {
            knob.parse(&text_of(value)?).ok()
        }
        (Kind::Float { .. }, DeValue::Float(x)) => knob.parse(x.as_str()).ok(),
        (_, DeValue::String(text)) => knob.parse(text).ok(),
        _ => None,
    }
}

/// A whole number, as TOML writes it.
pub(super) fn whole_number(value: &DeValue) -> Option<i128> {
    let DeValue::Integer(n) = value else { return None };
    i128::from_str_radix(n.as_str(), n.radix()).ok()
}

/// The keys directly below a path; none if nothing is there.
pub(super) fn keys_of(path: &str) -> Vec<&'static str> {
    let below = |knob: &'static Knob| knob.path.strip_prefix(path)?.strip_prefix('.')?.split('.').next();
    let mut keys: Vec<_> = knobs::all().iter().filter_map(below).collect();
    keys.dedup();
    keys
}

/// The error for an unknown key, with a suggestion: a knob, a table, or one of `others`.
fn unknown(path: &str, others: &[&'static str]) -> String {
    let there_is_no = format!("there is no `{}`", shown(path));
    if let Some(name) = knobs::nearest_of(path, names().chain(others.iter().copied())) {
        return format!("{there_is_no}; did you mean `{name}`?");
    }
    let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
    if let Some(knob) = knobs::all().iter().find(|knob| knob.spec.key == key) {
        return format!("{there_is_no}; did you mean `{}`?", knob.path);
    }
    match keys_of(table).as_slice() {
        [] => format!("{there_is_no}; `stacktune knobs` lists the keys"),
        keys => format!("{there_is_no}; `{table}` has {}", list(keys)),
    }
}

/// All valid keys of knobs and of their tables.
fn names() -> impl Iterator<Item = &'static str> {
    let tables = knobs::all().iter().flat_map(|knob| {
        let path = knob.path.as_str();
        path.match_indices('.').map(|(dot, _)| &path[..dot])
    });
    knobs::all().iter().map(|knob| knob.path.as_str()).chain(tables)
}

pub(super) fn list(keys: &[&str]) -> String {
    let quoted: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    quoted.join(", ")
}

/// Text from the file, made fit for a message: one line, without what a terminal would obey, not too long.
fn shown(text: &str) -> String {
    let mut line: String =
        text.chars().take(SHOWN_CHARS_MAX).map(|c| if printable::is_obeyed(c) { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
