//! The source as the house's tests read it: files, modules, imports, functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The room that everything shares. `src/lib.rs` re-exports its modules under their own names.
pub const BASE: &str = "base";
static IN_THE_BASE: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let files = rust_files(&root().join(BASE)).into_iter();
    files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
});

/// A file of the source.
pub struct Source {
    pub path: PathBuf,
    /// The modules that contain it: `load/io/uring.rs` is `load`, `io`, `uring`; a `mod.rs` is its folder.
    pub module: Vec<String>,
    pub text: String,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// All files of the source.
pub fn sources() -> Vec<Source> {
    sources_in(&root())
}

/// All files of the integration tests.
pub fn test_sources() -> Vec<Source> {
    sources_in(&root().with_file_name("tests"))
}

/// The scripts, each with its number of lines.
pub fn scripts() -> Vec<(PathBuf, usize)> {
    let mut paths = Vec::new();
    for folder in [".ci", "scripts", "tests"] {
        collect(&root().with_file_name(folder), &mut paths);
    }
    let is_script = |path: &PathBuf| {
        path.extension().is_none_or(|extension| extension == "sh" || extension == "py")
            && fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#"))
    };
    paths.retain(is_script);
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap().lines().count())).collect()
}

fn sources_in(dir: &Path) -> Vec<Source> {
    rust_files(dir).into_iter().map(|path| Source::read(path, dir)).collect()
}

/// All files in a folder.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    collect(dir, &mut paths);
    paths
}

/// All Rust files in a folder.
fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut paths = files(dir);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    paths
}

