//! An `NVMe` drive's own count of its writes to flash, from its vendor's log page.
//!
//! | page | of | flash | host |
//! |---|---|---|---|
//! | 0xC0 | any vendor, known by its GUID (OCP Datacenter `NVMe` SSD specification 2.0, 4.8.6) | bytes 0–15, in bytes | the health log |
//! | 0xCA | Intel, Solidigm: items of 12 bytes, by key | item 0xF4, in 32 MiB | item 0xF5, likewise |
//! | 0xCA | Samsung | bytes 280–295 | bytes 264–279 |
//! | 0xD0 | Micron | bytes 176–183, in bytes | the health log |
//! | 0xCA | WDC, statistics | bytes 0–15, in bytes | the health log |
//! | 0xCA | WDC, items of 12 bytes, by key | item 0x0B | item 0x0C |
//!
//! The layouts are those documented by `nvme-cli` (plugins `ocp`, `intel`, `solidigm`, `micron` and `wdc`);
//! Samsung's is known only from its users. Vendor pages have no trustworthy version, so a page is accepted
//! only if it agrees with the health log: its count of host writes must match the health log's (which also
//! determines its unit, if that is not documented), and flash writes must be between a tenth and a hundred
//! times that. Any other page is refused.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::nvme;
use crate::units::MIB;

/// SMART / Health Information.
const HEALTH_LOG: u8 = 0x02;
/// A data unit of the health log: a thousand blocks of 512 bytes.
const DATA_UNIT_BYTES: u64 = 512_000;
/// The GUID at the end of OCP's page.
const OCP_GUID: [u8; 16] =
    [0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf];
/// Bytes of an item, in a page that is a list.
const ITEM_BYTES: usize = 12;
/// The unit of Intel's items.
const INTEL_UNIT_BYTES: u64 = 32 * MIB;
/// Units that a counter may have if none is documented.
const UNITS_BYTES: [u64; 6] = [1, 512, 4096, DATA_UNIT_BYTES, MIB, 32 * MIB];
/// Two counts of host writes agree if they differ by at most this share and two units.
const AGREES: f64 = 1.0 / 16.0;
/// A drive's lifetime write amplification lies in this range, or it is a different page.
const LIFETIME: std::ops::RangeInclusive<f64> = 0.1..=100.0;

/// The vendor whose page it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FlashSource {
    /// OCP's.
    Ocp,
    /// Intel's, and Solidigm's.
    Intel,
    /// Samsung's.
    Samsung,
    /// Micron's.
    Micron,
    /// WDC's.
    Wdc,
    /// None: the drives are simulated.
    Model,
}

/// A drive's counts over its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlashWrites {
    /// Bytes that hosts have written, in steps of the counter's unit.
    pub host_bytes: u64,
    /// Bytes that were written to flash, likewise.
    pub flash_bytes: u64,
    /// The larger of the two units: the resolution of both.
    pub unit_bytes: u64,
    /// The source of the counts.
    pub source: FlashSource,
}

/// A candidate page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Ocp,
    Intel,
    Samsung,
    Micron,
    WdcStatistics,
    WdcItems,
}

/// A counter of flash writes, and one of host writes if the page has one, with the units that they may have.
struct Counters<'a> {
    flash: u128,
    host: Option<u128>,
    units: &'a [u64],
}

