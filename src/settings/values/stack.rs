//! Settings of the stack between the interface and the drives: plain data, defined by
//! [`crate::settings::knobs`].

use super::layer::Layer;
use crate::settings::named::Named;
use crate::units::{KIB, MIB};

/// The stack between the interface and the drives (Haas et al. 2020, sections 4.4 to 4.6).
///
/// The members are the target's devices, or loop devices over the target's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// Make loop devices over the target's files even if nothing is built on them.
    pub loops: bool,
    /// The share of each drive that is used, in percent; the rest is trimmed and never written
    /// (software over-provisioning).
    pub use_percent: u64,
    /// The size of logical blocks that the drives are formatted to.
    pub lba_size: LbaSize,
    /// How the IOMMU serves the drives.
    pub iommu: IommuMode,
    /// The state that the drives are brought to before anything is built on them.
    pub state: DriveState,
    /// How the members are combined into one device.
    pub raid: Raid,
    /// Bytes of a chunk of an md array.
    pub chunk_bytes: u64,
    /// Assume that the members of a redundant array are in sync.
    pub assume_clean: bool,
    /// What a redundant md array records about writes in flight.
    pub bitmap: Bitmap,
    /// Layers that the profile's commands make on the members or the array, the lowest first.
    pub by_commands: Vec<Layer>,
    /// The file system on it.
    pub filesystem: Filesystem,
    /// Btrfs: whether data is copied on write (with checksums), or written in place.
    pub copy_on_write: bool,
    /// Extra options for mkfs, separated by spaces.
    pub mkfs_options: String,
    /// Mount options, separated by commas.
    pub mount_options: String,
    /// Bytes of the data file on the file system; none means 400 GB as in the paper (section 3.2), or four
    /// fifths of the room if that is less.
    pub data_bytes: Option<u64>,
    /// Bytes of the WAL file on the file system; none means a quarter of the data file.
    pub wal_bytes: Option<u64>,
    /// The price of a drive, in $; 0 means unknown.
    pub price: f64,
    /// The rated endurance of a drive in TB written (10¹² bytes), from its data sheet; 0 means unknown.
    pub endurance_tb: f64,
}

impl Default for Stack {
    fn default() -> Self {
        Self {
            loops: false,
            use_percent: 100,
            lba_size: LbaSize::Keep,
            iommu: IommuMode::Keep,
            state: DriveState::AsIs,
            raid: Raid::None,
            chunk_bytes: 512 * KIB,
            assume_clean: true,
            bitmap: Bitmap::None,
            by_commands: Vec::new(),
            filesystem: Filesystem::None,
            copy_on_write: false,
            mkfs_options: String::new(),
            mount_options: String::new(),
            data_bytes: None,
            wal_bytes: None,
            price: 0.0,
            endurance_tb: 0.0,
        }
    }
}

impl Stack {
    /// Whether anything must be made before the target can be opened; otherwise it is the files or devices as
    /// they are.
    pub fn is_built(&self) -> bool {
        self.loops
            || self.use_percent < 100
            || self.lba_size != LbaSize::Keep
            || self.iommu != IommuMode::Keep
            || self.state != DriveState::AsIs
            || self.raid != Raid::None
            || !self.by_commands.is_empty()
            || self.filesystem != Filesystem::None
    }
}

/// The state that the drives are brought to before anything is built on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DriveState {
    /// Nothing.
    AsIs,
    /// Everything is discarded.
    Trimmed,
    /// Written once in order, then random writes of twice the size.
    Preconditioned,
}

/// The logical blocks that `NVMe` drives are formatted to while the stack stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LbaSize {
    /// As the drives are formatted.
    Keep,
    /// 512 B.
    Small,
    /// 4 KiB.
    Large,
}

impl LbaSize {
    /// Bytes of a block; none where it stays as it is.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Keep => None,
            Self::Small => Some(512),
            Self::Large => Some(4 * KIB),
        }
    }
}

