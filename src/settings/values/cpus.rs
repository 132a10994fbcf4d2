//! On which CPUs a class runs.

use serde::{Deserialize, Serialize};

/// Which CPUs a class runs on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cpus {
    /// Wherever the kernel puts it.
    Any,
    /// The CPUs of a NUMA node.
    Node(u32),
    /// These CPUs, ascending, without repetition.
    List(Vec<u32>),
}
