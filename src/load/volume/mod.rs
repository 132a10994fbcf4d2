//! The volume that a run works on: members with their header, WAL and data, filled and verified.
//!
//! Enters: files, devices or a stack's device, and the sizes to use. Leaves: regions for the workers, and reports
//! of what was filled and verified.

mod affordable;
mod compared;
pub mod files;
pub mod fill;
pub mod header;
pub mod layout;
mod lock;
mod make;
mod mapped;
mod member;
pub mod open;
mod opened;
mod ours;
mod own_file;
mod probe;
mod progress;
mod read_only;
pub mod region;
mod report;
mod request;
mod scatter;
mod settle;
pub mod stamp;
mod survey;
mod template;
mod verify;
pub mod write_map;

pub use affordable::{affordable_size, chosen_size, our_bytes};
pub use files::refuse_foreign;
pub use member::MemberSource;
pub use opened::Volume;
pub use ours::is_ours_at;
pub use probe::{examine_folder, try_uncached};
pub use progress::Progress;
pub use region::{Extent, Identity, Region};
pub use report::VerifyReport;
pub use request::{Request, refuse_in_the_way};
pub use stamp::{SECTOR_BYTES, Stamper};
pub use survey::Survey;
