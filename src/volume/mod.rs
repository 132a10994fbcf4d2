//! The volume that a run works on: members with their header, WAL and data, filled and verified.

pub mod region;

pub use region::{Extent, Region};
