//! Facts about this host: CPUs, memory, kernel features, drives and what uses them.
//!
//! Everything is read from a root folder, so that a test can fake a host.

mod arrays;
mod btrfs;
mod cgroup;
mod cpu;
mod describe;
mod devices;
mod drivers;
mod emulated;
mod exports;
mod facts;
mod features;
mod find;
mod flash;
mod health;
mod levels;
mod loops;
mod namespace;
mod nvme;
mod pcie;
mod platform;
mod queue;
mod read;
mod reservation;
mod root;
pub mod spdk;
mod storage;
mod temperature;
mod threads;
mod tools;
mod usage;
mod watch;

pub use arrays::{ArrayWatch, Lost, Upkeep};
pub use cgroup::{CgroupMemory, CgroupPlace, CgroupVersion, cgroup_place};
pub use describe::describe;
pub use emulated::emulated_drive;
pub use facts::{Cpu, Device, Facts, Feature, Node, TargetFacts, Usage};
pub use features::kernel_version;
pub use flash::{FlashSource, FlashWrites};
#[cfg(test)]
pub(crate) use health::tests as health_tests;
pub use health::{Health, Throttled, Throttling, health};
pub use levels::{LevelDevice, LevelDrive, Levels};
pub use namespace::{NvmeNamespace, nvme_namespace, polled_bytes_max, polling_of};
pub use pcie::PcieLink;
pub use platform::{Hugepages, Platform};
pub use queue::Queue;
pub(crate) use reservation::reservation;
pub use spdk::Spdk;
pub use storage::{Array, ArrayMember, Controller, MountPoint, Storage};
pub use temperature::Temperature;
pub(crate) use threads::{shared_for_writing, with_own_descriptors};
pub use tools::ToolFound;
pub(crate) use usage::{member_of, mounted_at, number_text};
pub use watch::{Look, WatchedDrive};
