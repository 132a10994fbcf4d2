//! What is to be done to build a stack, as data: shown, confirmed, and then run as it was shown.
//!
//! Enters: the settings, the host's facts, and what the guard finds on the drives; nothing else below the
//! stack knows the settings. Leaves: a [`Plan`] of [`Step`]s, and its confirmation.

mod capacity;
mod command;
pub mod durations;
mod layers;
mod model;
mod options;
mod planner;
mod resilience;
mod step;
mod wear;

pub use model::{Confirmed, Destroyed, Plan, Top};
pub use planner::{Lay, plan};
pub use resilience::{PowerCut, Worth, worth};
pub use step::{Arg, CommandLine, Step};
