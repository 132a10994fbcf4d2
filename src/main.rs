//! stacktune: a workbench for the storage stack under a database.

use std::process::ExitCode;

fn main() -> ExitCode {
    stacktune::run()
}
