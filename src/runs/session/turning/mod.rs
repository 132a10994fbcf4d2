//! Turning knobs while the load runs, and what a turn builds anew.
//!
//! | module | is about |
//! |---|---|
//! | [`consented_turn`] | turns under the load that destroy something: shown as a plan, and carried out once the operator has agreed |
//! | [`rebuild`] | building the target anew while a session runs: planned and shown first, then done as it was shown |
//! | [`survival`] | what a setting survives, for the ledger |
//! | [`turn`] | turning knobs while the load runs |
//! | [`turns`] | what was turned so far, and the plan that waits for the operator |

pub(super) mod consented_turn;
pub(super) mod rebuild;
pub(super) mod survival;
pub(super) mod turn;
pub(super) mod turns;
