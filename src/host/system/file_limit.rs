//! How many files this process may have open.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that this process started with.
static BEGAN: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit as far as allowed. Files are opened for each class and member: the usual 1,024 are soon used up.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    BEGAN.get_or_init(|| limit);
    // If it can't be raised, opening a file reports what is missing.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// The limit that this process started with, for programs that it starts; none if it was not raised.
#[cfg(feature = "programs")]
pub fn file_limit_before() -> Option<Rlimit> {
    BEGAN.get().copied()
}
