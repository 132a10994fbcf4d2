//! A run as a whole.
//!
//! Enters: its windows. Leaves: totals, bins, and whether and when it became steady.
//!
//! | module | is about |
//! |---|---|
//! | [`bins`] | a run of any length in at most 600 bins |
//! | [`cusum`] | where a series leaves its level (CUSUM; Page 1954) |
//! | [`steady_state`] | whether a run has reached its steady state (Didona et al. 2021, 4.1) |
//! | [`totals`] | sums over the windows after the warm-up |
//! | [`variability`] | how much the throughput varies (Didona et al. 2021, 4.7) |

pub mod bins;
pub mod cusum;
pub mod steady_state;
pub mod totals;
pub mod variability;
