//! stacktune's own `NVMe` driver: drives a controller from userspace, without interrupts.
//!
//! Enters: a PCI function that the kernel has given up, and commands. Leaves: completions, and counts of time-outs
//! and resets.
//!
//! It is meant to be read beside the specification. *Base* is the NVM Express Base Specification 2.0, *NVM*
//! the NVM Command Set Specification 1.0, and *PCIe* the `NVMe` over PCIe Transport Specification 1.0, all
//! published together.
//!
//! | file | what | sections |
//! |---|---|---|
//! | [`spec`] | registers, commands and completions, bit by bit | Base 3.1.3, 3.3.3, 5, 7; NVM 3.2; PCIe 3.1 |
//! | [`status`] | what a completion says, in the specification's words | Base 3.3.3.2.1 |
//! | [`identify`] | what controllers and namespaces say about themselves | Base 5.17; NVM 4.1.5 |
//! | [`prp`] | where a command's data is: PRP entries and lists | Base 4.1.1 |
//! | [`queue`] | a submission and a completion queue: rings, phase tag, doorbells | Base 3.3.1 |
//! | [`admin`] | the admin queue: enable, disable, identify, its commands | Base 3.5, 5 |
//! | [`controller`] | start, queues, abort, reset, shutdown | Base 3.6, 3.7, 5, 9.5 |
//! | [`lane`] | a worker's queue pair with its watchdog: timeouts | Base 5.1, 9 |
//! | [`transfer`] | a worker's page buffers, split by what a command may move | Base 5.17.2.1 (MDTS) |
//! | [`bus`], [`dma`] | access to registers and memory, whatever provides them | – |
//! | [`vfio`] | … of a drive that the kernel has handed over | Linux's VFIO |
//! | [`space`], [`memory`] | the addresses that an IOMMU lets it reach; memory on large pages | Linux's VFIO, iommufd |
//! | [`noiommu`] | … and of one without an IOMMU | Linux's VFIO |
//!
//! A controller in memory (`model`, for tests) answers like a real one, or wrongly on purpose.
//!
//! The hot loop is [`lane::Lane::push`], [`lane::Lane::ring`] and [`lane::Lane::poll`]: it allocates nothing,
//! takes no lock, and writes one doorbell per batch. Admin commands, which take a lock, are needed only
//! before it, after it, and when a command does not come back.

pub mod admin;
pub mod bus;
pub mod controller;
pub mod dma;
pub mod identify;
pub mod lane;
pub mod memory;
#[cfg(test)]
pub mod model;
#[cfg(test)]
mod model_memory;
#[cfg(test)]
mod model_state;
#[cfg(feature = "userspace")]
pub mod noiommu;
pub mod prp;
pub mod queue;
#[cfg(feature = "userspace")]
pub mod space;
pub mod spec;
pub mod status;
pub mod transfer;
#[cfg(feature = "userspace")]
pub mod vfio;
#[cfg(feature = "userspace")]
mod words;

pub use admin::{Condition, Patience};
pub use bus::Bus;
pub use controller::Controller;
pub use identify::Namespace;
pub use lane::Lane;
pub use transfer::Transfers;
