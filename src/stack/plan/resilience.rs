//! What a stack survives, holds and costs.

use crate::class::Class;
use crate::host::Facts;
use crate::settings::{DriveState, Raid, Settings, Sync};

/// What survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerCut {
    /// What was committed is there.
    Yes,
    /// Commits may be lost.
    No,
    /// The drives do not tell whether their caches are volatile.
    Unknown,
}

/// What a stack survives, holds and costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Worth {
    /// A power cut.
    pub power_cut: PowerCut,
    /// Why, in a sentence.
    pub why: String,
    /// Drives that may be lost without losing data.
    pub drives_lost: u64,
    /// Why that is fewer than the level says, where it is.
    pub drives_why: Option<String>,
    /// Usable bytes.
    pub usable_bytes: u64,
    /// The price of all drives in $, where told.
    pub price: Option<f64>,
    /// Why there is none although that of a drive was told.
    pub price_missing: Option<&'static str>,
}

impl Worth {
    /// The same after that many of its drives were lost: each is one less that may be.
    #[must_use]
    pub fn without(self, lost: u64) -> Self {
        if lost == 0 {
            return self;
        }
        let drives_lost = self.drives_lost.saturating_sub(lost);
        Self { drives_lost, drives_why: Some(format!("{lost} lost already")), ..self }
    }
}

/// What the settings' stack of that many usable bytes survives, holds and costs on this host.
pub fn worth(settings: &Settings, facts: &Facts, usable_bytes: u64) -> Worth {
    let (power_cut, why) = power_cut(settings, facts);
    let (drives_lost, drives_why) = drives_lost(settings);
    let (price, price_missing) = (settings.price(), settings.price_missing());
    Worth { power_cut, why, drives_lost, drives_why, usable_bytes, price, price_missing }
}

/// Drives that may be lost, whichever they are, and why that is fewer than the level says.
fn drives_lost(settings: &Settings) -> (u64, Option<String>) {
    let stack = &settings.stack;
    let files = settings.target.devices.is_empty();
    let members = if files { settings.target.count } else { settings.target.devices.len() as u64 };
    let level = match stack.raid {
        Raid::None | Raid::Md0 | Raid::Btrfs0 => 0,
        Raid::Md1 => members.saturating_sub(1),
        // Of striped mirrors more may go, but not two that mirror each other.
        Raid::Md5 | Raid::Md10 | Raid::Btrfs1 | Raid::Btrfs10 | Raid::Btrfs5 => 1,
        Raid::Md6 => 2,
    };
    // Parity over what happens to be on the drives is wrong, and md, when it changes a part of a stripe,
    // carries the error on. New files are zeros, and so is their parity.
    let zeros = files && stack.state != DriveState::Preconditioned;
    if matches!(stack.raid, Raid::Md5 | Raid::Md6) && stack.assume_clean && !zeros {
        return (0, Some("with stack.assume_clean the parity was never computed".into()));
    }
    (level, None)
}

