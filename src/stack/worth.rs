//! What a stack survives, holds and costs.

use crate::class::Class;
use crate::host::Facts;
use crate::profile::Settings;
use crate::profile::settings::{Raid, Sync};

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
    /// Usable bytes.
    pub usable_bytes: u64,
    /// The price of all drives in $, where told.
    pub price: Option<f64>,
}

/// What the settings' stack of that many usable bytes survives, holds and costs on this host.
pub fn worth(settings: &Settings, facts: &Facts, usable_bytes: u64) -> Worth {
    let (power_cut, why) = power_cut(settings, facts);
    let members = members(settings);
    let price = settings.stack.price * members as f64;
    Worth {
        power_cut,
        why: why.to_owned(),
        drives_lost: drives_lost(settings.stack.raid, members),
        usable_bytes,
        price: (price > 0.0).then_some(price),
    }
}

/// The members that the settings name.
pub(super) fn members(settings: &Settings) -> u64 {
    match settings.target.devices.len() as u64 {
        0 => settings.target.count,
        devices => devices,
    }
}

/// Drives that may be lost, whichever they are.
fn drives_lost(raid: Raid, members: u64) -> u64 {
    match raid {
        Raid::None | Raid::Md0 | Raid::Btrfs0 => 0,
        Raid::Md1 => members.saturating_sub(1),
        // Of striped mirrors more may go, but not two that mirror each other.
        Raid::Md5 | Raid::Md10 | Raid::Btrfs1 | Raid::Btrfs10 | Raid::Btrfs5 => 1,
        Raid::Md6 => 2,
    }
}

fn power_cut(settings: &Settings, facts: &Facts) -> (PowerCut, &'static str) {
    if settings.target.devices.is_empty() {
        return (PowerCut::Unknown, "loop devices: it depends on the disk below the files");
    }
    let Ok(devices) = facts.find_all(&settings.target.devices) else {
        return (PowerCut::Unknown, "a drive is not there");
    };
    if settings.classes[Class::Wal.index()].enabled && settings.wal.sync == Sync::None {
        let volatile = devices.iter().any(|device| device.volatile_write_cache != Some(false));
        return if volatile {
            (PowerCut::No, "commits are not flushed")
        } else {
            (PowerCut::Unknown, "commits are not flushed; the drives' caches are not volatile")
        };
    }
    if devices.iter().any(|device| device.volatile_write_cache.is_none()) {
        return (PowerCut::Unknown, "a drive does not tell whether its cache is volatile");
    }
    (PowerCut::Yes, "commits are flushed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::capable_host;

    #[test]
    fn what_is_lost_with_power_depends_on_flushes_and_caches() {
        let mut facts = capable_host();
        let mut settings = Settings::default();
        settings.target.devices = vec!["nvme0n1".into(), "nvme1n1".into()];
        assert_eq!(worth(&settings, &facts, 1).power_cut, PowerCut::Yes);
        settings.wal.sync = Sync::None;
        assert_eq!(worth(&settings, &facts, 1).power_cut, PowerCut::No);
        facts.devices.iter_mut().for_each(|device| device.volatile_write_cache = Some(false));
        assert_eq!(worth(&settings, &facts, 1).power_cut, PowerCut::Unknown);
        settings.wal.sync = Sync::Fdatasync;
        assert_eq!(worth(&settings, &facts, 1).power_cut, PowerCut::Yes);
        facts.devices[1].volatile_write_cache = None;
        assert_eq!(worth(&settings, &facts, 1).power_cut, PowerCut::Unknown);
    }

    #[test]
    fn redundancy_is_what_may_be_lost_whichever_drives_they_are() {
        let lost = |raid| drives_lost(raid, 4);
        assert_eq!([Raid::None, Raid::Md0, Raid::Md5, Raid::Md10].map(lost), [0, 0, 1, 1]);
        assert_eq!([Raid::Md1, Raid::Md6].map(lost), [3, 2]);
    }
}
