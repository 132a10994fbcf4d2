//! What the kernel and the machine allow, and what else runs.
//!
//! Enters: sysfs, procfs and system calls. Leaves: facts as data.
//!
//! | module | is about |
//! |---|---|
//! | [`cgroup`] | where this process could have a memory cgroup of its own |
//! | [`drivers`] | which kernel drivers for arrays and file systems this host lacks |
//! | [`features`] | what the kernel lets this process do, tried, not guessed |
//! | [`file_limit`] | how many files this process may have open |
//! | [`hugepages`] | huge pages, set aside and free |
//! | [`platform`] | what the kernel and the machine allow beyond plain I/O |
//! | [`programs`] | other programs on this host: their names, and how much of the processor they use |
//! | [`spdk`] | whether the operator's SPDK can be used |
//! | [`threads`] | how other processes hold files: descriptors and shared memory |
//! | [`tools`] | the tools for building stacks |
//! | [`users`] | users of this host |

pub(super) mod cgroup;
pub(super) mod drivers;
pub(super) mod features;
pub(super) mod file_limit;
pub(super) mod hugepages;
pub(super) mod platform;
pub(super) mod programs;
pub mod spdk;
pub(super) mod threads;
pub(super) mod tools;
pub(super) mod users;
