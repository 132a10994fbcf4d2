//! The words of a program's commands, with their placeholders filled.

use std::path::Path;

use super::how::ProgramOptions;
use crate::error::{Error, Result};
use crate::settings::values::program::{VALUE, filled};
use crate::settings::{Probe, Program, ProgramKnob};

/// The placeholder of the memory that it may use.
const MEMORY: &str = "memory";

/// The value of each placeholder.
#[derive(Debug, Clone)]
pub(super) struct Values(Vec<(String, String)>);

impl Values {
    /// The values for a program in its folder, with the folder of its log.
    pub fn of(
        program: &Program,
        options: &ProgramOptions,
        [dir, wal]: [&Path; 2],
        memory_bytes: u64,
    ) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let values = [
            ("dir", dir.to_string_lossy().into_owned()),
            ("wal", wal.to_string_lossy().into_owned()),
            ("seconds", options.time.as_secs().max(1).to_string()),
            (MEMORY, program.memory_max_bytes.unwrap_or(memory_bytes).to_string()),
            ("cpus", cpus.to_string()),
        ];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self(values.chain(program.knobs.iter().map(|knob| (knob.name.clone(), knob.value.clone()))).collect())
    }

    fn value(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn word(&self, word: &str) -> Result<String> {
        filled(word, |name| self.value(name))
            .map_err(|name| Error::input(format!("{{{name}}} can't be replaced in a command")))
    }

    /// A command's words.
    pub fn words(&self, words: &[String]) -> Result<Vec<String>> {
        words.iter().map(|word| self.word(word)).collect()
    }

    /// The same with the current values of the program's knobs and of its memory limit.
    pub fn as_turned(&self, program: &Program) -> Self {
        let now = |name: &str| match name {
            MEMORY => program.memory_max_bytes.map(|bytes| bytes.to_string()),
            _ => program.value_of(name).map(str::to_owned),
        };
        Self(self.0.iter().map(|(name, value)| (name.clone(), now(name).unwrap_or(value.clone()))).collect())
    }

    /// Whether a command's words, not yet filled, say how long it runs.
    pub fn say_how_long(words: &[String]) -> bool {
        words.iter().any(|word| word.contains("{seconds}"))
    }

    /// The command that turns a knob to its value.
    pub fn turn(&self, knob: &ProgramKnob) -> Result<Vec<String>> {
        let mut values = self.clone();
        values.0.insert(0, (VALUE.to_owned(), knob.value.clone()));
        values.words(&knob.turn)
    }

    /// The program with its placeholders filled, except in the commands that turn its knobs.
    pub fn program(&self, program: &Program) -> Result<Program> {
        let variables = program.environment.iter().map(|(name, value)| Ok((name.clone(), self.word(value)?)));
        let probes =
            program.probes.iter().map(|probe| Ok(Probe { run: self.words(&probe.run)?, ..probe.clone() }));
        Ok(Program {
            setup: self.words(&program.setup)?,
            start: self.words(&program.start)?,
            ready: self.words(&program.ready)?,
            run: self.words(&program.run)?,
            stop: self.words(&program.stop)?,
            environment: variables.collect::<Result<_>>()?,
            probes: probes.collect::<Result<_>>()?,
            ..program.clone()
        })
    }
}
