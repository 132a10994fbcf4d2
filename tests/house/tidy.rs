//! Limits on the length of files and functions, and no import cycles between files of a room.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Source, scripts, sources, test_sources};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

#[track_caller]
fn assert_none(over: &[String], rule: &str) {
    assert!(over.is_empty(), "{rule}:\n{}", over.join("\n"));
}

#[test]
fn files_are_about_one_thing() {
    let long = sources().into_iter().chain(test_sources()).filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{}: {lines} lines", source.shown()))
    });
    let scripts = scripts();
    assert!(scripts.iter().any(|(path, _)| path.ends_with("tests/rig.sh")), "{scripts:?}");
    let long_scripts = scripts.into_iter().filter(|(_, lines)| *lines > FILE_LINES_MAX);
    let long_scripts = long_scripts.map(|(path, lines)| format!("{}: {lines} lines", path.display()));
    let long: Vec<_> = long.chain(long_scripts).collect();
    assert_none(&long, "a file has 500 lines at most");
}

#[test]
fn functions_fit_a_screen() {
    let mut long = Vec::new();
    for source in sources().into_iter().chain(test_sources()) {
        let over = source.functions().into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        long.extend(over.map(|(name, lines)| format!("{}: {name} has {lines} lines", source.shown())));
    }
    assert_none(&long, "a function has 70 lines at most");
}

/// Which files a file imports from. A `mod.rs` that only declares modules and re-exports names is in no
/// cycle: a re-exported name counts as imported from the file that defines it. A `mod.rs` that defines
/// something itself is a file like any other.
fn imported_files(sources: &[Source]) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let files: Vec<&Source> = sources.iter().filter(|source| !source.is_test()).collect();
    let modules: BTreeSet<Vec<String>> = files.iter().map(|source| source.module.clone()).collect();
    let folders: BTreeMap<&Vec<String>, BTreeMap<String, Vec<String>>> = files
        .iter()
        .filter(|source| source.only_passes_on())
        .map(|folder| (&folder.module, folder.passed_on(&modules)))
        .collect();
    let file_of = |mut path: Vec<String>| loop {
        let mut name = None;
        while !path.is_empty() && !modules.contains(&path) {
            name = path.pop();
        }
        let Some(passed_on) = folders.get(&path) else {
            return Some(path).filter(|path| !path.is_empty());
        };
        // Importing a folder by itself counts as importing the names used from it.
        let name = name?;
        let origin = passed_on.get(&name).unwrap_or_else(|| panic!("{path:?} has no {name}"));
        path.clone_from(origin);
    };
    let imports = |source: &&Source| {
        let files = source.imports(&modules).into_iter().filter_map(file_of);
        (source.module.clone(), files.filter(|file| *file != source.module).collect())
    };
    files.iter().filter(|source| !source.only_passes_on()).map(imports).collect()
}

/// Whether a file imports itself through others.
fn is_in_circle(file: &Vec<String>, imports: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&Vec<String>> = imports[file].iter().collect();
    while let Some(one) = next.pop() {
        if one == file {
            return true;
        }
        if seen.insert(one) {
            next.extend(imports.get(one).into_iter().flatten());
        }
    }
    false
}

fn in_circles(sources: &[Source]) -> Vec<String> {
    let imports = imported_files(sources);
    let in_circle = imports.keys().filter(|file| is_in_circle(file, &imports));
    in_circle.map(|file| file.join("/")).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_none(&in_circles(&sources()), "no files import each other in a circle");
}

/// The cycles in a folder `io` of these files.
fn planted(files: &[(&str, &str)]) -> Vec<String> {
    let source = |(name, text): &(&str, &str)| {
        let module = ["io", name].into_iter().filter(|name| *name != "mod").map(str::to_owned);
        Source {
            path: format!("src/io/{name}.rs").into(),
            module: module.collect(),
            text: (*text).to_owned(),
        }
    };
    in_circles(&files.iter().map(source).collect::<Vec<_>>())
}

#[test]
fn a_circle_through_a_head_that_defines_something_is_found() {
    let names = "mod null;\n\npub trait Backend {}\n\nfn start() {\n    null::Null::new();\n}\n";
    assert_eq!(planted(&[("mod", names), ("null", "use super::Backend;\n")]), ["io", "io/null"]);
    let re_exports = "mod null;\n\npub use null::{self, Null};\n\npub const SLOTS: u32 = 1;\n";
    assert_eq!(planted(&[("mod", re_exports), ("null", "use crate::io::SLOTS;\n")]), ["io", "io/null"]);
    assert!(planted(&[("mod", re_exports), ("null", "")]).is_empty());
}

#[test]
fn a_circle_through_re_exports_is_found() {
    let head = "mod backend;\n#[cfg(unix)]\nmod null;\n\npub use backend::Backend;\npub use null::{\n    Null as Nothing,\n};\n";
    let null = "use super::Backend;\n";
    let circle = ["io/backend", "io/null"];
    let by_name = "use crate::{class::null, io::{self, Nothing}};\n";
    assert_eq!(planted(&[("mod", head), ("null", null), ("backend", by_name)]), circle);
    let by_module = "use super::null;\n\nfn start() {\n    null::Null::new();\n}\n";
    assert_eq!(planted(&[("mod", head), ("null", null), ("backend", by_module)]), circle);
    assert!(planted(&[("mod", head), ("null", null), ("backend", "use std::io::null::Null;\n")]).is_empty());
}

#[test]
fn a_path_in_a_message_is_one_line_that_a_terminal_shows() {
    let mut plain = Vec::new();
    for source in sources().into_iter().filter(|source| !source.is_test()) {
        // Made-up plans.
        if source.shown().contains("/fixture/") {
            continue;
        }
        for (at, line) in source.program_lines() {
            let as_text =
                line.matches(".display()").count() != line.matches(".display().to_string()").count();
            if as_text && !line.trim_start().starts_with("//") {
                plain.push(format!("{}:{}: {}", source.shown(), at + 1, line.trim()));
            }
        }
    }
    assert_none(&plain, "a message has `path.shown()`; `.display().to_string()` is for arguments and keys");
}
