//! Seeded simulated runs, from the profile to the summary and the screen: they repeat exactly.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::program::{Home, Outcome, json_file, json_lines};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::Value;
use stacktune::testing::host::{Cpu, Facts, Feature};
use stacktune::testing::runs::session::{Attendant, Options, Progress, Session, Wanted};
use stacktune::testing::settings::Settings;
use stacktune::testing::settings::knobs::{Value as Setting, find};
use stacktune::testing::settings::profile::builtin;
use stacktune::testing::ui::tui::message::Msg;
use stacktune::testing::ui::tui::state::State;
use stacktune::testing::ui::tui::theme::Theme;
use stacktune::testing::ui::tui::{update, view};

/// Records the demo on simulated devices.
fn simulate(home: &Home, out: &str, sets: &[&str]) -> Outcome {
    let sets: Vec<_> = ["io.interface=sim"].iter().chain(sets).copied().collect();
    Outcome::of(&home.record(out, "5s", &sets).output().unwrap())
}

/// The interval log without its wall-clock start time.
fn log_without_clock(dir: &Path) -> String {
    let log = fs::read_to_string(dir.join("latency.hlog")).unwrap();
    let (clock, rest): (Vec<_>, Vec<_>) =
        log.lines().partition(|line| line.starts_with("#[BaseTime: ") || line.starts_with("#[StartTime: "));
    assert!(!clock.is_empty(), "{log}");
    rest.join("\n")
}

#[test]
fn a_simulated_run_repeats_to_the_last_byte() {
    let home = Home::new();
    let first = simulate(&home, "first", &[]).expect(0);
    let again = simulate(&home, "again", &[]).expect(0);
    let (first_dir, again_dir) = (home.path("first"), home.path("again"));
    assert_eq!(first.stdout, again.stdout);
    for name in ["windows.jsonl", "summary.json", "ledger.jsonl", "profile.toml"] {
        let read = |dir: &Path| fs::read_to_string(dir.join(name)).unwrap();
        assert_eq!(read(&first_dir), read(&again_dir), "{name}");
    }
    assert_eq!(log_without_clock(&first_dir), log_without_clock(&again_dir));
    assert!(!home.target().exists(), "nothing touches storage");

    let windows = json_lines(&first_dir.join("windows.jsonl"));
    assert_eq!(windows.len(), 5);
    let summary = json_file(&first_dir.join("summary.json"));
    for class in ["scan", "point", "wal", "background"] {
        let sum: u64 = windows.iter().map(|window| window["classes"][class]["ios"].as_u64().unwrap()).sum();
        assert!(sum > 0, "{class}");
        assert_eq!(summary["classes"][class]["ios"], sum, "{class}");
    }
}

#[test]
fn another_seed_is_another_run() {
    let home = Home::new();
    let latency = |out: &str, sets: &[&str]| {
        simulate(&home, out, sets).expect(0);
        json_file(&home.path(out).join("summary.json"))["classes"]["scan"]["service_ns"]["mean"].clone()
    };
    let first = latency("first", &[]);
    let device = latency("device", &["sim.seed=7"]);
    let offsets = latency("offsets", &["run.seed=7"]);
    assert_ne!(first, device);
    assert_ne!(first, offsets);
}

#[test]
fn devices_are_as_their_table_says() {
    let home = Home::new();
    let flush = |out: &str, device: &str| {
        simulate(&home, out, &[device]).expect(0);
        let summary = json_file(&home.path(out).join("summary.json"));
        summary["classes"]["wal"]["flush_ns"]["p50"].as_u64().unwrap()
    };
    let (consumer, enterprise) =
        (flush("consumer", "sim.device=consumer"), flush("enterprise", "sim.device=enterprise"));
    assert!(consumer > 1_000_000, "{consumer}");
    assert!(enterprise * 5 < consumer, "{enterprise}");
}

