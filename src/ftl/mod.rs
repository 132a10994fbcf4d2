//! Modelled flash drives: what a flash translation layer does with reads, writes and discards.
//!
//! Enters: what the host asks for. Leaves: what was read, programmed and erased, and why; where there is a clock, when
//! each was done.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`counts`] | what a drive did, and why | – |
//! | [`sizes`] | the spec of a drive, in pages and blocks | – |
//! | [`flash`] | blocks of pages: free, open, closed; which one to empty | counts, sizes |
//! | [`cache`] | which translation pages are in memory | flash |
//! | [`paged`] | mapping by pages, the map held whole or on demand (DFTL) | counts, sizes, flash, cache |
//! | [`hybrid`] | mapping by blocks, with a log by pages | counts, sizes, flash, cache |
//! | [`drive`] | a drive: bytes to pages, whichever mapping | counts, sizes, flash, paged, hybrid |
//! | [`timed`] | a drive with a clock | counts, sizes, flash, drive |
//!
//! Nothing here is random, and nothing is allocated once a drive has been made.

mod cache;
mod counts;
mod drive;
mod flash;
#[cfg(feature = "trace")]
mod hybrid;
mod paged;
mod sizes;
#[cfg(all(test, feature = "trace"))]
mod tests;
mod timed;

#[cfg(feature = "trace")]
pub use counts::{CAUSES, Cause, Counts};
#[cfg(feature = "trace")]
pub use drive::FlashDrive;
#[cfg(feature = "trace")]
pub use sizes::{ENTRY_BYTES, FlashSpec, Mapping, Sizes};
pub use timed::Timed;
