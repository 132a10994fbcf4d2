//! A program as the load of a session: set up, started and found ready before what is measured runs; ended after it,
//! with all that it started.

mod output;
mod phases;
mod process;
mod running;
mod settings;
mod stop_if;

pub use phases::ProgramOptions;
pub(super) use running::Running;
pub use settings::{for_program, program_noted};
pub use stop_if::StopIf;
