//! A run: what the operator asks of it and what it tells.
//!
//! [`Session::open`] opens and fills the target, [`Session::start`] starts the load, and from then on
//! [`Session::tick`] does what is due. [`live`] drives a session by an operator's commands,
//! [`headless`] for a given time.

mod classes;
mod fallback;
pub mod headless;
pub mod live;
mod look;
pub mod message;
mod prompt;
mod run;
mod target;
mod turn;

pub use look::{Look, look};
pub use message::{Command, Event, Phase, Progress, Status, Wanted};
pub use prompt::answer_promptly;
pub use run::{Attendant, Options, Session};
pub use target::check_serials;
pub use target::{Target, open as open_target};
