//! The loop devices over a file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::sysfs::block_names;
use crate::error::Result;
use crate::host::number_text;
use crate::stack::runner::{LOSETUP, Runner};

/// The loop devices over a file: by its path and, if it still exists, also by its inode.
pub(crate) fn loops_over(runner: &Runner, file: &Path) -> Result<Vec<PathBuf>> {
    let file = canonical(file);
    let deleted = PathBuf::from(format!("{} (deleted)", file.display()));
    let mut found = Vec::new();
    for name in block_names("loop") {
        let Ok(backing) = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")) else {
            continue;
        };
        let backing = Path::new(backing.trim_end_matches('\n'));
        let node = Path::new("/dev").join(&name);
        if backing == deleted || backing == file && is_over(runner, &node, &file)? {
            found.push(node);
        }
    }
    Ok(found)
}

/// Whether a loop device is over this very file, not over an earlier one of the same name.
fn is_over(runner: &Runner, node: &Path, file: &Path) -> Result<bool> {
    let Ok(metadata) = file.metadata() else { return Ok(true) };
    let arguments = ["--noheadings", "--output", "BACK-INO,BACK-MAJ:MIN"].map(AsRef::as_ref);
    let answer = runner.run_well(LOSETUP, &[&arguments[..], &[node.as_os_str()]].concat())?;
    let mut words = answer.stdout.split_whitespace();
    let same = [metadata.ino().to_string(), number_text(metadata.dev())];
    Ok(same.iter().all(|value| words.next() == Some(value)))
}

/// A path with links resolved, even if its last part no longer exists.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| canonical_parent(path))
}

/// A path with the links before its last part resolved.
pub(crate) fn canonical_parent(path: &Path) -> PathBuf {
    let parts = path.parent().and_then(|dir| dir.canonicalize().ok()).zip(path.file_name());
    parts.map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name))
}
