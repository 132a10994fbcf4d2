//! A sweep: one row per step, with the spread over its repeats, and charts if one or two knobs were turned.

mod best;
mod by_step;
mod charts;
mod table;

pub use by_step::SweepShown;
pub use table::{schedule, sweep};
