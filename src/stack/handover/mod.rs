//! Drives that leave the kernel for a program in userspace, and come back: their PCI function is bound to
//! `vfio-pci` instead of `nvme`.
//!
//! Everything that would leave with the drive is examined: all namespaces of its controller, and all devices
//! of its IOMMU group. The undo is journaled before anything is unbound.
//!
//! Enters: claimed drives. Leaves: their PCI addresses and namespaces, until they are given back.

mod bus;
mod examine;
mod hand_over;
mod iommu;
#[cfg(test)]
mod tests;

pub(crate) use bus::{commands, give_back};
pub use examine::{Noiommu, UserspaceDrive, examine};
pub use hand_over::{HandedOver, hand_over, steps};
pub(crate) use iommu::restore_type;
pub use iommu::{IommuGroup, commands_of, group_of, set_type};