impl Page {
    /// The pages that a vendor's drives may have, by PCI vendor ID.
    fn of_vendor(vendor: u16) -> &'static [Self] {
        match vendor {
            0x8086 | 0x025e => &[Self::Ocp, Self::Intel],
            0x144d => &[Self::Ocp, Self::Samsung],
            0x1344 => &[Self::Ocp, Self::Micron],
            0x1c58 | 0x1b96 | 0x15b7 => &[Self::Ocp, Self::WdcStatistics, Self::WdcItems],
            _ => &[Self::Ocp],
        }
    }

    fn id(self) -> u8 {
        match self {
            Self::Ocp => 0xc0,
            Self::Micron => 0xd0,
            Self::Intel | Self::Samsung | Self::WdcStatistics | Self::WdcItems => 0xca,
        }
    }

    fn source(self) -> FlashSource {
        match self {
            Self::Ocp => FlashSource::Ocp,
            Self::Intel => FlashSource::Intel,
            Self::Samsung => FlashSource::Samsung,
            Self::Micron => FlashSource::Micron,
            Self::WdcStatistics | Self::WdcItems => FlashSource::Wdc,
        }
    }

    /// The page's counters; none if it is truncated or a different page.
    fn counters(self, log: &[u8]) -> Option<Counters<'static>> {
        let log: &[u8; 512] = log.get(..512)?.try_into().ok()?;
        Some(match self {
            Self::Ocp => {
                (log[496..] == OCP_GUID).then_some(())?;
                Counters { flash: large(log, 0), host: None, units: &[1] }
            }
            Self::Intel => {
                // The list begins with the program fail count.
                (log[0] == 0xab).then_some(())?;
                let (flash, host) = (item(log, 0xf4)?, item(log, 0xf5)?);
                Counters { flash, host: Some(host), units: &[INTEL_UNIT_BYTES] }
            }
            Self::Samsung => {
                Counters { flash: large(log, 280), host: Some(large(log, 264)), units: &UNITS_BYTES }
            }
            Self::Micron => {
                let flash = u64::from_le_bytes(log[176..184].try_into().ok()?);
                Counters { flash: u128::from(flash), host: None, units: &[1] }
            }
            Self::WdcStatistics => {
                // Everything after its fields is reserved.
                log[120..].iter().all(|byte| *byte == 0).then_some(())?;
                Counters { flash: large(log, 0), host: None, units: &[1] }
            }
            Self::WdcItems => {
                let keyed = (0..=0x0c_u8).all(|key| log[usize::from(key) * ITEM_BYTES] == key);
                keyed.then_some(())?;
                let (flash, host) = (item(log, 0x0b)?, item(log, 0x0c)?);
                Counters { flash, host: Some(host), units: &UNITS_BYTES }
            }
        })
    }

    /// The page's counts, which must agree with the health log.
    fn decode(self, log: &[u8], health_host_bytes: u64) -> Option<FlashWrites> {
        let Counters { flash, host, units } = self.counters(log)?;
        let counted = |unit_bytes: u64| {
            let bytes = |count: u128| u64::try_from(count.checked_mul(u128::from(unit_bytes))?).ok();
            let host_bytes = host.map_or(Some(health_host_bytes), bytes)?;
            let unit_bytes = if host.is_some() { unit_bytes } else { unit_bytes.max(DATA_UNIT_BYTES) };
            let off = host_bytes.abs_diff(health_host_bytes) as f64;
            let may_be_off = health_host_bytes as f64 * AGREES + 2.0 * unit_bytes.max(DATA_UNIT_BYTES) as f64;
            let flash_bytes = bytes(flash)?;
            let lifetime = flash_bytes as f64 / host_bytes as f64;
            let fits = host_bytes > 0 && off <= may_be_off && LIFETIME.contains(&lifetime);
            fits.then_some(FlashWrites { host_bytes, flash_bytes, unit_bytes, source: self.source() })
        };
        let mut found = units.iter().filter_map(|unit| counted(*unit));
        // A counter that fits two units is ambiguous.
        found.next().filter(|_| found.next().is_none())
    }
}

/// A little-endian counter of 16 bytes.
fn large(log: &[u8; 512], at: usize) -> u128 {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&log[at..at + 16]);
    u128::from_le_bytes(bytes)
}

/// The six-byte value of the item with that key, after the key, two reserved bytes, normalized value and one more.
fn item(log: &[u8; 512], key: u8) -> Option<u128> {
    let found = log.chunks_exact(ITEM_BYTES).find(|item| item[0] == key)?;
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&found[5..11]);
    Some(u128::from_le_bytes(bytes))
}

/// A drive's count of its writes to flash, for repeated reading. Requires root.
#[derive(Debug, Clone)]
pub struct FlashLog {
    /// The controller's node: opening it touches no block device.
    controller: PathBuf,
    page: Page,
}

impl FlashLog {
    /// The page of the controller of that name (`nvme0`); none if it has no known page, or may not be
    /// queried.
    pub fn open(controller: &str) -> Option<Self> {
        let node = Path::new("/dev").join(controller);
        let file = File::open(&node).ok()?;
        let identity = nvme::identify_controller(&file)?;
        // VID, bytes 0 and 1.
        let vendor = u16::from_le_bytes([identity[0], identity[1]]);
        let counted = |page: &&Page| read(&file, **page).is_some();
        let page = Page::of_vendor(vendor).iter().find(counted)?;
        Some(Self { controller: node, page: *page })
    }

    /// The current counts; none if the drive does not answer, or the page has become invalid.
    pub fn read(&self) -> Option<FlashWrites> {
        read(&File::open(&self.controller).ok()?, self.page)
    }
}

