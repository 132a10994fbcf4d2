//! How a program is run, besides the settings.

use std::time::Duration;

#[cfg(feature = "programs")]
use super::stop_if::StopIf;
use crate::host::User;

/// How a program is run, besides the settings.
#[derive(Debug, Clone)]
pub struct ProgramOptions {
    /// The user it runs as; none for the user of this process.
    pub user: Option<User>,
    /// How long it runs, warm-up included.
    pub time: Duration,
    /// Whether it is expected to end by itself before that.
    pub is_open_ended: bool,
    /// When the run ends itself.
    #[cfg(feature = "programs")]
    pub stop_if: Option<StopIf>,
}
