//! Commands that only some builds have: the demo's lacks those that take long to compile.

use crate::error::Error;

const TRACES: &str = "reads and makes no block traces";

/// Each command, whether this build has it, and what a build without it lacks.
const OPTIONAL: [(&str, bool, &str); 10] = [
    ("run", cfg!(feature = "programs"), "runs no programs as the load"),
    ("reproduce", cfg!(feature = "proofs"), "has no papers' results to compare with"),
    ("attest", cfg!(feature = "proofs"), "checks no figures against other programs"),
    ("contract", cfg!(feature = "trace"), TRACES),
    ("trace", cfg!(feature = "trace"), TRACES),
    ("ftl", cfg!(feature = "trace"), "models no drive's mapping of blocks"),
    ("mimic", cfg!(feature = "trace"), TRACES),
    ("completions", cfg!(feature = "documents"), "has no completions"),
    ("man", cfg!(feature = "documents"), "has no man page"),
    ("picture", cfg!(feature = "documents"), "draws no pictures of the screen"),
];

/// How to get a command that this build lacks.
pub fn lacking(word: &str) -> Option<Error> {
    let of_word = OPTIONAL.iter().find(|(name, is_built, _)| *name == word && !is_built);
    of_word.map(|(.., lacks)| Error::not_built(lacks))
}

/// The commands that this build lacks.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPTIONAL.iter().filter(|(_, is_built, _)| !is_built).map(|(name, ..)| *name)
}

/// A paragraph of the program's help about them, if there are any.
pub(super) fn listed() -> String {
    let names: Vec<_> = names().collect();
    if names.is_empty() {
        return String::new();
    }
    format!("\nNot in this build, but in that of `make build`: {}\n", names.join(", "))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::ui::cli::Cli;

    #[test]
    fn each_is_a_command_of_this_build_or_says_how_to_get_it() {
        let command = Cli::command();
        for (name, is_built, _) in OPTIONAL {
            assert_eq!(command.find_subcommand(name).is_some(), is_built, "{name}");
            assert_eq!(lacking(name).is_none(), is_built, "{name}");
            assert_eq!(listed().contains(&format!(" {name}")), !is_built, "{name}: {}", listed());
        }
    }
}
