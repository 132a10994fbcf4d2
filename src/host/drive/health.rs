//! What an `NVMe` drive reports about its health: wear, temperature, and throttling.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::nvme;

/// SMART / Health Information (NVM Express base specification 2.0, 5.16.1.3).
const HEALTH_LOG: u8 = 0x02;
/// Endurance Group Information (base specification 2.0, 5.16.1.10).
const ENDURANCE_LOG: u8 = 0x09;
/// A data unit of the health log: a thousand blocks of 512 bytes.
const DATA_UNIT_BYTES: u128 = 512_000;
/// The unit of an endurance estimate.
const ESTIMATE_UNIT_BYTES: u128 = 1_000_000_000;
/// The log gives kelvins, and 0 for an unknown temperature.
const KELVIN: f64 = 273.0;

/// The content of a drive's health log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Health {
    /// Its warnings, in words.
    pub warnings: Vec<&'static str>,
    /// Its composite temperature, in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Spare blocks left, in percent of the original number.
    pub spare_percent: u8,
    /// The drive warns below this percentage of spare blocks.
    pub spare_threshold_percent: u8,
    /// The share of its endurance that is used, by the vendor's calculation; may exceed 100.
    pub used_percent: u8,
    /// Bytes that hosts have read from it, in steps of 512,000.
    pub read_bytes: u64,
    /// Bytes that hosts have written to it, in steps of 512,000.
    pub written_bytes: u64,
    /// Bytes that may be written to it over its life, by its own estimate; none if it has none.
    pub endurance_bytes: Option<u64>,
    /// Minutes so far at or above its warning temperature.
    pub warning_minutes: u32,
    /// Minutes so far at or above its critical temperature.
    pub critical_minutes: u32,
    /// How often and how long it has throttled so far; none if it does not count that.
    pub throttled: Option<Throttled>,
}

/// How often and how long a drive has throttled, as its host-controlled thermal management
/// counts (base specification 2.0, 8.15.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Throttled {
    /// How often light and heavy throttling began.
    pub transitions: [u32; 2],
    /// Seconds of light and of heavy throttling.
    pub seconds: [u32; 2],
}

/// Whether a drive throttled because of its temperature since the last reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Throttling {
    /// Its own counts did not change.
    No,
    /// It was at or above its warning temperature, from which it may throttle: inferred.
    Hot,
    /// Its own counts have grown.
    Yes,
}

impl Health {
    /// Reads a health log's bytes; none if there are too few.
    fn decode(log: &[u8]) -> Option<Self> {
        let log: &[u8; 512] = log.get(..512)?.try_into().ok()?;
        let small = |at: usize| u32::from_le_bytes([log[at], log[at + 1], log[at + 2], log[at + 3]]);
        let kelvins = u16::from_le_bytes([log[1], log[2]]);
        let throttled =
            Throttled { transitions: [small(216), small(220)], seconds: [small(224), small(228)] };
        Some(Self {
            warnings: warnings(log[0]),
            temperature_c: (kelvins > 0).then(|| f64::from(kelvins) - KELVIN),
            spare_percent: log[3],
            spare_threshold_percent: log[4],
            used_percent: log[5],
            read_bytes: large(log, 32, DATA_UNIT_BYTES),
            written_bytes: large(log, 48, DATA_UNIT_BYTES),
            endurance_bytes: None,
            warning_minutes: small(192),
            critical_minutes: small(196),
            throttled: (throttled != Throttled::default()).then_some(throttled),
        })
    }

    /// Whether the drive throttled since an earlier reading; none if unknown.
    pub fn throttling_since(&self, before: &Self) -> Option<Throttling> {
        let grown = |now: [u32; 2], before: [u32; 2]| now.iter().zip(before).any(|(now, old)| *now > old);
        let counts = self.throttled.map(|now| {
            let before = before.throttled.unwrap_or_default();
            grown(now.transitions, before.transitions) || grown(now.seconds, before.seconds)
        });
        let minutes = |health: &Self| [health.warning_minutes, health.critical_minutes];
        let hot = self.is_hot() || grown(minutes(self), minutes(before));
        match counts {
            Some(true) => Some(Throttling::Yes),
            _ if hot => Some(Throttling::Hot),
            Some(false) => Some(Throttling::No),
            None => None,
        }
    }

