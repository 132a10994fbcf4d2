//! Where header, WAL and data are on a member, the same for files and devices.
//!
//! Every part is a multiple of 1 MiB. The WAL takes 20% of everything (Haas et al. 2020, section 3.2: 100 GB
//! to 400 GB of data). On devices, each member holds its share of the WAL after its header. With files, the
//! WAL is a separate file, because its flush would otherwise write back the background's dirty pages, too.

use crate::error::{Error, Result};
pub use crate::units::floor_mib;
use crate::units::{MIB, approx_size};

/// The header's bytes at the start of each member.
pub const HEADER_BYTES: u64 = MIB;

/// The WAL's share of a device: one part in five.
const WAL_PARTS: u64 = 5;

/// Data bytes per byte of WAL: the same share, relative to the data.
const DATA_PER_WAL: u64 = WAL_PARTS - 1;

/// What a member's bytes after the header are used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Bytes of the WAL region, which follows the header.
    pub wal_bytes: u64,
    /// Bytes of the data region, which follows the WAL region.
    pub data_bytes: u64,
}

impl Parts {
    /// Where the WAL region begins.
    pub const WAL_OFFSET_BYTES: u64 = HEADER_BYTES;

    /// The parts of devices, the smallest of which has `size_bytes`.
    pub fn of_device(size_bytes: u64) -> Result<Self> {
        let usable = floor_mib(size_bytes).saturating_sub(HEADER_BYTES);
        let wal_bytes = floor_mib(usable / WAL_PARTS);
        if wal_bytes == 0 {
            return Err(too_small(size_bytes, HEADER_BYTES + WAL_PARTS * MIB));
        }
        Ok(Self { wal_bytes, data_bytes: usable - wal_bytes })
    }

    /// The parts of a data file of `size_bytes`.
    pub fn of_data_file(size_bytes: u64) -> Result<Self> {
        let data_bytes = floor_mib(size_bytes).saturating_sub(HEADER_BYTES);
        if data_bytes == 0 {
            return Err(too_small(size_bytes, HEADER_BYTES + MIB));
        }
        Ok(Self { wal_bytes: 0, data_bytes })
    }

    /// The parts of a WAL file for members of that many bytes.
    pub fn of_wal_file(members_bytes: u64) -> Self {
        Self { wal_bytes: floor_mib(members_bytes / DATA_PER_WAL).max(MIB), data_bytes: 0 }
    }

    /// The parts of a device for the WAL alone.
    pub fn of_wal_device(size_bytes: u64) -> Result<Self> {
        let wal_bytes = floor_mib(size_bytes).saturating_sub(HEADER_BYTES);
        if wal_bytes == 0 {
            return Err(too_small(size_bytes, HEADER_BYTES + MIB));
        }
        Ok(Self { wal_bytes, data_bytes: 0 })
    }

    /// Where the data region begins.
    pub const fn data_offset_bytes(self) -> u64 {
        HEADER_BYTES + self.wal_bytes
    }

    /// Bytes of the whole member.
    pub const fn member_bytes(self) -> u64 {
        self.data_offset_bytes() + self.data_bytes
    }
}

/// Bytes of `count` data files of `size_bytes` and their WAL file together.
pub fn files_bytes(count: u64, size_bytes: u64) -> u64 {
    let data = count.saturating_mul(floor_mib(size_bytes));
    data.saturating_add(Parts::of_wal_file(data).member_bytes())
}

fn too_small(size_bytes: u64, least_bytes: u64) -> Error {
    Error::input(format!(
        "a member of {} is too small: it needs {}",
        approx_size(size_bytes),
        approx_size(least_bytes)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::GIB;

    #[test]
    fn a_device_is_header_wal_and_data_without_a_gap() {
        for size in [6 * MIB, 64 * MIB, 64 * MIB + 12_345, 3_840_755_982_336] {
            let parts = Parts::of_device(size).unwrap();
            assert_eq!(parts.member_bytes(), floor_mib(size));
            assert_eq!(parts.data_offset_bytes(), Parts::WAL_OFFSET_BYTES + parts.wal_bytes);
            assert!(parts.wal_bytes.is_multiple_of(MIB) && parts.data_bytes.is_multiple_of(MIB));
            let usable = parts.wal_bytes + parts.data_bytes;
            assert!(parts.wal_bytes <= usable / 5 && usable / 5 - parts.wal_bytes < MIB);
        }
        assert!(Parts::of_device(6 * MIB - 1).is_err());
    }

    #[test]
    fn the_wal_file_is_a_fifth_of_all_bytes() {
        let wal = Parts::of_wal_file(4 * GIB);
        assert_eq!(wal.wal_bytes, GIB);
        assert_eq!(files_bytes(4, GIB), 5 * GIB + HEADER_BYTES);
        assert_eq!(Parts::of_data_file(GIB).unwrap().member_bytes(), GIB);
        assert!(Parts::of_data_file(MIB).is_err());
        assert!(Parts::of_wal_device(MIB).is_err());
    }
}
