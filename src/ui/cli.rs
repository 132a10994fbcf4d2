//! The command line: its arguments and their help. What each command does is in `app`.

mod args;
#[cfg(feature = "proofs")]
mod attest;
#[cfg(feature = "trace")]
mod contract;
#[cfg(feature = "documents")]
mod documents;
mod explain;
#[cfg(feature = "trace")]
mod ftl;
mod lacking;
#[cfg(feature = "documents")]
mod man;
#[cfg(feature = "trace")]
mod mimic;
#[cfg(feature = "programs")]
mod program;
#[cfg(feature = "proofs")]
mod reproduce;
mod sets;
mod shared;
mod show;
#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;

pub use args::{CleanupArgs, Cli, Cmd, DuelArgs, RecordArgs};
#[cfg(feature = "proofs")]
pub use attest::AttestArgs;
#[cfg(feature = "trace")]
pub use contract::{ContractArgs, RuleName, TraceArgs, TraceForm};
#[cfg(feature = "documents")]
pub use documents::{PictureArgs, Shell};
pub use explain::{explain, mistyped, nearest_command};
#[cfg(feature = "trace")]
pub use ftl::{CacheSize, Ftl, FtlArgs};
pub use lacking::lacking;
#[cfg(feature = "documents")]
pub use man::{write_completions, write_man};
#[cfg(feature = "trace")]
pub use mimic::MimicArgs;
#[cfg(feature = "programs")]
pub use program::{ProgramArgs, ProgramDuelArgs, ProgramTurn};
#[cfg(feature = "proofs")]
pub use reproduce::ReproduceArgs;
pub use sets::{apply_sets, parse_set};
pub use shared::{DuelRules, RunArgs};
pub use show::ShowArgs;
