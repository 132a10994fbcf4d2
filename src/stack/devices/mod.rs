//! Block devices: named before they exist, and found again after a crash.
//!
//! Enters: what the host says of its devices, and what tools read from them. Leaves: nodes, each held
//! against the kernel's own number; nothing is written here.

mod arrays;
mod drive;
pub(crate) mod gpt;
mod loops;
pub(crate) mod node;
mod partitions;
mod place;

use std::fs;

pub(crate) use arrays::{arrays, is_array, member_uuid};
pub use drive::Drive;
pub(crate) use loops::{canonical_parent, loops_over};
pub(crate) use partitions::table;
pub(crate) use place::Found;
pub use place::Place;

/// The names of the kernel's block devices that begin so.
fn block_names(prefix: &str) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// Whether two ids are the same, however they are divided and in whichever case.
pub(crate) fn same_id(one: &str, other: &str) -> bool {
    let digits = |id: &str| -> Vec<u8> {
        id.bytes().filter(u8::is_ascii_hexdigit).map(|digit| digit.to_ascii_lowercase()).collect()
    };
    !digits(one).is_empty() && digits(one) == digits(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_however_tools_write_them() {
        assert!(same_id("0a1b:2C3d", "0A1B-2c3D"));
        assert!(!same_id("0a1b2c3d", "0a1b2c3e"));
        assert!(!same_id("", ""), "no id is nobody's");
    }
}
