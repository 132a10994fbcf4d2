//! Processor time and cycles: the whole system's, and that of this process's threads.
//!
//! Enters: the performance-monitoring unit, and procfs. Leaves: shares, frequencies and cycles of a window.
//!
//! | module | is about |
//! |---|---|
//! | [`cpu`] | the processor over a window: the whole system's shares and cycles |
//! | [`frequency`] | the clock frequency of each CPU, if the system reports it |
//! | [`pmu`] | cycles of the whole system from the performance-monitoring unit |
//! | [`sqpoll`] | how long the kernel's SQPOLL threads found work |
//! | [`tasks`] | what this process's own threads cost and read |

pub mod cpu;
pub mod frequency;
pub mod pmu;
pub(super) mod sqpoll;
pub mod tasks;