fn collect(dir: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

/// The first name of a path.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

impl Source {
    fn read(path: PathBuf, base: &Path) -> Self {
        let inside = path.strip_prefix(base).unwrap().with_extension("");
        let mut module: Vec<String> = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.pop_if(|last| last == "mod");
        let text = fs::read_to_string(&path).unwrap();
        Self { path, module, text }
    }

    pub fn is_folder(&self) -> bool {
        self.path.ends_with("mod.rs")
    }

    pub fn is_test(&self) -> bool {
        self.module.last().is_some_and(|last| last == "tests" || last.ends_with("_tests"))
    }

    /// Its path relative to the project's folder.
    pub fn shown(&self) -> String {
        self.path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string()
    }

    /// Its lines without comments and without test-only items.
    pub fn code(&self) -> String {
        let lines = self.program_lines().into_iter().map(|(_, line)| line);
        lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    }

    /// Its lines, numbered from 0, without test-only items; expects rustfmt's formatting.
    pub fn program_lines(&self) -> Vec<(usize, &str)> {
        let mut test_item = None;
        let mut lines = self.text.lines().enumerate().collect::<Vec<_>>();
        lines.retain(|(_, line)| {
            let indent = line.len() - line.trim_start().len();
            if line.trim() == "#[cfg(test)]" {
                test_item = Some(indent);
            }
            let is_tested = test_item.is_some();
            if test_item == Some(indent) && line.ends_with([';', ',', '}']) {
                test_item = None;
            }
            !is_tested
        });
        lines
    }

    /// Every path in the text that begins with `crate`, `super` or `self`, as modules from the root; a group
    /// in braces yields its paths one by one.
    pub fn paths(&self, text: &str) -> BTreeSet<Vec<String>> {
        let mut found = BTreeSet::new();
        for start in ["crate::", "super::", "self::"] {
            for (at, _) in text.match_indices(start) {
                let before = text[..at].chars().next_back();
                if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                    self.follow(&text[at..], &mut found);
                }
            }
        }
        found
    }

    /// The paths of everything that the file names in other modules: paths that begin with `crate`, `super`
    /// or `self`, with one of its own modules, or with a module that it imports.
    pub fn imports(&self, modules: &BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
        let (uses, rest) = self.uses_and_rest();
        let mut roots: BTreeMap<String, Vec<String>> = modules
            .iter()
            .filter_map(|module| Some((module, module.split_last()?)))
            .filter(|(_, (_, parent))| *parent == self.module)
            .map(|(module, (own, _))| (own.clone(), module.clone()))
            .collect();
        let used: BTreeSet<_> = uses.iter().flat_map(|import| self.leaves(import, &roots)).collect();
        let imported = used.iter().filter(|(_, path)| modules.contains(path));
        roots.extend(imported.cloned().collect::<Vec<_>>());

        let mut found: BTreeSet<_> = used.into_iter().map(|(_, path)| path).collect();
        found.extend(self.paths(&rest));
        for (root, base) in &roots {
            for (at, _) in rest.match_indices(&format!("{root}::")) {
                let before = rest[..at].chars().next_back();
                if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                    follow_from(base.clone(), &rest[at + root.len() + 2..], &mut found);
                }
            }
        }
        found
    }

    /// Whether it only declares modules and re-exports names.
    pub fn only_passes_on(&self) -> bool {
        let (_, rest) = self.uses_and_rest();
        self.is_folder()
            && rest.lines().map(str::trim).all(|line| {
                let is_module = line.ends_with(';') && line.split_whitespace().any(|word| word == "mod");
                line.is_empty() || line.starts_with('#') || is_module
            })
    }

    /// The names that a folder's `mod.rs` imports and re-exports, each with its original path.
    pub fn passed_on(&self, modules: &BTreeSet<Vec<String>>) -> BTreeMap<String, Vec<String>> {
        let own = modules.iter().filter(|module| module.starts_with(&self.module));
        let own = own.filter_map(|module| module.get(self.module.len()));
        let own =
            own.map(|name| (name.clone(), [self.module.as_slice(), std::slice::from_ref(name)].concat()));
        let roots = own.collect();
        let (uses, _) = self.uses_and_rest();
        uses.iter().flat_map(|import| self.leaves(import, &roots)).collect()
    }

    /// The `use` declarations of the code, starting with their paths, and everything else.
    fn uses_and_rest(&self) -> (Vec<String>, String) {
        let (mut uses, mut rest): (Vec<String>, _) = (Vec::new(), String::new());
        let mut is_open = false;
        for line in self.code().lines() {
            let item = line.trim_start();
            let begins = match item.split_once("use ") {
                Some((before, path)) if before.is_empty() || before.starts_with("pub") => Some(path),
                _ => None,
            };
            match begins {
                Some(path) if !is_open => uses.push(path.to_owned()),
                _ if is_open => uses.last_mut().unwrap().push_str(item),
                _ => rest.extend([line, "\n"]),
            }
            is_open = (is_open || begins.is_some()) && !line.ends_with(';');
        }
        (uses, rest)
    }

    /// Each name that one `use` declaration imports from this crate, with its path. The declaration begins
    /// with `crate`, `super`, `self` or one of the `roots`.
    fn leaves(&self, import: &str, roots: &BTreeMap<String, Vec<String>>) -> Vec<(String, Vec<String>)> {
        let mut found = BTreeSet::new();
        let first = name(import);
        match roots.get(first) {
            _ if ["crate", "super", "self"].contains(&first) => self.follow(import, &mut found),
            Some(base) => {
                let rest = &import[first.len()..];
                follow_from(base.clone(), rest.strip_prefix("::").unwrap_or(""), &mut found);
            }
            None => {}
        }
        let named = found.into_iter().filter_map(|path| {
            let last = path.last()?.clone();
            let renamed = import.split_once(&format!("{last} as ")).map(|(_, rest)| name(rest).to_owned());
            Some((renamed.unwrap_or(last), path))
        });
        named.collect()
    }

    fn follow(&self, text: &str, found: &mut BTreeSet<Vec<String>>) {
        let first = name(text);
        let rest = text[first.len()..].strip_prefix("::").unwrap_or("");
        let mut base = if first == "crate" { Vec::new() } else { self.module.clone() };
        if first == "super" {
            base.pop();
        }
        if first == "crate" && IN_THE_BASE.contains(name(rest)) {
            base.push(BASE.to_owned());
        }
        follow_from(base, rest, found);
    }

    /// Each function with its number of lines, from head to closing brace; expects rustfmt's formatting.
    pub fn functions(&self) -> Vec<(String, usize)> {
        let mut functions = Vec::new();
        let lines: Vec<&str> = self.text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let Some((head, rest)) = line.split_once("fn ") else { continue };
            let is_head = head.split_whitespace().all(|word| {
                ["pub", "const", "unsafe", "extern", "\"C\"", "async"].contains(&word)
                    || word.starts_with("pub(")
                    || word.ends_with(')') // of `pub(in path)`
            });
            if !is_head || name(rest).is_empty() {
                continue;
            }
            let end = format!("{}}}", " ".repeat(indent));
            // A function that is only declared ends with its head.
            let head_end = lines[number..].iter().find(|line| line.ends_with(['{', '}', ';']));
            if head_end.is_some_and(|line| line.ends_with(';')) {
                continue;
            }
            if let Some(length) = lines[number..].iter().position(|line| *line == end) {
                functions.push((name(rest).to_owned(), length + 1));
            }
        }
        functions
    }
}

/// The paths that the text continues from `path`: one, or several from a group in braces.
fn follow_from(mut path: Vec<String>, text: &str, found: &mut BTreeSet<Vec<String>>) {
    let mut at = text.trim_start();
    loop {
        if let Some(group) = at.strip_prefix('{') {
            members(group).into_iter().for_each(|member| follow_from(path.clone(), member, found));
            return;
        }
        match name(at) {
            "" => break,
            "super" => drop(path.pop()),
            "self" => {}
            part => path.push(part.to_owned()),
        }
        let Some(rest) = at[name(at).len()..].strip_prefix("::") else { break };
        at = rest;
    }
    found.insert(path);
}

/// The members of a group of imports, up to its closing brace.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0, 0);
    let mut members = Vec::new();
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                members.push(&group[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members
}
