//! What a build needs beside its plan.

use std::path::PathBuf;

use crate::stack::guard::OwnData;
use crate::stack::runner::Runner;

/// What a build needs beside its plan.
pub struct BuildContext<'a> {
    /// Where journals and mount points lie.
    pub state_dir: PathBuf,
    /// The profile's name, for `stacktune status`.
    pub profile: String,
    /// Runs the tools.
    pub runner: Runner,
    /// Tells stacktune's own data on a drive.
    pub own_data: &'a (dyn OwnData + Sync),
}
