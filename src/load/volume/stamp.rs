//! The stamp in every sector, which makes what was written verifiable.
//!
//! A sector verifies on its own, even if pages of different sizes overwrote one another. Its 512 bytes,
//! little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | the set |
//! | 8..16 | the place: sector number on the member, and the extent's index in the upper 16 bits |
//! | 16..24 | the sequence number; above it log2 of the page's sectors (4 bits) and the region (4 bits) |
//! | 24..32 | a checksum of all the above and of the body's checksum |
//! | 32..36 | the body's CRC-32C |
//! | 36..512 | the body: incompressible pseudo-random bytes |
//!
//! The body is a sector of a random template, combined by XOR with its page's key. No two pages share a run of bytes,
//! however far apart they are, so a compressor finds no match with a window of any size, and nothing
//! deduplicates. CRC-32C is linear, so the body's is computed from the template sector's and the key's,
//! without reading the body again.

use serde::Serialize;

pub use super::template::SECTOR_BYTES;
use super::template::{BODY_AT, CHECKSUM_AT, template};

/// Sequence numbers are smaller than 2 to the power of this.
pub const SEQUENCE_BITS: u32 = 56;

const MEMBER_SHIFT: u32 = 48;
const PAGE_SHIFT: u32 = 56;
const REGION_SHIFT: u32 = 60;

/// The content of a valid stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The set.
    pub set: u64,
    /// The region's id.
    pub region: u8,
    /// The index of the extent in its region.
    pub extent: u32,
    /// Offset on the member.
    pub place_bytes: u64,
    /// Sequence number of the write.
    pub sequence: u64,
    /// Size of the page with which the sector was written.
    pub page_bytes: u64,
}

/// What is wrong with a sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// All zeros.
    NeverWritten,
    /// Not written by this set.
    Foreign,
    /// A valid sector of this set that belongs elsewhere.
    Misplaced,
    /// Of this set, but its bytes are not those that were written.
    Damaged,
}

impl Fault {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverWritten => "never written",
            Self::Foreign => "foreign",
            Self::Misplaced => "misplaced",
            Self::Damaged => "damaged",
        }
    }
}

/// Makes the pages of a region.
#[derive(Debug)]
pub struct Stamper {
    set: u64,
    region: u8,
    template: &'static [[u8; SECTOR_BYTES]],
}

impl Stamper {
    /// Makes the pages of that region of the set.
    pub fn new(set: u64, region: u8) -> Self {
        Self { set, region, template: template() }
    }

    /// Makes the page (whole sectors) to be written to `place_bytes` of the region's extent number `extent`
    /// (the index from [`super::Region::place`]); as fast as copying it.
    #[inline]
    pub fn stamp(&self, page: &mut [u8], extent: u32, place_bytes: u64, sequence: u64) {
        let (sectors, _) = page.as_chunks_mut::<SECTOR_BYTES>();
        let page_log2 = u64::from(sectors.len().max(1).ilog2());
        let written = (sequence & ((1 << SEQUENCE_BITS) - 1))
            | (page_log2 << PAGE_SHIFT)
            | (u64::from(self.region) << REGION_SHIFT);
        let first = (place_bytes / SECTOR_BYTES as u64) | (u64::from(extent) << MEMBER_SHIFT);
        let page = page_mix(self.set, written);
        let key = sector_mix(page, first, 0);
        let key_checksum = checksum_of_key(key);
        let templates = self.template.iter().cycle();
        for (place, (sector, template)) in (first..).zip(sectors.iter_mut().zip(templates)) {
            let (words, _) = sector.as_chunks_mut::<8>();
            let (random, _) = template.as_chunks::<8>();
            for (word, random) in words[CHECKSUM_AT / 8..].iter_mut().zip(&random[CHECKSUM_AT / 8..]) {
                *word = (u64::from_ne_bytes(*random) ^ key).to_ne_bytes();
            }
            let body = checksum_in(template) ^ key_checksum;
            let check = sector_mix(page, place, body);
            sector[0..8].copy_from_slice(&self.set.to_le_bytes());
            sector[8..16].copy_from_slice(&place.to_le_bytes());
            sector[16..24].copy_from_slice(&written.to_le_bytes());
            sector[24..32].copy_from_slice(&check.to_le_bytes());
            sector[CHECKSUM_AT..BODY_AT].copy_from_slice(&body.to_le_bytes());
        }
    }
}

/// How XOR with a key changes a body's CRC-32C: the same for every body of that length.
#[inline]
fn checksum_of_key(key: u64) -> u32 {
    const ZEROS: [u8; SECTOR_BYTES] = [0; SECTOR_BYTES];
    let keys = [key.to_ne_bytes(); SECTOR_BYTES / 8];
    crc32c::crc32c(&keys.as_flattened()[BODY_AT..]) ^ crc32c::crc32c(&ZEROS[BODY_AT..])
}

#[inline]
fn checksum_in(sector: &[u8; SECTOR_BYTES]) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|n| sector[CHECKSUM_AT + n]))
}

