//! Runs: one session, a sweep of sessions, the papers' tables; and the recordings they leave on disk.
//!
//! Enters: settings and the operator's commands. Leaves: events for the screen, and recordings.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`pitfalls`] | which pitfalls of measuring a run avoids | – |
//! | [`record`] | a recording written and read back | pitfalls |
//! | [`duel`] | two values of a knob in randomised pairs of blocks, until it is clear which is better | – |
//! | [`session`] | one run: open, start, turn, pause, record, duels | pitfalls, record, duel |
//! | [`attest`] | stacktune's figures compared with those of other programs, on this host | duel, record, session |
//! | [`build_duel`] | a duel that builds storage for each block: its cost, and a session for each block | duel, record, session |
//! | [`sweep`] | a profile's steps, run one after the other and resumed | session, record |
//! | [`paper`] | the papers' tables and figures: rows, numbers, claims and verdicts | record |

#[cfg(feature = "proofs")]
pub mod attest;
pub mod build_duel;
pub mod duel;
#[cfg(feature = "proofs")]
pub mod paper;
pub mod pitfalls;
pub mod record;
pub mod session;
pub mod sweep;
