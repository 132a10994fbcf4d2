//! Choices from a fixed set, by their names in profiles.

/// A choice from a fixed set, with its name in profiles: what [`crate::settings::knobs`] needs from an enum.
pub trait Named: Copy + Eq + 'static {
    /// Every value with its name and meaning.
    const NAMES: &'static [(Self, &'static str, &'static str)];

    /// The name in profiles.
    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(value, ..)| *value == self).map_or("?", |(_, name, _)| name)
    }

    /// The value with that name.
    fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known, _)| *known == name).map(|(value, ..)| *value)
    }
}
