//! What a run does from its start to its end: classes, windows, what is written down.
//!
//! | module | is about |
//! |---|---|
//! | [`classes`] | The classes of a session and their workers: which run, drain, or are stopped and why |
//! | [`ending`] | How windows, recordings and runs end. What was under way at the end of a recording belongs to it: it is waited |
//! | [`last_window`] | What ends and is waited for: a run whose last window is not yet made, or a recording |
//! | [`losses`] | A target that loses drives while it runs: reported at once, and where nothing is left to run on, the |
//! | [`recorder`] | What a session reports: events for the screen, and a recording while one goes on |
//! | [`verified`] | Reading back what a run has written |
//! | [`window_schedule`] | The run's clock: when windows end, and what has happened within the one that runs |
//! | [`write_budget`] | What may be written: `run.max_writes`, over all runs of this process |

pub(super) mod classes;
pub(super) mod ending;
pub(super) mod last_window;
pub(super) mod losses;
pub(super) mod recorder;
pub(super) mod verified;
pub(super) mod window_schedule;
pub(super) mod write_budget;
