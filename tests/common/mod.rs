//! What several test files share.

/// Says that a test can't run here, and why; CI checks this line against its list.
pub fn skip(test: &str, reason: &str) {
    eprintln!("SKIPPED {test}: {reason}");
}
