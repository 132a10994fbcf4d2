//! What workers and engines count while they run.
//!
//! Enters: completed I/Os and operations. Leaves: counts that the meters read once per window.
//!
//! | module | is about |
//! |---|---|
//! | [`cell`] | what a worker counts while it runs |
//! | [`counters`] | counts that interfaces keep besides their I/O |
//! | [`engine`] | what a storage engine under the classes did on its own |
//! | [`slow`] | the log of slow I/Os |
//! | [`under_way`] | the I/Os that a worker has in flight |

pub mod cell;
pub mod counters;
pub mod engine;
pub mod slow;
pub mod under_way;
