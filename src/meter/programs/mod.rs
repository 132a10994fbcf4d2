//! What a program that is the load uses and reports.
//!
//! Enters: its cgroup, its processes and its output. Leaves: its figures in a window.
//!
//! | module | is about |
//! |---|---|
//! | [`program`] | what a program that is the load used and reported, as data |
//! | [`program_io`] | what a program's processes read and wrote, by their names |
//! | [`program_threads`] | the busiest thread of a program's client |
//! | [`program_probe`] | reads what a program that is the load uses |

pub mod program;
#[cfg(feature = "programs")]
pub mod program_io;
#[cfg(feature = "programs")]
pub mod program_probe;
#[cfg(feature = "programs")]
mod program_threads;
