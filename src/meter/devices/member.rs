//! A member of the target, as the meters know it.

use std::path::PathBuf;

/// A member as the meters know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// See [`crate::meter::window::MemberFigures::name`].
    pub name: String,
    /// Its device number (major, minor), if it is a block device.
    pub device: Option<(u32, u32)>,
    /// Where it is; none if it is simulated.
    pub path: Option<PathBuf>,
}
