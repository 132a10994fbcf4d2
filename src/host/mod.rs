//! Facts about this host: CPUs, memory, kernel features, drives and what uses them.
//!
//! Enters: sysfs, procfs and system calls. Leaves: [`Facts`], and watches that are read again while a load runs.
//! Files are read from a root folder, so that a test can fake a host.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`feature`] | something that the host has, or the reason why not | – |
//! | [`file_limit`] | how many files this process may have open | – |
//! | [`nvme`] | NVMe queries: the kernel's passthrough to a controller or a namespace | – |
//! | [`programs`] | other programs on this host: their names, and how much of the processor they use | – |
//! | [`root`] | files of sysfs and procfs under a root folder | – |
//! | [`threads`] | how other processes hold files: descriptors and shared memory | – |
//! | [`drivers`] | which kernel drivers for arrays and file systems this host lacks | root |
//! | [`features`] | what the kernel lets this process do, tried, not guessed | feature, root |
//! | [`flash`] | an NVMe drive's own count of its writes to flash | nvme |
//! | [`health`] | what a drive reports of its wear, temperature and throttling | nvme |
//! | [`lba`] | the LBA formats of an NVMe drive, and formatting it | nvme |
//! | [`hugepages`] | pages of a larger size | root |
//! | [`members`] | members of arrays, and what an array has lost | root |
//! | [`mounts`] | what is mounted where | root |
//! | [`nodes`] | block devices and their partitions as nodes: names, folders, numbers | root |
//! | [`pcie`] | the PCI Express link of a drive, and the bandwidth that it allows | root |
//! | [`queue`] | the block layer's queue of a device | root |
//! | [`temperature`] | how warm a drive is, and from where on it throttles | root |
//! | [`tools`] | the tools for building stacks | root |
//! | [`users`] | users of this host | root |
//! | [`trust`] | whether others could change what a path leads to | – |
//! | [`own_folder`] | folders in which root works: none that others could exchange | trust |
//! | [`btrfs`] | Btrfs on several devices, and whether all are there | root, members |
//! | [`cgroup`] | where this process could have a memory cgroup of its own | feature, root, mounts |
//! | [`device`] | a block device, and what uses it | health, lba, pcie, queue, temperature |
//! | [`emulated`] | whether a hypervisor emulates a drive | root, mounts, nodes |
//! | [`loops`] | loop devices and what is behind them | root, nodes |
//! | [`namespace`] | polling and NVMe commands on an opened file or device | feature, root, nodes |
//! | [`spdk`] | whether the operator's SPDK can be used | feature, root, hugepages, mounts |
//! | [`storage`] | what the host has to build storage from | root, mounts, pcie, temperature, tools |
//! | [`arrays`] | arrays in use, watched for lost members | root, members, btrfs, emulated |
//! | [`levels`] | the block devices below a target, down to the drives | root, nodes, emulated |
//! | [`platform`] | what the kernel and the machine allow beyond plain I/O | feature, root, drivers, hugepages, spdk |
//! | [`reservation`] | NVMe reservations of a shared drive | nvme, device |
//! | [`resolver`] | which node a path or a mount means | root, mounts, nodes, loops |
//! | [`watch`] | the drives below a target, read while the load runs | root, flash, health, temperature, emulated |
//! | [`exports`] | block devices served to others, or written by another program | root, threads, nodes, device, resolver |
//! | [`facts`] | the facts as data | feature, tools, cgroup, device, storage, platform |
//! | [`recorded`] | facts as a recording has them | feature, cgroup, facts, platform, storage |
//! | [`cpu`] | the processor, and what kind of machine it belongs to | root, facts |
//! | [`find`] | finding the device that a name means | nodes, device, facts |
//! | [`usage`] | what uses a block device: mounts, swap, holders, exports, programs | root, mounts, nodes, device, loops, resolver, exports |
//! | [`devices`] | block devices, from sysfs and udev's links | root, nodes, pcie, queue, temperature, device, usage |
//! | [`read`] | reads all facts | root, features, cgroup, device, storage, platform, reservation, facts, cpu, devices |
//!
//! [`reservation`]: mod@reservation

mod arrays;
mod btrfs;
mod cgroup;
mod cpu;
mod device;
mod devices;
mod drivers;
mod emulated;
mod exports;
mod facts;
mod feature;
mod features;
mod file_limit;
mod find;
mod flash;
mod health;
mod hugepages;
mod lba;
mod levels;
mod loops;
mod members;
mod mounts;
mod namespace;
mod nodes;
mod nvme;
mod own_folder;
mod pcie;
mod platform;
mod programs;
mod queue;
mod read;
mod recorded;
mod reservation;
mod resolver;
mod root;
pub mod spdk;
mod storage;
mod temperature;
mod threads;
mod tools;
mod trust;
mod usage;
mod users;
mod watch;

pub use arrays::ArrayWatch;
pub use cgroup::{CgroupMemory, CgroupPlace, CgroupVersion, cgroup_place, processes_in, unified_place};
pub use device::{Device, Usage};
pub use emulated::emulated_drive;
pub use facts::{Cpu, Facts, Node, TargetFacts};
pub use feature::Feature;
pub use features::kernel_version;
#[cfg(feature = "programs")]
pub use file_limit::file_limit_before;
pub use file_limit::raise_file_limit;
pub use flash::{FlashSource, FlashWrites};
#[cfg(test)]
pub(crate) use health::tests as health_tests;
pub use health::{Health, Throttled, Throttling};
pub use lba::{LbaFormat, LbaFormats};
pub(crate) use lba::{format_namespace, read_anew};
pub use levels::{LevelDevice, LevelDrive, Levels};
pub use members::{Lost, Upkeep};
pub use mounts::MountPoint;
pub(crate) use mounts::{mounted_at, paths_of};
pub use namespace::{NvmeNamespace, nvme_namespace, polled_bytes_max, polling_of};
pub(crate) use nodes::number_text;
pub use own_folder::{
    NewFolders, Trusting, doubted, make_folders, make_own_folder, open_own_folder, refuse_exchangeable,
    refuse_others_entries, refuse_others_folder,
};
pub use pcie::PcieLink;
pub use platform::Platform;
pub use programs::{OtherLoad, Program, program_name};
pub use queue::Queue;
pub(crate) use reservation::reservation;
pub use spdk::Spdk;
pub use storage::{Array, Controller, Storage};
pub use temperature::Temperature;
pub(crate) use threads::{shared_for_writing, with_own_descriptors};
pub use tools::{ToolFound, tool_command, tool_folders};
pub use trust::{Doubt, is_private, open_trusted};
pub(crate) use usage::member_of;
pub use users::User;
pub use watch::{Look, WatchedDrive};
