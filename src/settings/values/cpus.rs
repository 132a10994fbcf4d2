//! The CPUs that a class runs on.

use serde::{Deserialize, Serialize};

/// The CPUs that a class runs on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cpus {
    /// Wherever the kernel puts it.
    Any,
    /// The CPUs of a NUMA node.
    Node(u32),
    /// These CPUs, ascending, without duplicates.
    List(Vec<u32>),
}
