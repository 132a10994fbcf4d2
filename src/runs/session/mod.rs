//! A run: what the operator asks of it and what it reports.
//!
//! Enters: settings, options and an operator's commands. Leaves: events, and a recording where one is asked for.
//!
//! [`Session::open`] opens and fills the target, [`Session::start`] starts the load, and from then on
//! [`Session::tick`] does what is due. [`live`] drives a session by an operator's commands,
//! [`headless`] for a given time.

mod attendant;
mod candidates;
mod classes;
mod consent;
mod consented_turn;
mod data_set;
mod duel;
mod ending;
mod expected_caps;
pub mod headless;
mod host_tuning;
mod last_window;
mod left_over;
pub mod live;
mod live_duels;
mod losses;
pub mod message;
mod open;
mod options;
mod page_cache;
mod plan_shown;
mod preflight;
mod program;
mod rebuild;
mod recorder;
mod resolve;
mod retained_stack;
mod run;
mod survival;
mod target_folder;
mod target_stack;
mod targets;
mod thread_priority;
mod turn;
mod turns;
mod verified;
mod window_schedule;
mod write_budget;
mod write_maps;

pub use attendant::Attendant;
pub use candidates::{Candidate, Found, candidates};
pub use consent::{destroy_of, names_of, refuse_stray_consent};
pub use data_set::verify_pairs;
pub use duel::{Duel, Sides};
pub use message::{Advance, Command, DuelAsked, Event, Phase, PlanShown, Progress, Wanted};
pub use options::Options;
pub use preflight::{Preflight, layers_noted, plan_shown, preflight, refuse_unallowed};
#[cfg(feature = "programs")]
pub use program::StopIf;
pub use program::{ProgramOptions, for_program, program_noted};
pub use retained_stack::RetainedStack;
pub use run::Session;
pub use survival::survives_less;
pub use target_folder::others_in_folder;
pub use thread_priority::raise_thread_priority;
pub use verified::{Verified, to_read_back};
pub use write_maps::{compare as compare_with_map, forget as forget_map};
