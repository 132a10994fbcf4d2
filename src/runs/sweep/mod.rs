//! A profile's steps, run one after the other: each run is an ordinary recording in a folder of its own.
//!
//! | path in the folder | holds | written |
//! |---|---|---|
//! | `profile.toml` | the profile with its steps, as run | at the start |
//! | `sweep.json` | the steps and the order of the runs: [`Schedule`] | at the start |
//! | `processes.jsonl` | a line for each process that worked on it: what it left is known by that | as each starts |
//! | `NN-LABEL-rK/` | the recording of step `NN`'s repeat `K`, see [`crate::runs::record`] | as it runs |
//! | `NN-LABEL-rK/not-run.json` | why that run has no figures: [`NotRun`] | when that shows |
//!
//! How far a sweep is follows from these folders alone, so that it goes on after any end: a run that
//! is complete stays, everything else is run (again).

mod cool;
mod folder;
mod run;
mod schedule;

pub use cool::is_unmet;
pub use folder::{Folder, NotRun, State, is_sweep};
pub use run::{Told, Watcher, prepare, run};
pub use schedule::{Run, Schedule, StepShown, planned_writes, run_settings};

#[cfg(test)]
mod tests;
