//! Turns of knobs: what each changed, and whether clearly.
//!
//! Enters: windows before and after a turn. Leaves: lines of the ledger.
//!
//! | module | is about |
//! |---|---|
//! | [`estimate`] | how much a figure differs between two stretches of windows, and whether clearly |
//! | [`ledger`] | each turn of a knob: windows before against windows after |
//! | [`outcome`] | what a turn did, in a word |
//! | [`settling`] | whether the load has settled after the last turn, and has no trend |
//! | [`turn_figures`] | the figures of a ledger's line, from both sides of its turn |
//! | [`wander`] | how far a run's figures wander where no knob is turned |

pub mod estimate;
pub mod ledger;
pub mod outcome;
#[cfg(test)]
pub(crate) mod recorded_tests;
pub mod settling;
pub(super) mod turn_figures;
pub(super) mod wander;
