//! What workers and engines count while they run.
//!
//! Enters: completed I/Os and operations. Leaves: counts that the meters read once a window.
//!
//! | module | is about |
//! |---|---|
//! | [`cell`] | what a worker counts while it runs |
//! | [`counters`] | counts that interfaces keep besides their I/O |
//! | [`engine`] | what a storage engine under the classes did by itself |
//! | [`slow`] | the log of slow I/Os |
//! | [`under_way`] | what a worker has begun and not ended |

pub mod cell;
pub mod counters;
pub mod engine;
pub mod slow;
pub mod under_way;
