//! Emulated NVMe drives in a virtual machine.

#[path = "../common/mod.rs"]
mod common;

mod machines;
mod nvme;
mod spdk;