#[test]
fn faults_are_reported_by_errno_in_one_line() {
    let home = Home::new();
    // With a rate limit, one fault in 200 is far below the number that stops a class.
    let outcome = simulate(&home, "faulty", &["sim.device=faulty", "scan.rate=100MB/s"]).expect(1);
    let lines: Vec<_> = outcome.stderr.lines().filter(|line| line.contains("I/O errors")).collect();
    let [line] = lines[..] else { panic!("{outcome:?}") };
    assert!(line.starts_with("stacktune: ") && line.contains("scan ") && line.contains("(EIO)"), "{line}");

    let summary = json_file(&home.path("faulty").join("summary.json"));
    let mut sum = 0;
    for class in ["scan", "point", "wal", "background"] {
        let figures = &summary["classes"][class];
        let errors = figures["errors"].as_u64().unwrap();
        assert!(errors > 0, "{class}");
        assert_eq!(figures["errnos"], serde_json::json!({ "EIO": errors }), "{class}");
        assert_eq!(figures["state"], "running", "{class}: errors never end the run");
        sum += errors;
    }
    assert!(line.contains(&format!(" {sum} I/O errors")), "{line}");
}

/// The consumer drive's flushes take milliseconds, and delay other I/O in flight.
#[test]
fn slow_ios_are_counted_and_the_slowest_kept_with_their_place() {
    let home = Home::new();
    simulate(&home, "slow", &["run.slow_log=2ms"]).expect(0);
    let (windows, summary) =
        (json_lines(&home.path("slow/windows.jsonl")), json_file(&home.path("slow/summary.json")));
    let counted: u64 =
        windows.iter().filter_map(|window| window["classes"]["wal"]["slow_ios"].as_u64()).sum();
    assert!(counted > 0 && summary["classes"]["wal"]["slow_ios"] == counted, "{summary:#}");
    // The last window also has I/O that was in flight at the end.
    for window in &windows[..windows.len() - 1] {
        let begin = window["start_ns"].as_u64().unwrap();
        let end = begin + window["duration_ns"].as_u64().unwrap();
        for io in window["slow"].as_array().into_iter().flatten() {
            let figure = |key: &str| io[key].as_u64().unwrap();
            let done = figure("at_ns") + figure("service_ns");
            assert!(figure("service_ns") >= 2_000_000 && (begin..=end).contains(&done), "{io}");
            let is_flush = io["kind"] == "flush";
            assert_eq!(figure("bytes") == 0, is_flush, "{io}");
            assert!(figure("depth") >= 1 && (is_flush || figure("offset_bytes").is_multiple_of(512)), "{io}");
        }
    }
    let kept = |class: &str| {
        let all = windows.iter().filter_map(|window| window["slow"].as_array());
        all.map(|ios| ios.iter().filter(|io| io["class"] == class).count()).max()
    };
    assert!(kept("wal") > Some(0) && kept("scan") <= Some(64), "{:?}", [kept("wal"), kept("scan")]);
    let slowest = summary["slowest"].as_array().unwrap();
    let longest = windows.iter().filter_map(|window| window["slow"].as_array()).flatten();
    let longest = longest.map(|io| io["service_ns"].as_u64().unwrap()).max();
    assert_eq!(slowest.iter().map(|io| io["service_ns"].as_u64().unwrap()).max(), longest);
    let shown = home.run(["show", home.path("slow").to_str().unwrap()]).expect(0).stdout;
    assert!(shown.contains("Slowest I/Os"), "{shown}");
    assert!(!shown.contains("Inconsistent"), "{shown}");
}

#[test]
fn a_class_with_too_many_errors_stops_and_says_why_while_the_others_go_on() {
    let home = Home::new();
    // Four devices are fast enough to exceed the limit, with one I/O in 200 failing.
    let outcome = simulate(&home, "faulty", &["sim.device=faulty", "target.files.count=4"]).expect(1);
    assert!(outcome.stderr.contains("scan stopped: over 1,000 errors in a second"), "{outcome:?}");

    let summary = json_file(&home.path("faulty").join("summary.json"));
    let scan = &summary["classes"]["scan"];
    assert_eq!(scan["state"], "stopped");
    assert!(scan["why"].as_str().unwrap().contains("input/output error (EIO)"), "{scan}");
    assert!(scan["errors"].as_u64().unwrap() > 1000);
    let last = json_lines(&home.path("faulty").join("windows.jsonl")).pop().unwrap();
    let ios = |class: &str| last["classes"][class]["ios"].as_u64().unwrap();
    assert_eq!(ios("scan"), 0, "the scan stays stopped");
    assert!(["point", "wal", "background"].iter().all(|class| ios(class) > 0), "{last}");
}

