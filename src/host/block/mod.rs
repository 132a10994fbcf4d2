//! Block devices: what they lie on, what uses them, and which one a path means.
//!
//! Enters: sysfs, udev's links, mount tables and open files. Leaves: [`device::Device`]s, each with its uses.
//!
//! | module | is about |
//! |---|---|
//! | [`arrays`] | arrays in use, watched for lost members |
//! | [`attributes`] | attributes that knobs turn, watched for changes |
//! | [`btrfs`] | Btrfs on several devices, and whether all are there |
//! | [`device`] | a block device, and what uses it |
//! | [`devices`] | block devices, from sysfs and udev's links |
//! | [`exports`] | block devices served to others, or written by another program |
//! | [`levels`] | the block devices below a target, down to the drives |
//! | [`loops`] | loop devices and what is behind them |
//! | [`members`] | members of arrays, and what an array has lost |
//! | [`reservation`] | NVMe reservations of a shared drive |
//! | [`resolver`] | which node a path or a mount means |
//! | [`usage`] | what uses a block device: mounts, swap, holders, exports, programs |

pub(super) mod arrays;
pub(super) mod attributes;
pub(super) mod btrfs;
pub(super) mod device;
pub(super) mod devices;
pub(super) mod exports;
pub(super) mod levels;
pub(super) mod loops;
pub(super) mod members;
pub(super) mod reservation;
pub(super) mod resolver;
pub(super) mod usage;
