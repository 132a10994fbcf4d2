//! A drive that hangs at the end of a run: a loop device backed by a file on a frozen file system.

use std::process::Command;
use std::time::Duration;

use crate::common::devices::{Loops, Mount, run};
use crate::common::recorded::Home;

const LOAD: &str = "
[scan]
enabled = false
[point]
enabled = false
[wal]
rate = \"1MB/s\"
[background]
rate = \"4MB/s\"
[run]
window = \"500ms\"
";
const RUN_S: u64 = 6;
/// The file system freezes in the run's third window, until a second after the run's end.
const WINDOWS_BEFORE: usize = 2;
const FROZEN: Duration = Duration::from_secs(6);
/// I/O in flight at the freeze takes at least this long.
const HUNG_NS_MIN: u64 = 3_000_000_000;

/// A frozen file system; it thaws when this is dropped, even by a failed test.
struct Frozen<'a>(&'a Mount);

impl<'a> Frozen<'a> {
    fn new(mount: &'a Mount) -> Self {
        run("fsfreeze", &["--freeze", mount.at.path().to_str().unwrap()]);
        Self(mount)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("--unfreeze").arg(self.0.at.path()).status();
    }
}

#[test]
fn writes_that_hang_at_the_end_of_a_run_are_waited_for_and_counted() {
    let test = "writes_that_hang_at_the_end_of_a_run_are_waited_for_and_counted";
    let Some(loops) = Loops::take(test, 2) else { return };
    let below = loops.blank(512);
    run("mkfs.ext4", &["-q", "-F", &below.path]);
    let mount = Mount::of(&below, "noatime");
    let device = loops.on(&mount, 256);
    let home = Home::new();
    let profile = home.profile("hang", &format!("[target]\ndevices = [{:?}]\n{LOAD}", device.path));
    home.record(&profile, "filled", &["--for", "200ms"]).summary();

    let recorded = std::thread::scope(|scope| {
        scope.spawn(|| {
            device.written_by_window(&home.path("hung"), WINDOWS_BEFORE);
            let _frozen = Frozen::new(&mount);
            std::thread::sleep(FROZEN);
        });
        home.record(&profile, "hung", &["--for", &format!("{RUN_S}s")])
    });
    let summary = recorded.any_summary();
    assert_eq!(recorded.ran.status, Some(0), "{}", recorded.ran.err);
    for class in ["wal", "background"] {
        let figures = &summary["classes"][class];
        let count = |key: &str| figures[key].as_u64().unwrap();
        let rate = figures["target_mb_per_s"].as_f64().unwrap() * 1e6;
        assert!(figures["service_ns"]["max"].as_u64().unwrap() >= HUNG_NS_MIN, "{class}: {figures:#}");
        // A commit that finished its write and hung in its flush has no I/O in flight.
        let in_flush = figures["flush_ns"]["max"].as_u64().is_some_and(|max| max >= HUNG_NS_MIN);
        let is_drained = figures["drained"]["unfinished"] == 0;
        assert!(is_drained || (in_flush && figures["drained"].is_null()), "{class}: {figures:#}");
        // Every intended start counts, those during the hang as missed. Threads may begin a little late.
        let io_bytes = count("bytes") as f64 / count("ios") as f64;
        let intended = rate * RUN_S as f64 / io_bytes;
        assert!((count("intended") as f64 / intended - 1.0).abs() < 0.05, "{class}: {intended} {figures:#}");
        assert!(count("missed") * 3 > count("intended"), "{class}: {figures:#}");
    }
}
