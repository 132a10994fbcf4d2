//! Turning knobs while the load runs, and rebuilding the target for a turn.
//!
//! | module | is about |
//! |---|---|
//! | [`consented_turn`] | turns under load that destroy data: shown as a plan, and carried out once the operator has agreed |
//! | [`rebuild`] | building the target anew during a session: planned and shown first, then done exactly as shown |
//! | [`survival`] | what a setting survives, for the ledger |
//! | [`turn`] | turning knobs while the load runs |
//! | [`turns`] | the turns so far, and the plan that waits for the operator |

pub(super) mod consented_turn;
pub(super) mod rebuild;
pub(super) mod survival;
pub(super) mod turn;
pub(super) mod turns;
