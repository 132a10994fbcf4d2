//! The composition root: each command, assembled from the rooms.
//!
//! Enters: the command line. Leaves: an exit status.
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`output`] | standard output and standard error | – |
//! | [`inputs`] | the profile, the options of a run, the host's facts | – |
//! | [`new_file`] | a file that a command writes under a new name | – |
//! | [`run_as`] | the user that a program runs as | – |
//! | [`privileges`] | giving up the rights that a command does not need | – |
//! | [`signals`] | signals that end a run cleanly | – |
//! | [`outlook`] | what a sweep would run, write and destroy | output |
//! | [`user_memory`] | what outlives a screen: its ledger, and what the user knows | – |
//! | [`ui`] | the screen, on a session in its own thread | inputs, output, user_memory |
//! | [`stacks`] | `status` and `cleanup` | inputs, output, signals |
//! | [`verify`] | `verify`: reads back every page | inputs, output, signals |
//! | [`watcher`] | the attendant at the command line | output, signals |
//! | [`sweep`] | a profile with steps, for `record` and `run` | inputs, output, outlook, signals, watcher |
//! | [`duel`] | `record --duel`: two values of a knob, in one run or on storage built for each block | inputs, output, signals, watcher |
//! | [`picture`] | `picture`: the screen of a run as SVG, still or moving | duel, inputs |
//! | [`trace`] | `contract` and `trace`: scoring the rules from a trace, and making traces | inputs, new_file, output, privileges, run_as, signals, watcher |
//! | [`record`] | `record`: a profile without a terminal | duel, inputs, output, signals, watcher, sweep, trace |
//! | [`program`] | `run`: a program as the load | duel, inputs, output, record, run_as, signals, trace, watcher, sweep, ui |
//! | [`attest`] | `attest`: figures beside those of other programs | inputs, new_file, output, signals, watcher |
//! | [`ftl`] | `ftl`: a trace on a modelled drive | output, privileges |
//! | [`mimic`] | `mimic`: a profile whose load is like that of a trace | new_file, output, privileges, trace |
//! | [`reproduce`] | `reproduce`: an experiment beside the paper's results | inputs, output, outlook, program, signals, trace, watcher |
//! | [`manual`] | `man` and `completions`: the man page and the shells' completions | output |
//! | [`inspect`] | commands that inspect and run nothing | inputs, output, reproduce |
//! | [`show`] | `show`: a recording as text, or on the screen | inspect, output, ui |
//! | [`dispatch`] | from the command line to the command, and to an exit status | output, privileges, signals, picture, program, ui, stacks, verify, record, reproduce, manual, inspect, show, attest, trace, ftl, mimic |

#[cfg(feature = "proofs")]
mod attest;
mod dispatch;
mod duel;
#[cfg(feature = "trace")]
mod ftl;
mod inputs;
mod inspect;
#[cfg(feature = "documents")]
mod manual;
#[cfg(feature = "trace")]
mod mimic;
#[cfg(any(feature = "proofs", feature = "trace"))]
mod new_file;
mod outlook;
mod output;
#[cfg(feature = "documents")]
mod picture;
mod privileges;
#[cfg(feature = "programs")]
mod program;
mod record;
#[cfg(feature = "proofs")]
pub(crate) mod reproduce;
#[cfg(feature = "programs")]
mod run_as;
mod show;
mod signals;
mod stacks;
mod sweep;
#[cfg(feature = "trace")]
mod trace;
#[cfg(not(feature = "trace"))]
#[path = "trace/absent.rs"]
mod trace;
mod ui;
mod user_memory;
mod verify;
mod watcher;

pub use dispatch::run;
