//! The program as a person would start it, with a home folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program's path.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_stacktune");

/// A home folder on a disk, for profiles, files and recordings; dropping it deletes everything.
pub struct Home {
    pub dir: TempDir,
}

/// The outcome of a run of the program.
pub struct Ran {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A recording that the program made.
pub struct Recorded {
    pub ran: Ran,
    pub dir: PathBuf,
}

impl Home {
    pub fn new() -> Self {
        Self { dir: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes a command use this home folder.
    pub fn inhabit<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for variable in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "NO_COLOR"] {
            command.env_remove(variable);
        }
        command.env("HOME", self.dir.path()).env("XDG_STATE_HOME", self.path("state"));
        command.current_dir(self.dir.path()).stdin(Stdio::null())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        self.inhabit(command.args(arguments));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    /// Writes a profile and returns its path.
    pub fn profile(&self, name: &str, text: &str) -> String {
        let path = self.path(&format!("{name}.toml"));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A profile of two small files in a folder of its own, with a light write load.
    pub fn small_files(&self, name: &str) -> String {
        let dir = self.path(&format!("{name}-files"));
        // The locked memory of all an ordinary user's processes counts together, and tests run concurrently:
        // they would use up each other's share of RLIMIT_MEMLOCK.
        let io = if super::is_root() { "" } else { "[io]\nregistered_buffers = false\n" };
        self.profile(
            name,
            &format!(
                "[target]\nfiles = {{ dir = \"{}\", count = 2, size = \"16MiB\" }}\n{io}{LOAD}",
                dir.display()
            ),
        )
    }

    /// Records a profile into the folder `out`.
    pub fn record(&self, profile: &str, out: &str, arguments: &[&str]) -> Recorded {
        let dir = self.path(out);
        let to = dir.to_str().unwrap();
        let ran = self.run(&[&["record", profile, "--out", to][..], arguments].concat());
        Recorded { ran, dir }
    }
}

/// Shared by the tests' profiles: small rates, and windows shorter than a test.
pub const LOAD: &str = "
[wal]
rate = \"5MB/s\"
[background]
rate = \"5MB/s\"
[run]
window = \"200ms\"
";

impl Ran {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Asserts that it ended with this status and printed all of this.
    #[track_caller]
    pub fn ended(&self, status: i32, said: &[&str]) {
        assert_eq!(self.status, Some(status), "{}{}", self.out, self.err);
        for said in said {
            assert!(self.err.contains(said), "`{said}` is not in: {}", self.err);
        }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.status, Some(0), "{}{}", self.out, self.err);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

impl Recorded {
    /// The summary of a recording in which nothing went wrong.
    #[track_caller]
    pub fn summary(&self) -> Value {
        self.ran.ended(0, &[]);
        self.any_summary()
    }

    /// The summary, however the run ended.
    #[track_caller]
    pub fn any_summary(&self) -> Value {
        json(&self.dir.join("summary.json"))
    }

    /// The windows.
    pub fn windows(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.join("windows.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Whether a class that ran completed no I/O.
    pub fn starved(&self) -> bool {
        let classes = &self.any_summary()["classes"];
        classes.as_object().unwrap().values().any(|class| class["state"] == "running" && class["ios"] == 0)
    }

    /// All four classes moved bytes, and none failed. Where storage stalls, that may be while the run drains.
    #[track_caller]
    pub fn all_classes_ran(&self) -> Value {
        let summary = self.summary();
        for class in ["scan", "point", "wal", "background"] {
            let figures = &summary["classes"][class];
            let ios = [&figures["ios"], &figures["drained"]["ios"]];
            assert!(ios.iter().any(|ios| ios.as_u64() > Some(0)), "{class}: {summary:#}");
            assert_eq!(figures["errors"], 0, "{class}: {summary:#}");
        }
        summary
    }
}

#[track_caller]
pub fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The texts of a JSON list.
pub fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}
