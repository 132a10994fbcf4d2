//! Opening a target: what is asked, planned, consented to, built and found.
//!
//! | module | is about |
//! |---|---|
//! | [`candidates`] | The devices of this host that a target could be on, as the guard finds them |
//! | [`consent`] | Devices of a target and the guard: which they are, what they hold, and what the operator allowed |
//! | [`data_set`] | The data set of pairs that settings name: where it is, and what opening it takes |
//! | [`expected_caps`] | What a stack will be able to do, as far as that is known before anything is destroyed for it. The rest |
//! | [`host_tuning`] | What the settings change of the host itself while a session lasts: queues, the array and the page |
//! | [`left_over`] | What is reported about the stacks of earlier runs when a session begins |
//! | [`open`] | Opening what a session runs on: settings resolved, the target opened and filled, the host tuned |
//! | [`page_cache`] | What the page cache holds of a target: written back and dropped |
//! | [`plan_shown`] | What opening a target takes, as the operator sees it before it is done |
//! | [`preflight`] | A target is looked at before anybody runs on it: what speaks against it, and what a run would destroy |
//! | [`resolve`] | Settings × host facts × options, resolved: all that a run does, settled before it does it |
//! | [`retained_stack`] | What was built and stands between two sessions |
//! | [`target_folder`] | The folders of the target's files: whether anything can safely be put there, and what else is in it |
//! | [`target_stack`] | The stack that a target stands on: planned, built before the target is opened, and taken down after |
//! | [`write_maps`] | Where the write maps of data sets are: in the state folder, a file each |

pub(super) mod candidates;
pub(super) mod consent;
pub(super) mod data_set;
pub(super) mod expected_caps;
pub(super) mod host_tuning;
pub(super) mod left_over;
pub(super) mod open;
pub(super) mod page_cache;
pub(super) mod plan_shown;
pub(super) mod preflight;
pub(super) mod resolve;
pub(super) mod retained_stack;
pub(super) mod target_folder;
pub(super) mod target_stack;
pub(super) mod write_maps;
