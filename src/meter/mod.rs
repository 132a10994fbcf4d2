//! Meters: from worker counters to windows, cycles, flags, and the ledger of turns.
//!
//! Workers count in [`cell`]s; a [`source`] gives what was counted since the last call. At the end of each
//! window, [`meters`] reads all sources, and besides them the processor ([`cpu`]), this process's threads
//! ([`tasks`]), the block layer ([`block`]), the drives ([`drives`]) and the arrays ([`arrays`]), and makes a
//! [`window::Window`], with [`flags`] for what can't be believed. What is written on each level on its way to
//! the flash is counted too ([`layers`], [`written`]); the totals say whether the run is
//! [steady](steady_state) and how much it [varies](variability). Windows after the warm-up add up exactly to
//! the totals. The [`ledger`] compares the windows before a turn with those after. What each figure is, its
//! unit and its source are documented with the fields of [`window`].

pub mod arrays;
pub mod bins;
pub mod block;
pub mod cell;
pub mod context;
pub mod counters;
pub mod cpu;
pub mod cusum;
pub mod drives;
pub mod engine;
pub mod flag;
pub mod flags;
pub mod frequency;
pub mod latency;
pub mod layers;
pub mod ledger;
pub mod member;
pub mod meters;
pub mod pmu;
pub mod price;
pub mod probes;
mod rates;
pub mod settling;
pub mod source;
pub mod spread;
pub mod steady_state;
pub mod tasks;
pub mod totals;
pub mod variability;
pub mod window;
pub mod written;

pub use member::Member;
pub use meters::Meters;
pub use probes::Probes;
