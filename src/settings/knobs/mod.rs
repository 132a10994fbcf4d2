//! The table of everything that can be turned.
//!
//! Enters: names and values as text. Leaves: changed settings, or why a value is wrong or not available here.
//!
//! A knob is defined once, in a row of the files beside this one, gathered in `table.rs`: the profile's key,
//! the row on the screen, `--set`, `stacktune knobs`, the checks and what a turn requires all come from it.

#[macro_use]
mod spec;

mod classes;
mod io;
mod knob;
mod kv;
mod layer;
mod md;
mod memory;
mod polling;
mod program;
mod queue;
mod rocksdb;
mod run;
mod stack;
mod table;
mod target;
pub mod value;
mod wal;

pub use knob::{Knob, all, find, nearest, nearest_of, problems};
pub use layer::StackLayer;
pub use program::{all_of, find_of, of_program};
pub use spec::{Conditions, Scope};
pub use value::{Kind, Value};

#[cfg(test)]
mod refusals_tests;
