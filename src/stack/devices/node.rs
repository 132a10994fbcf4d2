//! Nodes in `/dev`, checked against the kernel.
//!
//! A node is a name and a number, and tools use the name. If `/dev` is not the kernel's own (but a
//! container's copy, say), the number behind a name may belong to another device.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::host::number_text;
use crate::printable::Shown as _;

/// The node of the kernel's block device of that name; none if `/dev` has none.
///
/// # Errors
/// Refused if the node belongs to another device.
pub(crate) fn of(name: &str) -> Result<Option<PathBuf>> {
    let node = Path::new("/dev").join(name.replace('!', "/"));
    if !node.exists() {
        return Ok(None);
    }
    check(&node)?;
    Ok(Some(node))
}

/// Refuses a node that does not belong to the kernel's device of that name.
pub(crate) fn check(node: &Path) -> Result<()> {
    let name = node.strip_prefix("/dev").unwrap_or(node).to_string_lossy().replace('/', "!");
    is_of(node, &Path::new("/sys/class/block").join(name))
}

fn is_of(node: &Path, device: &Path) -> Result<()> {
    let found = fs::metadata(node).map_err(|error| Error::os("cannot examine", node, error))?;
    let number = found.file_type().is_block_device().then(|| number_text(found.rdev()));
    let known = fs::read_to_string(device.join("dev")).ok().map(|text| text.trim().to_owned());
    if number.is_some() && number == known {
        return Ok(());
    }
    let [number, known] =
        [number, known].map(|number| number.unwrap_or_else(|| "not a block device".to_owned()));
    let what = format!("{} is {number} here, and {known} to the kernel", node.shown());
    Err(Error::refused(what)
        .hint("this /dev is not the kernel's own: run on the host itself, or with its /dev"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_believed_only_with_the_kernels_number() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dev"), "259:99\n").unwrap();
        // Whichever block device this is, it does not have that number.
        let mut any = fs::read_dir("/sys/class/block").unwrap().flatten();
        let any = any.find_map(|entry| of(&entry.file_name().to_string_lossy()).ok()?);
        if let Some(node) = any {
            let error = is_of(&node, dir.path()).unwrap_err();
            assert!(error.exit_status() == 3 && error.what.contains("259:99 to the kernel"), "{error}");
        }
        let error = is_of(Path::new("/dev/null"), dir.path()).unwrap_err();
        assert!(error.what.contains("is not a block device here"), "{error}");
        assert_eq!(of("no-such-device").unwrap(), None);
    }
}
