//! The kernel's list of block devices.

use std::fs;

/// The names of the kernel's block devices with that prefix.
pub(super) fn block_names(prefix: &str) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}
