//! Files of sysfs and procfs under a root folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use procfs_core::FromRead;

/// The folder that represents `/`.
#[derive(Debug, Clone)]
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn new(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// Whether this is the running host itself.
    pub(super) fn is_running_host(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where `path` is under the root, whether or not it begins with a slash.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A file's trimmed text; none if it is missing, unreadable or empty.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.at(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A file's number.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// A value of `/proc/meminfo`, in its own unit. Parsed by hand: procfs rejects a file that lacks a line.
    pub(super) fn meminfo(&self, key: &str) -> Option<u64> {
        let text = self.text("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// A file of procfs, read by the crate of that name.
    pub(super) fn proc<T: FromRead>(&self, path: &str) -> Option<T> {
        T::from_read(File::open(self.at(path)).ok()?).ok()
    }

    /// The bytes of a file.
    pub(super) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.at(path)).ok()
    }

    /// The names in a folder, sorted; empty if it is missing.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Whether there is such a file or folder.
    pub(super) fn has(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// Where a symbolic link points, as written in it.
    pub(super) fn link(&self, path: &str) -> Option<PathBuf> {
        fs::read_link(self.at(path)).ok()
    }
}

/// The last part of a path.
pub(super) fn last_part(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// More than any kernel runs on.
const CPUS_MAX: usize = 1 << 16;

/// CPU numbers from the kernel's list format: `0-3,8`.
pub(super) fn cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend((first..=last).take(CPUS_MAX.saturating_sub(cpus.len())));
        }
    }
    cpus
}

/// A host with only these files; the folder is removed on drop.
#[cfg(test)]
pub(super) fn faked(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::new(dir.path());
    (dir, root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_ranges_and_single_numbers() {
        assert_eq!(cpu_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list("5"), [5]);
        assert!(cpu_list("").is_empty());
    }
}
