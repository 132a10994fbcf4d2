//! A profile's steps, run one after the other: each run is an ordinary recording in its own folder.
//!
//! Enters: a profile with steps. Leaves: a folder with a recording of each run.
//!
//! | path in the folder | holds | written |
//! |---|---|---|
//! | `profile.toml` | the profile with its steps, as run | at the start |
//! | `sweep.json` | the steps and the order of the runs: [`Schedule`] | at the start |
//! | `processes.jsonl` | a line for each process that worked on it, to recognize its leftovers | as each starts |
//! | `NN-LABEL-rK/` | the recording of step `NN`'s repeat `K`, see [`crate::runs::record`] | as it runs |
//! | `NN-LABEL-rK/not-run.json` | why that run has no figures: [`NotRun`] | when that is known |
//!
//! The progress of a sweep follows from these folders alone, so it can be continued after any interruption: a
//! complete run stays, everything else is run (again).

mod cool;
mod folder;
mod run;
mod schedule;

pub use cool::is_unmet;
pub use folder::{Folder, NotRun, State, is_sweep};
pub use run::{SweepEvent, SweepWatcher, prepare, run};
pub use schedule::{Schedule, ScheduledRun, StepShown, planned_writes, run_settings};

#[cfg(test)]
mod tests;
