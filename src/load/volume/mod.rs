//! The volume that a run works on: members with their header, WAL and data, filled and verified.

mod affordable;
mod direct;
pub mod files;
pub mod fill;
pub mod header;
pub mod layout;
mod lock;
mod make;
mod member;
pub mod open;
mod opened;
mod own_file;
mod probe;
mod progress;
mod read_only;
pub mod region;
mod request;
mod settle;
pub mod stamp;
mod survey;
mod template;
pub mod verify;

pub use affordable::affordable_size;
pub use files::refuse_foreign;
pub use member::MemberSource;
pub use opened::Volume;
pub use probe::{examine_folder, try_uncached};
pub use progress::Progress;
pub use region::{Extent, Identity, Region};
pub use request::{Request, refuse_in_the_way};
pub use stamp::{SECTOR_BYTES, Stamper};
pub use survey::Survey;
pub use verify::VerifyReport;

/// Whether a sector that was read from `place_bytes` of a member was written there by stacktune: a
/// header, or a page that belongs to that very place. A page of ours that lies elsewhere may be
/// part of a file in another's file system.
pub fn is_ours_at(sector: &[u8], place_bytes: u64) -> bool {
    (sector.starts_with(header::MAGIC) && header::COPIES_AT.contains(&place_bytes))
        || stamp::read(sector).is_some_and(|stamp| stamp.place_bytes == place_bytes)
}
