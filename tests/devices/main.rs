//! Guard, stacks and load on loop devices: what needs root.

#[path = "../common/mod.rs"]
mod common;

mod adjust;
mod amplification;
mod fio;
mod guard;
#[cfg(feature = "rocksdb")]
mod kv;
mod real_io;
mod safety;
mod stack_build;
mod stack_run;
mod stack_torn;
mod volume_devices;
