//! How long files and functions are, and that no files of a room import each other in a circle.

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

/// Which files a file imports from. A folder's `mod.rs` only passes on, and stands in no circle: what it
/// re-exports comes from the file that has it.
fn imported_files(sources: &[Source]) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let files: Vec<&Source> = sources.iter().filter(|source| !source.is_test()).collect();
    let modules: BTreeSet<&Vec<String>> = files.iter().map(|source| &source.module).collect();
    let folders: BTreeMap<&Vec<String>, BTreeMap<String, Vec<String>>> = files
        .iter()
        .filter(|source| source.is_folder())
        .map(|folder| (&folder.module, folder.passed_on()))
        .collect();
    let file_of = |mut path: Vec<String>| loop {
        let mut name = None;
        while !path.is_empty() && !modules.contains(&path) {
            name = path.pop();
        }
        match folders.get(&path) {
            None => return Some(path).filter(|path| !path.is_empty()),
            Some(passed_on) => match name.and_then(|name| passed_on.get(&name)) {
                Some(origin) => path.clone_from(origin),
                None => return None,
            },
        }
    };
    let imports = |source: &&Source| {
        let files = source.paths(&source.code()).into_iter().filter_map(file_of);
        (source.module.clone(), files.filter(|file| *file != source.module).collect())
    };
    files.iter().filter(|source| !source.is_folder()).map(imports).collect()
}

/// Whether a way leads from a file along imports back to it.
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

#[test]
fn no_files_import_each_other_in_a_circle() {
    let imports = imported_files(&sources());
    let in_circle = imports.keys().filter(|file| is_in_circle(file, &imports));
    let in_circle: Vec<String> = in_circle.map(|file| file.join("/")).collect();
    assert_none(&in_circle, "no files import each other in a circle");
}
