//! A second recording: one key flips between both at the same position, another shows them side by side.
//!
//! Flipped, both have the whole screen in turn, with the same scales: what differs moves. Side by side, each has half of
//! the columns.

use super::replay::Replay;
use crate::error::Result;
use crate::runs::record::Recording;
use crate::ui::report;

/// The recording that is not shown now, and how the second differs from the first.
#[derive(Debug, Clone)]
pub struct Beside {
    /// That recording, with its figures.
    pub other: Replay,
    /// Whether it is the first one.
    pub is_first: bool,
    /// Whether both are shown at once, if there is room.
    pub both: bool,
    /// What `compare` prints.
    pub comparison: String,
    /// The figures that clearly differ in the second one, and by how much.
    pub changes: Vec<String>,
}

impl Beside {
    /// Makes two recordings ready for the screen, the first one to be shown first.
    ///
    /// # Errors
    /// Those of [`Replay::of`].
    pub fn of(first: Recording, second: Recording) -> Result<(Replay, Self)> {
        let both = [first, second];
        let comparison = report::compare(&both)?;
        let [first, second] = both;
        let (comparison, changes) = (comparison.to_string(), comparison.clear_changes());
        let other = Replay::of(second)?;
        Ok((Replay::of(first)?, Self { other, is_first: false, both: false, comparison, changes }))
    }

    /// The letter of the recording that is shown.
    pub fn letter(&self) -> &'static str {
        if self.is_first { "B" } else { "A" }
    }

    /// Moves the other recording to that time from its beginning: to the window that holds it.
    pub fn go(&mut self, since_ns: u64) {
        let place = self.other.figures.place_of(self.other.at_ns(since_ns));
        self.other.figures.show(place);
    }
}
