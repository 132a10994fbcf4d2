//! Facts about this host: CPUs, memory, kernel features, drives and what uses them.
//!
//! Enters: sysfs, procfs and system calls. Leaves: [`Facts`], and watches that are read again while a load runs.
//! Files are read from a root folder, so that a test can fake a host.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`feature`] | something that the host has, or the reason why not | – |
//! | [`root`] | files of sysfs and procfs under a root folder | – |
//! | [`mounts`] | what is mounted where | root |
//! | [`nodes`] | block devices and their partitions as nodes: names, folders, numbers | root |
//! | [`trust`] | whether others could change what a path leads to | – |
//! | [`own_folder`] | folders for root to work in, which nobody else could exchange | trust |
//! | [`storage`] | what the host has to build storage from | root, mounts, drive, system |
//! | [`facts`] | the facts as data | feature, system, block, storage |
//! | [`recorded`] | facts as a recording has them | feature, system, facts, storage |
//! | [`cpu`] | the processor, and what kind of machine it belongs to | root, facts |
//! | [`find`] | finding the device that a name means | nodes, block, facts |
//! | [`read`] | reads all facts | root, system, block, storage, facts, cpu |
//! | [`system`] | what kernel and machine allow: features, tools, cgroups, other programs | root, feature, mounts |
//! | [`drive`] | one drive: its health, flash, formats, link, queue and temperature | root, mounts, nodes, feature |
//! | [`block`] | block devices, what they lie on and what uses them | drive, root, nodes, system, mounts |

mod block;
mod cpu;
mod drive;
mod facts;
mod feature;
mod find;
mod mounts;
mod nodes;
mod own_folder;
mod read;
mod recorded;
mod root;
mod storage;
pub mod system;
mod trust;

pub use block::arrays::{ArrayWatch, has_spare};
#[cfg(test)]
pub(crate) use block::attributes::OF_ARRAYS;
pub use block::attributes::{AttributeChange, AttributeWatch};
pub use block::device::{Device, Usage};
pub use block::levels::{LevelDevice, LevelDrive, Levels};
pub use block::members::{Lost, Upkeep};
pub(crate) use block::usage::member_of;
pub use drive::emulated::emulated_drive;
pub use drive::flash::{FlashSource, FlashWrites};
#[cfg(test)]
pub(crate) use drive::health::tests as health_tests;
pub use drive::health::{Health, Throttled, Throttling};
pub use drive::lba::{LbaFormat, LbaFormats};
pub(crate) use drive::lba::{format_namespace, read_anew};
pub use drive::namespace::{NvmeNamespace, nvme_namespace, polled_bytes_max, polling_of};
pub use drive::pcie::PcieLink;
#[cfg(test)]
pub(crate) use drive::queue::OF_QUEUES;
pub use drive::queue::Queue;
pub use drive::temperature::Temperature;
pub use drive::watch::{Look, WatchedDrive};
pub use facts::{Cpu, Facts, Node, TargetFacts};
pub use feature::Feature;
pub use find::has_node;
pub use mounts::MountPoint;
pub(crate) use mounts::{mount_point_of, mounted_at, mounted_below, paths_of};
pub(crate) use nodes::number_text;
pub use own_folder::{
    NewFolders, Trusting, doubted, make_folders, make_own_folder, open_own_folder, refuse_exchangeable,
    refuse_others_entries, refuse_others_folder,
};
pub use storage::{Array, Controller, Storage};
pub use system::cgroup::{
    CgroupMemory, CgroupPlace, CgroupVersion, cgroup_place, processes_in, unified_place,
};
pub use system::features::kernel_version;
#[cfg(feature = "programs")]
pub use system::file_limit::file_limit_before;
pub use system::file_limit::raise_file_limit;
pub use system::platform::Platform;
pub use system::programs::{OtherLoad, Program, program_name};
pub use system::spdk::Spdk;
pub(crate) use system::threads::{shared_for_writing, with_own_descriptors};
pub use system::tools::{ToolFound, tool_command, tool_folders};
pub use system::users::User;
pub use trust::{Doubt, is_private, open_trusted};
