//! Who keeps a mount or a device busy. Written by hand: procfs-core parses the contents of a file but opens
//! none, and neither it nor sysinfo knows about threads with descriptors of their own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::host::{program_name, shared_for_writing, with_own_descriptors};

/// A longer list of names would not help.
const SHOWN_MAX: usize = 5;

/// The processes that have a file open at or below `path`, or their working directory there: ` by process 812
/// (bash)`; empty if none is visible.
pub(crate) fn in_words(path: &Path) -> String {
    let found = processes(path);
    let mut words: Vec<String> = found.iter().take(SHOWN_MAX).cloned().collect();
    if found.len() > SHOWN_MAX {
        words.push(format!("{} more", found.len() - SHOWN_MAX));
    }
    if words.is_empty() { String::new() } else { format!(" by {}", words.join(", ")) }
}

fn processes(path: &Path) -> Vec<String> {
    let holds = |pid: &u32| links(*pid).iter().any(|link| link.starts_with(path));
    pids().into_iter().filter(holds).map(describe).collect()
}

fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// A process other than this one that has the file open for writing, under any name:
/// `process 812 (qemu-system-x86)`.
pub(crate) fn writer(file: &Path) -> Option<String> {
    let wanted = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let same = |found: fs::Metadata| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino());
    let writes = |pid: u32| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let open = |table: &PathBuf| {
            let open = entries(&table.join("fd")).filter(|entry| fs::metadata(entry).is_ok_and(same));
            open.map(|entry| table.join("fdinfo").join(entry.file_name().unwrap_or_default()))
                .any(|info| is_for_writing(&info))
        };
        // A thread may have its own descriptors, or outlive the process's main thread.
        let names = |folder: &str| -> Vec<String> {
            let names = entries(&process.join(folder))
                .filter_map(|entry| entry.file_name()?.to_str().map(str::to_owned));
            names.collect()
        };
        let others = with_own_descriptors(true, &pid.to_string(), names("task"), names("fd").is_empty());
        let others = others.iter().map(|thread| process.join("task").join(thread));
        let tables: Vec<PathBuf> = std::iter::once(process.clone()).chain(others).collect();
        let mapped =
            |(range, _): (&str, &str)| fs::metadata(process.join("map_files").join(range)).is_ok_and(same);
        let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
        tables.iter().any(open) || shared_for_writing(&maps).any(mapped)
    };
    pids().into_iter().filter(|pid| *pid != std::process::id()).find(|pid| writes(*pid)).map(describe)
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether an open file's fdinfo entry says that it is open for writing.
fn is_for_writing(info: &Path) -> bool {
    let text = fs::read_to_string(info).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
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
    match program_name(pid) {
        Some(name) => format!("process {pid} ({name})"),
        None => format!("process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_writes_to_a_file_is_named_and_one_that_reads_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("disk.img");
        fs::write(&file, "x").unwrap();
        let link = dir.path().join("other-name");
        fs::hard_link(&file, &link).unwrap();
        let hold = |mode: &str| {
            let script = format!("exec 3{mode}\"$0\"; echo held; read -r _");
            let mut child = std::process::Command::new("sh")
                .args(["-c".as_ref(), script.as_ref(), link.as_os_str()])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let out = child.stdout.as_mut().unwrap();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
            let found = writer(&file);
            drop(child.stdin.take());
            (found, child.id(), child.wait().unwrap())
        };
        assert_eq!(writer(&file), None);
        assert_eq!(hold("<").0, None);
        let (found, id, _) = hold(">>");
        assert!(found.unwrap().starts_with(&format!("process {id} (")));
    }

    #[test]
    fn a_process_that_holds_a_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(in_words(dir.path()), "");
        let _file = fs::File::create(dir.path().join("held")).unwrap();
        let words = in_words(&dir.path().canonicalize().unwrap());
        assert!(words.starts_with(&format!(" by process {} (", std::process::id())), "{words}");
    }
}
