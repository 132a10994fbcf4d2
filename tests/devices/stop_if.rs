//! `--stop-if`: a run, whatever it is at, ends itself once the host's tasks wait too much, and nothing follows it.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::devices::Loops;
use crate::common::program::{Home, Outcome};
use crate::common::skips::skip;
use crate::program::{USER, nothing_runs, of_profile, on_files, outcome};

/// Processes that use the processors, or write, and heed no signals.
const BURN: &str = "(while :; do :; done) &";
const WRITE: &str = "(while :; do dd if=/dev/zero of=f$i bs=4k count=500 oflag=direct,dsync conv=notrunc; done) 2>/dev/null &";

/// Within which a run must have ended; both sides look at shares of half a second, at times of their own.
const ENDS_WITHIN: Duration = Duration::from_millis(2500);

fn script(busy: &str) -> String {
    format!("sleep 1; trap '' INT TERM; for i in $(seq 40); do {busy} done; wait")
}

/// For how many microseconds some task has waited for that resource.
fn stalled_us(resource: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/pressure/{resource}")).unwrap();
    let some = text.lines().find(|line| line.starts_with("some")).unwrap();
    let total = some.split_once("total=").unwrap().1;
    total.trim().parse().unwrap()
}

/// Runs a command, which must end in its time once the share of half a second is above that limit; it may see that
/// before this does.
fn run_and_watch(command: Command, (resource, limit): (&str, f64)) -> Outcome {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let (began, before_us) = (Instant::now(), stalled_us(resource));
                thread::sleep(Duration::from_millis(450));
                let share = (stalled_us(resource) - before_us) as f64 / 1e6 / began.elapsed().as_secs_f64();
                if share > limit {
                    return Some(Instant::now());
                }
            }
            None
        });
        let ran = outcome(command);
        let ended = Instant::now();
        over.store(true, Ordering::Relaxed);
        let crossed = watch.join().unwrap();
        assert!(crossed.is_none_or(|at| ended.saturating_duration_since(at) < ENDS_WITHIN), "{ran:?}");
        ran
    })
}

fn pressure_is_counted(name: &str) -> bool {
    let counted = fs::read_to_string("/proc/pressure/cpu").is_ok();
    if !counted {
        skip(name, "the kernel counts no pressure");
    }
    counted
}

#[test]
fn a_run_ends_itself_in_two_seconds_where_the_host_waits_too_much() {
    let name = "a_run_ends_itself_in_two_seconds_where_the_host_waits_too_much";
    let Some(_loops) = Loops::alone(name).filter(|_| pressure_is_counted(name)) else { return };
    let home = Home::new();
    for (resource, limit, busy) in [("cpu", 0.6, BURN), ("io", 0.3, WRITE)] {
        let what = format!("psi.{resource}.some > {}%", limit * 100.0);
        let command = on_files(&home, "1m", &["--user", USER, "--stop-if", &what], &script(busy));
        let ran = run_and_watch(command, (resource, limit)).expect(1);
        assert!(ran.stderr.contains(&format!("psi.{resource}.some was")), "{ran:?}");
        assert!(ran.json()["failure"].as_str().unwrap().contains("--stop-if"), "{ran:?}");
        nothing_runs(&home);
        fs::remove_dir_all(home.path("out")).unwrap();
    }
}

#[test]
fn a_setup_a_server_and_all_steps_that_follow_end_too() {
    let name = "a_setup_a_server_and_all_steps_that_follow_end_too";
    let Some(_loops) = Loops::alone(name).filter(|_| pressure_is_counted(name)) else { return };
    let burn = format!("[\"sh\", \"-c\", \"{}\"]", script(BURN));
    let more = ["--user", USER, "--stop-if", "psi.cpu.some > 60%"];
    for command in [
        format!("[command]\nsetup = {burn}\nrun = [\"true\"]"),
        format!("[command]\nstart = {burn}\nready = [\"false\"]\nrun = [\"true\"]"),
        // A step's own failure is no reason for a sweep to end; this one is.
        format!(
            "[command]\nstart = [\"sleep\", \"1000\"]\nrun = {}\n[[command.knob]]\nname = \"n\"\nvalues = [1, 2]\n\
             [sweep.product]\ncommand.n = [1, 2]",
            burn.replace("\"]", "\", \"{n}\"]")
        ),
    ] {
        let home = Home::new();
        let ran = run_and_watch(of_profile(&home, "30s", &command, &more), ("cpu", 0.6)).expect(1);
        assert!(ran.stderr.contains("stopped by --stop-if: psi.cpu.some"), "{ran:?}");
        nothing_runs(&home);
        let runs = fs::read_dir(home.path("out")).into_iter().flatten().flatten();
        let recorded = runs.filter(|run| run.path().join("summary.json").exists());
        assert_eq!(recorded.count(), usize::from(command.contains("sweep")), "{ran:?}");
    }
}
