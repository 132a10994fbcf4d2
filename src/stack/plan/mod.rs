//! The steps that build a stack, as data: shown, confirmed, and then run exactly as shown.
//!
//! Enters: a [`StackSpec`] of the settings, the host's facts, and what the guard finds on the drives; nothing
//! else in the stack sees the settings as a whole. Leaves: a [`Plan`] of [`Step`]s, and its confirmation.

mod capacity;
mod commands;
pub mod durations;
mod endurance;
mod filesystem_options;
mod fit;
mod layers;
mod lba_format;
mod live_values;
mod mkfs_values;
mod model;
mod planner;
mod resilience;
mod spec;
mod step;
mod trial;

pub use endurance::{DriveWear, Endurance, Rated};
pub use filesystem_options::without_barriers;
pub use live_values::{LiveValues, SCHEDULER, Wanted, live_values};
pub use model::{Confirmed, Destroyed, Exposed, Plan};
pub use planner::{PlanContext, plan};
pub use resilience::{
    FewerDrives, PowerCut, PowerCutReason, Properties, Resilience, drives_to_lose, properties,
};
pub use spec::StackSpec;
pub use step::{Arg, CommandLine, Step};
