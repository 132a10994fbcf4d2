//! A pager, as git uses one.

use std::env;
use std::io::{self, IsTerminal, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The pager where `$PAGER` names none.
const PAGER: &str = "less";
/// What `less` needs to show a short text in place and to keep bold letters; `$LESS` goes first.
const LESS: &str = "FRX";
/// A pager that is not installed is no reason to show nothing.
const SCRIPT: &str = r#"command -v ${PAGER%% *} >/dev/null || PAGER=cat; eval "exec $PAGER""#;
/// The width of a text that goes to no terminal, and the greatest at all: longer lines read badly.
const COLUMNS_MAX: usize = 100;
const COLUMNS_MIN: usize = 40;

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its width in columns.
    pub columns: usize,
    /// Whether bold letters can be shown.
    pub styled: bool,
}

impl Place {
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

/// Shows the text: on a terminal through the pager, elsewhere as it is.
///
/// # Errors
/// Of writing to standard output.
pub fn page(text: &str, out: &mut dyn Write) -> io::Result<()> {
    if io::stdout().is_terminal()
        && let Ok(file) = file_with(text)
    {
        // The pager takes this process's place, so that Ctrl-C reaches it alone. It comes back only on failure.
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT]).stdin(Stdio::from(file)).env("PAGER", named("PAGER", PAGER));
        let _ = shell.env("LESS", named("LESS", LESS)).exec();
    }
    out.write_all(text.as_bytes())
}

/// A variable of the environment, or what stands in for it.
fn named(variable: &str, otherwise: &str) -> std::ffi::OsString {
    env::var_os(variable).filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.into())
}

/// A file without a name that holds the text, to be read from its start.
fn file_with(text: &str) -> io::Result<std::fs::File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}
