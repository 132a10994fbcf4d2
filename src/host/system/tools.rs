//! The tools for building stacks.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::host::root::Root;

/// Each tool, how to query its version, and its package on Debian and Ubuntu.
const TOOLS: [(&str, &str, &str); 9] = [
    ("mdadm", "--version", "mdadm"),
    ("mkfs.ext4", "-V", "e2fsprogs"),
    ("mkfs.xfs", "-V", "xfsprogs"),
    ("mkfs.btrfs", "--version", "btrfs-progs"),
    ("mkfs.f2fs", "-V", "f2fs-tools"),
    ("nvme", "version", "nvme-cli"),
    ("sfdisk", "--version", "fdisk"),
    ("losetup", "--version", "mount"),
    ("blkdiscard", "--version", "util-linux"),
];
/// Where tools are looked for, whatever `PATH` says: only root can put programs there.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// For tests: a folder whose tools come before the real ones. Not in a release build, as root must not run
/// what a variable names.
#[cfg(debug_assertions)]
const TEST_TOOLS: &str = "STACKTUNE_TEST_TOOLS";

/// A tool, found or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolFound {
    /// Its program.
    pub name: String,
    /// Where it is; none if it is not installed.
    pub path: Option<PathBuf>,
    /// Its version, once queried.
    pub version: Option<String>,
    /// The package to install for it.
    pub package: String,
}

/// The folders in which tools are looked for, in this order.
pub fn tool_folders() -> Vec<PathBuf> {
    let folders = FOLDERS.map(PathBuf::from).to_vec();
    #[cfg(debug_assertions)]
    if let Some(folder) = std::env::var_os(TEST_TOOLS) {
        return [vec![folder.into()], folders].concat();
    }
    folders
}

/// A command that runs a tool: in the C locale, and without the variables of this process, some of which
/// change what tools do.
pub fn tool_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LC_ALL", "C").env("PATH", FOLDERS.join(":"));
    command
}

pub(in crate::host) fn find(root: &Root) -> Vec<ToolFound> {
    let found = TOOLS.iter().map(|(name, _, package)| {
        let path = FOLDERS
            .iter()
            .map(|folder| Path::new(folder).join(name))
            .find(|path| root.has(&path.to_string_lossy()));
        ToolFound { name: (*name).to_owned(), path, version: None, package: (*package).to_owned() }
    });
    found.collect()
}

/// Adds the versions of those that are there, by running each. Only for this host.
pub(in crate::host) fn add_versions(tools: &mut [ToolFound]) {
    let ask = |tool: &ToolFound| {
        let (_, argument, _) = TOOLS.iter().find(|(name, ..)| *name == tool.name)?;
        version(tool.path.as_deref()?, argument)
    };
    // Each starts a process, so they run all at once.
    let versions: Vec<_> = std::thread::scope(|scope| {
        let start = |tool| std::thread::Builder::new().spawn_scoped(scope, move || ask(tool));
        let asked: Vec<_> = tools.iter().map(start).collect();
        // Where no thread can be started, a version is unknown.
        asked.into_iter().map(|thread| thread.ok()?.join().ok().flatten()).collect()
    });
    tools.iter_mut().zip(versions).for_each(|(tool, version)| tool.version = version);
}

fn version(program: &Path, argument: &str) -> Option<String> {
    let mut command = tool_command(program);
    command.arg(argument).stdin(Stdio::null());
    let output = command.output().ok()?;
    // Some print it to standard error.
    let said = [output.stdout, output.stderr].concat();
    version_in(&String::from_utf8_lossy(&said))
}

/// The first word that is a version: digits separated by dots, possibly after a `v`.
fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),".contains(c));
    let version = |word: &str| {
        let number = word.strip_prefix('v').unwrap_or(word);
        let begins = number.starts_with(|c: char| c.is_ascii_digit()) && number.contains('.');
        begins.then(|| number.to_owned())
    };
    words.into_iter().find_map(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_the_output_of_each_tool() {
        for (text, expected) in [
            ("mdadm - v4.3 - 2024-02-15 - Debian 4.3-1\n", "4.3"),
            ("mke2fs 1.47.0 (5-Feb-2023)\n\tUsing EXT2FS Library version 1.47.0\n", "1.47.0"),
            ("mkfs.xfs version 6.6.0\n", "6.6.0"),
            ("mkfs.btrfs, part of btrfs-progs v6.6.3\n", "6.6.3"),
            ("mkfs.f2fs 1.16.0 (2023-04-11)\n", "1.16.0"),
            ("nvme version 2.8 (git 2.8)\nlibnvme version 1.8\n", "2.8"),
            ("sfdisk from util-linux 2.39.3\n", "2.39.3"),
        ] {
            assert_eq!(version_in(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(version_in("no such thing"), None);
    }
}
