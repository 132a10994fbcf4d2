//! The flash writes of modelled drives, which count them themselves from the moment they are created.

use super::drives::FlashDelta;
use crate::host::FlashWrites;

/// Counts since the last reading.
#[derive(Debug, Default)]
pub struct ByModel {
    host_bytes: u64,
    flash_bytes: u64,
}

impl ByModel {
    /// What was written since the last reading, from the drives' counts now; at the first one, all of it,
    /// because only the load writes to them. None without such drives.
    pub fn since(&mut self, now: Option<FlashWrites>) -> Option<FlashDelta> {
        let FlashWrites { host_bytes, flash_bytes, unit_bytes, source } = now?;
        let mut before = std::mem::replace(self, Self { host_bytes, flash_bytes });
        // Lower counts mean that the drives are new.
        if host_bytes < before.host_bytes {
            before = Self::default();
        }
        let flash_bytes = flash_bytes.saturating_sub(before.flash_bytes);
        Some(FlashDelta { host_bytes: host_bytes - before.host_bytes, flash_bytes, unit_bytes, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FlashSource;

    #[test]
    fn counts_are_since_the_last_reading_or_since_the_drives_are_new() {
        let mut by_model = ByModel::default();
        let mut since = |host_bytes, flash_bytes| {
            let now = FlashWrites { host_bytes, flash_bytes, unit_bytes: 1, source: FlashSource::Model };
            let delta = by_model.since(Some(now)).unwrap();
            (delta.host_bytes, delta.flash_bytes)
        };
        assert_eq!(since(10, 30), (10, 30));
        assert_eq!(since(10, 31), (0, 1));
        assert_eq!(since(30, 91), (20, 60));
        assert_eq!(since(4, 5), (4, 5));
        assert!(by_model.since(None).is_none());
    }
}
