//! What a stack survives, holds and costs.

use super::filesystem_options::without_barriers;
use super::spec::StackSpec;
use crate::host::Facts;
use crate::settings::{DriveState, Raid};

/// Whether commits survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerCut {
    /// Commits survive.
    Yes,
    /// Commits may be lost.
    No,
    /// The drives do not report whether their caches are volatile.
    Unknown,
}

/// Why a power cut is survived, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerCutReason {
    /// `wal.sync` is `none`.
    NotFlushed,
    /// A mount option keeps flushes from volatile caches.
    NoBarriers {
        /// The option.
        option: String,
        /// Drives with a volatile write cache.
        volatile: usize,
    },
    /// The target is files: survival depends on the disk below them.
    LoopDevices,
    /// The WAL has a place of its own that is not on a drive of this host.
    NoDrive,
    /// A drive does not report whether its write cache is volatile.
    UnknownCache,
    /// Whether command layers honor flushes is unknown.
    UnknownLayers,
    /// Commits are flushed.
    Flushed {
        /// Drives with a volatile write cache, which a flush empties.
        volatile: usize,
        /// All drives.
        drives: usize,
    },
}

impl PowerCutReason {
    /// Whether a power cut is survived for this reason.
    pub fn verdict(&self) -> PowerCut {
        match self {
            Self::NotFlushed | Self::NoBarriers { .. } => PowerCut::No,
            Self::LoopDevices | Self::NoDrive | Self::UnknownCache | Self::UnknownLayers => PowerCut::Unknown,
            Self::Flushed { .. } => PowerCut::Yes,
        }
    }
}

/// Why fewer drives may be lost than the RAID level allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FewerDrives {
    /// With `stack.assume_clean` the parity was never computed.
    ParityUnknown,
    /// That many are already lost.
    LostAlready(u64),
    /// How many lost drives command layers survive is unknown.
    LayersUnknown,
}

/// What a stack survives.
#[derive(Debug, Clone, PartialEq)]
pub struct Resilience {
    /// Whether a power cut is survived, and why.
    pub power_cut: PowerCutReason,
    /// Drives that may be lost without losing data, whichever they are.
    pub drives_lost: u64,
    /// Why that is fewer than the level allows, if it is.
    pub fewer: Option<FewerDrives>,
}

/// What a stack survives, holds and costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// What it survives.
    pub resilience: Resilience,
    /// Usable bytes.
    pub usable_bytes: u64,
    /// Whether the usable bytes are an upper bound, because the room that command layers leave is not known yet.
    pub at_most: bool,
    /// The price of all drives in $, if known.
    pub price: Option<f64>,
    /// Why there is no total although the price of a drive is known.
    pub price_missing: Option<&'static str>,
}

impl Properties {
    /// The same properties after losing that many of its drives: each reduces how many more may be lost.
    #[must_use]
    pub fn without(mut self, lost: u64) -> Self {
        if lost > 0 {
            let left = self.resilience.drives_lost.saturating_sub(lost);
            let fewer = Some(FewerDrives::LostAlready(lost));
            self.resilience = Resilience { drives_lost: left, fewer, ..self.resilience };
        }
        self
    }
}

/// What a stack of that many usable bytes survives, holds and costs on this host.
pub fn properties(spec: &StackSpec, facts: &Facts, usable_bytes: u64) -> Properties {
    let (drives_lost, fewer) = drives_lost(spec);
    let resilience = Resilience { power_cut: power_cut(spec, facts), drives_lost, fewer };
    let (price, price_missing) = (spec.price, spec.price_missing);
    Properties { resilience, usable_bytes, at_most: false, price, price_missing }
}

/// How many more drives a stack survives the loss of, whichever they are, with an array in the state asked for.
pub fn drives_to_lose(spec: &StackSpec) -> u64 {
    drives_lost(spec).0.saturating_sub(spec.lost_as_set())
}

/// Drives that may be lost, whichever they are, and why that is fewer than the level allows.
fn drives_lost(spec: &StackSpec) -> (u64, Option<FewerDrives>) {
    let stack = &spec.layers;
    let files = spec.target.devices.is_empty();
    let members = if files { spec.target.count } else { spec.target.devices.len() as u64 };
    let level = match stack.raid {
        Raid::None | Raid::Md0 | Raid::Btrfs0 => 0,
        Raid::Md1 => members.saturating_sub(1),
        // Striped mirrors survive more losses, but not both drives of a mirrored pair.
        Raid::Md5 | Raid::Md10 | Raid::Btrfs1 | Raid::Btrfs10 | Raid::Btrfs5 => 1,
        Raid::Md6 => 2,
    };
    // Parity over whatever happens to be on the drives is wrong, and when md updates part of a stripe, the
    // error persists. New files are all zeros, and so is their parity.
    let zeros = files && stack.state != DriveState::Preconditioned;
    if matches!(stack.raid, Raid::Md5 | Raid::Md6) && stack.assume_clean && !zeros {
        return (0, Some(FewerDrives::ParityUnknown));
    }
    // The RAID level below them is a lower bound.
    if !stack.by_commands.is_empty() {
        return (level, Some(FewerDrives::LayersUnknown));
    }
    (level, None)
}

