//! The options of mkfs and mount that a profile may give: a list for each file system, with the values that
//! each option takes.
//!
//! Enters: options as a profile gives them. Leaves: arguments for mkfs and mount, or the reason why not.
//!
//! Both tools run as root, and profiles are passed on. So whatever is not in a list is refused: options that
//! name a file or a device, set the UUID, label or size that stacktune chooses itself, fill the file system
//! with others' files, or make an error stop the whole machine.

mod allowed;
mod mkfs;
mod mount;

pub use mkfs::mkfs;
pub use mount::mount;
