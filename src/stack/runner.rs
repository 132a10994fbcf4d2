//! Running the system's own tools.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, openat, unlinkat};

use crate::error::{Error, Result, describe};
use crate::host::{is_private, open_trusted, tool_command, tool_folders};
use crate::printable::Shown as _;
use crate::threads::RAISE;

/// A tool, and its package on Debian and Ubuntu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Its program.
    pub program: &'static str,
    /// The package to install for it.
    pub package: &'static str,
}

/// Finds and wipes signatures.
pub const WIPEFS: Tool = Tool { program: "wipefs", package: "util-linux" };
/// Finds signatures and tells what they are used for.
pub const BLKID: Tool = Tool { program: "blkid", package: "util-linux" };

/// Attaches and detaches loop devices.
pub const LOSETUP: Tool = Tool { program: "losetup", package: "mount" };
/// Reads and writes partition tables.
pub const SFDISK: Tool = Tool { program: "sfdisk", package: "fdisk" };
/// Makes and stops md arrays.
pub const MDADM: Tool = Tool { program: "mdadm", package: "mdadm" };
/// Mounts.
pub const MOUNT: Tool = Tool { program: "mount", package: "mount" };
/// Unmounts.
pub const UMOUNT: Tool = Tool { program: "umount", package: "mount" };

/// The result of running a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Exit status; -1 if a signal ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error, trimmed.
    pub stderr: String,
}

/// Finds tools in a list of folders and runs them.
#[derive(Debug, Clone)]
pub struct Runner {
    folders: Vec<PathBuf>,
}

impl Default for Runner {
    /// Looks in the folders of system tools, never in `PATH`.
    fn default() -> Self {
        Self { folders: tool_folders() }
    }
}

