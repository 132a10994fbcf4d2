//! stacktune's figures compared with those of other programs, on this host.
//!
//! Enters: a folder or devices, and a runner of sessions. Leaves: a [`CheckOutcome`] for each check, and a
//! [`Bundle`] of them that can be published.
//!
//! A check compares two figures, and passes or fails, or is not checkable here, with the reason; it never
//! passes without both figures.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`checks`] | the checks, how far apart their figures may be, and how two figures are judged | – |
//! | [`programs`] | other programs: finding, running and ending them | – |
//! | [`bed`] | the test bed of the checks, and their runs | – |
//! | [`latency`] | service latency compared with fio's | checks, programs, bed |
//! | [`bytes`] | bytes compared with the block layer's counts | checks, programs, bed |
//! | [`cpu`] | own CPU time, busy cores and cycles | checks, programs, bed |
//! | [`log`] | the log of latencies, read by another program | checks, programs |
//! | [`planted`] | lost writes, planted and found | checks, bed |
//! | [`equal`] | a duel of equal settings | checks, bed |
//! | [`bundle`] | the outcomes with the host's facts, without names | checks |
//! | [`course`] | all checks, one after the other | checks, programs, bed, latency, bytes, cpu, log, planted, equal |

mod bed;
mod bundle;
mod bytes;
mod checks;
mod course;
mod cpu;
mod equal;
mod latency;
mod log;
mod planted;
mod programs;

pub use bed::{Attester, CheckedOn, Extent, default_folder, settings_of};
pub use bundle::Bundle;
pub use checks::{Check, CheckOutcome, CheckVerdict, Unit};
pub use course::attest;