/// How the IOMMU serves the drives' memory accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IommuMode {
    /// As the host has it.
    Keep,
    /// A mapping is removed at once.
    Strict,
    /// Mappings are removed together, later.
    Lazy,
    /// Nothing is mapped: a drive can reach all memory.
    Passthrough,
}

impl IommuMode {
    /// The kernel's name for the type of such a group; none for the host's.
    pub fn kernel_type(self) -> Option<&'static str> {
        match self {
            Self::Keep => None,
            Self::Strict => Some("DMA"),
            Self::Lazy => Some("DMA-FQ"),
            Self::Passthrough => Some("identity"),
        }
    }
}

/// How the members are combined into one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Raid {
    /// stacktune interleaves pages over the members.
    None,
    /// md, striped.
    Md0,
    /// md, mirrored.
    Md1,
    /// md, one drive of parity.
    Md5,
    /// md, two drives of parity.
    Md6,
    /// md, striped mirrors.
    Md10,
    /// Btrfs's own, striped.
    Btrfs0,
    /// Btrfs's own, mirrored.
    Btrfs1,
    /// Btrfs's own, striped mirrors.
    Btrfs10,
    /// Btrfs's own, one drive of parity.
    Btrfs5,
}

impl Raid {
    /// Whether it is an md array.
    pub fn is_md(self) -> bool {
        matches!(self, Self::Md0 | Self::Md1 | Self::Md5 | Self::Md6 | Self::Md10)
    }

    /// Whether it is an md array with copies or parity.
    pub fn is_md_redundant(self) -> bool {
        self.is_md() && self != Self::Md0
    }

    /// Whether it is an md array with parity.
    pub fn has_md_parity(self) -> bool {
        matches!(self, Self::Md5 | Self::Md6)
    }

    /// Whether it is a Btrfs profile.
    pub fn is_btrfs(self) -> bool {
        !self.is_md() && self != Self::None
    }

    /// The fewest members that make sense.
    pub fn members_min(self) -> u64 {
        match self {
            Self::None => 1,
            Self::Md0 | Self::Md1 | Self::Md10 | Self::Btrfs0 | Self::Btrfs1 => 2,
            Self::Md5 | Self::Btrfs5 => 3,
            Self::Md6 | Self::Btrfs10 => 4,
        }
    }
}

/// The file system on the members or the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filesystem {
    /// The block device as it is.
    None,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
}

/// The `[queue]` table: the block layer's queue settings of the members. `None` leaves the host's value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// `queue/scheduler`.
    pub scheduler: Option<String>,
    /// `queue/nr_requests`.
    pub nr_requests: Option<u64>,
    /// `queue/read_ahead_kb`.
    pub read_ahead_kb: Option<u64>,
    /// `queue/wbt_lat_usec`; 0 turns off throttling of write-back.
    pub wbt_lat_usec: Option<u64>,
    /// `queue/nomerges`: 0 does all merges, 1 only simple ones, 2 none.
    pub nomerges: Option<u64>,
    /// `queue/rq_affinity`: 1 completes in the submitter's CPU group, 2 on its CPU.
    pub rq_affinity: Option<u64>,
}

/// The `[md]` table: settings of the stack's md array. `None` leaves the kernel's value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MdSettings {
    /// Whether a member has failed, or is being replaced.
    pub array: ArrayState,
    /// `md/group_thread_cnt`: threads that compute parity, for each NUMA node.
    pub group_thread_cnt: Option<u64>,
    /// `md/stripe_cache_size`: stripes, each with a page of every member.
    pub stripe_cache_size: Option<u64>,
    /// `md/sync_speed_min`: KiB per second of each member that a rebuild gets even beside the load.
    pub sync_speed_min: Option<u64>,
    /// `md/sync_speed_max`: KiB per second of each member that a rebuild never exceeds.
    pub sync_speed_max: Option<u64>,
}