impl Runner {
    /// Looks in these folders only.
    pub fn in_folders(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    /// Where a tool is; refused with what to install if it is missing.
    pub fn find(&self, tool: Tool) -> Result<PathBuf> {
        self.look_for(tool.program).ok_or_else(|| {
            Error::refused(format!("{} is not installed, and no device is touched without it", tool.program))
                .hint(format!("install it: apt-get install {}", tool.package))
        })
    }

    /// Where the program of a profile's layer is: in the same folders.
    pub(crate) fn find_named(&self, program: &str) -> Result<PathBuf> {
        self.look_for(program).ok_or_else(|| {
            let folders: Vec<_> = self.folders.iter().map(|folder| folder.shown()).collect();
            let program = crate::printable::line(program);
            Error::refused(format!("{program}, which a layer of the profile runs, is not installed"))
                .hint(format!("install it; programs are looked for in {}", folders.join(", ")))
        })
    }

    fn look_for(&self, program: &str) -> Option<PathBuf> {
        self.folders.iter().map(|folder| folder.join(program)).find(|path| is_program(path))
    }

    /// Runs a tool to its end, in the C locale, without this process's environment, with empty standard input.
    pub fn run(&self, tool: Tool, arguments: &[&OsStr]) -> Result<Answer> {
        self.run_fed(tool, arguments, "")
    }

    /// Runs a tool that reads `input`, of a few lines at most.
    pub fn run_fed(&self, tool: Tool, arguments: &[&OsStr], input: &str) -> Result<Answer> {
        Self::start(&self.find(tool)?, arguments, input)
    }

    /// The same for the program of a profile's layer.
    pub(crate) fn run_named(&self, program: &str, arguments: &[&OsStr]) -> Result<Answer> {
        Self::start(&self.find_named(program)?, arguments, "")
    }

    fn start(program: &Path, arguments: &[&OsStr], input: &str) -> Result<Answer> {
        let cannot = |error: std::io::Error| {
            let failed = Error::failed(format!("cannot run {}: {}", program.shown(), describe(&error)));
            // The limit on processes and threads is reached.
            if error.kind() == std::io::ErrorKind::WouldBlock { failed.hint(RAISE) } else { failed }
        };
        // In an empty folder, a word mistaken for a file name leads nowhere. On a full disk, cleanup must still work.
        let mut command = tool_command(program);
        command.current_dir(empty_folder().unwrap_or_else(|| PathBuf::from("/")));
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C and a terminal hangup are meant for stacktune, which lets a tool finish: a tool killed
        // halfway leaves the device in an unknown state.
        command.process_group(0);
        command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
        let mut child = command.spawn().map_err(cannot)?;
        if let Some(mut pipe) = child.stdin.take() {
            // A tool that ends before reading its input reports why itself.
            let _ = pipe.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(cannot)?;
        Ok(Answer {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// Runs a tool that must succeed: an exit status other than 0 is an error with the tool's message.
    pub fn run_well(&self, tool: Tool, arguments: &[&OsStr]) -> Result<Answer> {
        let answer = self.run(tool, arguments)?;
        if answer.status == 0 { Ok(answer) } else { Err(failure(tool, arguments, &answer)) }
    }
}

/// An empty folder in which nobody else can put anything; none if it can't be had.
fn empty_folder() -> Option<PathBuf> {
    let path = private_folder("empty")?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, &path, flags, Mode::empty()).ok()?;
    let above = path.parent()?.metadata().ok()?;
    // If something is mounted there, nothing on it is removed.
    if fstat(&folder).ok()?.st_dev != above.dev() {
        return None;
    }
    for entry in Dir::read_from(&folder).ok()? {
        let entry = entry.ok()?;
        // Left behind by a tool.
        if ![c".", c".."].contains(&entry.file_name()) {
            unlinkat(&folder, entry.file_name(), AtFlags::empty()).ok()?;
        }
    }
    Some(path)
}

/// A folder of that name that only this user can enter: always the same one, so that a kill leaves no litter.
/// None if it can't be had.
pub(crate) fn private_folder(name: &str) -> Option<PathBuf> {
    let user = rustix::process::geteuid();
    let above = if user.is_root() {
        PathBuf::from("/run/stacktune")
    } else {
        std::env::temp_dir().join(format!("stacktune-{}", user.as_raw()))
    };
    let path = above.join(name);
    for dir in [&above, &path] {
        // If something exists there, the checks below tell what it is.
        let _ = DirBuilder::new().mode(0o700).create(dir);
        let place = open_trusted(dir).ok()?;
        let found = fstat(&place).ok()?;
        let is_folder = dir.symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_folder || !is_private(&place, &found) {
            return None;
        }
    }
    Some(path)
}

/// How a tool failed: its command, its status, and its message.
pub(crate) fn failure(tool: Tool, arguments: &[&OsStr], answer: &Answer) -> Error {
    failure_of(tool.program, arguments, answer)
}

/// The same for the program of a profile's layer.
pub(crate) fn failure_of(program: &str, arguments: &[&OsStr], answer: &Answer) -> Error {
    let words = arguments.iter().map(|argument| quoted(argument));
    let command = std::iter::once(program.to_owned()).chain(words).collect::<Vec<_>>().join(" ");
    let said = [answer.stderr.as_str(), answer.stdout.trim()].into_iter().find(|text| !text.is_empty());
    let ended = match answer.status {
        -1 => "was killed by a signal".to_owned(),
        status => format!("failed with exit status {status}"),
    };
    Error::failed(format!("`{command}` {ended}: {}", said.unwrap_or("no reason given")))
}

/// A word, quoted for a shell if necessary.
pub(crate) fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,+@%^".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_refused_with_the_package_to_install() {
        let empty = tempfile::tempdir().unwrap();
        let runner = Runner::in_folders(vec![empty.path().to_owned()]);
        let error = runner.run(WIPEFS, &[]).unwrap_err();
        assert_eq!(error.exit_status(), 3);
        assert!(error.to_string().contains("apt-get install util-linux"), "{error}");
    }

    #[test]
    fn a_failure_has_the_command_ready_to_copy_and_the_tools_message() {
        let shell = Tool { program: "sh", package: "dash" };
        let script = "echo no room >&2; exit 3";
        let error = Runner::default().run_well(shell, &["-c".as_ref(), script.as_ref()]).unwrap_err();
        assert_eq!(error.what, "`sh -c 'echo no room >&2; exit 3'` failed with exit status 3: no room");
        assert_eq!(quoted("it's".as_ref()), r"'it'\''s'");
        assert_eq!(quoted("".as_ref()), "''");
    }

    #[test]
    fn a_tool_runs_in_one_private_folder_that_is_empty_again_for_the_next() {
        let shell = Tool { program: "sh", package: "dash" };
        let script = "ls -A | grep mine; touch mine && stat --format=%a . && pwd -P";
        let run = || Runner::default().run_well(shell, &["-c".as_ref(), script.as_ref()]).unwrap().stdout;
        let folder = empty_folder().unwrap();
        let expected = format!("700\n{}\n", folder.display());
        assert_eq!([run(), run()], [expected.clone(), expected]);
        assert!(!empty_folder().unwrap().join("mine").exists());
    }

    #[test]
    fn a_tool_is_found_in_fixed_folders_and_has_no_environment_of_ours() {
        let shell = Tool { program: "env", package: "coreutils" };
        let found = Runner::default().find(shell).unwrap();
        assert_eq!(found, Path::new("/usr/bin/env"));
        let environment = Runner::default().run(shell, &[]).unwrap().stdout;
        assert_eq!(environment, "LC_ALL=C\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\n");
    }

    #[test]
    fn a_tools_output_and_status_are_kept_apart() {
        let shell = Tool { program: "sh", package: "dash" };
        let script = "echo out; echo err >&2; exit 8";
        let answer = Runner::default().run(shell, &["-c".as_ref(), script.as_ref()]).unwrap();
        assert_eq!(answer, Answer { status: 8, stdout: "out\n".into(), stderr: "err".into() });
    }
}
