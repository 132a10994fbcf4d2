//! Percentiles: of a window, and of several windows together.
//!
//! Enters: histograms. Leaves: percentiles that enough samples support.
//!
//! | module | is about |
//! |---|---|
//! | [`latency`] | percentiles, reported only if enough samples support them |
//! | [`pooled`] | percentiles of the last windows together |
//! | [`samples`] | a latency's samples by value, to pool those of several windows |
//! | [`stretches`] | neighbouring windows together, which show how a percentile varies |

pub mod latency;
pub mod pooled;
pub mod samples;
pub mod stretches;
