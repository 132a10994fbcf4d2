//! The size of a stack's files: from the room that there will be or, with command layers, from the room that
//! there is once these are built.

use super::capacity;
use super::spec::StackSpec;
use crate::error::Result;
use crate::settings::{Pairs, Stack};

/// What the sizes of a stack's files depend on, besides the room below them.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub(super) layers: Stack,
    pairs: Option<Pairs>,
    program: bool,
}

impl Fit {
    /// For command layers, which leave an unknown amount of room; none if the room is known.
    pub(super) fn of(spec: &StackSpec) -> Option<Self> {
        let unknown = !spec.layers.by_commands.is_empty();
        unknown.then(|| Self {
            layers: spec.layers.clone(),
            pairs: spec.pairs.clone(),
            program: spec.program,
        })
    }

    /// Usable bytes on a device of that size.
    pub(super) fn room_bytes(&self, device_bytes: u64) -> u64 {
        capacity::file_room_bytes(&self.layers, device_bytes)
    }

    /// Bytes of the data file and of the WAL file on a device of that size.
    ///
    /// # Errors
    /// Input if they, or the file system, do not fit.
    pub(super) fn file_sizes(&self, device_bytes: u64) -> Result<(u64, u64)> {
        capacity::refuse_fewer(self.layers.filesystem, device_bytes)?;
        file_sizes(&self.layers, (self.pairs.as_ref(), self.program), self.room_bytes(device_bytes))
    }
}

/// Bytes of the data file and of the WAL file on a file system with that much room.
///
/// # Errors
/// Input if they do not fit.
pub(super) fn file_sizes(
    stack: &Stack,
    (pairs, program): (Option<&Pairs>, bool),
    room_bytes: u64,
) -> Result<(u64, u64)> {
    match pairs {
        // How much a program writes is not known in advance.
        None if program => Ok((0, 0)),
        Some(pairs) => Ok((pairs.count_on(room_bytes) * (pairs.key_bytes + pairs.value_bytes), 0)),
        None => capacity::file_sizes(stack, room_bytes),
    }
}
