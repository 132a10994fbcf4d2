//! Visibility: the crate exports almost nothing, so that the compiler reports dead code; in the rooms, public
//! items have doc comments. And how many type names are ambiguous.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::tree::{root, sources};

#[test]
fn the_rooms_are_private() {
    let text = fs::read_to_string(root().join("lib.rs")).unwrap();
    let public: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("pub")).collect();
    assert_eq!(public, ["pub mod testing;", "pub use app::run;"], "src/lib.rs makes public");
    assert!(text.contains("#[doc(hidden)]\npub mod testing;"), "the documentation hides `testing`");
}

/// How many names of public types several files define. It must not grow, and is lowered as names go.
const NAMES_OF_SEVERAL_TYPES: usize = 79;

#[test]
fn no_more_names_mean_several_types() {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources() {
        let is_fixture = source.module.iter().any(|part| part == "fixture");
        // A stand-in for a part that is left out of the build uses that part's names.
        let stands_in = source.module.last().is_some_and(|last| last == "absent");
        if source.is_test() || is_fixture || stands_in {
            continue;
        }
        for (_, line) in source.program_lines() {
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let at = words.iter().position(|word| ["struct", "enum", "trait"].contains(word));
            if let (true, Some(at)) = (line.trim_start().starts_with("pub"), at) {
                files.entry(words[at + 1].to_owned()).or_default().insert(source.shown());
            }
        }
    }
    assert!(files.len() > 500, "{} types are public", files.len());
    files.retain(|_, files| files.len() > 1);
    let shown: Vec<_> = files.iter().map(|(name, files)| format!("{name}: {files:?}")).collect();
    let (found, most) = (shown.len(), NAMES_OF_SEVERAL_TYPES);
    assert!(found >= most, "fewer names mean several types: lower NAMES_OF_SEVERAL_TYPES to {found}");
    assert_eq!(found, most, "a new type needs a name of its own:\n{}", shown.join("\n"));
}

/// The names that `src/testing.rs` re-exports. Anything else there fails the test.
fn names_for_tests() -> Vec<String> {
    let text = fs::read_to_string(root().join("testing.rs")).unwrap();
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.contains("#[cfg(feature");
    let lines: Vec<&str> = text.lines().filter(is_code).collect();
    let code = lines.join("\n");
    let mut rest = code.trim_start();
    let mut names = Vec::new();
    while !rest.is_empty() {
        let end = if rest.starts_with('}') {
            "}"
        } else if rest.starts_with("pub mod ") {
            "{"
        } else {
            ";"
        };
        let (item, after) = rest.split_once(end).unwrap_or_else(|| panic!("it can't be read: {rest}"));
        if end == ";" {
            let path = item.strip_prefix("pub use crate::").filter(|path| !path.contains(['*', '(', '=']));
            let path = path.unwrap_or_else(|| panic!("src/testing.rs only re-exports by name: {item}"));
            let last = path.rsplit_once("::").map_or(path, |(_, last)| last);
            let last =
                last.trim_matches(['{', '}']).split(',').map(str::trim).filter(|name| !name.is_empty());
            names.extend(last.map(str::to_owned));
        }
        rest = after.trim_start();
    }
    names
}

/// The words in the programs under `tests`, except the house's own.
fn words_in_tests() -> BTreeSet<String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = ["common", "readers", "gate", "devices", "lab"]
        .map(|folder| fs::read_dir(tests.join(folder)).unwrap());
    let files = files.into_iter().flatten().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let words = sources.flat_map(|path| {
        let text = fs::read_to_string(path).unwrap();
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned);
        words.collect::<Vec<_>>()
    });
    words.collect()
}

#[test]
fn what_is_re_exported_for_tests_is_used_by_tests() {
    let (names, words) = (names_for_tests(), words_in_tests());
    assert!(names.len() > 10, "src/testing.rs can't be read: {names:?}");
    let unused: Vec<_> = names.iter().filter(|name| !words.contains(*name)).collect();
    assert!(unused.is_empty(), "no test uses what src/testing.rs re-exports: {unused:?}");
}

/// The compiler demands it only of the crate's public interface, which is one function.
#[test]
fn public_items_have_doc_comments() {
    let without = [
        "src/load/kv/absent.rs", // types of a build without RocksDB: documented where they have values
        "src/load/nvme/model",   // a controller for tests
    ];
    let mut bare = Vec::new();
    for source in sources() {
        let is_fixture = source.module.iter().any(|part| part == "fixture");
        let is_without = without.iter().any(|path| source.shown().starts_with(path));
        if source.is_test() || is_fixture || is_without {
            continue;
        }
        let lines = source.program_lines();
        for (at, (number, line)) in lines.iter().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("pub ") else { continue };
            let kind = rest.split_whitespace().find(|word| !["const", "unsafe", "async"].contains(word));
            if !kind.is_some_and(|kind| ["fn", "struct", "enum", "trait"].contains(&kind)) {
                continue;
            }
            // Attributes may come in between.
            let above = lines[..at].iter().rev().map(|(_, line)| line.trim());
            let mut ends = above
                .filter(|line| line.is_empty() || line.starts_with("///") || line.ends_with(['{', '}', ';']));
            if !ends.next().is_some_and(|line| line.starts_with("///")) {
                bare.push(format!("{}:{}: {}", source.shown(), number + 1, line.trim()));
            }
        }
    }
    assert!(bare.is_empty(), "public items without a doc comment:\n{}", bare.join("\n"));
}
