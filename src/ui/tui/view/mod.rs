//! Drawing: one file per panel; each reads the state and writes cells.

mod believe;
mod charts;
mod classes;
mod cpu;
pub mod dialogs;
mod duel;
mod frame;
mod header;
pub mod help;
mod hints;
pub mod knobs;
mod ledger;
mod members;
mod notes;
pub mod pages;
pub mod plan;
mod screen;
mod too_small;

pub use screen::draw;
