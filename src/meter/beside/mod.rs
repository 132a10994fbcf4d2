//! What other programs use of the processor and the drives.
//!
//! Enters: procfs, and the block layer's counts. Leaves: others' processor time and bytes in a window.
//!
//! | module | is about |
//! |---|---|
//! | [`others`] | what other programs use of the processor, and write |
//! | [`others_io`] | what others read and write on the drives, as data |
//! | [`others_io_probe`] | finds what others read and write on the drives |

pub mod others;
pub mod others_io;
pub(super) mod others_io_probe;
