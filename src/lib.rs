//! stacktune: a live tuner for the storage stack under a database.
//!
//! The modules in the order in which data flows; what the operator asks flows back as one message
//! type, [`session::Command`]:
//!
//! ```text
//! profile → plan → volume → load (over io) → meter → session → {tui, record} → report
//! ```
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`class`], [`error`], [`units`] | what all share | – |
//! | [`host`] | facts about this host | spdk's versions |
//! | [`knobs`], [`profile`] | the one table of all that can be turned; settings, and TOML there and back | each other, host |
//! | [`plan`] | settings → what each class is to do; what changes between two of them | profile |
//! | [`stack`] | the storage under the load: the guard before a block device is written, plans, building and undoing | host, profile's settings |
//! | [`volume`] | layout, headers, page stamps, fill, verification, locks | host |
//! | [`spdk`] | the operator's own SPDK, by a shim in C | – |
//! | [`nvme`] | stacktune's own `NVMe` driver, for drives that the kernel hands over | – |
//! | [`io`] | the interfaces, one file each | volume's identities, nvme, spdk |
//! | [`kv`] | pairs in `RocksDB`, the load's other engine: data set, options, loading, what it did | plan, profile, volume, meter |
//! | [`load`] | the four classes: pacing, offsets, commits, workers | plan, volume, io, kv, meter, nvme |
//! | [`meter`] | counters to windows and totals; processor, flags, ledger | host, profile, io's thread names |
//! | [`remote`] | a load in a process of its own: commands there, samples back | load, plan, volume, io, meter, spdk |
//! | [`calibrate`] | the generator's own cost, and that of the workers on pairs | load, plan, kv |
//! | [`record`], [`report`] | a run written and read back; tables, charts and comparison | meter, knobs, host, stack, sweep, paper |
//! | [`session`] | a run: open, start, turn, pause, record | all above |
//! | [`sweep`] | a profile's steps, run one after the other and gone on with | session, record, stack, profile |
//! | [`paper`] | the paper's tables and drawings: rows, numbers, claims and what became of them here | record, meter, profile, knobs, spdk |
//! | [`tui`] | the terminal UI | session's messages, meter's data, knobs |
//! | [`cli`], [`app`] | the command line; the composition root, which alone knows all others | all |

pub mod app;
pub mod calibrate;
pub mod class;
pub mod cli;
pub mod error;
pub mod host;
pub mod io;
pub mod knobs;
pub mod kv;
pub mod load;
pub mod meter;
pub mod nvme;
pub mod paper;
pub mod plan;
pub mod profile;
pub mod record;
pub mod remote;
pub mod report;
pub mod session;
pub mod spdk;
pub mod stack;
pub mod sweep;
pub mod tui;
pub mod units;
pub mod volume;