#[test]
fn the_warm_up_is_marked_and_left_out() {
    let home = Home::new();
    let mut command = home.record("warm", "3s", &["io.interface=sim"]);
    Outcome::of(&command.args(["--warmup", "2s"]).output().unwrap()).expect(0);
    let windows = json_lines(&home.path("warm").join("windows.jsonl"));
    let marks: Vec<_> = windows.iter().map(|window| window["warmup"].as_bool().unwrap()).collect();
    assert_eq!(marks, [true, true, false, false, false]);
    let summary = json_file(&home.path("warm").join("summary.json"));
    assert_eq!((&summary["duration_s"], &summary["warmup_s"]), (&Value::from(3.0), &Value::from(2.0)));
    let counted: u64 = windows[2..].iter().map(|w| w["total"]["bytes"].as_u64().unwrap()).sum();
    assert_eq!(summary["total"]["bytes"], counted);
}

/// Nobody is watching.
struct Alone;

impl Attendant for Alone {
    fn progress(&mut self, _: Progress) -> bool {
        true
    }

    fn notice(&mut self, _: &str) {}

    fn consent(&mut self, _: Vec<Wanted>) -> Option<Vec<String>> {
        None
    }
    fn plan(&mut self, _: stacktune::testing::runs::session::PlanShown) -> Option<Vec<String>> {
        None
    }
    fn step(&mut self, _: &stacktune::testing::runs::session::Advance) -> bool {
        true
    }
}

/// A host that supports everything, so that the screen is the same on every host.
fn host() -> Facts {
    Facts {
        hostname: "host".into(),
        distribution: "Debian GNU/Linux 13".into(),
        kernel: "6.18.0".into(),
        cpu: Cpu {
            model: "A processor".into(),
            online: vec![0, 1],
            nodes: Vec::new(),
            governor: None,
            mitigations: [].into(),
            clocksource: None,
        },
        memory_bytes: 8 << 30,
        virtualization: None,
        memlock_bytes: None,
        io_uring: Feature::Present,
        libaio: Feature::Present,
        dontcache: Feature::Present,
        perf: Feature::Present,
        cgroup_memory: stacktune::testing::host::CgroupMemory {
            version: None,
            limit: Feature::Missing("no cgroups".into()),
        },
        platform: stacktune::testing::host::Platform::default(),
        storage: stacktune::testing::host::Storage::default(),
        devices: Vec::new(),
    }
}

/// A simulated run on its virtual clock, shown on a screen.
struct Show {
    session: Session,
    state: State,
}

impl Show {
    fn open(device: &str, depth: &str, (columns, lines): (u16, u16)) -> Self {
        let mut settings: Settings = builtin("demo").unwrap().settings;
        for (knob, text) in [("io.interface", "sim"), ("sim.device", device), ("scan.depth", depth)] {
            let knob = find(knob).unwrap();
            knob.set(&mut settings, knob.parse(text).unwrap());
        }
        let mut session = Session::open(settings, Options::default(), Arc::new(host()), &mut Alone).unwrap();
        session.start().unwrap();
        Self { session, state: State::new(Theme::mono(), columns, lines) }
    }

    /// Advances the virtual clock.
    fn run(&mut self, time: Duration) {
        let end_ns = self.session.now_ns() + time.as_nanos() as u64;
        while self.session.now_ns() < end_ns {
            let settling = self.session.is_settling().then(|| self.session.now_ns() + 2_000_000);
            let due_ns = settling.unwrap_or(u64::MAX).min(self.session.next_ns()).min(end_ns);
            self.session.advance(due_ns);
            self.session.tick().unwrap();
        }
    }

