//! Meters: worker counters to windows, cycles, flags, and the ledger of turns.
//!
//! Workers count in [`cell`]s; a [`source`] tells what came since the last look. At the end of each
//! window [`meters`] reads all sources, and beside them the processor ([`cpu`]), this process's
//! threads ([`tasks`]), the block layer ([`block`]), the drives' sensors ([`temperature`]) and the md
//! arrays ([`arrays`]), and makes one [`window::Window`] of it, with
//! [`flags`] for what can't be believed. Windows that are no warm-up add up to totals, exactly. The
//! [`ledger`] compares the windows before a turn with those after; [`words`] says it. What each
//! figure is, its unit and where it comes from, stands with the fields in [`window`].

pub mod arrays;
pub mod block;
pub mod cell;
pub mod cpu;
pub mod drives;
pub mod flags;
pub mod frequency;
pub mod latency;
pub mod ledger;
pub mod meters;
pub mod pmu;
pub mod source;
pub mod spread;
pub mod steady;
pub mod tasks;
pub mod totals;
pub mod window;
pub mod words;

pub use meters::{Member, Meters, Probes};
