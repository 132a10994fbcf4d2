//! What a run does from its start to its end: classes, windows, what is written down.
//!
//! | module | is about |
//! |---|---|
//! | [`classes`] | the classes of a session and their workers: which run, drain, or are stopped and why |
//! | [`ending`] | how windows, recordings and runs end |
//! | [`last_window`] | what ends and is waited for: a run whose last window is not yet made, or a recording |
//! | [`losses`] | drives lost while a run goes on; classes stop where nothing is left to run on |
//! | [`recorder`] | what a session reports: events for the screen, and a recording while one goes on |
//! | [`window_schedule`] | the run's clock: when windows end, and what has happened within the one that runs |

pub(super) mod classes;
pub(super) mod ending;
pub(super) mod last_window;
pub(super) mod losses;
pub(super) mod recorder;
pub(super) mod window_schedule;
