//! md arrays with a given UUID, and their members.

use std::fs;
use std::path::{Path, PathBuf};

use super::ids::same_id;
use super::sysfs::block_names;
use crate::error::Result;
use crate::stack::runner::{MDADM, Runner, failure};

/// The nodes of the arrays with that UUID, whether they run or are only partly assembled.
pub(crate) fn arrays(runner: &Runner, uuid: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in block_names("md") {
        let node = Path::new("/dev").join(&name);
        if !is_array(&node) {
            continue;
        }
        let arguments = ["--detail".as_ref(), "--export".as_ref(), node.as_os_str()];
        let answer = runner.run(MDADM, &arguments)?;
        if answer.status == 0 && exported_uuid(&answer.stdout).is_some_and(|id| same_id(id, uuid)) {
            found.push(node);
        }
    }
    Ok(found)
}

/// Whether there is an array at a node, or at its link target: a stopped array may leave an empty node behind.
pub(crate) fn is_array(node: &Path) -> bool {
    let name = node.canonicalize().ok().and_then(|node| Some(node.file_name()?.to_owned()));
    let state = |name| fs::read_to_string(Path::new("/sys/block").join(name).join("md/array_state")).ok();
    name.and_then(state).is_some_and(|state| state.trim() != "clear")
}

/// The UUID of the md superblock on a device, if it has one.
pub(crate) fn member_uuid(runner: &Runner, node: &Path) -> Result<Option<String>> {
    let arguments = ["--examine".as_ref(), "--export".as_ref(), node.as_os_str()];
    let answer = runner.run(MDADM, &arguments)?;
    match exported_uuid(&answer.stdout) {
        Some(uuid) => Ok(Some(uuid.to_owned())),
        None if answer.status == 0 || answer.stderr.contains("No md superblock") => Ok(None),
        None => Err(failure(MDADM, &arguments, &answer)),
    }
}

fn exported_uuid(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("MD_UUID="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_read_from_what_mdadm_exports() {
        let text = "MD_LEVEL=raid1\nMD_DEVICES=2\nMD_UUID=11111111:22222222:33333333:44444444\n";
        assert_eq!(exported_uuid(text), Some("11111111:22222222:33333333:44444444"));
        assert_eq!(exported_uuid("MD_LEVEL=raid1\n"), None);
    }
}
