//! The command line: its arguments and their help. What a command does is in `app`.

mod args;
mod attest;
mod contract;
mod explain;
mod man;
mod program;
mod sets;
mod shared;
mod show;
#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;

pub use args::{CleanupArgs, Cli, Cmd, DuelArgs, PictureArgs, RecordArgs, ReproduceArgs};
pub use attest::AttestArgs;
pub use contract::{ContractArgs, TraceArgs, TraceForm};
pub use explain::{explain, mistyped, nearest_command};
pub use man::{write_completions, write_man};
pub use program::ProgramArgs;
pub use sets::{apply_sets, parse_set};
pub use shared::RunArgs;
pub use show::ShowArgs;
