//! The files of a recording, and the version of their layout.

/// The version of the files' layout; a reader refuses newer ones.
pub const SCHEMA: u32 = 1;

pub const PROFILE: &str = "profile.toml";
pub const HOST: &str = "host.json";
pub const WINDOWS: &str = "windows.jsonl";
pub const LATENCY: &str = "latency.hlog";
pub const LEDGER: &str = "ledger.jsonl";
pub const SUMMARY: &str = "summary.json";
/// What a program that was the load printed.
pub const PROGRAM_LOG: &str = "program.log";
/// A trace of the target's drives, and its facts.
pub const TRACE: &str = "trace.blktrace.0";
pub const TRACE_FACTS: &str = "trace.json";
/// How well that traced run kept the rules of drives.
pub const CONTRACT: &str = "contract.json";

/// Whether a recording has a file of that name.
pub fn is_of_recording(name: &str) -> bool {
    let own = [PROFILE, HOST, WINDOWS, LATENCY, LEDGER, SUMMARY, PROGRAM_LOG, TRACE, TRACE_FACTS, CONTRACT];
    own.contains(&name)
}
