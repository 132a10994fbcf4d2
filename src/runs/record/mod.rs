//! A run written to a folder, and read back.
//!
//! Enters: windows, ledger lines and totals; when read back, whatever somebody may have put into the folder.
//! Leaves: files, and checked recordings.
//!
//! | file | holds | written |
//! |---|---|---|
//! | `profile.toml` | the profile as run | at the start |
//! | `host.json` | `schema`, `stacktune`, `started_unix_s`, all of [`crate::host::Facts`], `target`, `notes`, `rocksdb` (how it was compiled; null without it), `circumstances` | at the start |
//! | `windows.jsonl` | a line a window: [`crate::meter::window::Window`] | after each window |
//! | `latency.hlog` | an HdrHistogram interval log, see [`hlog`] | after each window |
//! | `ledger.jsonl` | a line a turn: [`crate::meter::window::LedgerLine`] | when a line closes |
//! | `summary.json` | the totals, see [`summary`] | at the end |
//! | `program.log` | of a program that was the load: what it prints | as it prints |
//! | `trace.blktrace.0` | of a traced run: the requests issued to the drives, as blktrace records | at the end |
//! | `trace.json` | the subject of that trace, and what it lacks | at the end |
//! | `contract.json` | how well that run kept the rules of drives: see [`contract`] | at the end |
//!
//! A window's histograms are written before its line, so that each line in `windows.jsonl` has its histograms
//! even if the process was killed between the two. Files that are written in one go appear by a rename:
//! nobody ever sees a part of one.

mod bounds;
mod buckets;
mod by_settings;
mod consistency;
mod contract;
mod derived;
#[cfg(test)]
mod edited_tests;
mod files;
#[cfg(test)]
pub(crate) mod fixture;
pub mod hlog;
mod listed;
mod names;
mod numbers;
mod rebuild;
mod recording;
mod replay;
#[cfg(test)]
mod schema_tests;
pub mod summary;
#[cfg(test)]
mod tests;
mod writer;

#[cfg(test)]
pub use contract::RuleKept;
pub use contract::{Contract, DriveKept};
pub use listed::{Listed, ListedFigures, list};
pub(crate) use names::PROFILE;
pub use names::{CONTRACT, TRACE, TRACE_FACTS, is_of_recording};
pub use recording::Recording;
pub use summary::{SUMMARY_SCHEMA, Summary};
#[cfg(feature = "programs")]
pub use writer::program_log;
pub use writer::{Destination, Header, Outcome, Writer, make_folder, refuse_folder};
