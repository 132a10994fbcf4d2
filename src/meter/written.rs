//! Bytes written on their way from the application to the flash, and their ratios.
//!
//! Each level has its own counters:
//!
//! | level | bytes | counted by |
//! |---|---|---|
//! | application | what the load wrote: pages of the writing classes, or keys and values put into an engine | the classes |
//! | engine | what the load or its engine handed to the file system or the device | the engine ([`super::counts::engine::EngineTotals::written_bytes`]); for pages the same as above |
//! | top | writes to the devices below the file system (or that are the target) | the block layer: `stat` |
//! | drives | writes to the devices at the bottom, below md, LVM and other mappers | the block layer: `stat` |
//! | host, flash | what the drives took and what they wrote to flash | the drives ([`crate::host::FlashWrites`]) |
//!
//! The drives are the devices as used: of a partitioned drive only the partition. A **loop device counts as a
//! drive**: what the file system below its file adds is not the target's. On a file system shared with others,
//! their writes are counted too, which is reported as a pitfall.
//!
//! - WA-A = drives / application, and it is engine × file system × RAID, with engine = engine /
//!   application, file system = top / engine, and RAID = drives / top.
//! - WA-D = flash / host, once the counters' units are below 2% of what the host has written.
//! - End to end: WA-A × WA-D; none if others wrote more than a tenth of what the drives took (host
//!   minus what the block layer wrote to the drives between the same readings), as WA-D includes them.
//!   (Didona et al. 2021, 2.1.3, 2.2.3 and 4.1: cumulative from the measurement's start, without what the
//!   page cache still holds at the end.)
//! - Space amplification = bytes in use on the file system / bytes of the data set (2.1.4, 3.3): on a
//!   file system of the stack everything in use on it, on another one the blocks of the files. The
//!   largest over the measurement counts, as in Figure 7. None without a file system. The data set is
//!   pages of data and WAL; for a storage engine keys and values, each pair once.

use serde::{Deserialize, Serialize};

use crate::host::FlashSource;

/// The drives count in coarse units: WA-D is given once the host has written this many of them.
const STEPS: u64 = 64;
/// If others' share of what the drives took exceeds this, WA-D says little about this load.
pub const OTHERS_SHARE: f64 = 0.1;

/// Bytes written in a window, or since the measurement began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Written {
    /// Bytes that the application wrote.
    pub application_bytes: u64,
    /// What the load or its engine submitted.
    pub engine_bytes: u64,
    /// What the block layer wrote to the devices at the top; none if there are none, or it does not see the
    /// writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_bytes: Option<u64>,
    /// Bytes that it wrote to the drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drives_bytes: Option<u64>,
    /// Bytes that the drives counted as written by the host; none unless all of them report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_bytes: Option<u64>,
    /// Bytes that they counted as written to flash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash_bytes: Option<u64>,
    /// What the block layer wrote to the drives in the same span: the drives' counters are read only now and
    /// then, not at the ends of windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drives_of_host_bytes: Option<u64>,
    /// The combined resolution of the drives' counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash_unit_bytes: Option<u64>,
    /// The log page that reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash_source: Option<FlashSource>,
    /// Bytes of all drives together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Bytes that the load keeps: data and WAL regions, or the keys and values of an engine.
    #[serde(default)]
    pub data_set_bytes: u64,
    /// Bytes in use on the file system at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// The most in use at the end of any window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes_max: Option<u64>,
}

/// The factors of WA-A.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Parts {
    /// Bytes that the engine wrote per byte of the application.
    pub engine: Option<f64>,
    /// Bytes that reached the devices at the top per byte of the engine.
    pub file_system: Option<f64>,
    /// Bytes that reached the drives per byte at the top.
    pub raid: Option<f64>,
}

