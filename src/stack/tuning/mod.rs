//! Changes that a run makes to the host while it runs, and restores: the drives' queue settings, those of the
//! array, and the page cache's budget; and failing a member of the array.
//!
//! Enters: the wanted values, and the journal that records the changes. Leaves: the host with these values,
//! and as it was before once the run ends.

mod adjustments;
pub(crate) mod array_state;
pub(crate) mod attributes;
pub(crate) mod cgroup;
mod cpu_latency;

pub use adjustments::Adjustments;
pub use array_state::FailingArray;
pub use attributes::{array_of, drives_of};
pub use cpu_latency::CpuLatency;
