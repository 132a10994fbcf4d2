//! The terminal UI: messages change the state, drawing reads it.
//!
//! Enters: keys, the mouse, events of a session. Leaves: cells of the terminal, and commands to the session.
//!
//! [`update`](update::update) is pure: state and message in, effects out. [`view`] draws a state into
//! a buffer and does no I/O. Only [`run()`] touches the terminal, the session and the profiles.

mod answers;
mod beside;
mod both;
mod bound_key;
mod charts;
pub mod consent;
mod dialog;
mod figures;
mod filter;
pub mod glyphs;
mod heat;
mod keys;
mod knob_list;
mod layout;
mod mark;
pub mod message;
mod past;
#[cfg(feature = "documents")]
pub mod picture;
pub mod planned;
mod profiles;
mod replay;
mod run;
mod shelf;
mod stack;
pub mod state;
mod terminal;
pub mod theme;
pub mod themes;
#[cfg(feature = "trace")]
mod tracer;
#[cfg(feature = "trace")]
mod tracing;
#[cfg(not(feature = "trace"))]
#[path = "tracing/absent.rs"]
mod tracing;
mod typed;
pub mod update;
pub mod view;
mod wake;
mod writers;

#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod first_look_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod looks_tests;
#[cfg(test)]
mod pty_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod theme_tests;

pub use beside::Beside;
#[cfg(feature = "documents")]
pub use picture::{Film, Paper, animated, cast, is_cast_of_ours, is_svg_of_ours, svg};
pub use profiles::{ProfileEntry, ProfileStore};
pub use replay::Replay;
pub use run::{Link, Memory, Options, ScreenEnd, run, show};
