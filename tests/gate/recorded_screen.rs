//! Recordings on the screen of the real program: read, played back, and left unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::program::{Home, MODEST, Outcome};
use crate::common::terminal::{Terminal, first_line, mb_of};
use crate::terminal::{ALL, quit, running};

const HOME: &str = "\x1b[H";
const END: &str = "\x1b[F";
const RIGHT: &str = "\x1b[C";
const LEFT: &str = "\x1b[D";

/// Two seconds of the demo in windows of 100 ms.
fn recorded(home: &Home, out: &str, more: &[&str]) -> String {
    let sets = [&MODEST[..], &["run.window=100ms"], more].concat();
    Outcome::of(&home.record(out, "2s", &sets).output().unwrap()).expect(0);
    home.path(out).to_str().unwrap().to_owned()
}

fn opened(home: &Home, arguments: &[&str], size: (u16, u16)) -> Terminal {
    let arguments: Vec<String> =
        ["show"].iter().chain(arguments).chain(&["--screen"]).map(|a| (*a).into()).collect();
    Terminal::start(home, &arguments, size, &[])
}

/// Position and length from the header: `0.1/2.0 s`.
fn position(screen: &str) -> Option<(f64, f64)> {
    let header = first_line(screen);
    let (before, after) = header.split_once('/')?;
    let at = before.rsplit(' ').next()?.parse().ok()?;
    Some((at, after.split(' ').next()?.parse().ok()?))
}

/// The number of the window shown: `window 19 of 20`. On a busy machine windows differ in length.
fn shown_window(screen: &str) -> Option<u32> {
    let (_, behind) = screen.split_once("· window ")?;
    behind.split(' ').next()?.parse().ok()
}

fn is_at(screen: &str, share: impl Fn(f64, f64) -> bool) -> bool {
    first_line(screen).contains("RECORDING") && position(screen).is_some_and(|(at, all)| share(at, all))
}

