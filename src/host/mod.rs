//! Facts about this host: CPUs, memory, kernel features, drives and what uses them.
//!
//! Everything is read from a root folder, so that a test can fake a host.

mod cgroup;
mod cpu;
mod describe;
mod devices;
mod emulated;
mod exports;
mod facts;
mod features;
mod find;
mod loops;
mod queue;
mod read;
mod reservation;
mod root;
mod usage;

pub use cgroup::{CgroupMemory, CgroupPlace, CgroupVersion, cgroup_place};
pub use describe::describe;
pub use emulated::emulated_drive;
pub use facts::{Cpu, Device, Facts, Feature, Node, TargetFacts, Usage};
pub use queue::Queue;
pub(crate) use reservation::reservation;
pub(crate) use usage::{member_of, mounted_at, number_text};