/// Mixes the fields that the stamps of all sectors of a page share.
#[inline]
fn page_mix(set: u64, written: u64) -> u64 {
    let h = (set ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (h ^ (h >> 32) ^ written).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Mixes a sector's own fields into its page's mix. Zeros don't mix to zero, so that an empty sector is
/// invalid.
#[inline]
fn sector_mix(page: u64, place: u64, body: u32) -> u64 {
    let h = (page ^ (page >> 32) ^ place).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let h = (h ^ (h >> 32) ^ u64::from(body)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

/// A sector's stamp, if it is intact.
pub fn read(sector: &[u8]) -> Option<Stamp> {
    let sector: &[u8; SECTOR_BYTES] = sector.first_chunk()?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| sector[at + n]));
    let (set, place, written) = (word(0), word(8), word(16));
    let body = checksum_in(sector);
    let whole = word(24) == sector_mix(page_mix(set, written), place, body)
        && crc32c::crc32c(&sector[BODY_AT..]) == body;
    whole.then(|| Stamp {
        set,
        region: (written >> REGION_SHIFT) as u8,
        extent: (place >> MEMBER_SHIFT) as u32,
        place_bytes: (place & ((1 << MEMBER_SHIFT) - 1)) * SECTOR_BYTES as u64,
        sequence: written & ((1 << SEQUENCE_BITS) - 1),
        page_bytes: (SECTOR_BYTES as u64) << ((written >> PAGE_SHIFT) & 0xf),
    })
}

/// Checks a sector that was read from `place_bytes` of the extent number `extent` of a region.
pub fn check(sector: &[u8], set: u64, region: u8, extent: u32, place_bytes: u64) -> Result<Stamp, Fault> {
    let Some(stamp) = read(sector) else {
        return Err(match sector {
            _ if sector.iter().all(|&byte| byte == 0) => Fault::NeverWritten,
            _ if sector.starts_with(&set.to_le_bytes()) => Fault::Damaged,
            _ => Fault::Foreign,
        });
    };
    if stamp.set != set {
        Err(Fault::Foreign)
    } else if (stamp.region, stamp.extent, stamp.place_bytes) != (region, extent, place_bytes) {
        Err(Fault::Misplaced)
    } else {
        Ok(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use proptest::prelude::*;

    fn page(bytes: usize, extent: u32, place: u64, sequence: u64) -> Vec<u8> {
        let mut page = vec![0; bytes];
        Stamper::new(7, 1).stamp(&mut page, extent, place, sequence);
        page
    }

    #[test]
    fn every_sector_of_a_page_verifies_only_at_its_own_place() {
        let page = page(16 << 10, 2, 1 << 30, 99);
        for (n, sector) in page.chunks(SECTOR_BYTES).enumerate() {
            let place = (1 << 30) + (n * SECTOR_BYTES) as u64;
            let stamp = check(sector, 7, 1, 2, place).unwrap();
            assert_eq!((stamp.sequence, stamp.page_bytes, stamp.region), (99, 16 << 10, 1));
            assert_eq!(check(sector, 7, 1, 2, place + 512), Err(Fault::Misplaced));
            assert_eq!(check(sector, 7, 1, 3, place), Err(Fault::Misplaced));
            assert_eq!(check(sector, 7, 0, 2, place), Err(Fault::Misplaced));
            assert_eq!(check(sector, 8, 1, 2, place), Err(Fault::Foreign));
        }
    }

    #[test]
    fn a_sector_of_another_page_size_in_the_middle_verifies() {
        let mut large = page(1 << 20, 0, 1 << 20, 1);
        large[4096..4608].copy_from_slice(&page(512, 0, (1 << 20) + 4096, 2));
        for (n, sector) in large.chunks(SECTOR_BYTES).enumerate() {
            check(sector, 7, 1, 0, (1 << 20) + (n * SECTOR_BYTES) as u64).unwrap();
        }
    }

    #[test]
    fn foreign_sectors_are_recognized() {
        assert_eq!(check(&[0; 512], 7, 1, 0, 0), Err(Fault::NeverWritten));
        assert_eq!(check(&[0xa5; 512], 7, 1, 0, 0), Err(Fault::Foreign));
        assert_eq!(read(&[0; 512]), None);
        assert_eq!(read(&[0; 100]), None);
    }

    /// How many 8-byte words of all bodies repeat an earlier one; a match that a compressor can use needs
    /// several in a row.
    fn repeated_words(pages: &[u8]) -> usize {
        let words = pages.chunks(SECTOR_BYTES).flat_map(|sector| sector[40..].as_chunks::<8>().0);
        let mut words: Vec<_> = words.collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        all - words.len()
    }

    #[test]
    fn no_two_pages_share_bytes_however_often_one_buffer_is_written() {
        let stamper = Stamper::new(1, 0);
        // A fill: pages of a MiB, one after the other.
        let mut fill = vec![0; 8 << 20];
        for (n, page) in (0..).zip(fill.chunks_mut(1 << 20)) {
            stamper.stamp(page, 0, n << 20, n);
        }
        assert_eq!(repeated_words(&fill), 0);
        // A load: one buffer, to different places and then to one place repeatedly, in several extents.
        let mut load = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        for (extent, place, sequence) in
            (0..128).map(|n| (n as u32 % 3, (u64::from(n < 64) * n) << 14, n + 100))
        {
            stamper.stamp(&mut buffer, extent, place, sequence);
            load.extend_from_slice(&buffer);
        }
        assert_eq!(repeated_words(&load), 0);
        fill.extend_from_slice(&load);
        assert_eq!(repeated_words(&fill), 0);
        // Only the stamps are compressible.
        for pages in [&fill[..1 << 20], &load[..1 << 20], &load[..64 << 10]] {
            let mut deflated = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
            deflated.write_all(pages).unwrap();
            let ratio = deflated.finish().unwrap().len() as f64 / pages.len() as f64;
            assert!(ratio > 0.95, "{ratio}");
        }
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_found(byte in 0..512_usize, bit in 0..8_u8, sequence in 0..1_u64 << 56) {
            let mut sector = page(512, 1, 4096, sequence);
            sector[byte] ^= 1 << bit;
            let fault = check(&sector, 7, 1, 1, 4096).unwrap_err();
            prop_assert_eq!(fault, if byte < 8 { Fault::Foreign } else { Fault::Damaged });
        }
    }
}
