//! Who keeps a mount or a device busy.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// More than these don't help anybody.
const TOLD: usize = 5;

/// The processes that have something open at or below `path`, or work there: ` by process 812 (bash)`;
/// empty where none is seen.
pub(super) fn in_words(path: &Path) -> String {
    let found = processes(path);
    let mut words: Vec<String> = found.iter().take(TOLD).cloned().collect();
    if found.len() > TOLD {
        words.push(format!("{} more", found.len() - TOLD));
    }
    if words.is_empty() { String::new() } else { format!(" by {}", words.join(", ")) }
}

fn processes(path: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    let holds = |pid: &u32| links(*pid).iter().any(|link| link.starts_with(path));
    pids.into_iter().filter(holds).map(describe).collect()
}

/// The files and folders that a process holds.
fn links(pid: u32) -> BTreeSet<PathBuf> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let folders = ["fd", "map_files"].map(|folder| process.join(folder));
    let entries = folders.into_iter().flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
    let single = ["cwd", "root", "exe"].map(|name| process.join(name));
    entries.map(|entry| entry.path()).chain(single).filter_map(|link| fs::read_link(link).ok()).collect()
}

fn describe(pid: u32) -> String {
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim()),
        Err(_) => format!("process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_a_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(in_words(dir.path()), "");
        let _file = fs::File::create(dir.path().join("held")).unwrap();
        let words = in_words(&dir.path().canonicalize().unwrap());
        assert!(words.starts_with(&format!(" by process {} (", std::process::id())), "{words}");
    }
}
