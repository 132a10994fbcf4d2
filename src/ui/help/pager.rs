//! Paging, the way git does it.

use std::env;
use std::io::{self, IsTerminal, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The pager if `$PAGER` is not set.
const PAGER: &str = "less";
/// Lets `less` show short text in place and keep bold; `$LESS` takes precedence.
const LESS: &str = "FRX";
/// Falls back to `cat` if the pager is not installed.
const SCRIPT: &str = r#"command -v ${PAGER%% *} >/dev/null || PAGER=cat; eval "exec $PAGER""#;
/// The width when not on a terminal, and the maximum: longer lines are hard to read.
const COLUMNS_MAX: usize = 100;
const COLUMNS_MIN: usize = 40;

/// Where text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOutput {
    /// Its width in columns.
    pub columns: usize,
    /// Whether bold can be shown.
    pub styled: bool,
}

impl TextOutput {
    /// Standard output.
    pub fn stdout() -> Self {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0);
        let columns = size.map_or(COLUMNS_MAX, |size| usize::from(size.ws_col));
        let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            columns: columns.clamp(COLUMNS_MIN, COLUMNS_MAX),
            styled: io::stdout().is_terminal() && !plain,
        }
    }
}

/// Shows the text: on a terminal through the pager, elsewhere unchanged.
///
/// # Errors
/// If writing to standard output fails.
pub fn page(text: &str, out: &mut dyn Write) -> io::Result<()> {
    if io::stdout().is_terminal()
        && let Ok(file) = file_with(text)
    {
        // The pager replaces this process, so that Ctrl-C reaches it alone. exec returns only on failure.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT]).stdin(Stdio::from(file)).env("PAGER", named("PAGER", PAGER));
        let _ = shell.env("LESS", named("LESS", LESS)).exec();
    }
    out.write_all(text.as_bytes())
}

/// An environment variable, or its default.
fn named(variable: &str, otherwise: &str) -> std::ffi::OsString {
    env::var_os(variable).filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.into())
}

/// An anonymous file with the text, positioned at its start.
fn file_with(text: &str) -> io::Result<std::fs::File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}
