//! Other programs: found in the system's folders, run for a limited time, and killed with this process.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::error::{Error, Result, describe};
use crate::host::{tool_command, tool_folders};

/// More than any of them prints.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// Interval between checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);
/// How much longer a program may take than it is asked to run.
const GRACE: Duration = Duration::from_secs(30);

/// Where a program is; none if it is not installed.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    tool_folders().into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// How a program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EndedProgram {
    /// Whether its exit status was 0.
    pub well: bool,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// A running program; it is killed if this is dropped before its end.
#[derive(Debug)]
pub(super) struct RunningProgram {
    child: Child,
    out: File,
    err: File,
    until: Instant,
}

/// Starts a program that takes about `time`.
pub(super) fn start(program: &Path, arguments: &[String], time: Duration) -> Result<RunningProgram> {
    let cannot = |error: std::io::Error| {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        Error::failed(format!("cannot run {name}: {}", describe(&error)))
    };
    // Files, since a pipe that nobody drains would block the program.
    let (out, err) = (tempfile::tempfile().map_err(cannot)?, tempfile::tempfile().map_err(cannot)?);
    let mut command = tool_command(program);
    command.args(arguments).current_dir("/").stdin(Stdio::null());
    command.stdout(out.try_clone().map_err(cannot)?).stderr(err.try_clone().map_err(cannot)?);
    // Ctrl-C is meant for stacktune, which ends the program.
    command.process_group(0);
    let child = command.spawn().map_err(cannot)?;
    Ok(RunningProgram { child, out, err, until: Instant::now() + time + GRACE })
}

/// Runs a program that takes about `time` to its end.
///
/// # Errors
/// Interrupted once `interrupts` counts a signal; failed if it can't be run or goes on for too long.
pub(super) fn run(
    program: &Path,
    arguments: &[String],
    time: Duration,
    interrupts: &dyn Fn() -> usize,
) -> Result<EndedProgram> {
    start(program, arguments, time)?.wait(interrupts)
}

impl RunningProgram {
    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        // If it can't be waited for, stop waiting.
        self.child.try_wait().map_or(true, |status| status.is_some())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// As [`run`].
    pub fn wait(mut self, interrupts: &dyn Fn() -> usize) -> Result<EndedProgram> {
        let failed =
            |error: std::io::Error| Error::failed(format!("cannot wait for it: {}", describe(&error)));
        loop {
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                let (out, err) = (text(&mut self.out).map_err(failed)?, text(&mut self.err).map_err(failed)?);
                return Ok(EndedProgram { well: status.success(), out, err });
            }
            if interrupts() > 0 {
                return Err(Error::interrupted("interrupted: not everything was checked"));
            }
            if Instant::now() > self.until {
                return Err(Error::failed("another program did not end in time"));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // Has no effect if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Arguments as texts.
pub(super) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_run_to_its_end_and_ended_on_a_signal() {
        let sh = find("sh").unwrap();
        let said = |script: &str, interrupts: &dyn Fn() -> usize| {
            run(&sh, &words(["-c", script]), Duration::ZERO, interrupts)
        };
        let ended = said("echo one; echo two >&2; exit 3", &|| 0).unwrap();
        assert_eq!(ended, EndedProgram { well: false, out: "one\n".into(), err: "two\n".into() });
        assert!(
            said("pwd", &|| 0).unwrap() == EndedProgram { well: true, out: "/\n".into(), err: String::new() }
        );
        let began = Instant::now();
        let error =
            said("sleep 60", &|| usize::from(began.elapsed() > Duration::from_millis(50))).unwrap_err();
        assert_eq!(error.exit_status(), 130);
        assert!(began.elapsed() < Duration::from_secs(30) && find("no-such-program").is_none());
    }
}