/// A folder's files by name.
fn contents(dir: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn a_recording_is_read_played_and_left_as_it_was() {
    let home = Home::new();
    let dir = recorded(&home, "run", &[]);
    let before = (contents(&dir), fs::metadata(home.target().join("data-0")).unwrap().modified().unwrap());
    let mut terminal = opened(&home, &[&dir], ALL);
    terminal
        .wait("the first window", |screen| is_at(screen, |at, all| at < 0.3 && (1.8..3.0).contains(&all)));
    terminal.press(END);
    // On a busy machine no I/O may have ended in the first window.
    terminal.wait("the last window", |screen| {
        is_at(screen, |at, all| (all - at).abs() < 0.05) && mb_of(screen, "scan") > 0.0
    });
    let last = shown_window(&terminal.screen()).unwrap();
    terminal.press(LEFT);
    terminal.wait("the one before", |screen| shown_window(screen) == Some(last - 1));
    // Shift+Left.
    terminal.press("\x1b[1;2D");
    terminal.wait("the one before that", |screen| shown_window(screen) == Some(last - 2));
    terminal.press(HOME);
    terminal.wait("the first window", |screen| is_at(screen, |at, _| at < 0.3));
    terminal.press(RIGHT);
    terminal.wait("the second window", |screen| is_at(screen, |at, _| at > 0.15));
    for key in ["u", "s", "r", "o", "p", "1"] {
        terminal.press(key);
        terminal.wait_for("this is a recording: nothing runs");
        terminal.press("i");
        terminal.wait_until_gone("this is a recording: nothing runs");
    }
    terminal.press("+ ");
    terminal.wait("it plays", |screen| first_line(screen).contains("▶ 2×"));
    terminal.wait("its end", |screen| {
        is_at(screen, |at, all| (all - at).abs() < 0.05) && !first_line(screen).contains('▶')
    });
    quit(terminal);
    let after = (contents(&dir), fs::metadata(home.target().join("data-0")).unwrap().modified().unwrap());
    assert!(before == after, "a recording and its target are only read");
    assert!(!home.path("state/stacktune/ledger").exists() && !home.path("data/stacktune").exists());
}

#[test]
fn what_is_no_recording_is_refused_before_the_screen() {
    let home = Home::new();
    let dir = recorded(&home, "run", &[]);
    let without_terminal = home.run(["show", &dir, "--screen"]).expect(2);
    assert!(without_terminal.stderr.contains("needs a terminal"), "{without_terminal:?}");
    let refused = |dir: &str, why: &str| {
        let left = opened(&home, &[dir], (80, 24)).left();
        left.expect(2);
        let text = String::from_utf8_lossy(&left.bytes).replace("\r\n", "\n");
        assert!(text.contains(why) && !text.contains("\x1b[?1049h"), "{text}");
    };
    refused(home.path("nowhere").to_str().unwrap(), "there is no folder");
    let windows = Path::new(&dir).join("windows.jsonl");
    let whole = fs::read_to_string(&windows).unwrap();
    fs::write(&windows, whole.replace("\"ios\":", "\"ios\":x")).unwrap();
    refused(&dir, "windows.jsonl:1: damaged");
    fs::write(&windows, "").unwrap();
    refused(&dir, "has no window yet");
    fs::write(&windows, &whole).unwrap();
    fs::write(Path::new(&dir).join("summary.json"), "{").unwrap();
    refused(&dir, "summary.json is damaged");

    // A killed recording is shown up to its last window, and a signal ends the screen.
    fs::remove_file(Path::new(&dir).join("summary.json")).unwrap();
    let terminal = opened(&home, &[&dir], (80, 24));
    terminal.wait("the note", |screen| {
        screen.contains("summary.json is missing") && first_line(screen).contains("RECORDING")
    });
    terminal.signal(Signal::INT);
    terminal.left().expect(130);
}

#[test]
fn recordings_are_listed_read_and_compared_beside_a_run() {
    let home = Home::new();
    let mut terminal = running(&home, &["run.window=100ms"]);
    for _ in 0..2 {
        // Recordings' folders are named by the second.
        std::thread::sleep(Duration::from_millis(1100));
        terminal.press("r");
        terminal.wait("recording", |screen| first_line(screen).contains("● REC"));
        std::thread::sleep(Duration::from_millis(500));
        terminal.press("r");
        terminal.wait("its end", |screen| !first_line(screen).contains("● REC"));
    }
    terminal.press("O");
    terminal.wait("the list", |screen| screen.contains("recordings 1/2") && screen.contains("demo"));
    terminal.press("\r");
    terminal.wait("the summary", |screen| screen.contains("profile demo") && screen.contains("cycles/byte"));
    terminal.press("\x1b");
    terminal.wait_for("recordings 1/2");
    terminal.press(" j c");
    terminal.wait("the comparison", |screen| {
        screen.contains(" and demo-")
            && (screen.contains("same host and settings") || screen.contains("Different"))
    });
    terminal.press("\x1b");
    terminal.wait_for("recordings 2/2");
    terminal.press("\x1b");
    terminal.wait_until_gone("recordings 2/2");
    quit(terminal);

    let folder = home.path("data/stacktune/recordings");
    let listed = home.run(["show", "--list"]).expect(0);
    assert!(listed.stdout.contains(&format!("{}: 2 recordings", folder.display())), "{listed:?}");
    let json = home.run(["show", "--list", "--json", folder.to_str().unwrap()]).expect(0).json();
    let recordings = json[0]["recordings"].as_array().unwrap();
    assert_eq!((recordings.len(), &recordings[0]["figures"]["profile"]), (2, &"demo".into()));
    assert!(recordings[0]["started_unix_s"].as_u64() >= recordings[1]["started_unix_s"].as_u64());
    home.run(["show", "--list", home.path("nowhere").to_str().unwrap()]).expect(2);
}

#[test]
fn two_recordings_are_flipped_and_compared() {
    let home = Home::new();
    let (first, second) = (recorded(&home, "first", &[]), recorded(&home, "second", &["scan.depth=4"]));
    let mut terminal = opened(&home, &[&first, "--with", &second], ALL);
    terminal.wait("the first", |screen| first_line(screen).contains("RECORDING  A first"));
    terminal.press("x");
    terminal.wait("the second", |screen| first_line(screen).contains("RECORDING  B second"));
    terminal.press("=");
    terminal.wait_for("scan.depth: A 128 | B 4");
    terminal.press("\x1b");
    terminal.wait_until_gone("scan.depth: A 128 | B 4");
    terminal.press("|");
    terminal.wait("both", |screen| {
        ["RECORDING  A first", "RECORDING  B second"].iter().all(|half| first_line(screen).contains(half))
    });
    terminal.press("|");
    terminal.wait("one", |screen| first_line(screen).matches("RECORDING").count() == 1);
    quit(terminal);
    opened(&home, &[&first, "--with", home.path("nowhere").to_str().unwrap()], (80, 24)).left().expect(2);
}
