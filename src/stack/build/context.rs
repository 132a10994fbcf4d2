//! What a build needs besides its plan.

use std::path::PathBuf;

use crate::stack::guard::OwnData;
use crate::stack::runner::Runner;

/// What a build needs besides its plan.
pub struct BuildContext<'a> {
    /// Where journals and mount points are.
    pub state_dir: PathBuf,
    /// The profile's name, for `stacktune status`.
    pub profile: String,
    /// Runs the tools.
    pub runner: Runner,
    /// Recognizes stacktune's own data on a drive.
    pub own_data: &'a (dyn OwnData + Sync),
}
