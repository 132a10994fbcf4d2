//! Huge pages.

use serde::Serialize;

use crate::host::root::Root;

/// Huge pages that are set aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Hugepages {
    /// How many there are of the default size.
    pub total: u64,
    /// How many of them are free.
    pub free: u64,
    /// Bytes of each.
    pub size_bytes: u64,
}

pub(in crate::host) fn read(root: &Root) -> Hugepages {
    let number = |key: &str| root.meminfo(key).unwrap_or(0);
    Hugepages {
        total: number("HugePages_Total"),
        free: number("HugePages_Free"),
        size_bytes: number("Hugepagesize").saturating_mul(1024),
    }
}
