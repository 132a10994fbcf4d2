//! The virtual machine that `tests/rig.sh` boots, and whose turn it is.

use std::fs::File;
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub const RIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rig.sh");

/// Machines that run at once: what one does, one program after the other, leaves processors idle.
const SLOTS: usize = 2;

/// The right to run machines.
pub struct Turn {
    _slots: Vec<File>,
}

impl Turn {
    /// The right to run one.
    pub fn take() -> Self {
        Self::of(1)
    }

    /// The right to run one and no other beside it, where an operator waits for what it shows.
    pub fn alone() -> Self {
        Self::of(SLOTS)
    }

    fn of(count: usize) -> Self {
        let open = |name: String| File::create(std::env::temp_dir().join(name)).unwrap();
        let queue = open("stacktune-test-machines".into());
        queue.lock().unwrap();
        let mut slots = Vec::new();
        loop {
            let free = (0..SLOTS).map(|slot| open(format!("stacktune-test-machine-{slot}")));
            slots.extend(free.filter(|slot| slot.try_lock().is_ok()).take(count - slots.len()));
            if slots.len() == count {
                return Self { _slots: slots };
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

/// Why no machine can run here, if none can.
pub fn missing() -> Option<String> {
    let check = Command::new(RIG).arg("--check").stdin(Stdio::null()).output().unwrap();
    if check.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&check.stderr);
    Some(said.trim().lines().last().unwrap_or("tests/rig.sh can't run here").to_owned())
}

/// Runs a machine with these options and this command to its end; what it printed.
pub fn run(options: &[&str], command: &[&str]) -> String {
    let _turn = Turn::take();
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut rig = Command::new(RIG);
    rig.args(options).arg("--dir").arg(dir.path()).arg("--").args(command).stdin(Stdio::null());
    let output = rig.output().unwrap();
    let ended = format!("\n(tests/rig.sh ended with {})\n", output.status);
    [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat() + &ended
}

/// Whether what [`run`] printed says that its command succeeded.
pub fn succeeded(printed: &str) -> bool {
    printed.ends_with("(tests/rig.sh ended with exit status: 0)\n")
}
