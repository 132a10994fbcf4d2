//! Building a stack step by step.
//!
//! Enters: a confirmed plan, and a watch. Leaves: the stack, [`Built`]; or an error, after everything that
//! was built is undone.

mod builder;
mod built;
mod context;
mod layers;
mod made;
mod precondition;
mod resync;
mod start;

pub use built::Built;
pub use context::BuildContext;
pub use start::build;
