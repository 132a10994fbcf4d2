//! Building a stack step by step.
//!
//! Enters: a confirmed plan, and a watch. Leaves: a stack that stands, [`Built`]; or an error, with
//! everything undone that was built.

mod builder;
mod built;
mod context;
mod precondition;
mod resync;
mod start;

pub use built::Built;
pub use context::BuildContext;
pub use start::build;
