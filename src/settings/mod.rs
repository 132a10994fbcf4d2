//! What to run: the operator's choices, as TOML and as values.
//!
//! Enters: profiles (TOML), `--set`, turns of knobs. Leaves: [`Settings`], and each class's job
//! ([`jobs`]).
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`named`] | choices of a fixed set, and their names | – |
//! | [`interface`] | the interfaces, with a row of capabilities for each | named |
//! | [`values`] | every setting as plain data, with its default | named, interface |
//! | [`paths`] | paths as settings have them: `~` | – |
//! | [`filesystem_options`] | the options of mkfs and mount that a profile may give | named, values |
//! | [`jobs`] | what each class does under given settings | interface, values |
//! | [`knobs`] | the table of everything that can be turned | named, interface, values, filesystem_options |
//! | [`change`] | what a change of settings requires | interface, values, jobs, knobs |
//! | [`profile`] | settings as TOML and back; built-in and saved profiles | interface, values, knobs, paths |

pub mod change;
pub mod filesystem_options;
pub mod interface;
pub mod jobs;
pub mod knobs;
pub mod named;
pub mod paths;
pub mod profile;
#[cfg(test)]
pub(crate) mod testing;
pub mod values;

pub use interface::Interface;
pub use named::Named;
pub use profile::Profile;
pub use values::{
    ArrayState, Arrival, Better, Bitmap, Buffering, Compaction, Completion, Compression, Cpus, DriveState,
    Filesystem, Io, Kv, Layer, LoadEngine, MdSettings, Metric, Offsets, Order, Pairs, Placement, Prio, Probe,
    ProbeKind, Program, ProgramKnob, QueueSettings, Raid, RingSetup, Rocksdb, Run, Settings, Sim, SimDevice,
    Stack, Submission, Sync, Target, Wal,
};
