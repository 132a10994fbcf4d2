//! The command line: its arguments and their help. What a command does is in `app`.

mod args;
mod attest;
#[cfg(feature = "trace")]
mod contract;
#[cfg(not(feature = "trace"))]
#[path = "cli/contract/absent.rs"]
mod contract;
mod explain;
#[cfg(feature = "trace")]
mod ftl;
#[cfg(not(feature = "trace"))]
#[path = "cli/ftl/absent.rs"]
mod ftl;
#[cfg(feature = "documents")]
mod man;
#[cfg(feature = "trace")]
mod mimic;
#[cfg(not(feature = "trace"))]
#[path = "cli/mimic/absent.rs"]
mod mimic;
#[cfg(feature = "programs")]
mod program;
#[cfg(not(feature = "programs"))]
#[path = "cli/program/absent.rs"]
mod program;
mod sets;
mod shared;
mod show;
#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;

pub use args::{CleanupArgs, Cli, Cmd, DuelArgs, PictureArgs, RecordArgs, ReproduceArgs, Shell};
pub use attest::AttestArgs;
pub use contract::{ContractArgs, TraceArgs};
#[cfg(feature = "trace")]
pub use contract::{RuleName, TraceForm};
pub use explain::{explain, mistyped, nearest_command};
pub use ftl::FtlArgs;
#[cfg(feature = "trace")]
pub use ftl::{CacheSize, Ftl};
#[cfg(feature = "documents")]
pub use man::{write_completions, write_man};
pub use mimic::MimicArgs;
pub use program::ProgramArgs;
#[cfg(feature = "programs")]
pub use program::{ProgramDuelArgs, ProgramTurn};
pub use sets::{apply_sets, parse_set};
pub use shared::{DuelRules, RunArgs};
pub use show::ShowArgs;
