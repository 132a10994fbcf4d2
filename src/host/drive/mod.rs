//! One drive: what it, its link and its queue report.
//!
//! Enters: sysfs, and NVMe queries. Leaves: facts as data, and watches.
//!
//! | module | is about |
//! |---|---|
//! | [`emulated`] | whether a hypervisor emulates a drive |
//! | [`flash`] | an NVMe drive's own count of its writes to flash |
//! | [`health`] | what a drive reports of its wear, temperature and throttling |
//! | [`lba`] | the LBA formats of an NVMe drive, and formatting it |
//! | [`namespace`] | polling and NVMe commands on an opened file or device |
//! | [`nvme`] | NVMe queries: the kernel's passthrough to a controller or a namespace |
//! | [`pcie`] | the PCI Express link of a drive, and the bandwidth that it allows |
//! | [`queue`] | the block layer's queue of a device |
//! | [`temperature`] | how warm a drive is, and at what temperature it throttles |
//! | [`watch`] | the drives below a target, read while the load runs |

pub(super) mod emulated;
pub(super) mod flash;
pub(super) mod health;
pub(super) mod lba;
pub(super) mod namespace;
pub(super) mod nvme;
pub(super) mod pcie;
pub(super) mod queue;
pub(super) mod temperature;
pub(super) mod watch;
