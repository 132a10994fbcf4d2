//! Every reader of files that others may have written, fed with arbitrary bytes: by the fuzzer (`fuzz`), and
//! by the gate with the inputs that the fuzzer kept. Each checks invariants that hold for any input.

mod found;
mod host;
mod journal;
mod profile;
mod recording;
mod state;
mod sweep;
mod theme;
mod trace;

use std::fs;
use std::path::Path;

use stacktune::testing::printable;

/// A reader with its name, which is also the fuzz target's and the seed folder's.
pub type Reader = (&'static str, fn(&[u8]));

pub const READERS: [Reader; 11] = [
    ("profile", profile::profile),
    ("summary", recording::summary),
    ("windows", recording::windows),
    ("hlog", recording::hlog),
    ("journal", journal::journal),
    ("sweep", sweep::sweep),
    ("state", state::state),
    ("found", found::found),
    ("host", host::host),
    ("theme", theme::theme),
    ("trace", trace::trace),
];

/// Starts another file within an input: `== NAME` on a line of its own.
const HEAD: &[u8] = b"== ";

/// An input's main file, and its other files, for readers of several.
fn files(input: &[u8]) -> (&[u8], Vec<(&str, &[u8])>) {
    let is_head = |at: &usize| (*at == 0 || input[*at - 1] == b'\n') && input[*at..].starts_with(HEAD);
    let heads: Vec<usize> = (0..input.len()).filter(is_head).collect();
    let ends = heads.iter().skip(1).copied().chain([input.len()]);
    let further = heads.iter().zip(ends).filter_map(|(from, to)| {
        let file = &input[from + HEAD.len()..to];
        let name_ends = file.iter().position(|byte| *byte == b'\n')?;
        Some((std::str::from_utf8(&file[..name_ends]).ok()?, &file[name_ends + 1..]))
    });
    (&input[..heads.first().copied().unwrap_or(input.len())], further.collect())
}

/// Writes files below a folder, but only those with known names.
fn put(dir: &Path, files: &[(&str, &[u8])], is_known: impl Fn(&str) -> bool) {
    for (name, bytes) in files.iter().filter(|(name, _)| is_known(name)) {
        let path = dir.join(name);
        // A file may already be in a folder's place, or the other way around.
        let _ = fs::create_dir_all(path.parent().unwrap());
        let _ = fs::write(path, bytes);
    }
}

/// A text as the program prints it: nothing in it that a terminal would obey.
#[track_caller]
fn printed(text: &str) -> String {
    let shown = printable::lines(text).into_owned();
    assert!(!shown.contains(|c| c != '\n' && printable::is_obeyed(c)), "{shown:?}");
    shown
}

/// The same for a report, in which every figure is a number.
#[track_caller]
fn report(text: &str) -> String {
    let shown = printed(text);
    let is_number = |word: &str| ["NaN", "-NaN", "inf", "-inf"].contains(&word);
    assert!(!shown.split_whitespace().any(is_number), "{shown}");
    shown
}

/// A value as printed in JSON: parsing it yields the same value.
#[track_caller]
fn json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap();
    let shown = printed(&printable::json(&text));
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(parsed(&shown), parsed(&text));
}
