//! What a run changes of the host while it goes on, and puts back: the drives' queue settings, and the
//! page cache's budget.
//!
//! Enters: the values wanted, and the journal that they are noted in. Leaves: the host with these values,
//! and as it was when the run ends.

mod adjustments;
pub(crate) mod cgroup;
pub(crate) mod queue;

pub use adjustments::Adjustments;
pub use queue::drives_of;
