//! Drawing: one file per panel; each reads the state and writes cells.

mod ascii;
mod believe;
mod charts;
mod classes;
#[cfg(feature = "trace")]
mod contract;
#[cfg(not(feature = "trace"))]
#[path = "contract/absent.rs"]
mod contract;
mod cpu;
pub mod dialogs;
pub mod drives;
mod duel;
mod frame;
mod header;
mod heat;
mod heat_cell;
pub mod help;
mod hints;
pub mod knobs;
pub mod ledger;
mod members;
mod notes;
pub mod pages;
mod palette;
mod pick;
pub mod plan;
#[cfg(feature = "programs")]
mod program;
pub mod report;
mod screen;
mod shelf;
pub mod stack;
mod strip;
pub mod themes;
mod too_small;
mod turn;

pub use screen::{draw, plots};
