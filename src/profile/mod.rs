//! Profiles: settings as TOML, there and back; the built-in ones.

pub mod settings;

pub use settings::Settings;
