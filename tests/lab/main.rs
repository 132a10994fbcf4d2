//! Emulated NVMe drives in a virtual machine.

#[path = "../common/mod.rs"]
mod common;

mod array;
mod dropped;
mod in_soak;
#[cfg(feature = "rocksdb")]
mod kv;
mod machines;
mod nvme;
mod spdk;
