//! Facts about this host: CPUs, memory, kernel features, drives and what uses them.
//!
//! Everything is read from a root folder, so that a test can fake a host.

mod facts;

pub use facts::{Cpu, Device, Facts, Feature, Node, TargetFacts, Usage};
