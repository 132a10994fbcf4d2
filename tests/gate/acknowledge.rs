//! A turn of a knob is acknowledged at once, even with far more busy workers than processors.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::common;
use stacktune::testing::class::Class;
use stacktune::testing::host::Facts;
use stacktune::testing::runs::session::{Command, Event, Options, live, raise_thread_priority};
use stacktune::testing::settings::knobs::Value;
use stacktune::testing::settings::{Buffering, Interface, Settings};
use stacktune::testing::units::MIB;

const TURNS: u64 = 20;

/// A scan with 128 threads that never wait for a disk, and point reads.
fn settings(dir: &Path) -> Settings {
    let mut settings = Settings::default();
    settings.target.dir = dir.to_str().unwrap().into();
    settings.target.count = 1;
    settings.target.size_bytes = 16 * MIB;
    settings.io.interface = Interface::Sync;
    settings.io.buffering = Buffering::Cached;
    settings.classes[Class::Wal.index()].enabled = false;
    settings.classes[Class::Background.index()].enabled = false;
    // Some of the turns coincide with the meters' work at a window's end.
    settings.run.window = Duration::from_millis(100);
    settings
}

/// How long a turn takes until it is acknowledged, and until it is in force.
fn turn(depth: u64, commands: &Sender<Command>, events: &Receiver<Event>) -> (Duration, Duration) {
    let began = Instant::now();
    commands.send(Command::Turn { knob: "scan.depth".into(), value: Value::Int(depth) }).unwrap();
    let mut acknowledged = None;
    for event in events {
        if let Event::Turned { outcome, .. } = event {
            let acknowledged = *acknowledged.get_or_insert(began.elapsed());
            if outcome.unwrap() {
                return (acknowledged, began.elapsed());
            }
        }
    }
    panic!("the session is gone");
}

#[test]
fn a_turn_is_acknowledged_at_once_beside_128_busy_threads() {
    // Like the screen, which waits for the answer.
    raise_thread_priority();
    if rustix::process::getpriority_process(None).unwrap() >= 0 {
        let test = "a_turn_is_acknowledged_at_once_beside_128_busy_threads";
        return common::skip(test, "a higher priority needs root or RLIMIT_NICE");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let settings = settings(dir.path());
    let facts = Arc::new(Facts::read(Path::new("/")));
    let (commands, asked) = channel();
    let (report, events) = channel();
    let session = std::thread::spawn(move || {
        live::run(settings, Options::default(), &|| facts.clone(), &asked, &report);
    });
    for event in &events {
        match event {
            Event::Window(window, _) if window.classes[0].ios > 0 => break,
            Event::Ended(ended) => ended.unwrap(),
            _ => {}
        }
    }
    let mut turns: Vec<_> = (0..TURNS).map(|at| turn(127 + at % 2, &commands, &events)).collect();
    commands.send(Command::Quit).unwrap();
    session.join().unwrap();
    turns.sort();
    println!("acknowledged and in force: {turns:?}");
    // Other load on the machine may delay a few of them.
    let (median, _) = turns[turns.len() / 2];
    assert!(median < Duration::from_millis(200), "{turns:?}");
}