/// Commits survive where they are flushed, to caches that are known.
fn power_cut(settings: &Settings, facts: &Facts) -> (PowerCut, String) {
    if settings.classes[Class::Wal.index()].enabled && settings.wal.sync == Sync::None {
        return (PowerCut::No, "commits are not flushed (wal.sync is none)".into());
    }
    let own_wal = settings.wal.target.as_ref().map(std::slice::from_ref);
    let names = own_wal.unwrap_or(&settings.target.devices);
    if names.is_empty() {
        return (PowerCut::Unknown, "loop devices: it depends on the disk below the files".into());
    }
    let Ok(devices) = facts.find_all(names) else {
        return (PowerCut::Unknown, "what the WAL lies on is no drive that is there".into());
    };
    if devices.iter().any(|device| device.volatile_write_cache.is_none()) {
        let why = "a drive does not tell whether its write cache is volatile";
        return (PowerCut::Unknown, why.into());
    }
    let volatile = devices.iter().filter(|device| device.volatile_write_cache == Some(true)).count();
    if volatile > 0
        && let Some(option) = super::options::without_barriers(&settings.stack)
    {
        let why = format!("{option} keeps flushes from the volatile write caches of {volatile} drives");
        return (PowerCut::No, why);
    }
    let why = match volatile {
        0 => "commits are flushed, and no drive has a volatile write cache".to_owned(),
        _ => format!(
            "commits are flushed, which empties the volatile write caches of {volatile} of {} drives",
            devices.len()
        ),
    };
    (PowerCut::Yes, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    fn settings() -> Settings {
        let mut settings = Settings::default();
        settings.target.devices = vec!["nvme0n1".into(), "nvme1n1".into()];
        settings
    }

    #[test]
    fn what_is_lost_with_power_depends_on_flushes_and_caches() {
        let mut facts = capable_host();
        let mut settings = settings();
        let cut = |settings: &Settings, facts: &Facts| worth(settings, facts, 1).power_cut;
        assert_eq!(cut(&settings, &facts), PowerCut::Yes);
        assert!(worth(&settings, &facts, 1).why.contains("volatile write caches of 2 of 2"));
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
        assert_eq!(cut(&settings, &facts), PowerCut::Yes, "what the WAL lies on counts");
        settings.wal.target = Some("/var/wal".into());
        assert_eq!(cut(&settings, &facts), PowerCut::Unknown);
        assert_eq!(cut(&Settings::default(), &facts), PowerCut::Unknown);
    }

    #[test]
    fn redundancy_is_what_may_be_lost_whichever_drives_they_are() {
        let mut settings = Settings::default();
        settings.stack.assume_clean = false;
        let mut lost = |raid| {
            settings.stack.raid = raid;
            worth(&settings, &capable_host(), 1).drives_lost
        };
        assert_eq!([Raid::None, Raid::Md0, Raid::Md5, Raid::Md10].map(&mut lost), [0, 0, 1, 1]);
        assert_eq!([Raid::Md1, Raid::Md6, Raid::Btrfs0].map(&mut lost), [3, 2, 0]);
        assert_eq!([Raid::Btrfs1, Raid::Btrfs10, Raid::Btrfs5].map(&mut lost), [1, 1, 1]);
    }

    #[test]
    fn parity_that_was_never_computed_saves_no_drive() {
        let mut settings = settings();
        settings.stack.raid = Raid::Md5;
        let now = worth(&settings, &capable_host(), 1);
        assert_eq!(now.drives_lost, 0);
        assert!(now.drives_why.unwrap().contains("stack.assume_clean"));
        settings.stack.raid = Raid::Md1;
        assert_eq!(worth(&settings, &capable_host(), 1).drives_lost, 1, "what is written is on both");
        settings.stack.raid = Raid::Md5;
        settings.target.devices.clear();
        assert_eq!(worth(&settings, &capable_host(), 1).drives_lost, 1, "new files are zeros");
        settings.stack.state = DriveState::Preconditioned;
        assert_eq!(worth(&settings, &capable_host(), 1).drives_lost, 0);
    }

    #[test]
    fn each_drive_that_is_lost_is_one_less_that_may_be() {
        let mut settings = settings();
        settings.stack.raid = Raid::Btrfs1;
        let now = worth(&settings, &capable_host(), 1);
        assert_eq!(now.clone().without(0), now);
        let degraded = now.without(1);
        assert_eq!((degraded.drives_lost, degraded.drives_why.as_deref()), (0, Some("1 lost already")));
        assert_eq!(degraded.without(2).drives_lost, 0);
    }

    #[test]
    fn the_price_is_that_of_all_drives() {
        let mut settings = settings();
        assert_eq!(worth(&settings, &capable_host(), 1).price, None);
        settings.stack.price = 250.0;
        assert_eq!(worth(&settings, &capable_host(), 1).price, Some(500.0));
        settings.target.devices.clear();
        let on_files = worth(&settings, &capable_host(), 1);
        assert_eq!(on_files.price, None, "files are no drives");
        assert!(on_files.price_missing.unwrap().contains("files"));
    }
}
