//! A volume that is open.

use std::fs::File;
use std::sync::Arc;

use super::header::Header;
use super::layout::{HEADER_BYTES, Parts, floor_mib};
use super::member::Member;
use super::stamp::SEQUENCE_BITS;
use super::write_map::WriteMap;
use super::{Extent, Identity, Region, probe};
use crate::error::{Error, Result};
use crate::host::TargetFacts;
use crate::short_list;

// 262,144 runs of 2.7e11 writes each before sequence numbers wrap around.
pub(super) const EPOCH_SHIFT: u32 = 38;
/// Where the sequence numbers of a run without a map begin.
const UNKEPT_BASE: u64 = 1 << (EPOCH_SHIFT - 1);
/// Why it is unknown what the pages should hold.
pub(super) const NO_MAP: &str = "it has no write map";
const _: () = assert!(HEADER_BYTES.is_multiple_of(4096) && EPOCH_SHIFT < SEQUENCE_BITS);

/// An open, locked volume.
#[derive(Debug)]
pub struct Volume {
    /// The set of the data; 0 if the members are not stacktune's.
    pub set: u64,
    /// The data region, which scan, point and background share.
    pub data: Region,
    /// The WAL's region. Its extents are empty if a read-only volume has none.
    pub wal: Region,
    /// The members; [`Extent::member`] is an index here. The WAL's own comes last.
    pub members: Vec<Member>,
    /// What the target can do.
    pub facts: TargetFacts,
    /// Notes about this target, as sentences.
    pub notes: Vec<String>,
    pub(super) read_only: bool,
    /// What its pages should hold, or why that is unknown.
    pub(super) map: std::result::Result<Arc<WriteMap>, String>,
    /// The locks, held as long as the volume is open.
    pub(super) _locks: Vec<File>,
}

/// Adds regions and facts to members that have headers: `data_count` of data, then perhaps the WAL's own.
pub(super) fn assemble(
    members: Vec<Member>,
    data_count: usize,
    locks: Vec<File>,
    read_only: bool,
    mounted: Option<String>,
) -> Volume {
    let (data_members, wal_members) = members.split_at(data_count);
    let data = region_of(Region::DATA, data_members, 0);
    let wal = match wal_members {
        [] => region_of(Region::WAL, data_members, 0),
        own => region_of(Region::WAL, own, data_count),
    };
    let opened: Vec<(&File, bool)> = members.iter().map(|member| (&member.file, member.device)).collect();
    let facts = probe::examine(&opened, read_only, mounted);
    let notes = Vec::new();
    let map = Err(NO_MAP.to_owned());
    Volume { set: data.set, data, wal, members, facts, notes, read_only, map, _locks: locks }
}

/// The region over those members, the first of which is number `first`: the extents are in the order of the
/// set, in whatever order the members were named.
fn region_of(id: u8, members: &[Member], first: usize) -> Region {
    let headers = (first as u32..).zip(members).filter_map(|(n, m)| m.header.as_ref().map(|h| (n, m, h)));
    let mut headers: Vec<(u32, &Member, &Header)> = headers.collect();
    short_list::sort_by_key(&mut headers, |(.., header)| header.index);
    let place = |parts: Parts| match id {
        Region::WAL => (Parts::WAL_OFFSET_BYTES, parts.wal_bytes),
        _ => (parts.data_offset_bytes(), parts.data_bytes),
    };
    let extent_bytes = headers.iter().map(|(.., header)| place(header.parts).1).min().unwrap_or_default();
    let extents = headers.iter().filter(|_| extent_bytes > 0).map(|(n, member, header)| Extent {
        path: member.path.clone(),
        identity: Identity::of(&member.file).ok(),
        member: *n,
        offset_bytes: place(header.parts).0,
    });
    let set = headers.first().map_or(0, |(.., header)| header.set);
    Region { id, set, extents: extents.collect(), extent_bytes }
}

/// The data region over members that are not stacktune's: all of each.
pub(super) fn whole_region(members: &[Member], smallest_bytes: u64) -> Region {
    let extents = (0..).zip(members).map(|(n, member)| Extent {
        path: member.path.clone(),
        identity: Identity::of(&member.file).ok(),
        member: n,
        offset_bytes: 0,
    });
    let extent_bytes = floor_mib(smallest_bytes);
    Region { id: Region::DATA, set: 0, extents: extents.collect(), extent_bytes }
}

impl Volume {
    /// The first sequence number of a new run that writes: greater than those of all earlier runs.
    pub fn next_sequence_base(&mut self) -> Result<u64> {
        self.writable()?;
        let map = self.map.as_ref().ok();
        // The map may know of a later epoch than headers that were rolled back.
        let epoch = map.map_or(0, |map| map.epoch()).max(self.epoch()) + 1;
        if let Some(map) = map {
            map.set_epoch(epoch);
        }
        for member in &mut self.members {
            let Some(header) = &mut member.header else { continue };
            header.epoch = epoch;
            let written = header.write(&member.file);
            written.map_err(|error| Error::os("cannot write the header of", &member.path, error))?;
        }
        // A run without the map must use newer numbers than any that a map of that epoch knows, such as one
        // that was kept for a copy of the data set.
        let apart = if self.map.is_err() { UNKEPT_BASE } else { 0 };
        Ok(((epoch << EPOCH_SHIFT) & ((1 << SEQUENCE_BITS) - 1)) + apart)
    }

    /// Epoch of the newest run that wrote to the set.
    pub(super) fn epoch(&self) -> u64 {
        let headers = self.members.iter().filter_map(|member| member.header.as_ref());
        headers.map(|header| header.epoch).max().unwrap_or_default()
    }

    pub(super) fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::refused("the target is open read-only: nothing is written to it"));
        }
        Ok(())
    }

    /// The regions of a member with their extent's index: `(region, index)`.
    pub(super) fn extents_of(&self, member: usize) -> impl Iterator<Item = (&Region, u32)> {
        [&self.wal, &self.data].into_iter().flat_map(move |region| {
            let extents = (0..).zip(&region.extents);
            extents.filter(move |(_, extent)| extent.member as usize == member).map(move |(n, _)| (region, n))
        })
    }
}