    fn turn(&mut self, knob: &str, value: &Setting) {
        self.session.turn(knob, value);
    }

    /// The screen, as text.
    fn shown(mut self) -> String {
        let events: Vec<_> = self.session.events().collect();
        for event in events {
            update::update(&mut self.state, Msg::Session(event));
        }
        let screen = self.state.screen;
        let mut terminal = Terminal::new(TestBackend::new(screen.width, screen.height)).unwrap();
        terminal.draw(|frame| view::draw(&self.state, frame.buffer_mut())).unwrap();
        terminal.backend().to_string()
    }
}

/// Commits without a flush, then a shallower scan: the ledger has the effect of each.
fn turned(size: (u16, u16)) -> String {
    let mut show = Show::open("consumer", "32", size);
    show.run(Duration::from_secs(8));
    show.turn("wal.sync", &Setting::Choice("none"));
    show.run(Duration::from_secs(8));
    show.turn("scan.depth", &Setting::Int(8));
    show.run(Duration::from_secs(8));
    show.shown()
}

#[test]
fn a_turned_run_is_shown_alike_every_time() {
    let screen = turned((160, 50));
    assert_eq!(screen, turned((160, 50)));
    insta::assert_snapshot!(screen);
}

#[test]
fn a_faulty_run_is_shown_alike_every_time() {
    let faulty = || {
        let mut show = Show::open("faulty", "128", (80, 24));
        show.run(Duration::from_secs(5));
        show.shown()
    };
    let screen = faulty();
    assert_eq!(screen, faulty());
    insta::assert_snapshot!(screen);
}

/// Every I/O of a run, and nothing else, is in the trace that its workers leave.
#[test]
fn a_simulated_run_is_traced_by_its_workers() {
    let home = Home::new();
    let mut record = home.record("traced", "2s", &["io.interface=sim"]);
    let ran = Outcome::of(&record.arg("--trace").output().unwrap()).expect(0);
    assert!(ran.stderr.contains("as the workers submitted them, 0 events lost"), "{ran:?}");
    let read = |name: &str| json_file(&home.path("traced").join(name));
    let (summary, kept, facts) = (read("summary.json"), read("contract.json"), read("trace.json"));
    assert_eq!(facts["source"], "workers");
    let drives = kept["drives"].as_array().unwrap();
    let traced = |op: &str| -> u64 {
        let count = |drive: &Value| drive["request_scale"]["by_operation"][op]["bytes"]["count"].as_u64();
        drives.iter().filter_map(count).sum()
    };
    let counted = |classes: [&str; 2]| -> u64 {
        let ios = |class: &str| {
            let figures = &summary["classes"][class];
            figures["ios"].as_u64().unwrap() + figures["drained"]["ios"].as_u64().unwrap_or(0)
        };
        classes.into_iter().map(ios).sum()
    };
    assert_eq!(traced("read"), counted(["scan", "point"]), "{kept:#}");
    assert_eq!(traced("write"), counted(["wal", "background"]), "{kept:#}");
    assert!(traced("read") > 1000 && traced("write") > 100, "{kept:#}");
    // What the trace holds is the same, also after its way through blkparse's text.
    let held = |from: &str| home.run(["trace", "--from", from, "--json"]).expect(0).json();
    let trace = home.path("traced").display().to_string();
    let text = home.path("text").display().to_string();
    home.run(["trace", "--from", &trace, "--as", "blkparse", "--out", &text]).expect(0);
    let (first, again) = (held(&trace), held(&text));
    for key in
        ["duration_ns", "ios", "completed", "open", "lost", "operations", "processes", "phases", "notes"]
    {
        assert_eq!(first[key], again[key], "{key}");
    }
    assert_eq!(first["drives"].as_array().unwrap().len(), drives.len());
    let shown = home.run(["trace", "--from", &trace]).expect(0).stdout;
    assert!(shown.contains("0 events lost") && shown.contains("\nstacktune "), "{shown}");
    // The first line has the folder's name.
    assert!(shown.lines().skip(1).all(|line| line.chars().count() <= 80), "{shown}");
}
