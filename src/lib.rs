//! stacktune: a workbench for the storage stack under a database.
//!
//! Ten rooms on a common base, [`base`], in the order in which data flows. What the operator asks for flows back as one
//! message type, [`runs::session::Command`]:
//!
//! ```text
//! host → settings → stack → load → meter → runs → ui
//!                     ftl → load           trace → ui
//! ```
//!
//! | room | is about | may import |
//! |---|---|---|
//! | [`base`] | what all share: errors, units, text, files opened with care | – |
//! | [`host`] | facts about this machine: drives, links, kernel, processors | – |
//! | [`settings`] | what is to be run: knobs, profiles, what each class does | host |
//! | [`stack`] | the storage below the load: guard, plan, build, undo | host, settings |
//! | [`meter`] | counters to windows and totals; flags, ledger, processor time | host, settings |
//! | [`load`] | the four classes and how their I/O reaches the drives | host, settings, meter, ftl |
//! | [`runs`] | sessions, sweeps, the papers' tables, recordings | host, settings, stack, meter, load |
//! | [`trace`] | block traces, and the rules of drives scored from them | – |
//! | [`ftl`] | drives of flash by model: mapping, garbage collection, wear | – |
//! | [`ui`] | command line, screen, reports | host, settings, stack, meter, runs, trace, ftl |
//! | [`app`] | the composition root: each command, put together from the rooms | host, settings, stack, load, runs, trace, ftl, ui |
//!
//! All may import the base, and name its modules without it: `crate::units` is `base::units`.
//! `tests/house` reads this table, and those of the rooms, and holds every import against it.
//!
//! The rooms are private, so that the compiler reports dead code: the program needs [`run`] alone, and
//! `testing` re-exports what its tests from outside need.

// The map is for readers of the source.
#![allow(rustdoc::private_intra_doc_links)]
// What only a part needs that can be left out. Builds with all parts report what nobody needs.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]

mod app;
mod base;
// Without traces, only the simulated device has a drive by model, which asks less of it.
#[cfg_attr(not(feature = "trace"), allow(dead_code))]
mod ftl;
mod host;
mod load;
mod meter;
mod runs;
mod settings;
mod stack;
#[cfg(feature = "trace")]
mod trace;
mod ui;

#[doc(hidden)]
pub mod testing;

#[cfg(test)]
#[path = "../tests/common/skips.rs"]
mod skips;

use base::{
    class, direct, error, held_folder, job_control, json, marks, printable, regular_file, short_list,
    stopping, threads, units,
};

pub use app::run;
