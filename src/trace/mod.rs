//! Block traces: what reached the drives, and how well it follows the rules that make drives fast.
//!
//! Enters: files of traces, which others may have made; what drives are used for. Leaves: I/Os, scores of five rules, and
//! files that other programs read.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`io`] | an I/O at a drive, and a trace of them | – |
//! | [`pairing`] | issues and completions, paired to I/Os | io |
//! | [`events`] | events as they are read or traced, checked for plausibility | io, pairing |
//! | [`selected`] | one drive's I/Os, within a space | io |
//! | [`holdings`] | what a trace holds, by operation, process and phase | io |
//! | [`forms`] | files of traces, read in five forms, and written in these and as a table | io, pairing, events |
//! | [`live`] | drives traced live, with the kernel's tracepoints | io, pairing, events |
//! | [`contract`] | the five rules of He et al. 2017, scored from a trace | io, selected |
//! | [`mimic`] | a load like a trace's, fitted to its first half and checked against its second | io |
//! | [`watched`] | a traced drive, and the part of it that is scored | io |
//! | [`windowed`] | figures of a trace for each stretch of time | io, pairing, watched |
//! | [`watch`] | traces drives in a thread, and scores them meanwhile | io, events, live, contract, watched, windowed |
//! | [`kept`] | a trace in a folder, and the facts about it | forms, watch, watched |

pub mod contract;
mod events;
mod forms;
mod holdings;
mod io;
mod kept;
mod live;
pub mod mimic;
mod pairing;
mod selected;
mod watch;
mod watched;
mod windowed;

pub use events::IOS_MAX;
pub use forms::{WrittenForm, read, read_bytes, write};
pub use holdings::{HeldOperation, Holdings, nearest_rank};
pub use io::{Form, LostEvents, Op, PLACED, Trace, TracedDrive, TracedIo};
pub use kept::{facts_by, keep};
pub use live::Tracer;
pub use selected::{Selected, select};
pub use watch::{Ends, Live, Traced, Watch, scored};
pub use watched::Watched;
