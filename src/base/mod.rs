//! What all rooms build on, and what knows none of them.
//!
//! Enters: bytes, paths and numbers, whatever they are about. Leaves: errors as sentences, quantities as
//! text, files opened with care. A module belongs here if it is needed by rooms that don't import each other.
//! `src/lib.rs` passes each on under its own name.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`units`] | quantities as text and back | – |
//! | [`class`] | the four classes of I/O | – |
//! | [`printable`] | text that a terminal shows as it is | – |
//! | [`error`] | what happened, to what, and what to do | printable |
//! | [`job_control`] | whether a shell could continue this process once it has stopped | – |
//! | [`json`] | one reader and one writer for all of JSON | error, printable |
//! | [`marks`] | the names and first bytes of stacktune's own files | units |
//! | [`direct`] | what direct I/O needs of memory and descriptors | – |
//! | [`regular_file`] | reading files that others may have put in place | units |
//! | [`held_folder`] | a folder held open, in which files are created | error, printable, regular_file |
//! | [`short_list`] | sorting without the standard library's sort | – |
//! | [`stopping`] | stopping this process when none of its threads is ending | – |
//! | [`threads`] | starting threads on a host that may allow no more | error, short_list |

pub mod class;
pub mod direct;
pub mod error;
pub mod held_folder;
pub mod job_control;
pub mod json;
pub mod marks;
pub mod printable;
pub mod regular_file;
pub mod short_list;
pub mod stopping;
pub mod threads;
pub mod units;
