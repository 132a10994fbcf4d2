//! `stacktune run --list`: the built-in profiles of programs.

use crate::settings::Program;
use crate::settings::profile::builtin;
use crate::settings::profile::builtin::BUILTIN;
use crate::stack::program::{find, installed_by};

/// Each built-in profile of a program, with what it lacks here and the Debian package that has it.
pub(super) fn list() -> String {
    let profiles = BUILTIN.iter().filter_map(|(name, _)| builtin(name));
    let rows = profiles.filter_map(|profile| {
        let here = here(&profile.settings.program?);
        Some(format!("{:<14}  {}; {here}\n", profile.settings.name, profile.settings.about))
    });
    rows.collect()
}

fn here(program: &Program) -> String {
    let lacks: Vec<&str> = program.programs().into_iter().filter(|program| find(program).is_err()).collect();
    if lacks.is_empty() {
        return "here".to_owned();
    }
    let install = |program: &&str| format!("{program} ({})", installed_by(program));
    format!("lacks {}", lacks.iter().map(install).collect::<Vec<_>>().join(", "))
}