    /// Whether it warns of its temperature.
    pub fn is_hot(&self) -> bool {
        self.warnings.contains(&TEMPERATURE)
    }
}

const TEMPERATURE: &str = "its temperature is beyond a limit";

/// The bits of the critical warning.
fn warnings(bits: u8) -> Vec<&'static str> {
    let words = [
        "its spare blocks are running low",
        TEMPERATURE,
        "its reliability is degraded",
        "it has become read-only",
        "its backup of volatile memory has failed",
        "its persistent memory region has failed",
    ];
    words.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, word)| word).collect()
}

/// A counter of 16 bytes, times its unit.
fn large(log: &[u8; 512], at: usize, unit_bytes: u128) -> u64 {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&log[at..at + 16]);
    u64::try_from(u128::from_le_bytes(bytes).saturating_mul(unit_bytes)).unwrap_or(u64::MAX)
}

/// The endurance estimate of an endurance group's log; 0 is none.
fn endurance_bytes(log: &[u8; 512]) -> Option<u64> {
    Some(large(log, 32, ESTIMATE_UNIT_BYTES)).filter(|bytes| *bytes > 0)
}

/// A drive's health log, for repeated reading. Each reading is a command to the drive, and requires root.
#[derive(Debug, Clone)]
pub struct HealthLog {
    /// The controller's node: opening it touches no block device.
    controller: PathBuf,
    /// Whether the drive counts throttling.
    counts_throttling: bool,
    /// The drive's own estimate.
    endurance_bytes: Option<u64>,
}

impl HealthLog {
    /// The log of the controller of that name (`nvme0`), and the block device to query for its endurance
    /// group. None if it can't be read: no such drive, or not root.
    pub fn open(controller: &str, device: &Path) -> Option<Self> {
        let node = Path::new("/dev").join(controller);
        let file = File::open(&node).ok()?;
        let identity = nvme::identify_controller(&file)?;
        Health::decode(&nvme::log_page(&file, HEALTH_LOG, 0)?)?;
        let estimated = counts_endurance(&identity).then(|| estimate(&file, device)).flatten();
        let counts_throttling = counts_throttling(&identity);
        Some(Self { controller: node, counts_throttling, endurance_bytes: estimated })
    }

    /// The current log; none if the drive does not answer.
    pub fn read(&self) -> Option<Health> {
        let file = File::open(&self.controller).ok()?;
        let health = Health::decode(&nvme::log_page(&file, HEALTH_LOG, 0)?)?;
        // Without host-controlled thermal management, the counts stay 0 whatever the drive does.
        let counted = || health.throttled.or(Some(Throttled::default()));
        let throttled = if self.counts_throttling { counted() } else { health.throttled };
        Some(Health { throttled, endurance_bytes: self.endurance_bytes, ..health })
    }
}

/// Bit 0 of the attributes of host-controlled thermal management (HCTMA), at byte 322 of the Identify
/// Controller data.
fn counts_throttling(identity: &[u8; nvme::IDENTITY_BYTES]) -> bool {
    identity[322] & 1 == 1
}

/// Bit 4 of the controller's attributes (CTRATT), at byte 96: it has endurance groups.
fn counts_endurance(identity: &[u8; nvme::IDENTITY_BYTES]) -> bool {
    identity[96] >> 4 & 1 == 1
}

