//! Guard, stacks and load on loop devices: tests that need root.

#[path = "../common/mod.rs"]
mod common;

mod adjust;
mod amplification;
mod attest;
mod consent;
mod duel;
mod equal_recordings;
mod fallbacks;
mod fio;
#[cfg(feature = "rocksdb")]
mod folders;
mod guard;
mod hang;
#[cfg(feature = "rocksdb")]
mod kv;
mod layers;
mod lost_writes;
mod others_io;
mod program;
mod program_at_length;
mod program_duels;
mod program_figures;
mod program_knobs;
mod program_log;
mod program_recipes;
mod program_screen;
mod real_io;
mod safety;
mod stack_build;
mod stack_drives;
mod stack_foreign;
mod stack_reboot;
mod stack_run;
mod stack_screen;
mod stack_torn;
mod stack_undo;
mod state;
mod stop_if;
mod strangers;
mod threads;
mod trace;
mod trace_latency;
mod turns;
mod volume_devices;
