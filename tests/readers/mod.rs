//! Every reader of what others may have written, fed with arbitrary bytes: by the fuzzer (`fuzz`), and by the gate with
//! the inputs that the fuzzer kept. Each checks what must hold of anything that is read.

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

/// A reader with its name: that of the fuzzer's target, and of the folder of its seeds.
pub type Reader = (&'static str, fn(&[u8]));

/// All of them.
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

/// Begins a further file in an input: `== NAME`, a line of its own.
const HEAD: &[u8] = b"== ";

/// An input's own file, and the further ones that it has for a reader of several.
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

/// Writes files below a folder, those of known names only.
fn put(dir: &Path, files: &[(&str, &[u8])], is_known: impl Fn(&str) -> bool) {
    for (name, bytes) in files.iter().filter(|(name, _)| is_known(name)) {
        let path = dir.join(name);
        // A file may be where a folder is to be, and the other way around.
        let _ = fs::create_dir_all(path.parent().unwrap());
        let _ = fs::write(path, bytes);
    }
}

/// What the program prints of a text: nothing in it is obeyed by a terminal, and no figure is without a value.
#[track_caller]
fn printed(text: &str) -> String {
    let shown = printable::lines(text).into_owned();
    assert!(!shown.contains(|c| c != '\n' && printable::is_obeyed(c)), "{shown:?}");
    shown
}

/// The same of a report, whose figures are never without a value.
#[track_caller]
fn report(text: &str) -> String {
    let shown = printed(text);
    let is_number = |word: &str| ["NaN", "-NaN", "inf", "-inf"].contains(&word);
    assert!(!shown.split_whitespace().any(is_number), "{shown}");
    shown
}

/// What the program prints as JSON: it means what it did before.
#[track_caller]
fn json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap();
    let shown = printed(&printable::json(&text));
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(parsed(&shown), parsed(&text));
}