/// The endurance estimate of a namespace's endurance group.
fn estimate(controller: &File, device: &Path) -> Option<u64> {
    let name_space = File::open(device).ok()?;
    let identity = nvme::identify_name_space(&name_space, nvme::name_space(&name_space)?)?;
    // ENDGID, bytes 102 and 103.
    let group = u16::from_le_bytes([identity[102], identity[103]]);
    let log = (group > 0).then(|| nvme::log_page(controller, ENDURANCE_LOG, group))??;
    endurance_bytes(&log)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A log of 512 bytes as a drive sends it.
    fn log(fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut log = vec![0; 512];
        for (at, bytes) in fields {
            log[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        log
    }

    #[test]
    fn a_health_log_is_read_field_by_field() {
        let bytes = log(&[
            (0, &[0b0000_0011]),
            (1, &323_u16.to_le_bytes()),
            (3, &[97, 10, 4]),
            (32, &2_000_u128.to_le_bytes()),
            (48, &4_000_000_u128.to_le_bytes()),
            (192, &7_u32.to_le_bytes()),
            (196, &1_u32.to_le_bytes()),
            (216, &3_u32.to_le_bytes()),
            (220, &2_u32.to_le_bytes()),
            (224, &60_u32.to_le_bytes()),
            (228, &5_u32.to_le_bytes()),
        ]);
        let health = Health::decode(&bytes).unwrap();
        assert_eq!(health.warnings, ["its spare blocks are running low", TEMPERATURE]);
        assert_eq!((health.temperature_c, health.is_hot()), (Some(50.0), true));
        assert_eq!((health.spare_percent, health.spare_threshold_percent, health.used_percent), (97, 10, 4));
        assert_eq!((health.read_bytes, health.written_bytes), (1_024_000_000, 2_048_000_000_000));
        assert_eq!((health.warning_minutes, health.critical_minutes), (7, 1));
        assert_eq!(health.throttled, Some(Throttled { transitions: [3, 2], seconds: [60, 5] }));
    }

    #[test]
    fn a_short_or_empty_log_gives_nothing() {
        let bytes = log(&[(1, &323_u16.to_le_bytes())]);
        for length in [0, 1, 231, 511] {
            assert_eq!(Health::decode(&bytes[..length]), None, "{length}");
        }
        let blank = Health::decode(&log(&[])).unwrap();
        assert_eq!((blank.temperature_c, blank.throttled), (None, None));
        let full = Health::decode(&log(&[(48, &[0xff; 16])])).unwrap();
        assert_eq!(full.written_bytes, u64::MAX, "a counter beyond all bounds");
    }

    #[test]
    fn a_drives_abilities_are_in_its_identity() {
        let mut identity = [0; nvme::IDENTITY_BYTES];
        assert!(!counts_throttling(&identity) && !counts_endurance(&identity));
        (identity[322], identity[96]) = (0x01, 0x10);
        assert!(counts_throttling(&identity) && counts_endurance(&identity));
        let group =
            |estimate: u128| -> [u8; 512] { log(&[(32, &estimate.to_le_bytes())]).try_into().unwrap() };
        assert_eq!(endurance_bytes(&group(1_200_000)), Some(1_200_000_000_000_000));
        assert_eq!(endurance_bytes(&group(0)), None);
    }

    /// The health of a drive with which nothing is wrong.
    pub fn calm(throttled: Option<Throttled>) -> Health {
        Health { throttled, ..Health::decode(&log(&[(1, &313_u16.to_le_bytes())])).unwrap() }
    }

    #[test]
    fn a_drive_throttles_if_its_counts_grow_and_may_if_it_is_hot() {
        let counts = Throttled { transitions: [3, 0], seconds: [60, 0] };
        let before = calm(Some(counts));
        assert_eq!(before.throttling_since(&before), Some(Throttling::No));
        let longer = calm(Some(Throttled { seconds: [61, 0], ..counts }));
        assert_eq!(longer.throttling_since(&before), Some(Throttling::Yes));
        let again = calm(Some(Throttled { transitions: [3, 1], ..counts }));
        assert_eq!(again.throttling_since(&before), Some(Throttling::Yes));
        let silent = calm(None);
        assert_eq!(silent.throttling_since(&silent), None, "it counts nothing: unknown");
        let minute = Health { warning_minutes: 1, ..silent.clone() };
        assert_eq!(minute.throttling_since(&silent), Some(Throttling::Hot));
        let warned = Health { warnings: warnings(0b10), ..silent.clone() };
        assert_eq!(warned.throttling_since(&silent), Some(Throttling::Hot));
        assert_eq!(calm(Some(counts)).throttling_since(&silent), Some(Throttling::Yes), "its first counts");
        assert!(Throttling::Yes > Throttling::Hot && Throttling::Hot > Throttling::No);
    }
}