/// Commits survive if they are flushed and the caches are known.
fn power_cut(spec: &StackSpec, facts: &Facts) -> PowerCutReason {
    if !spec.flushes {
        return PowerCutReason::NotFlushed;
    }
    if !spec.layers.by_commands.is_empty() {
        return PowerCutReason::UnknownLayers;
    }
    let own_wal = spec.wal_target.as_ref().map(std::slice::from_ref);
    let names = own_wal.unwrap_or(&spec.target.devices);
    if names.is_empty() {
        return PowerCutReason::LoopDevices;
    }
    let Ok(devices) = facts.find_all(names) else { return PowerCutReason::NoDrive };
    if devices.iter().any(|device| device.volatile_write_cache.is_none()) {
        return PowerCutReason::UnknownCache;
    }
    let volatile = devices.iter().filter(|device| device.volatile_write_cache == Some(true)).count();
    if volatile > 0
        && let Some(option) = without_barriers(&spec.layers)
    {
        return PowerCutReason::NoBarriers { option: option.to_owned(), volatile };
    }
    PowerCutReason::Flushed { volatile, drives: devices.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;
    use crate::settings::{Settings, Sync};

    fn settings() -> Settings {
        let mut settings = Settings::default();
        settings.target.devices = vec!["nvme0n1".into(), "nvme1n1".into()];
        settings
    }

    #[test]
    fn surviving_a_power_cut_depends_on_flushes_and_caches() {
        let mut facts = capable_host();
        let mut settings = settings();
        let cut = |settings: &Settings, facts: &Facts| {
            properties(&StackSpec::of(settings), facts, 1).resilience.power_cut.verdict()
        };
        assert_eq!(cut(&settings, &facts), PowerCut::Yes);
        let flushed = PowerCutReason::Flushed { volatile: 2, drives: 2 };
        assert_eq!(properties(&StackSpec::of(&settings), &facts, 1).resilience.power_cut, flushed);
        for (options, cut_is) in
            [("nodiscard, nobarrier", PowerCut::No), ("barrier=0,barrier=1", PowerCut::Yes)]
        {
            settings.stack.mount_options = options.into();
            assert_eq!(cut(&settings, &facts), cut_is, "{options}");
        }
        settings.stack.mount_options = "barrier=0".into();
        settings.wal.sync = Sync::None;
        assert_eq!(cut(&settings, &facts), PowerCut::No);
        settings.wal.sync = Sync::Fdatasync;
        facts.devices.iter_mut().for_each(|device| device.volatile_write_cache = Some(false));
        assert_eq!(cut(&settings, &facts), PowerCut::Yes, "there is nothing to flush");
        facts.devices[1].volatile_write_cache = None;
        assert_eq!(cut(&settings, &facts), PowerCut::Unknown);
        settings.wal.target = Some("/dev/nvme0n1".into());
        assert_eq!(cut(&settings, &facts), PowerCut::Yes, "the WAL's device counts");
        settings.wal.target = Some("/var/wal".into());
        assert_eq!(cut(&settings, &facts), PowerCut::Unknown);
        assert_eq!(cut(&Settings::default(), &facts), PowerCut::Unknown);
    }

    #[test]
    fn redundancy_is_how_many_drives_may_be_lost_whichever_they_are() {
        let mut settings = Settings::default();
        settings.stack.assume_clean = false;
        let mut lost = |raid| {
            settings.stack.raid = raid;
            properties(&StackSpec::of(&settings), &capable_host(), 1).resilience.drives_lost
        };
        assert_eq!([Raid::None, Raid::Md0, Raid::Md5, Raid::Md10].map(&mut lost), [0, 0, 1, 1]);
        assert_eq!([Raid::Md1, Raid::Md6, Raid::Btrfs0].map(&mut lost), [3, 2, 0]);
        assert_eq!([Raid::Btrfs1, Raid::Btrfs10, Raid::Btrfs5].map(&mut lost), [1, 1, 1]);
    }

    #[test]
    fn parity_that_was_never_computed_saves_no_drive() {
        let mut settings = settings();
        settings.stack.raid = Raid::Md5;
        let now = properties(&StackSpec::of(&settings), &capable_host(), 1).resilience;
        assert_eq!((now.drives_lost, now.fewer), (0, Some(FewerDrives::ParityUnknown)));
        settings.stack.raid = Raid::Md1;
        assert_eq!(
            properties(&StackSpec::of(&settings), &capable_host(), 1).resilience.drives_lost,
            1,
            "what is written is on both"
        );
        settings.stack.raid = Raid::Md5;
        settings.target.devices.clear();
        assert_eq!(
            properties(&StackSpec::of(&settings), &capable_host(), 1).resilience.drives_lost,
            1,
            "new files are zeros"
        );
        settings.stack.state = DriveState::Preconditioned;
        assert_eq!(properties(&StackSpec::of(&settings), &capable_host(), 1).resilience.drives_lost, 0);
    }

    #[test]
    fn each_lost_drive_reduces_how_many_more_may_be_lost() {
        let mut settings = settings();
        settings.stack.raid = Raid::Btrfs1;
        let now = properties(&StackSpec::of(&settings), &capable_host(), 1);
        assert_eq!(now.clone().without(0), now);
        let degraded = now.without(1);
        let fewer = Some(FewerDrives::LostAlready(1));
        assert_eq!((degraded.resilience.drives_lost, degraded.resilience.fewer), (0, fewer));
        assert_eq!(degraded.without(2).resilience.drives_lost, 0);
    }

    #[test]
    fn the_price_covers_all_drives() {
        let mut settings = settings();
        assert_eq!(properties(&StackSpec::of(&settings), &capable_host(), 1).price, None);
        settings.stack.price = 250.0;
        assert_eq!(properties(&StackSpec::of(&settings), &capable_host(), 1).price, Some(500.0));
        settings.target.devices.clear();
        let on_files = properties(&StackSpec::of(&settings), &capable_host(), 1);
        assert_eq!(on_files.price, None, "files are no drives");
        assert!(on_files.price_missing.unwrap().contains("files"));
    }
}
