//! The guard that every write to a block device passes, as writing destroys what is on it.
//!
//! [`examine()`] refuses a device in use and reports what is on it; [`permit()`] weighs that against the
//! operator's consent; [`Permit::open`] examines the device again, claims it and opens it for writing.
//!
//! Enters: a device's name or its facts, and the operator's [`Consent`]. Leaves: a [`Claim`], without which
//! nothing is written to a block device.

mod claim;
mod consent;
mod content;
mod examine;
mod format;
pub(crate) mod holders;
mod permit;
mod read_only;
mod sampling;
mod uses;
mod wipe;
mod written;

pub use claim::{Claim, claim_built};
pub(crate) use claim::{claim_again, refuse_claimed};
pub use consent::Consent;
pub use content::OwnData;
pub(crate) use examine::examine_device;
pub use examine::{Examination, examine, examine_all, examine_held};
pub use permit::{Permit, permit};
pub use read_only::examine_read_only;
pub use uses::check_serials;
pub(crate) use uses::refuse_used;
