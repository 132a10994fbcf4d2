//! `stacktune man` and `stacktune completions`.

use super::output::print_with;
use crate::error::Result;
use crate::ui::cli::{Shell, write_completions, write_man};

/// Prints the man page.
pub fn man() -> Result<()> {
    print_with(|out| write_man(out))
}

/// Prints the completions of a shell.
pub fn completions(shell: Shell) -> Result<()> {
    print_with(|out| write_completions(shell, out))
}
