//! A host's facts from the kernel and udev, below a folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};

use stacktune::testing::host::Facts;
use stacktune::testing::ui::report::host::describe;

use super::{files, report};

/// Files of `/proc`, `/sys`, `/run` and `/etc`; `@NAME` is a link to the target in its text.
pub fn host(input: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files(input).1 {
        let (name, is_link) = name.strip_prefix('@').map_or((name, false), |name| (name, true));
        let Some(depth) = depth(Path::new(name)) else { continue };
        let path = dir.path().join(name);
        // A file may already be in a folder's place, or the other way around.
        let _ = fs::create_dir_all(path.parent().unwrap());
        let _ = if is_link { link(&path, bytes, depth) } else { fs::write(&path, bytes) };
    }
    let facts = Facts::read(dir.path());
    report(&describe(&facts, None));
    super::json(&facts);
}

/// How many folders deep a name is; none if it leaves the host's folder.
fn depth(name: &Path) -> Option<usize> {
    let is_within = name.components().all(|part| matches!(part, Component::Normal(_)));
    (is_within && name.as_os_str().len() < 200).then(|| name.components().count().checked_sub(1))?
}

/// Makes a link, if it also stays within the host's folder.
fn link(path: &Path, target: &[u8], depth: usize) -> std::io::Result<()> {
    let target = Path::new(std::str::from_utf8(target).unwrap_or_default().trim_end());
    let ups = target.components().filter(|part| *part == Component::ParentDir).count();
    if target.is_absolute() || ups > depth { Ok(()) } else { symlink(target, path) }
}
