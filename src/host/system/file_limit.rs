//! How many files this process may have open.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit with which this process began.
static BEGAN: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit as far as it goes. Files are opened for each class and member: the usual 1,024 are soon reached.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    BEGAN.get_or_init(|| limit);
    // If it can't be raised, opening a file reports what is missing.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// The limit with which this process began, for programs that it starts; none if it was not raised.
#[cfg(feature = "programs")]
pub fn file_limit_before() -> Option<Rlimit> {
    BEGAN.get().copied()
}
