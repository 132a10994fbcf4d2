//! The part of a profile's settings that matters if a program is the load.

use std::fmt::Write;

use crate::error::{Error, Result};
use crate::settings::{Buffering, Filesystem, Interface, Settings};
use crate::stack::runner::quoted;
use crate::units::format_duration;

/// The settings of a run of their program, without those of the classes and their I/O.
///
/// # Errors
/// Input if they contradict running a program, or leave it no file system.
pub fn for_program(asked: Settings) -> Result<Settings> {
    refuse_contradictions(&asked)?;
    let Settings { name, about, target, stack, run, queue, md, program, wal, .. } = asked;
    let mut settings =
        Settings { name, about, target, stack, run, queue, md, program, ..Settings::default() };
    settings.wal.target = wal.target;
    settings.io.interface = Interface::SYSTEM_CALLS;
    settings.io.buffering = Buffering::Cached;
    settings.io.registered_buffers = false;
    settings.io.registered_files = false;
    // A program's writes can't be counted in advance.
    settings.run.max_writes_bytes = None;
    settings.classes.iter_mut().for_each(|class| class.enabled = false);
    Ok(settings)
}

fn refuse_contradictions(settings: &Settings) -> Result<()> {
    let program = settings.program.as_ref();
    if program.is_none_or(|program| program.run.is_empty()) {
        return Err(Error::input("no program is named")
            .hint("put it after `--`, or into the profile: [command] run = [\"fio\", …]"));
    }
    if settings.is_keyed() || !settings.touches_storage() || settings.leaves_kernel() {
        let what = "a program does its own I/O, on one of the kernel's file systems";
        return Err(Error::input(what).hint("leave load.engine and io.interface at their defaults"));
    }
    if settings.run.cache_limit_bytes.is_some() {
        let what = "run.cache_limit limits stacktune itself, which does no I/O here";
        return Err(Error::input(what).hint("limit the program's memory: --mem, or command.memory_max"));
    }
    let bare = if settings.stack.is_built() {
        settings.stack.filesystem == Filesystem::None
    } else {
        !settings.target.devices.is_empty()
    };
    if bare {
        return Err(Error::input("a program needs a file system, and the target has none")
            .hint("set stack.filesystem, or target.files.dir"));
    }
    Ok(())
}

/// The commands of a profile's program, in full, as a note; none if the classes are the load.
pub fn program_noted(settings: &Settings) -> Option<String> {
    let program = settings.program.as_ref()?;
    let mut text = "the load is a program, which `stacktune run` runs:".to_owned();
    for (phase, words) in program.phases().into_iter().filter(|(_, words)| !words.is_empty()) {
        let _ = write!(text, "\n{phase}: {}", shown(words));
    }
    for knob in &program.knobs {
        let _ = write!(text, "\nknob {} = {}", knob.name, quoted(knob.value.as_ref()));
        if !knob.turn.is_empty() {
            let _ = write!(text, ", turned by: {}", shown(&knob.turn));
        }
    }
    for probe in &program.probes {
        let every = format_duration(probe.every);
        let _ = write!(text, "\nprobe {} every {every}: {}", probe.metric.name, shown(&probe.run));
    }
    Some(text)
}

fn shown(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word.as_ref())).collect();
    words.join(" ")
}
