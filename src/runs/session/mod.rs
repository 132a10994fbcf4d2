//! A run: what the operator asks of it and what it tells.
//!
//! [`Session::open`] opens and fills the target, [`Session::start`] starts the load, and from then on
//! [`Session::tick`] does what is due. [`live`] drives a session by an operator's commands,
//! [`headless`] for a given time.

mod adjust;
mod classes;
mod fallback;
mod fill;
mod foresee;
mod given;
mod grid;
pub mod headless;
mod kept;
mod left_over;
pub mod live;
mod look;
mod loss;
pub mod message;
mod pairs;
mod prompt;
mod ready;
mod rebuild;
mod run;
mod standing;
mod target;
mod turn;
mod verified;

pub use kept::Kept;
pub use look::{Look, look};
pub use message::{Advance, Command, Event, Phase, PlanShown, Progress, Status, Wanted};
pub use pairs::verify_pairs;
pub use prompt::answer_promptly;
pub use run::{Attendant, Options, Session};
pub use standing::for_settings as plan_shown;
pub use target::{Target, open as open_target};
pub use target::{check_serials, destroy_of, names_of, refuse_stray_consent, refuse_unallowed};
pub use verified::Verified;
