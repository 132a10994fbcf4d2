//! Block traces: what reached the drives, and how it keeps to the rules by which they are fast.
//!
//! Enters: files of traces, which others may have made; what drives are used for. Leaves: I/Os, scores of five rules, and
//! files that other programs read.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`io`] | an I/O at a drive, and a trace of them | – |
//! | [`pairing`] | issues and completions to I/Os | io |
//! | [`events`] | events as they are read or traced, held against what can be | io, pairing |
//! | [`selected`] | one drive's I/Os, in a space of it | io |
//! | [`forms`] | files of traces, read in five forms and written in four of them and as a table | io, pairing, events |
//! | [`live`] | drives traced as they are used, by the kernel's tracepoints | io, pairing, events |
//! | [`contract`] | the five rules of He et al. 2017, scored from a trace | io, selected |
//! | [`mimic`] | a load like a trace's, fitted to its first half and held against its second | io |
//! | [`watched`] | a drive that is traced, and the part of it that is scored | io |
//! | [`windowed`] | figures of a trace for each stretch of time | io, pairing, watched |
//! | [`watch`] | drives traced by a thread of their own, and scored meanwhile | io, events, live, contract, watched, windowed |
//! | [`kept`] | a trace in a folder, and what it is of | forms, watch, watched |

pub mod contract;
mod events;
mod forms;
mod io;
mod kept;
mod live;
pub mod mimic;
mod pairing;
mod selected;
mod watch;
mod watched;
mod windowed;

pub use forms::{WrittenForm, read, read_bytes, write};
#[cfg(test)]
pub use io::LostEvents;
pub use io::{Op, PLACED, Trace, TracedDrive, TracedIo};
pub use kept::{drives_by, keep};
pub use live::Tracer;
pub use selected::{Selected, select};
pub use watch::{Live, Traced, Watch, scored};
pub use watched::Watched;
