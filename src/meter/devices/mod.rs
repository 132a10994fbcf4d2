//! Members, levels and drives below the load.
//!
//! Enters: the block layer's counts, and what drives report. Leaves: bytes and times of each level and drive,
//! temperature, throttling, lost members.
//!
//! | module | is about |
//! |---|---|
//! | [`arrays`] | arrays in use, watched for lost members |
//! | [`block`] | the block layer's own counts of bytes, and of time |
//! | [`by_model`] | the flash writes of modelled drives |
//! | [`drives`] | the drives below the members: temperature, throttling, presence |
//! | [`layers`] | bytes and space on each level below the load |
//! | [`member`] | a member of the target, as the meters know it |

pub mod arrays;
pub mod block;
pub(super) mod by_model;
pub mod drives;
pub mod layers;
pub mod member;
