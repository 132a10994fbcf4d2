//! How messages change the state. Pure: everything to do outside is returned as effects.

mod act;
mod choice;
mod dialogs;
mod drives;
#[cfg(test)]
mod drives_tests;
pub mod duel;
#[cfg(test)]
mod duel_tests;
mod filter;
#[cfg(test)]
mod filter_tests;
pub mod input;
mod mark;
#[cfg(test)]
mod mark_tests;
mod messages;
mod moments;
mod mouse;
mod palette;
#[cfg(test)]
mod past_tests;
pub mod pick;
#[cfg(test)]
mod pick_tests;
pub mod plan;
#[cfg(test)]
mod plan_tests;
pub mod profile;
#[cfg(test)]
mod program_tests;
pub mod replay;
mod search;
mod session;
pub mod shelf;
#[cfg(test)]
mod shelf_tests;
mod suspend;
#[cfg(test)]
mod tests;
mod themes;
#[cfg(feature = "trace")]
mod tracing;
#[cfg(not(feature = "trace"))]
#[path = "tracing/absent.rs"]
mod tracing;
#[cfg(all(test, feature = "trace"))]
mod tracing_tests;
mod turn;
#[cfg(test)]
mod turn_plan_tests;

pub use choice::choose_knob;
pub use messages::update;
pub use replay::with_other;
pub use turn::picked;