impl Written {
    /// Adds a later span.
    pub fn add(&mut self, later: &Self) {
        let first = self.is_blank();
        let all = |sum: Option<u64>, more: Option<u64>| {
            if first { more } else { sum.zip(more).map(|(sum, more)| sum + more) }
        };
        self.top_bytes = all(self.top_bytes, later.top_bytes);
        self.drives_bytes = all(self.drives_bytes, later.drives_bytes);
        self.application_bytes += later.application_bytes;
        self.engine_bytes += later.engine_bytes;
        // The drives are read only now and then: what is missing in one window shows in a later one.
        let any = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = more.map_or(*sum, |more| Some(sum.unwrap_or(0) + more));
        };
        let counted_before = self.host_bytes.is_some_and(|bytes| bytes > 0);
        any(&mut self.host_bytes, later.host_bytes);
        any(&mut self.flash_bytes, later.flash_bytes);
        if later.host_bytes.is_some_and(|bytes| bytes > 0) {
            let (sum, more) = (self.drives_of_host_bytes, later.drives_of_host_bytes);
            self.drives_of_host_bytes =
                if counted_before { sum.zip(more).map(|(sum, more)| sum + more) } else { more };
        }
        self.flash_unit_bytes = later.flash_unit_bytes.or(self.flash_unit_bytes);
        self.flash_source = later.flash_source.or(self.flash_source);
        self.capacity_bytes = later.capacity_bytes.or(self.capacity_bytes);
        self.data_set_bytes = later.data_set_bytes;
        self.used_bytes = later.used_bytes.or(self.used_bytes);
        self.used_bytes_max = self.used_bytes_max.max(later.used_bytes_max);
    }

    /// See [`super::window::Window::counts_sum`].
    pub(super) fn counts_sum(&self) -> u128 {
        let known =
            [self.top_bytes, self.drives_bytes, self.host_bytes, self.flash_bytes, self.drives_of_host_bytes];
        let own = [self.application_bytes, self.engine_bytes];
        known.into_iter().flatten().chain(own).map(u128::from).sum()
    }

    /// Whether nothing has been added yet.
    fn is_blank(&self) -> bool {
        *self == Self::default()
    }

    /// Bytes that the drives took per byte that the application wrote.
    pub fn wa_a(&self) -> Option<f64> {
        ratio(self.drives_bytes?, self.application_bytes)
    }

    /// The factors of WA-A.
    pub fn parts(&self) -> Parts {
        Parts {
            engine: ratio(self.engine_bytes, self.application_bytes),
            file_system: self.top_bytes.and_then(|top| ratio(top, self.engine_bytes)),
            raid: self.top_bytes.zip(self.drives_bytes).and_then(|(top, drives)| ratio(drives, top)),
        }
    }

    /// WA-D of these bytes alone, if they are a single window's: only for modelled drives, which count every
    /// write. Other drives' counters are too coarse for a window.
    pub fn wa_d_of_window(&self) -> Option<f64> {
        self.wa_d().filter(|_| self.flash_source == Some(FlashSource::Model))
    }

    /// Bytes that the drives wrote to flash per byte that they took.
    pub fn wa_d(&self) -> Option<f64> {
        let (host, flash, unit) = (self.host_bytes?, self.flash_bytes?, self.flash_unit_bytes?);
        ratio(flash, host).filter(|_| host >= unit.saturating_mul(STEPS))
    }

    /// The share of what the drives took that was not written to the target, but by others or to other parts of
    /// the drives. None if WA-D is unknown, or the block layer does not see the target's writes.
    pub fn others_share(&self) -> Option<f64> {
        self.wa_d()?;
        let (host, drives) = (self.host_bytes?, self.drives_of_host_bytes?);
        ratio(host.saturating_sub(drives), host)
    }

    /// [`Self::others_share`], if it is too large.
    pub fn others(&self) -> Option<f64> {
        self.others_share().filter(|share| *share > OTHERS_SHARE)
    }

    /// Write amplification from the application to the flash.
    pub fn wa_total(&self) -> Option<f64> {
        if self.others().is_some() { None } else { Some(self.wa_a()? * self.wa_d()?) }
    }

    /// Bytes in use per byte of the data set, at the maximum.
    pub fn space_amplification(&self) -> Option<f64> {
        ratio(self.used_bytes_max?, self.data_set_bytes)
    }
}

fn ratio(of: u64, to: u64) -> Option<f64> {
    (to > 0).then(|| of as f64 / to as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(application: u64, top: u64, drives: u64) -> Written {
        Written {
            application_bytes: application,
            engine_bytes: application * 2,
            top_bytes: Some(top),
            drives_bytes: Some(drives),
            ..Written::default()
        }
    }

    #[test]
    fn the_parts_multiply_to_the_whole() {
        let mut sum = Written::default();
        sum.add(&window(100, 0, 0));
        assert_eq!(sum.wa_a(), Some(0.0), "the page cache still holds it");
        sum.add(&window(100, 500, 1000));
        assert_eq!(sum.wa_a(), Some(5.0));
        let parts = sum.parts();
        assert_eq!((parts.engine, parts.file_system, parts.raid), (Some(2.0), Some(1.25), Some(2.0)));
        sum.add(&Written { top_bytes: None, drives_bytes: None, ..window(1, 0, 0) });
        assert_eq!(sum.wa_a(), None, "one window was not counted, so the sum is unknown");
    }

    #[test]
    fn wa_d_waits_until_the_counters_units_are_small() {
        let drives = |host: u64, flash: u64| Written {
            host_bytes: Some(host),
            flash_bytes: Some(flash),
            flash_unit_bytes: Some(1000),
            drives_of_host_bytes: Some(host),
            ..window(5_000, 10_000, 22_000)
        };
        let mut sum = drives(60_000, 120_000);
        assert_eq!((sum.wa_d(), sum.wa_total()), (None, None), "60 steps");
        sum.add(&Written { host_bytes: None, flash_bytes: None, ..window(5_000, 10_000, 22_000) });
        sum.add(&drives(4_000, 8_000));
        assert_eq!((sum.wa_d(), sum.wa_a(), sum.wa_total()), (Some(2.0), Some(4.4), Some(8.8)));
        // Others' writes to the same drives.
        sum.add(&Written { drives_of_host_bytes: Some(0), ..drives(20_000, 40_000) });
        assert_eq!((sum.wa_d(), sum.others().is_some(), sum.wa_total()), (Some(2.0), true, None));
    }

    #[test]
    fn space_amplification_is_the_largest_seen() {
        let used = |bytes: u64| Written {
            used_bytes: Some(bytes),
            used_bytes_max: Some(bytes),
            data_set_bytes: 100,
            ..window(1, 1, 1)
        };
        let mut sum = used(110);
        sum.add(&used(186));
        sum.add(&used(139));
        assert_eq!((sum.space_amplification(), sum.used_bytes), (Some(1.86), Some(139)));
        assert_eq!(window(1, 1, 1).space_amplification(), None);
    }
}
