//! The header of a member: what it is part of, and how much of it is filled.
//!
//! There are two copies, written one after the other with a flush in between, so that an interrupted write
//! leaves at least one intact. The newest intact copy counts.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, fadvise};

use super::layout::{HEADER_BYTES, Parts};
use super::region::Region;

pub use crate::marks::{VOLUME as MAGIC, VOLUME_AT as COPIES_AT};

const VERSION: u32 = 1;
/// Bytes of each copy of the header.
pub const COPY_BYTES: usize = 512;
const CHECKSUM_AT: usize = COPY_BYTES - 4;
// A copy is written as a whole block, so that no drive has to read before writing.
const BLOCK_BYTES: usize = 4096;
const _: () = assert!(COPIES_AT[1] == HEADER_BYTES / 2);

/// What a member is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Data (a file).
    Data,
    /// The WAL alone.
    Wal,
    /// Data and a share of the WAL (a device).
    Both,
}

/// The content of a member's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The set that the member belongs to.
    pub set: u64,
    /// Its index in the set.
    pub index: u32,
    /// Members of the set.
    pub members: u32,
    /// What the member is for.
    pub role: Role,
    /// How it is divided.
    pub parts: Parts,
    /// Bytes of the WAL region that are filled, from its start.
    pub wal_filled_bytes: u64,
    /// Bytes of the data region that are filled, from its start.
    pub data_filled_bytes: u64,
    /// Number of runs that have written to the set: sequence numbers increase with it.
    pub epoch: u64,
    /// Increases with each write of the header.
    pub generation: u64,
}

/// What was found where a header should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A whole header.
    Valid(Header),
    /// A header of ours, but neither copy is whole.
    Damaged,
    /// Not a header of ours.
    Absent,
}

impl Header {
    /// The header of a member with nothing filled.
    pub fn new(set: u64, index: u32, members: u32, role: Role, parts: Parts) -> Self {
        let (wal_filled_bytes, data_filled_bytes, epoch, generation) = (0, 0, 0, 0);
        Self { set, index, members, role, parts, wal_filled_bytes, data_filled_bytes, epoch, generation }
    }

    /// Whether it says that the byte at `offset` of its member was written: as header, WAL or data.
    pub fn says_filled(&self, offset: u64) -> bool {
        let within = |start: u64, bytes: u64| (start..start + bytes).contains(&offset);
        offset < HEADER_BYTES
            || within(Parts::WAL_OFFSET_BYTES, self.wal_filled_bytes)
            || within(self.parts.data_offset_bytes(), self.data_filled_bytes)
    }

    /// Bytes of that region that are filled, from its start.
    pub fn filled_bytes(&self, region: u8) -> u64 {
        if region == Region::WAL { self.wal_filled_bytes } else { self.data_filled_bytes }
    }

    /// The same, mutable.
    pub fn filled_bytes_mut(&mut self, region: u8) -> &mut u64 {
        if region == Region::WAL { &mut self.wal_filled_bytes } else { &mut self.data_filled_bytes }
    }

    /// The 512 bytes of a copy.
    pub fn encode(&self) -> [u8; COPY_BYTES] {
        let mut copy = [0; COPY_BYTES];
        copy[..16].copy_from_slice(MAGIC);
        copy[16..20].copy_from_slice(&VERSION.to_le_bytes());
        copy[20..24].copy_from_slice(&(self.role as u32).to_le_bytes());
        copy[24..28].copy_from_slice(&self.index.to_le_bytes());
        copy[28..32].copy_from_slice(&self.members.to_le_bytes());
        for (n, word) in self.words().into_iter().enumerate() {
            copy[32 + 8 * n..][..8].copy_from_slice(&word.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&copy[..CHECKSUM_AT]);
        copy[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        copy
    }

    fn words(&self) -> [u64; 7] {
        let filled = [self.wal_filled_bytes, self.data_filled_bytes];
        let [wal_filled, data_filled] = filled;
        let Parts { wal_bytes, data_bytes } = self.parts;
        [self.set, wal_bytes, data_bytes, wal_filled, data_filled, self.epoch, self.generation]
    }

    /// The header in a copy, if the copy is whole and makes sense.
    pub fn decode(copy: &[u8]) -> Option<Self> {
        let copy: &[u8; COPY_BYTES] = copy.first_chunk()?;
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|n| copy[at + n]));
        let word = |n: usize| u64::from_le_bytes(std::array::from_fn(|byte| copy[32 + 8 * n + byte]));
        let whole = copy.starts_with(MAGIC)
            && half(16) == VERSION
            && half(CHECKSUM_AT) == crc32c::crc32c(&copy[..CHECKSUM_AT]);
        if !whole {
            return None;
        }
        let role = *[Role::Data, Role::Wal, Role::Both].get(half(20) as usize)?;
        let parts = Parts { wal_bytes: word(1), data_bytes: word(2) };
        let header = Self {
            set: word(0),
            index: half(24),
            members: half(28),
            role,
            parts,
            wal_filled_bytes: word(3),
            data_filled_bytes: word(4),
            epoch: word(5),
            generation: word(6),
        };
        let bytes = parts.wal_bytes.checked_add(parts.data_bytes);
        let sound = header.index < header.members
            && bytes.is_some_and(|bytes| bytes <= i64::MAX as u64 - HEADER_BYTES)
            && header.wal_filled_bytes <= parts.wal_bytes
            && header.data_filled_bytes <= parts.data_bytes;
        sound.then_some(header)
    }

