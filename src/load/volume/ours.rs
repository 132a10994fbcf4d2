//! Whether data on a member is stacktune's own.

use super::{header, stamp};

/// Whether a sector that was read from `place_bytes` of a member was written there by stacktune: a
/// header, or a page that belongs to that very place. A page of ours that lies elsewhere may be
/// part of a file in another's file system.
pub fn is_ours_at(sector: &[u8], place_bytes: u64) -> bool {
    (sector.starts_with(header::MAGIC) && header::COPIES_AT.contains(&place_bytes))
        || stamp::read(sector).is_some_and(|stamp| stamp.place_bytes == place_bytes)
}
