//! The real program in a home of its own, on small files on a real disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Anything waited for must come within this time, even on a machine that is busy with other tests.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Between polls, for conditions that can only be polled.
const LOOK: Duration = Duration::from_millis(5);

/// The load of the tests: all classes, none of them greedy.
pub const MODEST: [&str; 4] =
    ["scan.rate=20MB/s", "point.rate=1MB/s", "wal.rate=1MB/s", "background.rate=1MB/s"];

/// A user's home, with a target's folder in it. Dropping it deletes both.
pub struct Home(TempDir);

impl Home {
    /// A new one on a real disk: in the build folder, as /tmp may be in memory.
    pub fn new() -> Self {
        let home = Self(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        fs::create_dir(home.path("home")).unwrap();
        home
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The target's folder.
    pub fn target(&self) -> PathBuf {
        self.path("target")
    }

    /// The environment of the program.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("PATH", std::env::var_os("PATH").unwrap_or_default().into()),
            ("HOME", self.path("home")),
            ("XDG_CONFIG_HOME", self.path("config")),
            ("XDG_CACHE_HOME", self.path("cache")),
            ("XDG_DATA_HOME", self.path("data")),
            ("XDG_STATE_HOME", self.path("state")),
            ("RUST_BACKTRACE", "1".into()),
        ]
    }

    /// `--set` for two data files of 16 MiB, and more settings.
    pub fn sets(&self, more: &[&str]) -> Vec<String> {
        let target = format!("target.files.dir={}", self.target().display());
        let small = [&target, "target.files.size=16MiB", "target.files.count=2"];
        // The locked memory of all an ordinary user's processes counts against RLIMIT_MEMLOCK, including that
        // of concurrent tests and of a process just killed.
        let unlocked = (!super::is_root()).then_some("io.registered_buffers=false");
        small
            .into_iter()
            .chain(unlocked)
            .chain(more.iter().copied())
            .map(|set| format!("--set={set}"))
            .collect()
    }

    /// The program with these arguments.
    pub fn command<I: IntoIterator>(&self, arguments: I) -> Command
    where
        I::Item: AsRef<std::ffi::OsStr>,
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stacktune"));
        command.env_clear().envs(self.environment()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn run<I: IntoIterator>(&self, arguments: I) -> Outcome
    where
        I::Item: AsRef<std::ffi::OsStr>,
    {
        Outcome::of(&self.command(arguments).output().unwrap())
    }

    /// `record` of the demo into a folder, on the small files.
    pub fn record(&self, out: &str, time: &str, sets: &[&str]) -> Command {
        let mut command = self.command(["record", "demo", "--for", time, "--out"]);
        command.arg(self.path(out)).args(self.sets(sets));
        command
    }

    /// `verify` of the small files.
    pub fn verify(&self) -> Outcome {
        let mut command = self.command(["verify", "demo", "--json"]);
        Outcome::of(&command.args(self.sets(&[])).output().unwrap())
    }

    /// `show --json` of a recording.
    pub fn show(&self, recording: &Path) -> Outcome {
        self.run(["show".as_ref(), "--json".as_ref(), recording.as_os_str()])
    }
}

/// How a program ended, and its output.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status; none after a signal.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn of(output: &Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Its standard output, as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Fails unless it ended with this status.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        self
    }
}

/// Waits until `look` returns something.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(LOOK);
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// A program running in the background; dropping it kills the program.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    pub fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    pub fn signal(&self, which: Signal) {
        signal(self.pid(), which);
    }

    /// Whether it has not ended by itself.
    pub fn is_alive(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn outcome(mut self) -> Outcome {
        Outcome::of(&self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The whole lines of a file of JSON lines.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A file of JSON.
#[track_caller]
pub fn json_file(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
