//! The palettes of the screen, by name.

/// A palette that can be chosen by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ThemeName {
    /// Full colours on a dark background.
    Dark,
    /// Full colours on a light background.
    Light,
    /// The terminal's own sixteen colours.
    #[value(name = "16")]
    Sixteen,
    /// No colour.
    Mono,
}

impl ThemeName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dark, Self::Light, Self::Sixteen, Self::Mono];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Sixteen => "16",
            Self::Mono => "mono",
        }
    }
}
