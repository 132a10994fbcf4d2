//! A run: what the operator asks of it and what it reports.
//!
//! [`Session::open`] opens and fills the target, [`Session::start`] starts the load, and from then on
//! [`Session::tick`] does what is due. [`live`] drives a session by an operator's commands,
//! [`headless`] for a given time.

mod adjust;
mod classes;
mod expected_caps;
mod fallback;
mod fill;
pub mod headless;
mod kv;
mod left_over;
pub mod live;
mod loss;
pub mod message;
mod preflight;
mod ready;
mod rebuild;
mod retained_stack;
mod run;
mod target;
mod target_stack;
mod thread_priority;
mod turn;
mod userspace_drives;
mod verified;
mod window_schedule;

pub use kv::verify_pairs;
pub use message::{Advance, Command, Event, Phase, PlanShown, Progress, Status, Wanted};
pub use preflight::{Preflight, preflight};
pub use retained_stack::RetainedStack;
pub use run::{Attendant, Options, Session};
pub use target::{Target, open as open_target};
pub use target::{check_serials, destroy_of, names_of, refuse_stray_consent, refuse_unallowed};
pub use target_stack::for_settings as plan_shown;
pub use thread_priority::raise_thread_priority;
pub use verified::Verified;
