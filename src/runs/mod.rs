//! Runs: one session, a sweep of them, the papers' tables; and what they leave on disk.
//!
//! Enters: settings and the operator's commands. Leaves: events for the screen, and recordings.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`record`] | a recording written and read back | – |
//! | [`session`] | one run: open, start, turn, pause, record | record |
//! | [`sweep`] | a profile's steps, run one after the other and resumed | session, record |
//! | [`paper`] | the papers' tables and figures: rows, numbers, claims and verdicts | record |

pub mod paper;
pub mod record;
pub mod session;
pub mod sweep;