impl MdSettings {
    /// The settings that have an effect on a level.
    #[must_use]
    pub fn on(&self, raid: Raid) -> Self {
        let (parity, redundant) = (raid.has_md_parity(), raid.is_md_redundant());
        Self {
            array: if redundant { self.array } else { ArrayState::Healthy },
            group_thread_cnt: self.group_thread_cnt.filter(|_| parity),
            stripe_cache_size: self.stripe_cache_size.filter(|_| parity),
            sync_speed_min: self.sync_speed_min.filter(|_| redundant),
            sync_speed_max: self.sync_speed_max.filter(|_| redundant),
        }
    }
}

/// The state that an md array is put into under the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArrayState {
    /// All members work.
    #[default]
    Healthy,
    /// The last member has failed.
    Degraded,
    /// The last member has failed and was replaced, by itself as a blank drive: the array is being rebuilt onto it.
    Rebuilding,
}

/// What an md array records about writes in flight, so that little has to be resynced after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bitmap {
    /// Nothing.
    None,
    /// A bitmap on each member, under a lock.
    Internal,
    /// A bitmap on each member, without a lock.
    Lockless,
}

/// Where the background writer's next page goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// In place: random pages of the data.
    Random,
    /// One page after the other, wrapping: a store that never updates in place (Haas et al. 2020, 4.6).
    Log,
}

impl Named for DriveState {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::AsIs, "as-is", "nothing is done to the drives"),
        (Self::Trimmed, "trimmed", "everything is discarded first"),
        (Self::Preconditioned, "preconditioned", "written once in order, then twice the size at random"),
    ];
}

impl Named for LbaSize {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Keep, "keep", "as the drives are formatted"),
        (Self::Small, "512B", "formatted to blocks of 512 B, and back at the end: all data on them is lost"),
        (Self::Large, "4KiB", "formatted to blocks of 4 KiB, and back at the end: all data on them is lost"),
    ];
}

impl Named for IommuMode {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Keep, "keep", "as the host has it"),
        (Self::Strict, "strict", "a mapping is invalidated immediately"),
        (Self::Lazy, "lazy", "mappings are invalidated in batches, later"),
        (Self::Passthrough, "passthrough", "nothing is mapped: a drive reaches all memory"),
    ];
}

impl Named for Raid {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::None, "none", "stacktune interleaves pages over the members"),
        (Self::Md0, "md0", "md, striped"),
        (Self::Md1, "md1", "md, mirrored"),
        (Self::Md5, "md5", "md, one drive of parity"),
        (Self::Md6, "md6", "md, two drives of parity"),
        (Self::Md10, "md10", "md, striped mirrors"),
        (Self::Btrfs0, "btrfs0", "Btrfs's own, striped"),
        (Self::Btrfs1, "btrfs1", "Btrfs's own, mirrored"),
        (Self::Btrfs10, "btrfs10", "Btrfs's own, striped mirrors"),
        (Self::Btrfs5, "btrfs5", "Btrfs's own, one drive of parity"),
    ];
}

impl Named for Bitmap {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::None, "none", "nothing: after a crash the whole array is synced"),
        (Self::Internal, "internal", "a bitmap on each member"),
        (Self::Lockless, "lockless", "a bitmap on each member, without a lock (Linux 6.18, mdadm 4.5)"),
    ];
}

impl Named for ArrayState {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Healthy, "healthy", "all members work"),
        (Self::Degraded, "degraded", "the last member has failed"),
        (Self::Rebuilding, "rebuilding", "the last member has failed and was replaced: md rebuilds onto it"),
    ];
}

impl Named for Filesystem {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::None, "none", "none of its own: on devices as they are, or among your files"),
        (Self::Ext4, "ext4", "ext4"),
        (Self::Xfs, "xfs", "XFS"),
        (Self::Btrfs, "btrfs", "Btrfs"),
        (Self::F2fs, "f2fs", "F2FS"),
    ];
}

impl Named for Placement {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Random, "random", "in place: random pages of the data"),
        (Self::Log, "log", "one page after the other, wrapping: nothing is updated in place"),
    ];
}

/// The largest chunk of an md array that the knob offers.
pub const CHUNK_BYTES_MAX: u64 = 64 * MIB;
