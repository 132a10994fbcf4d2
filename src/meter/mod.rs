//! Meters: from worker counters to windows, cycles, flags, and the ledger of turns.
//!
//! Enters: what workers count in their [`cell`]s. Leaves: a [`window::Window`] a second, totals, which add up exactly
//! from the windows after the warm-up, and the [`ledger`] of turns. What each figure is, its unit and its source are
//! documented with the fields of [`window`].
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`block`] | the block layer's own counts of bytes, and of time | – |
//! | [`counters`] | counts that interfaces keep besides their I/O | – |
//! | [`engine`] | what a storage engine under the classes did by itself | – |
//! | [`flag`] | the flags: text, scope, meaning | – |
//! | [`frequency`] | the clock frequency of each CPU, if the system reports it | – |
//! | [`ledger_figure`] | the figures of a ledger's line, and their units | – |
//! | [`others_io`] | what others read and write on the drives, as data | – |
//! | [`member`] | a member of the target, as the meters know it | – |
//! | [`pmu`] | cycles of the whole system from the performance-monitoring unit | – |
//! | [`price`] | the price of storage per capacity and per throughput | – |
//! | [`processor`] | the processor's figures | – |
//! | [`rates`] | shares and rates that windows and totals compute alike | – |
//! | [`slow`] | the log of slow I/Os | – |
//! | [`spread`] | a figure over several runs: median and extremes | – |
//! | [`sqpoll`] | how long kernel threads that poll submission queues found work | – |
//! | [`under_way`] | what a worker has begun and not ended | – |
//! | [`written`] | bytes on their way to the flash, and their ratios | – |
//! | [`arrays`] | arrays in use, watched for lost members | member |
//! | [`cell`] | what a worker counts while it runs | counters, slow, under_way |
//! | [`drives`] | the drives below the members: temperature, throttling, presence | block, member |
//! | [`by_model`] | what drives by model write to their flash | drives |
//! | [`program`] | what a program that is the load used and reports, as data | – |
//! | [`layers`] | bytes and space on each level below the load | block, member |
//! | [`tasks`] | what this process's own threads cost and read | sqpoll |
//! | [`settling`] | settled after the last turn, and without a trend | spread |
//! | [`others_io_probe`] | finds what others read and write on the drives | block, member, others_io |
//! | [`program_io`] | what a program's processes read and wrote, by their names | others_io_probe, program |
//! | [`program_probe`] | reads what a program that is the load uses | block, program, program_io |
//! | [`others`] | what other programs use of the processor, and write | others_io_probe, processor |
//! | [`window`] | each figure, defined once | block, counters, engine, flag, ledger_figure, others_io, processor, program, slow, written |
//! | [`bins`] | a run of any length in at most 600 bins | written, window |
//! | [`context`] | what the meters must know about a window besides the counts | engine, program, window |
//! | [`cpu`] | the processor over a window: the whole system's shares and cycles | frequency, pmu, window |
//! | [`cusum`] | where a series leaves its level (CUSUM; Page 1954) | settling |
//! | [`estimate`] | how much a figure differs between two stretches of windows, and whether clearly | spread, window |
//! | [`outcome`] | what a turn did, in a word | estimate, ledger_figure, window |
//! | [`source`] | where counts come from: cells here, deltas of another process | counters, tasks, under_way, cell, slow |
//! | [`variability`] | how much the throughput varies (Didona et al. 2021, 4.7) | window |
//! | [`flags`] | raises flags: what makes a figure untrustworthy | flag, drives, others_io, window, context |
//! | [`latency`] | percentiles, reported only if enough samples support them | window, source |
//! | [`samples`] | a latency's samples by value, to pool those of several windows | latency |
//! | [`pooled`] | percentiles of the last windows together | latency, samples, window |
//! | [`turn_figures`] | the figures of a ledger's line, from both sides of its turn | estimate, latency, samples, window |
//! | [`ledger`] | each turn of a knob: windows before against windows after | estimate, flag, turn_figures, window |
//! | [`probes`] | what the meters read besides the sources | block, member, tasks, arrays, drives, by_model, layers, cpu, others, others_io, others_io_probe |
//! | [`steady_state`] | whether a run has reached its steady state (Didona et al. 2021, 4.1) | rates, written, window, bins, cusum |
//! | [`totals`] | sums over the windows after the warm-up | engine, flag, others_io, program, rates, written, window, cpu, source, variability, flags, latency, steady_state, slow |
//! | [`compared`] | the workers' count of bytes against the block layer's | window, context |
//! | [`meters`] | closes a window: reads sources and probes, computes all figures | compared, counters, engine, member, rates, written, drives, layers, settling, window, context, cpu, source, flags, latency, probes, totals, slow |

pub mod arrays;
pub mod bins;
pub mod block;
mod by_model;
pub mod cell;
mod compared;
pub mod context;
pub mod counters;
pub mod cpu;
pub mod cusum;
pub mod drives;
pub mod engine;
pub mod estimate;
pub mod flag;
pub mod flags;
pub mod frequency;
pub mod latency;
pub mod layers;
pub mod ledger;
pub mod ledger_figure;
pub mod member;
pub mod meters;
pub mod others;
pub mod others_io;
mod others_io_probe;
pub mod outcome;
pub mod pmu;
pub mod pooled;
pub mod price;
pub mod probes;
pub mod processor;
pub mod program;
#[cfg(feature = "programs")]
pub mod program_io;
#[cfg(feature = "programs")]
pub mod program_probe;
mod rates;
pub mod samples;
pub mod settling;
pub mod slow;
pub mod source;
pub mod spread;
mod sqpoll;
pub mod steady_state;
pub mod tasks;
pub mod totals;
mod turn_figures;
pub mod under_way;
pub mod variability;
pub mod window;
pub mod written;

pub use member::Member;
pub use meters::Meters;
pub use probes::Probes;
