//! The five rules of the unwritten contract of SSDs (He et al. 2017), scored from a trace.
//!
//! | rule | a client should | figure | from |
//! |---|---|---|---|
//! | request scale | issue large requests, or many at once | sizes, depth, bytes in flight | the trace alone |
//! | locality | access with locality | misses of a mapping cache, by the share of the space that it covers | page-level mapping, loaded on demand |
//! | alignment | start at the beginning of a block, and write on to its end | unaligned bytes, by block size | hybrid mapping, a log of its own for each block, nothing striped |
//! | grouping by death time | put together what dies together | zombie curve | page-level mapping, striped over 16 channels, space without end |
//! | uniform data lifetime | create data of similar lifetimes | writes of each page | the trace alone |
//!
//! Enters: the I/Os of a trace. Leaves: [`Scores`].
//!
//! The mappings have no clock and collect no garbage: they say where data would be, never how fast a drive
//! would be. The parameters are the authors': see [`ContractSpec`].

mod alignment;
mod boxes;
mod entries;
mod grouping;
mod latency;
mod lifetime;
mod locality;
mod requests;
mod scores;
mod space;
mod spec;
#[cfg(test)]
mod tests;

pub use alignment::Unaligned;
pub use boxes::Five;
pub use grouping::Zombies;
pub use latency::OpLatency;
pub use scores::{Light, Scores, Why, score};
pub use spec::{ContractSpec, Rule, TRAFFIC_MIN};
