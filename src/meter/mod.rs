//! Meters: worker counters to windows, cycles, flags, and the ledger of turns.

pub mod cell;
pub mod source;
pub mod window;