fn read(file: &File, page: Page) -> Option<FlashWrites> {
    let log = nvme::log_page(file, page.id(), 0)?;
    let health = nvme::log_page(file, HEALTH_LOG, 0)?;
    let units = u64::try_from(large(&health, 48)).ok()?;
    page.decode(&log, units.checked_mul(DATA_UNIT_BYTES)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The health log of these drives: 10⁹ data units, 512 TB.
    const HOST_BYTES: u64 = 1_000_000_000 * DATA_UNIT_BYTES;

    fn log(fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut log = vec![0; 512];
        for (at, bytes) in fields {
            log[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        log
    }

    /// A list of items: key and count.
    fn items(of: &[(u8, u64)]) -> Vec<u8> {
        let mut log = vec![0; 512];
        for (item, (key, count)) in log.chunks_exact_mut(ITEM_BYTES).zip(of) {
            (item[0], item[3]) = (*key, 100);
            item[5..11].copy_from_slice(&count.to_le_bytes()[..6]);
        }
        log
    }

    fn intel(flash: u64, host: u64) -> Vec<u8> {
        let before = [0xab, 0xac, 0xad, 0xb8, 0xc7, 0xe2, 0xe3, 0xe4, 0xea, 0xf0, 0xf3];
        let mut of: Vec<(u8, u64)> = before.map(|key| (key, 7)).to_vec();
        of.extend([(0xf4, flash), (0xf5, host)]);
        items(&of)
    }

    /// A page of each, of a drive that has written 2.5 times what the host wrote.
    fn pages() -> Vec<(Page, Vec<u8>, u64)> {
        let flash = u128::from(HOST_BYTES) * 5 / 2;
        let units = HOST_BYTES / INTEL_UNIT_BYTES;
        let wdc: Vec<(u8, u64)> = (0..=0x0c)
            .map(|key| (key, if key == 0x0b { units * 5 / 2 } else { units * u64::from(key == 0x0c) }))
            .collect();
        let samsung_units = u128::from(HOST_BYTES / 512);
        vec![
            (Page::Ocp, log(&[(0, &flash.to_le_bytes()), (496, &OCP_GUID)]), DATA_UNIT_BYTES),
            (Page::Intel, intel(units * 5 / 2, units), INTEL_UNIT_BYTES),
            (
                Page::Samsung,
                log(&[
                    (0, &[0xab]),
                    (264, &samsung_units.to_le_bytes()),
                    (280, &(samsung_units * 5 / 2).to_le_bytes()),
                ]),
                512,
            ),
            (Page::Micron, log(&[(176, &(flash as u64).to_le_bytes())]), DATA_UNIT_BYTES),
            (Page::WdcStatistics, log(&[(0, &flash.to_le_bytes()), (119, &[40])]), DATA_UNIT_BYTES),
            (Page::WdcItems, items(&wdc), INTEL_UNIT_BYTES),
        ]
    }

    #[test]
    fn each_vendors_page_gives_flash_and_host_writes() {
        for (page, log, unit_bytes) in pages() {
            let counted = page.decode(&log, HOST_BYTES).unwrap_or_else(|| panic!("{page:?}"));
            let amplification = counted.flash_bytes as f64 / counted.host_bytes as f64;
            assert!((amplification - 2.5).abs() < 1e-3, "{page:?}: {counted:?}");
            assert_eq!((counted.unit_bytes, counted.source), (unit_bytes, page.source()), "{page:?}");
            let close = counted.host_bytes.abs_diff(HOST_BYTES) <= INTEL_UNIT_BYTES;
            assert!(close, "{page:?}: {counted:?}");
        }
    }

    #[test]
    fn a_page_that_is_cut_short_blank_or_anothers_is_refused() {
        let pages = pages();
        for (page, log, _) in &pages {
            for length in [0, 1, 176, 292, 511] {
                assert_eq!(page.decode(&log[..length], HOST_BYTES), None, "{page:?} of {length} bytes");
            }
            assert_eq!(page.decode(&[0; 512], HOST_BYTES), None, "{page:?}: blank");
            assert_eq!(page.decode(&[0xff; 512], HOST_BYTES), None, "{page:?}: all ones");
            for (other, log, _) in &pages {
                let refused = other == page || page.decode(log, HOST_BYTES).is_none();
                assert!(refused, "{page:?} took {other:?}'s page");
            }
        }
    }

    #[test]
    fn a_page_that_does_not_agree_with_the_health_log_is_refused() {
        for (page, log, _) in pages() {
            for health_host_bytes in [0, HOST_BYTES / 300, HOST_BYTES * 300] {
                assert_eq!(page.decode(&log, health_host_bytes), None, "{page:?} {health_host_bytes}");
            }
        }
        let units = HOST_BYTES / INTEL_UNIT_BYTES;
        assert!(
            Page::Intel.decode(&intel(units, units * 2), HOST_BYTES).is_none(),
            "twice the host's writes"
        );
        let two_fit = log(&[(264, &1_u128.to_le_bytes()), (280, &1_u128.to_le_bytes())]);
        assert!(Page::Samsung.decode(&two_fit, 1000).is_none(), "a new drive's count fits two units");
    }

    #[test]
    fn every_vendor_is_queried_for_ocps_page_and_its_own() {
        for vendor in [0x8086, 0x025e, 0x144d, 0x1344, 0x1c58, 0x1b36] {
            assert_eq!(Page::of_vendor(vendor)[0], Page::Ocp);
        }
        assert_eq!(Page::of_vendor(0x1b36), [Page::Ocp], "QEMU's");
    }
}
