//! What people see: the command line, the screen, and the reports.
//!
//! Enters: key presses, arguments, windows and recordings. Leaves: commands to a session, and text.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`blocks`] | cells of a bar, filled in eighths | – |
//! | [`clock`] | the local time, as a folder's name and for reading | – |
//! | [`theme_name`] | the palettes of the screen, by name | – |
//! | [`cli`] | the command line | help, text, theme_name |
//! | [`help`] | the topics of `stacktune help`, laid out and paged | – |
//! | [`text`] | text that fits: cutting, wrapping, figures in few cells | – |
//! | [`report`] | tables, charts, comparisons, the host in words | blocks, clock, text |
//! | [`tui`] | the terminal screen: state, update, views | blocks, clock, text, report, theme_name |

pub mod blocks;
pub mod cli;
pub mod clock;
pub mod help;
pub mod report;
pub mod text;
pub mod theme_name;
pub mod tui;
