//! Meters: worker counters to windows, cycles, flags, and the ledger of turns.
//!
//! Workers count in [`cell`]s; a [`source`] tells what came since the last look. At the end of each
//! window [`meters`] reads all sources, and beside them the processor ([`cpu`]), this process's
//! threads ([`tasks`]), the block layer ([`block`]), the drives' sensors ([`temperature`]) and the md
//! arrays ([`arrays`]), and makes one [`window::Window`] of it, with
//! [`flags`] for what can't be believed. What is written on each level on its way to the flash is
//! counted beside them ([`layers`], [`written`]); whether the run is [steady](steady_state), how much it
//! [varies](variability) and which [`pitfalls`] it avoids is told of the totals. Windows that are no warm-up add up to totals, exactly. The
//! [`ledger`] compares the windows before a turn with those after; [`words`] says it. What each
//! figure is, its unit and where it comes from, stands with the fields in [`window`].

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
