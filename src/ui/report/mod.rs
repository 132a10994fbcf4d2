//! What people and scripts read about a run, a comparison, the knobs and the profiles.
//!
//! Enters: recordings, facts, plans and knobs. Leaves: text, or the same as JSON.
//!
//! Text is at most 80 columns wide and has no colours.

#[cfg(feature = "proofs")]
mod attest;
mod by_window;
mod cells;
mod chart;
pub mod compare;
#[cfg(feature = "trace")]
mod contract;
#[cfg(feature = "trace")]
mod contract_data;
pub mod cost;
mod differences;
pub mod duel;
mod figures;
#[cfg(feature = "trace")]
mod ftl;
#[cfg(feature = "trace")]
mod held;
pub mod host;
mod kept_rules;
pub mod knobs;
#[cfg(feature = "trace")]
mod mimic;
pub mod over_time;
mod plan;
pub mod profiles;
mod program;
pub mod progress;
pub mod ran;
pub mod recordings;
#[cfg(feature = "proofs")]
pub mod reproduce;
pub mod sentences;
pub mod show;
pub mod stack_properties;
pub mod stacks;
pub mod sweep;
#[cfg(test)]
mod tests;

#[cfg(feature = "proofs")]
pub use attest::{attest, begins};
pub use compare::compare;
#[cfg(feature = "trace")]
pub use contract::{RULES, advice, contract, rule_figures, size_table};
#[cfg(feature = "trace")]
pub use contract_data::{contract_files, contract_json, contract_kept};
pub use cost::CostMap;
pub use differences::host_facts;
pub use duel::{cost as duel_cost, duel};
#[cfg(feature = "trace")]
pub use ftl::{Simulated, SimulatedLatencies, ftl, ftl_csv, ftl_json};
#[cfg(feature = "trace")]
pub use held::{held, held_json};
#[cfg(feature = "trace")]
pub use mimic::{mimic, mimic_json};
pub use over_time::OverTime;
pub use plan::{PlanFile, plan, properties_of};
#[cfg(feature = "programs")]
pub use program::used as program_used;
pub use progress::Progress;
pub use recordings::{ListedFolder, recordings};
#[cfg(feature = "proofs")]
pub use reproduce::{Reproduction, reproduction};
pub use show::{Shown, show, table};
pub use stack_properties::wear;
pub use sweep::{SweepShown, schedule, sweep};
