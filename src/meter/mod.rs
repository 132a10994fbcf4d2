//! Meters: worker counters to windows, cycles, flags, and the ledger of turns.

pub mod window;
