//! Facts about this host: CPUs, memory, kernel features, drives and what uses them.
//!
//! Everything is read from a root folder, so that a test can fake a host.

mod cpu;
mod describe;
mod devices;
mod exports;
mod facts;
mod features;
mod find;
mod loops;
mod read;
mod reservation;
mod root;
mod usage;

pub use describe::describe;
pub use facts::{Cpu, Device, Facts, Feature, Node, TargetFacts, Usage};
pub(crate) use reservation::reservation;
pub(crate) use usage::{member_of, number_text};
