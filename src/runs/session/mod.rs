//! A run: the operator's commands to it, and its reports.
//!
//! Enters: settings, options and an operator's commands. Leaves: events, and a recording if requested.
//!
//! [`Session::open`] opens and fills the target, [`Session::start`] starts the load, and from then on
//! [`Session::tick`] does what is due. [`live`] drives a session by an operator's commands,
//! [`headless`] for a given time.
//!
//! | module | is about |
//! |---|---|
//! | [`message`] | commands from the operator, events to the screen and the recorder |
//! | [`options`] | how a session may be opened, besides its settings |
//! | [`resolve`] | settings × host facts × options, resolved: everything a run does, decided in advance |
//! | [`write_budget`] | how much a run may still write |
//! | [`attendant`] | who waits while a session is opened |
//! | [`targets`] | the targets of a run: opened behind the guard, made ready, and closed cleanly |
//! | [`program`] | a program as the load |
//! | [`opening`] | opening a target: asking, planning, consent, building and examining |
//! | [`running`] | classes, windows, the end, and recording |
//! | [`turning`] | knobs turned while the load runs, and rebuilding the target for a turn |
//! | [`observed`] | the I/Os of the workers, one by one, for a trace |
//! | [`run`] | a session: its parts, and what is due when |
//! | [`duel`] | a duel in a run: turns the knob as the course says |
//! | [`live_duels`] | duels that the operator asks for while the load runs |
//! | [`thread_priority`] | priority over the load for threads that answer the operator |
//! | [`live`] | a session under an operator's commands, in a thread of its own |
//! | [`headless`] | a session without an operator, recorded for a given time |

mod attendant;
mod duel;
pub mod headless;
pub mod live;
mod live_duels;
pub mod message;
mod observed;
mod opening;
mod options;
mod program;
mod resolve;
mod run;
mod running;
mod targets;
mod thread_priority;
mod turning;
mod write_budget;

pub use attendant::Attendant;
pub use duel::{Duel, Sides, course_of};
pub use message::{Advance, Command, DuelAsked, Event, Phase, PlanShown, Progress, Tap, Wanted};
pub use observed::Observed;
pub use opening::candidates::{Candidate, OnDevice, candidates};
pub use opening::consent::{OursCheck, destroy_of, names_of, refuse_stray_consent};
pub use opening::data_set::verify_pairs;
pub use opening::preflight::{Preflight, layers_noted, plan_shown, preflight, refuse_unallowed};
pub use opening::retained_stack::RetainedStack;
pub use opening::target_folder::others_in_folder;
pub use opening::write_maps::{compare as compare_with_map, forget as forget_map};
pub use options::Options;
#[cfg(feature = "programs")]
pub use program::StopIf;
pub use program::{ProgramOptions, for_program, program_noted};
pub use run::Session;
pub use targets::verified::{Verified, to_read_back};
pub use thread_priority::raise_thread_priority;
pub use turning::survival::survives_less;
