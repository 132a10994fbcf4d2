//! The loop devices over a file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::sysfs::block_names;
use crate::error::Result;
use crate::host::number_text;
use crate::stack::runner::{LOSETUP, Runner};

/// The loop devices over a file: by its path, and where the file is still there by its inode too.
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

/// Whether a loop device is over this very file, and not over one that had its name before.
fn is_over(runner: &Runner, node: &Path, file: &Path) -> Result<bool> {
    let Ok(metadata) = file.metadata() else { return Ok(true) };
    let arguments = ["--noheadings", "--output", "BACK-INO,BACK-MAJ:MIN"].map(AsRef::as_ref);
    let answer = runner.run_well(LOSETUP, &[&arguments[..], &[node.as_os_str()]].concat())?;
    let mut words = answer.stdout.split_whitespace();
    let same = [metadata.ino().to_string(), number_text(metadata.dev())];
    Ok(same.iter().all(|value| words.next() == Some(value)))
}

/// A path without links, also where its end is not there any more.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| canonical_parent(path))
}

/// A path without links before its last part.
pub(crate) fn canonical_parent(path: &Path) -> PathBuf {
    let parts = path.parent().and_then(|dir| dir.canonicalize().ok()).zip(path.file_name());
    parts.map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name))
}
