//! A duel: two values of one knob alternate in pairs of blocks, in an order that a coin decides, until it is
//! clear which is better, or that they hardly differ.
//!
//! Enters: a knob, two values and the deciding figure. Leaves: turns for the run, and a [`Report`].
//!
//! A block is the windows in which a value settles and is measured; a pair is a block of each value. Anything
//! else that changes meanwhile (drift, hiccups, other programs) favors neither side: the coin chose which
//! value came first, and that is all that the test assumes ([`evidence`]).
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`evidence`] | the evidence in signs of differences, after any number of pairs | – |
//! | [`figures`] | the figures of a block | – |
//! | [`report`] | the recorded result, and the verdict | evidence, figures |
//! | [`course`] | which value is next, which windows count, and when it is over | evidence, figures, report |

mod course;
pub mod evidence;
pub mod figures;
pub mod report;

pub use course::{Course, DuelMove, DuelSpec, PAIRS_MAX, PAIRS_MIN, WINDOWS_MAX};
pub use figures::Figure;
pub use report::{Begins, Report};
