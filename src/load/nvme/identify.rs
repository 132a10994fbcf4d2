//! What a controller and its namespaces say about themselves (Base 5.17; NVM 4.1.5).

use std::time::Duration;

use crate::error::{Error, Result};

/// Bytes of each Identify data structure (Base 5.17.2).
pub const IDENTIFY_BYTES: usize = 4096;

/// The parts of the Identify Controller data structure (Base 5.17.2.1) that the driver needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerFacts {
    /// SN, bytes 4 to 23.
    pub serial: String,
    /// MN, bytes 24 to 63.
    pub model: String,
    /// FR, bytes 64 to 71.
    pub firmware: String,
    /// MDTS, byte 77: the most that a command may move, 2^MDTS pages of the smallest memory page size; `None`
    /// if the controller sets no limit.
    pub transfer_bytes_max: Option<u64>,
    /// RTD3E, bytes 88 to 91: how long a shutdown may take; `None` if not reported.
    pub shutdown_timeout: Option<Duration>,
    /// SQES and CQES, bytes 512 and 513: whether the entry sizes that it requires and allows fit.
    pub entry_sizes_fit: bool,
    /// NN, bytes 516 to 519: the maximum number of namespaces.
    pub namespaces_max: u32,
    /// VWC bit 0, byte 525: it has a volatile write cache.
    pub volatile_write_cache: bool,
}

impl ControllerFacts {
    /// From the data structure, and the smallest memory page in bytes (CAP.MPSMIN).
    pub fn of(data: &[u8], page_bytes_min: u64) -> Self {
        let mdts = u32::from(data[77]);
        let shutdown_us = u32_at(data, 88);
        // Bits 3:0 are the required (smallest) entry size, 7:4 the largest.
        let fits = |sizes: u8, wanted: u8| (sizes & 0xf..=sizes >> 4).contains(&wanted);
        Self {
            serial: text(&data[4..24]),
            model: text(&data[24..64]),
            firmware: text(&data[64..72]),
            // A shift by more bits than there are means no limit, too.
            transfer_bytes_max: page_bytes_min.checked_shl(mdts).filter(|bytes| mdts > 0 && *bytes > 0),
            shutdown_timeout: (shutdown_us > 0).then(|| Duration::from_micros(shutdown_us.into())),
            entry_sizes_fit: fits(data[512], 6) && fits(data[513], 4),
            namespaces_max: u32_at(data, 516),
            volatile_write_cache: data[525] & 1 == 1,
        }
    }
}

/// A namespace in its current LBA format (NVM 4.1.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespace {
    /// NSID.
    pub id: u32,
    /// NSZE, bytes 0 to 7: logical blocks.
    pub blocks: u64,
    /// LBADS of the current format: a logical block has 2^LBADS bytes.
    pub block_shift: u32,
}

impl Namespace {
    /// From the data structure; `None` if the namespace is inactive (then it is all zeros).
    ///
    /// # Errors
    /// Input if its format has metadata, or a block size that no page size of stacktune's is a multiple of.
    pub fn of(id: u32, data: &[u8]) -> Result<Option<Self>> {
        let blocks = u64::from(u32_at(data, 0)) | u64::from(u32_at(data, 4)) << 32;
        if blocks == 0 {
            return Ok(None);
        }
        // FLBAS, byte 26: bits 3:0 and, above them, 6:5 select the format.
        let index = usize::from(data[26] & 0xf | data[26] >> 1 & 0x30);
        // LBAFn, from byte 128: MS in bytes 0 and 1, LBADS in byte 2.
        let format = &data[128 + 4 * index..][..4];
        let metadata_bytes = u16::from_le_bytes([format[0], format[1]]);
        let block_shift = u32::from(format[2]);
        if metadata_bytes > 0 {
            let what = format!("namespace {id} is formatted with {metadata_bytes} bytes of metadata a block");
            return Err(
                Error::input(what).hint("choose a format without metadata: `nvme id-ns -H` lists them")
            );
        }
        if !(9..=12).contains(&block_shift) {
            let what = format!("namespace {id} has logical blocks of 2^{block_shift} bytes");
            return Err(Error::input(what).hint("512 B to 4 KiB can be used: `nvme id-ns -H` lists formats"));
        }
        Ok(Some(Self { id, blocks, block_shift }))
    }

    /// Bytes of a logical block.
    pub fn block_bytes(&self) -> u64 {
        1 << self.block_shift
    }

    /// Its total bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes())
    }
}

/// The active namespaces, in order (Base 5.17.2.2): identifiers up to the first zero.
pub fn active_namespaces(data: &[u8]) -> Vec<u32> {
    (0..data.len() / 4).map(|n| u32_at(data, n * 4)).take_while(|id| *id != 0).collect()
}

fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

/// ASCII, padded with spaces.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(flbas: u8, index: usize, format: [u8; 4]) -> Result<Option<Namespace>> {
        let mut data = [0; IDENTIFY_BYTES];
        data[0] = 100;
        data[26] = flbas;
        data[128 + 4 * index..][..4].copy_from_slice(&format);
        Namespace::of(3, &data)
    }

    #[test]
    fn the_format_in_use_gives_the_blocks() {
        let found = namespace(2, 2, [0, 0, 12, 0]).unwrap().unwrap();
        assert_eq!(found, Namespace { id: 3, blocks: 100, block_shift: 12 });
        assert_eq!(found.bytes(), 409_600);
        // Formats from 16 on have the upper bits of their number in 6:5.
        assert!(namespace(0x21, 17, [0, 0, 9, 0]).unwrap().is_some());
        assert_eq!(Namespace::of(1, &[0; IDENTIFY_BYTES]).unwrap(), None);
    }

    #[test]
    fn formats_with_metadata_or_odd_blocks_are_refused() {
        assert!(namespace(0, 0, [8, 0, 9, 0]).unwrap_err().what.contains("8 bytes of metadata"));
        assert!(namespace(0, 0, [0, 0, 0, 0]).is_err());
        assert!(namespace(0, 0, [0, 0, 63, 0]).is_err());
    }

    #[test]
    fn a_controller_reports_its_limits() {
        let mut data = [0; IDENTIFY_BYTES];
        data[4..8].copy_from_slice(b"RIG0");
        data[77] = 7;
        (data[512], data[513]) = (0x66, 0x44);
        let facts = ControllerFacts::of(&data, 4096);
        assert_eq!(facts.serial, "RIG0");
        assert_eq!(facts.transfer_bytes_max, Some(512 << 10));
        assert!(facts.entry_sizes_fit && !facts.volatile_write_cache);
        for (mdts, limit) in [(0, None), (52, None), (255, None)] {
            data[77] = mdts;
            assert_eq!(ControllerFacts::of(&data, 4096).transfer_bytes_max, limit);
        }
    }

    #[test]
    fn the_list_of_namespaces_ends_at_the_first_zero() {
        let mut data = [0; IDENTIFY_BYTES];
        (data[0], data[4], data[12]) = (1, 5, 9);
        assert_eq!(active_namespaces(&data), [1, 5]);
        assert_eq!(active_namespaces(&[1; IDENTIFY_BYTES]).len(), 1024);
    }
}
