//! The program and its modules on simulated devices and on files: tests that need neither root nor a device.

#[path = "../common/mod.rs"]
mod common;
#[path = "../readers/mod.rs"]
mod readers;

mod acknowledge;
mod attest;
mod command_line;
mod contract;
mod duel;
mod earlier;
mod entry_points;
mod evening;
mod fake_hosts;
mod ftl;
mod host;
mod hostile;
mod hot_loop;
mod killed;
mod mimic;
mod others;
mod recorded_screen;
mod recordings;
mod reproduce;
mod seeds;
mod simulated;
mod sweep;
mod terminal;
mod terminal_choices;
mod terminal_end;
mod terminal_faults;
mod volume;
mod write_maps;
