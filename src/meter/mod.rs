//! Meters: from worker counters to windows, cycles, flags, and the ledger of turns.
//!
//! Enters: what workers count in their [`cell`](counts::cell)s. Leaves: one [`window::Window`] per second,
//! totals that are exactly the sum of the windows after the warm-up, and the [`ledger`](turns::ledger) of
//! turns. Each figure, its unit and its source are documented at the fields of [`window`].
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`change`] | a figure before and after a turn | – |
//! | [`duel_outcome`] | the outcome of a duel | – |
//! | [`flag`] | the flags: text, scope, meaning | – |
//! | [`ledger_figure`] | the figures of a ledger's line, and their units | – |
//! | [`ledger_line`] | a line of the ledger: its turn, its figures | change, duel_outcome, flag, ledger_figure |
//! | [`price`] | the price of storage per capacity and per throughput | – |
//! | [`processor`] | the processor's figures | – |
//! | [`rates`] | shares and rates that windows and totals compute alike | – |
//! | [`spread`] | a figure over several runs: median and extremes | – |
//! | [`written`] | bytes on their way to the flash, and their ratios | – |
//! | [`window`] | each figure, defined once | change, devices, counts, flag, ledger_figure, ledger_line, beside, processor, programs, written |
//! | [`context`] | what the meters must know about a window besides the counts | counts, programs, window |
//! | [`source`] | where counts come from: cells here, deltas of another process | counts, processors |
//! | [`flags`] | raises flags: what makes a figure untrustworthy | flag, devices, beside, window, context |
//! | [`probes`] | what the meters read besides the sources | devices, processors, beside, context |
//! | [`compared`] | the workers' count of bytes against the block layer's | window, context |
//! | [`meters`] | closes a window: reads sources and probes, computes all figures | compared, counts, devices, rates, written, turns, window, context, processors, source, flags, latencies, probes, whole_run |
//! | [`counts`] | what workers and engines count while they run | – |
//! | [`devices`] | members, levels and drives below the load: bytes, health, lost members | – |
//! | [`processors`] | processor time and cycles: the whole system's and our threads' | window |
//! | [`beside`] | what other programs use of the processor and the drives | processor, devices |
//! | [`programs`] | what a program that is the load uses and reports | beside, devices |
//! | [`latencies`] | percentiles: of a window, of samples by value, of windows together | window, source |
//! | [`turns`] | the ledger: each turn of a knob, and what it did | spread, window, duel_outcome, ledger_figure, latencies, flag |
//! | [`whole_run`] | a run as a whole: totals, bins, steady state | written, window, turns, rates, counts, flag, beside, programs, processors, source, flags, latencies |

pub mod beside;
mod change;
mod compared;
pub mod context;
pub mod counts;
pub mod devices;
pub mod duel_outcome;
pub mod flag;
pub mod flags;
pub mod latencies;
pub mod ledger_figure;
mod ledger_line;
pub mod meters;
pub mod price;
pub mod probes;
pub mod processor;
pub mod processors;
pub mod programs;
mod rates;
pub mod source;
pub mod spread;
pub mod turns;
pub mod whole_run;
pub mod window;
pub mod written;

pub use devices::member::Member;
pub use meters::Meters;
pub use probes::Probes;
