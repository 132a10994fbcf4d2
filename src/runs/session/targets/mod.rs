//! The targets of a run: opened behind the guard, made ready, and closed cleanly.
//!
//! Enters: a `TargetSpec`, the part of the settings that names a target. Leaves: a `Layout`, the workers on
//! it, and the abilities of its file system or drives.
//!
//! | file | what |
//! |---|---|
//! | [`spec`] | a target as the settings specify it |
//! | [`found`] | the content of a target's place, before anything there is changed |
//! | [`verified`] | a target read back |
//! | [`target`] | an open target of any kind: made ready, read back, closed |
//! | [`layout`] | regions, members and notes of a target; of an imagined one, all there is |
//! | [`pages`] | files and devices, read and written in pages |
//! | [`key_value`] | a data set of key-value pairs |
//! | [`program_folder`] | a folder for a program's files |
//! | [`stack`] | pages, pairs or a program's folder on a stack |
//! | `userspace_drives` | drives that have left the kernel; `absent` replaces them in a build without |

#[cfg(not(feature = "userspace"))]
mod absent;
mod found;
mod key_value;
mod layout;
mod pages;
mod program_folder;
mod spec;
mod stack;
mod target;
#[cfg(feature = "userspace")]
mod userspace_drives;
pub(super) mod verified;

#[cfg(not(feature = "userspace"))]
use absent as userspace_drives;
pub(super) use found::{Content, FoundTarget};
pub(super) use key_value::KeyValue;
pub use layout::paths_of;
pub(super) use pages::{Pages, bytes_to_fill, files};
pub(super) use spec::{BuiltSpec, ImaginedSpec, KvSpec, PagesSpec, TargetSpec, UserspaceSpec};
pub use target::Target;
pub(super) use userspace_drives::steps as handover_steps;
