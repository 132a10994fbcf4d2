//! What it takes to build a stack, as data: shown, confirmed, and then run exactly as shown.
//!
//! Enters: a [`StackSpec`] of the settings, the host's facts, and what the guard finds on the drives; nothing
//! else below the stack knows the settings. Leaves: a [`Plan`] of [`Step`]s, and its confirmation.

mod capacity;
mod commands;
pub mod durations;
mod endurance;
mod filesystem_options;
mod layers;
mod model;
mod planner;
mod queue_values;
mod resilience;
mod spec;
mod step;
mod trial;

pub use endurance::{DriveWear, Endurance, Rated};
pub use model::{Confirmed, Destroyed, Exposed, Plan};
pub use planner::{PlanContext, plan};
pub use queue_values::{QueueValues, SCHEDULER, queue_values};
pub use resilience::{FewerDrives, PowerCut, PowerCutReason, Properties, Resilience, properties};
pub use spec::StackSpec;
pub use step::{Arg, CommandLine, Step};
