//! How much can be written to a drive over its life, as far as that is known.

use crate::host::{Device, Health};
use crate::settings::Stack;

/// What is known about a drive's endurance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Endurance {
    /// Rated bytes that can be written to it over its life.
    pub rated: Option<Rated>,
    /// The share used so far, by the drive's own count, in percent.
    pub used_percent: Option<u8>,
}

/// Bytes that can be written to a drive over its life, by source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rated {
    /// The operator's, from the data sheet (`stack.endurance_tb`).
    DataSheet(u64),
    /// The drive's own estimate.
    Estimate(u64),
}

impl Rated {
    /// The bytes, from either source.
    pub fn bytes(self) -> u64 {
        match self {
            Self::DataSheet(bytes) | Self::Estimate(bytes) => bytes,
        }
    }
}

/// How much of a drive's endurance a plan uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveWear {
    /// The drive's name.
    pub drive: String,
    /// Bytes that are written to it.
    pub writes_bytes: u64,
    /// What is known about its endurance.
    pub endurance: Endurance,
}

/// What is known about a drive's endurance: from the settings first, then from the drive.
pub(super) fn endurance(stack: &Stack, device: &Device) -> Endurance {
    endurance_by(stack, device.read_health().as_ref())
}

fn endurance_by(stack: &Stack, health: Option<&Health>) -> Endurance {
    let sheet_bytes = (stack.endurance_tb * 1e12) as u64;
    let sheet = (sheet_bytes > 0).then_some(Rated::DataSheet(sheet_bytes));
    let estimate = || health.and_then(|health| health.endurance_bytes).map(Rated::Estimate);
    Endurance { rated: sheet.or_else(estimate), used_percent: health.map(|health| health.used_percent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_sheet_counts_before_the_drives_own_estimate() {
        let mut stack = Stack::default();
        assert_eq!(endurance_by(&stack, None), Endurance::default());
        let mut health = crate::host::health_tests::calm(None);
        let unrated = Endurance { rated: None, used_percent: Some(0) };
        assert_eq!(endurance_by(&stack, Some(&health)), unrated);
        health.endurance_bytes = Some(7_000_000_000_000);
        let estimate = Some(Rated::Estimate(7_000_000_000_000));
        assert_eq!(endurance_by(&stack, Some(&health)).rated, estimate);
        stack.endurance_tb = 600.0;
        let sheet = Some(Rated::DataSheet(600_000_000_000_000));
        assert_eq!(endurance_by(&stack, Some(&health)).rated, sheet);
    }
}