    /// Writes both copies, one after the other, each made durable before the next step.
    pub fn write(&mut self, file: &File) -> io::Result<()> {
        self.generation += 1;
        let mut block = [0; BLOCK_BYTES];
        block[..COPY_BYTES].copy_from_slice(&self.encode());
        for at in COPIES_AT {
            file.write_all_at(&block, at)?;
            file.sync_data()?;
        }
        forget(file);
        Ok(())
    }

    /// Writes the whole header area, so that nothing of its old content remains.
    pub fn write_area(&mut self, file: &File) -> io::Result<()> {
        self.generation += 1;
        let mut area = vec![0; HEADER_BYTES as usize];
        for at in COPIES_AT {
            area[at as usize..][..COPY_BYTES].copy_from_slice(&self.encode());
        }
        file.write_all_at(&area, 0)?;
        file.sync_data()?;
        forget(file);
        Ok(())
    }
}

impl Found {
    /// Picks the newest intact copy.
    pub fn of(copies: &[&[u8]]) -> Self {
        let newest = copies.iter().filter_map(|copy| Header::decode(copy)).max_by_key(|h| h.generation);
        match newest {
            Some(header) => Self::Valid(header),
            None if copies.iter().any(|copy| copy.starts_with(MAGIC)) => Self::Damaged,
            None => Self::Absent,
        }
    }

    /// Reads a member's header. A member too short for one has none.
    pub fn read(file: &File) -> io::Result<Self> {
        let mut copies = [[0; COPY_BYTES]; 2];
        for (copy, at) in copies.iter_mut().zip(COPIES_AT) {
            match file.read_exact_at(copy, at) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                outcome => outcome?,
            }
        }
        forget(file);
        Ok(Self::of(&[&copies[0], &copies[1]]))
    }
}

/// Drops the header from the page cache, because later reads should see the medium; best effort.
fn forget(file: &File) {
    let _ = fadvise(file, 0, std::num::NonZeroU64::new(HEADER_BYTES), Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::MIB;

    fn header(filled: u64, generation: u64) -> Header {
        let parts = Parts { wal_bytes: 20 * MIB, data_bytes: 80 * MIB };
        let data_filled_bytes = filled;
        Header { data_filled_bytes, generation, epoch: 9, ..Header::new(0x1234, 2, 4, Role::Both, parts) }
    }

    #[test]
    fn a_copy_round_trips() {
        for role in [Role::Data, Role::Wal, Role::Both] {
            let header = Header { role, ..header(3 * MIB, 5) };
            assert_eq!(Header::decode(&header.encode()), Some(header));
        }
    }

    #[test]
    fn a_tear_at_any_byte_of_either_copy_leaves_the_old_or_the_new_header() {
        let (old, new) = (header(MIB, 5), header(2 * MIB, 6));
        let (old_copy, new_copy) = (old.encode(), new.encode());
        for torn_at in 0..=COPY_BYTES {
            let torn = [&new_copy[..torn_at], &old_copy[torn_at..]].concat();
            let mangled = [&new_copy[..torn_at], &[0xff; COPY_BYTES][torn_at..]].concat();
            for torn in [&torn, &mangled] {
                let first = Found::of(&[torn, &old_copy]);
                assert!(first == Found::Valid(old.clone()) || first == Found::Valid(new.clone()));
                assert_eq!(Found::of(&[&new_copy, torn]), Found::Valid(new.clone()));
            }
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_voids_a_copy() {
        let copy = header(MIB, 1).encode();
        for bit in 0..COPY_BYTES * 8 {
            let mut flipped = copy;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&flipped), None, "bit {bit}");
        }
    }

    #[test]
    fn a_damaged_header_is_ours_and_a_blank_or_foreign_one_is_not() {
        let mut damaged = header(0, 1).encode();
        damaged[200] = 1;
        assert_eq!(Found::of(&[&damaged, &[0; 512]]), Found::Damaged);
        assert_eq!(Found::of(&[&[0; 512], &[0; 512]]), Found::Absent);
        assert_eq!(Found::of(&[&[0x5a; 512], &[]]), Found::Absent);
    }

    #[test]
    fn a_header_that_claims_more_than_exists_does_not_count() {
        assert_eq!(Header::decode(&header(81 * MIB, 1).encode()), None);
    }
}
