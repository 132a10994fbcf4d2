//! What the documents must keep to: the README's length, existing paths and make targets, and no doubled
//! words in them or in the source.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tree::{files, sources};

const README_LINES_MAX: usize = 200;
const README_COLUMNS_MAX: usize = 120;
const README_WORDS_MAX: usize = 1800;
/// How a path in a document begins.
const FOLDERS: &[&str] = &["src/", "tests/", "scripts/", "assets/", "profiles/", ".ci/"];

/// Words that may be doubled.
const DOUBLE: &[&str] = &["that", "had", "const", "cgroup", "hugetlbfs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documents' texts, by their paths from the root.
fn documents() -> Vec<(PathBuf, String)> {
    let help = fs::read_dir(root().join("assets/help")).unwrap().map(|entry| entry.unwrap().path());
    let files = ["README.md", "CONTRIBUTING.md", "tests/README.md"].map(|name| root().join(name));
    let files = files.into_iter().chain(help);
    files.map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

fn fails(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule}:\n{}", found.join("\n"));
}

#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let (lines, words) = (text.lines().count(), text.split_whitespace().count());
    assert!(lines <= README_LINES_MAX, "the README has {lines} lines");
    assert!(words <= README_WORDS_MAX, "the README has {words} words");
    let wide = text.lines().enumerate().filter(|(_, line)| line.chars().count() > README_COLUMNS_MAX);
    let wide: Vec<_> = wide.map(|(at, line)| format!("{}: {line}", at + 1)).collect();
    fails(&wide, "lines of the README are too long");
}

/// The paths below the root that a text names.
fn paths(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let words = text.split(|c| !is_part(c)).map(|word| word.trim_end_matches(['.', '/']));
    words.filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder))).collect()
}

#[test]
fn paths_in_the_documents_exist() {
    let mut missing = Vec::new();
    for (file, text) in documents() {
        let gone = paths(&text).into_iter().filter(|path| !root().join(path).exists());
        missing.extend(gone.map(|path| format!("{}: {path}", file.display())));
    }
    fails(&missing, "there is no such file or folder");
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let mut missing = Vec::new();
    for (file, text) in documents() {
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        let gone = links.filter(|link| !link.contains("://") && !root().join(link).exists());
        missing.extend(gone.map(|link| format!("{}: {link}", file.display())));
    }
    fails(&missing, "the link leads nowhere");
}

#[test]
fn make_targets_in_the_documents_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let mut missing = Vec::new();
    for (file, text) in documents() {
        let commands = text.split(['`', '\n']).filter_map(|part| part.strip_prefix("make "));
        let targets = commands.filter_map(|command| command.split_whitespace().next());
        let gone =
            targets.filter(|target| !makefile.lines().any(|line| line.starts_with(&format!("{target}:"))));
        missing.extend(gone.map(|target| format!("{}: make {target}", file.display())));
    }
    fails(&missing, "the Makefile has no such target");
}

/// The words of a text that are doubled, even across line ends, in comments and strings too.
fn doubled(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "";
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches(['/', '!', '#']).trim_end_matches('\\');
        if line.trim().is_empty() {
            before = "";
        }
        for word in line.split_whitespace() {
            let word = word.strip_prefix(['(', '"', '`', '*']).unwrap_or(word);
            let ends = word.find(|c: char| !c.is_alphabetic()).unwrap_or(word.len());
            let (letters, rest) = word.split_at(ends);
            let is_part =
                rest.starts_with(|c: char| c.is_alphanumeric() || "_-'’:(.=/".contains(c)) && rest != ".";
            let is_word = letters.is_ascii() && letters.contains(|c: char| c.is_lowercase());
            if is_word && !is_part && letters.eq_ignore_ascii_case(before) && !DOUBLE.contains(&letters) {
                found.push(format!("{letters} {letters}: {}", line.trim()));
            }
            before = if rest.is_empty() { letters } else { "" };
        }
    }
    found
}

#[test]
fn no_word_is_doubled() {
    let mut texts: Vec<_> = sources().into_iter().map(|source| (source.path, source.text)).collect();
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    texts.extend(files(&root().join("profiles")).into_iter().map(read));
    texts.extend(["CHANGELOG.md", "tests/README.md", "Makefile"].map(|name| read(root().join(name))));
    texts.extend(documents());
    let mut all = Vec::new();
    for (file, text) in texts {
        all.extend(doubled(&text).into_iter().map(|found| format!("{}: {found}", file.display())));
    }
    fails(&all, "a word follows itself");
    assert_eq!(doubled("/// Use use the\n/// the `a` or or_else, in in.").len(), 3);
}
