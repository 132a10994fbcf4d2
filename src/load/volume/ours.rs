//! Whether data on a member is stacktune's own.

use super::{header, stamp};

/// Whether stacktune itself wrote the sector that was read from `place_bytes` of a member: a header, or a
/// page that belongs at exactly that place. A page of ours anywhere else may be part of a file in someone's
/// file system.
pub fn is_ours_at(sector: &[u8], place_bytes: u64) -> bool {
    (sector.starts_with(header::MAGIC) && header::COPIES_AT.contains(&place_bytes))
        || stamp::read(sector).is_some_and(|stamp| stamp.place_bytes == place_bytes)
}
