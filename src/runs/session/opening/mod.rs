//! Opening a target: what is asked, planned, consented to, built and found.
//!
//! | module | is about |
//! |---|---|
//! | [`candidates`] | the devices of this host that a target could be on, as the guard finds them |
//! | [`consent`] | devices of a target and the guard: which they are, what they hold, and what the operator allowed |
//! | [`data_set`] | the data set of pairs that settings name: where it is, and what opening it takes |
//! | [`expected_caps`] | what a stack will be able to do, as far as that is known before it is built |
//! | [`host_tuning`] | what the settings change on the host while a session lasts: queues, the array, the page cache's budget |
//! | [`left_over`] | what is reported about the stacks of earlier runs when a session begins |
//! | [`open`] | opening what a session runs on: settings resolved, the target opened and filled, the host tuned |
//! | [`page_cache`] | what the page cache holds of a target: written back and dropped |
//! | [`plan_shown`] | what opening a target takes, as the operator sees it before it is done |
//! | [`preflight`] | A target is looked at before anybody runs on it: what speaks against it, and what a run would destroy |
//! | [`retained_stack`] | what was built and stands between two sessions |
//! | [`target_folder`] | the folders of the target's files: whether anything can safely be put there, and what else is in it |
//! | [`target_stack`] | the stack that a target stands on: planned, built before the target is opened, and taken down after |
//! | [`write_maps`] | where the write maps of data sets are: in the state folder, a file each |

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
pub(super) mod retained_stack;
pub(super) mod target_folder;
pub(super) mod target_stack;
pub(super) mod write_maps;
