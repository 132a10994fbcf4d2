//! Block devices: named before they exist, and found again after a crash.
//!
//! Enters: what the host reports about its devices, and what tools read from them. Leaves: nodes, each
//! checked against the kernel's device number. Nothing is written here.

mod arrays;
mod block_device;
mod drive;
pub mod gpt;
mod ids;
mod layers;
mod loops;
pub(crate) mod node;
mod partitions;
mod sysfs;

pub(crate) use arrays::{arrays, is_array, member_uuid};
pub use block_device::BlockDevice;
pub(crate) use block_device::Found;
pub use drive::Drive;
pub(crate) use ids::same_id;
pub(crate) use layers::{foreign_ground, holders_of, layer_node};
pub(crate) use loops::{Inode, backing_inode, canonical_parent, loops_over};
pub(crate) use partitions::table;
