//! Other programs' use of the processor and the drives.
//!
//! Enters: procfs, and the block layer's counts. Leaves: others' processor time and bytes in each window.
//!
//! | module | is about |
//! |---|---|
//! | [`others`] | other programs' processor time, and what they write |
//! | [`others_io`] | what other programs read and write on the drives, as data |
//! | [`others_io_probe`] | measures what other programs read and write on the drives |

pub mod others;
pub mod others_io;
pub(super) mod others_io_probe;
