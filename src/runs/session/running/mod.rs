//! A run from start to end: classes, windows, recording.
//!
//! | module | is about |
//! |---|---|
//! | [`classes`] | the classes of a session and their workers: which run, drain, or are stopped and why |
//! | [`ending`] | how windows, recordings and runs end |
//! | [`last_window`] | endings in progress: a run whose last window is not yet made, or a recording |
//! | [`losses`] | drives lost during a run; classes stop if nothing is left to run on |
//! | [`recorder`] | a session's reports: events for the screen, and a recording if there is one |
//! | [`window_schedule`] | the run's clock: when windows end, and what has happened in the current one |

pub(super) mod classes;
pub(super) mod ending;
pub(super) mod last_window;
pub(super) mod losses;
pub(super) mod recorder;
pub(super) mod window_schedule;
