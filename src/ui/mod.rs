//! What people see: the command line, the screen, and the reports.
//!
//! Enters: key presses, arguments, windows and recordings. Leaves: commands to a session, and text.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`cli`] | the command line | – |
//! | [`tui`] | the terminal screen: state, update, views | – |
//! | [`report`] | tables, charts, comparisons, sentences | – |

pub mod cli;
pub mod report;
pub mod tui;
