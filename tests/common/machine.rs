//! The virtual machine that `tests/rig.sh` boots, and turns to run it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub const RIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rig.sh");

/// Machines that run at once: each runs one program at a time, which leaves processors idle.
const SLOTS: usize = 3;
/// First scripts of the long machines, which start first, in this order, so that none runs alone at the end.
const LONG: [&str; 5] = ["stack", "host", "faults", "nvme", "kill"];
/// Ranks of the waiting machines in that order.
static WAITING: Mutex<Vec<usize>> = Mutex::new(Vec::new());
const LOOK: Duration = Duration::from_millis(100);

/// The right to run one machine.
pub struct Turn {
    _slot: File,
}

impl Turn {
    pub fn take(name: &str) -> Self {
        let open = |name: String| File::create(std::env::temp_dir().join(name)).unwrap();
        let place = LONG.iter().position(|long| name.split('+').next() == Some(long)).unwrap_or(LONG.len());
        WAITING.lock().unwrap().push(place);
        loop {
            // Before the first attempt, too: by then all tests are waiting.
            std::thread::sleep(LOOK);
            let mut waiting = WAITING.lock().unwrap();
            if waiting.iter().any(|other| *other < place) {
                continue;
            }
            let mut slots = (0..SLOTS).map(|slot| open(format!("stacktune-test-machine-{slot}")));
            if let Some(free) = slots.find(|slot| slot.try_lock().is_ok()) {
                let own = waiting.iter().position(|other| *other == place).unwrap();
                waiting.remove(own);
                return Self { _slot: free };
            }
        }
    }
}

/// Why no machine can run here, if so.
pub fn missing() -> Option<String> {
    let check = Command::new(RIG).arg("--check").stdin(Stdio::null()).output().unwrap();
    if check.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&check.stderr);
    Some(said.trim().lines().last().unwrap_or("tests/rig.sh can't run here").to_owned())
}

/// Runs a machine with these options and this command to its end, and returns its output. `name` is the name
/// of its log and of its entry in the times.
pub fn run(name: &str, options: &[&str], command: &[&str]) -> String {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut rig = Command::new(RIG);
    rig.args(options).arg("--dir").arg(dir.path()).arg("--").args(command).stdin(Stdio::null());
    output_of(name, &mut rig)
}

/// Runs [`RIG`] in turn; returns its output and exit status. The output is kept in `target/tmp/lab/NAME.log`,
/// and the seconds it took are added to `lab/times`, which `scripts/test.sh` shows.
pub fn output_of(name: &str, rig: &mut Command) -> String {
    let _turn = Turn::take(name);
    let started = Instant::now();
    let output = rig.output().unwrap();
    let ended = format!("\n(tests/rig.sh ended with {})\n", output.status);
    let printed =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
            + &ended;
    let logs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab");
    fs::create_dir_all(&logs).unwrap();
    fs::write(logs.join(name).with_extension("log"), &printed).unwrap();
    let mut times = File::options().create(true).append(true).open(logs.join("times")).unwrap();
    writeln!(times, "{:4} s  {name}", started.elapsed().as_secs()).unwrap();
    printed
}

/// Whether the output of [`run`] says that its command succeeded.
pub fn succeeded(printed: &str) -> bool {
    printed.ends_with("(tests/rig.sh ended with exit status: 0)\n")
}
