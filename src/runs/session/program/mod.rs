//! A program as the load of a session: set up, started and found ready before its measured part runs; ended
//! after that, with everything that it started.

#[cfg(not(feature = "programs"))]
mod absent;
#[cfg(feature = "programs")]
mod cold;
mod how;
#[cfg(feature = "programs")]
mod live;
#[cfg(feature = "programs")]
mod live_turn;
#[cfg(feature = "programs")]
mod log;
#[cfg(feature = "programs")]
mod output;
#[cfg(feature = "programs")]
mod phases;
#[cfg(feature = "programs")]
mod probes;
#[cfg(feature = "programs")]
mod process;
#[cfg(feature = "programs")]
mod running;
mod settings;
#[cfg(feature = "programs")]
mod stop_if;
#[cfg(feature = "programs")]
mod turning;
#[cfg(feature = "programs")]
mod words;

#[cfg(not(feature = "programs"))]
pub(super) use absent::Running;
pub use how::ProgramOptions;
#[cfg(feature = "programs")]
pub(super) use running::Running;
pub use settings::{for_program, program_noted};
#[cfg(feature = "programs")]
pub use stop_if::StopIf;
