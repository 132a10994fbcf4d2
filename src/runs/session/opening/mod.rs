//! Opening a target: asking, planning, consent, building and examining.
//!
//! | module | is about |
//! |---|---|
//! | [`candidates`] | the devices of this host that a target could use, as the guard judges them |
//! | [`consent`] | devices of a target and the guard: which they are, what they hold, and what the operator allowed |
//! | [`data_set`] | the data set of pairs in the settings: where it is, and what opening it takes |
//! | [`expected_caps`] | a stack's future abilities, as far as they are known before it is built |
//! | [`host_tuning`] | changes to the host for the duration of a session: queues, the array, the page cache's budget |
//! | [`left_over`] | the report about earlier runs' stacks when a session begins |
//! | [`open`] | opening all that a session runs on: settings resolved, the target opened and filled, the host tuned |
//! | [`page_cache`] | a target's pages in the page cache: written back and dropped |
//! | [`plan_shown`] | what opening a target takes, as the operator sees it in advance |
//! | [`preflight`] | examining a target before a run: obstacles, and what a run would destroy |
//! | [`retained_stack`] | a stack kept between two sessions |
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
