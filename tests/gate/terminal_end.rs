//! How the screen ends: by a signal, with its terminal, or by a panic.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

use crate::common::program::{Home, MODEST, json_file, json_lines, signal};
use crate::common::terminal::{Terminal, first_line, mb_of};
use crate::common::this_test;
use crate::terminal::{ALL, recording_with, running};
use rustix::process::Signal;
use stacktune::testing::error::Result;
use stacktune::testing::host::Facts;
use stacktune::testing::settings::Settings;
use stacktune::testing::settings::profile::Profile;
use stacktune::testing::ui::tui::{Link, Memory, Options, ProfileEntry, ProfileStore};

#[test]
fn sigint_sigterm_and_sigquit_restore_the_terminal() {
    let home = Home::new();
    for which in [Signal::INT, Signal::TERM, Signal::QUIT] {
        let terminal = running(&home, &[]);
        assert!(terminal.is_taken());
        terminal.signal(which);
        terminal.left().expect(130);
    }
    home.verify().expect(0);
}

#[test]
fn a_signal_keeps_the_turn_that_is_open() {
    for which in [Signal::TERM, Signal::HUP, Signal::KILL] {
        let home = Home::new();
        let mut terminal = running(&home, &[]);
        terminal.choose("scan.depth");
        terminal.press("h");
        terminal.wait_for("turn 1: scan.depth 128 → 64");
        terminal.signal(which);
        let is_killed = which == Signal::KILL;
        if is_killed {
            drop(terminal);
        } else {
            terminal.left().expect(130);
        }
        let files = std::fs::read_dir(home.path("state/stacktune/ledger")).unwrap();
        let files: Vec<_> = files.map(|entry| json_lines(&entry.unwrap().path())).collect();
        // A killed process can't close anything: the turn is still recorded as it was made.
        let last = files[0].last().unwrap();
        assert_eq!((files.len(), &last["to"], &last["open"]), (1, &"64".into(), &is_killed.into()));
    }
}

#[test]
fn on_sighup_a_recording_is_closed_in_order() {
    let home = Home::new();
    let (terminal, dir) = recording_with(&home, 3);
    terminal.signal(Signal::HUP);
    terminal.left().expect(130);
    assert_is_whole(&home, &dir);
}

#[test]
fn when_the_terminal_is_gone_a_recording_is_closed_in_order() {
    let home = Home::new();
    let (terminal, dir) = recording_with(&home, 3);
    assert_eq!(terminal.hang_up(), 130);
    assert_is_whole(&home, &dir);
}

/// A recording that ended in order: its summary covers all its windows.
fn assert_is_whole(home: &Home, dir: &std::path::Path) {
    let summary = json_file(&dir.join("summary.json"));
    let windows = json_lines(&dir.join("windows.jsonl"));
    assert_eq!(summary["windows"].as_u64().unwrap(), windows.len() as u64);
    let sum: u64 = windows.iter().map(|window| window["total"]["bytes"].as_u64().unwrap()).sum();
    assert_eq!(summary["total"]["bytes"], sum);
    let shown = home.show(dir).expect(0);
    assert!(!shown.stdout.contains("nconsistent"), "{shown:?}");
    home.verify().expect(0);
}

#[test]
fn quitting_while_filling_ends_the_fill() {
    let home = Home::new();
    let mut terminal = Terminal::demo(&home, &["target.files.size=4GiB"], ALL);
    terminal.wait("the fill", |screen| first_line(screen).contains("filling"));
    terminal.press("q");
    terminal.left().expect(0);
}

/// A profile store that makes the program panic.
struct Cursed;
impl ProfileStore for Cursed {
    fn list(&self) -> Vec<ProfileEntry> {
        panic!("the list is cursed");
    }

    fn load(&self, _: &str) -> Result<Profile> {
        unreachable!()
    }

    fn save(&self, _: &Settings, _: &Facts, _: &str, _: bool) -> Result<PathBuf> {
        unreachable!()
    }
}

struct Forgetful;

impl Memory for Forgetful {
    fn keep(&mut self, _: &str) -> Result<()> {
        Ok(())
    }

    fn is_new(&self) -> bool {
        true
    }

    fn drop_first_steps(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_restores_the_terminal_and_is_reported_there() {
    // The screen runs in a process of its own: this same test, on a terminal.
    const HELPER: &str = "STACKTUNE_TEST_PANIC_HELPER";
    if std::env::var_os(HELPER).is_some() {
        let (commands, _asked) = channel();
        let (_report, events) = channel();
        let profiles = Box::new(Cursed);
        let options = Options {
            theme: None,
            themes: None,
            no_color: false,
            over_ssh: false,
            profiles,
            recordings: PathBuf::new(),
            shelves: Vec::new(),
            memory: Box::new(Forgetful),
            is_set_apart: false,
        };
        let _ = stacktune::testing::ui::tui::run(Link { commands, events }, options);
        return;
    }
    let home = Home::new();
    let name = "a_panic_restores_the_terminal_and_is_reported_there";
    let itself = this_test(module_path!(), name);
    let arguments: Vec<_> = itself.get_args().map(|text| text.to_str().unwrap().to_owned()).collect();
    let mut terminal = Terminal::start_program(
        Path::new(itself.get_program()),
        &home,
        &arguments,
        (80, 24),
        &[(HELPER, "1")],
    );
    terminal.wait_for("opening…");
    assert!(terminal.is_taken());
    terminal.press("o");
    let left = terminal.left();
    left.expect(101);
    let written = String::from_utf8_lossy(&left.bytes);
    let (_, after_the_screen) = written.rsplit_once("\x1b[?1049l").unwrap();
    assert!(after_the_screen.contains("the list is cursed"), "{}", left.screen);
}

/// A shell with job control.
fn shell(home: &Home) -> Terminal {
    let shell = ["--norc", "--noprofile", "-i"].map(String::from);
    let terminal =
        Terminal::start_program(Path::new("/bin/bash"), home, &shell, (120, 40), &[("PS1", "shell> ")]);
    terminal.wait_for("shell> ");
    terminal
}

/// The demo, started by hand in a shell.
fn in_a_shell(home: &Home) -> Terminal {
    let mut terminal = shell(home);
    let arguments: Vec<_> = home.sets(&MODEST).iter().map(|set| format!(" '{set}'")).collect();
    terminal.press(&format!("{}{}\r", env!("CARGO_BIN_EXE_stacktune"), arguments.concat()));
    terminal.wait_until_running();
    terminal
}

/// The only living child of a process.
fn only_child(parent: u32) -> u32 {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{parent}"))
    };
    let children: Vec<u32> = pids.filter(is_child).collect();
    assert_eq!(children.len(), 1, "{children:?}");
    children[0]
}

#[test]
fn sigtstp_returns_to_the_shell_and_fg_draws_the_whole_screen_again() {
    let home = Home::new();
    let mut terminal = in_a_shell(&home);
    signal(only_child(terminal.process_id()), Signal::TSTP);
    terminal.wait("the shell", |screen| screen.contains("Stopped") && screen.trim_end().ends_with("shell>"));
    assert!(!terminal.is_taken());
    // The shell overwrites the whole screen, and the terminal is resized.
    terminal.press("for i in {1..50}; do echo left by the shell; done\r");
    terminal.wait("the shell's lines", |screen| screen.matches("left by the shell").count() > 30);
    terminal.resize((130, 44));
    terminal.press("fg\r");
    terminal.wait("the whole screen", |screen| {
        let parts = ["─ stack", "─ latency", "─ classes", "─ ledger", "▶ ", "? help"];
        let is_whole = parts.iter().all(|part| screen.contains(part)) && mb_of(screen, "scan") > 0.0;
        is_whole && first_line(screen).contains("running") && !screen.contains("left by the shell")
    });
    assert!(terminal.is_taken());
    terminal.choose("scan.depth");
    terminal.press("l");
    terminal.wait_for("scan.depth 128 → 256");
    terminal.press("q");
    terminal.wait("the shell", |screen| !screen.contains("─ stack") && screen.ends_with("shell> "));
    terminal.press("exit\r");
    terminal.left().expect(0);
}

#[test]
fn ctrl_z_returns_to_the_shell_and_fg_continues() {
    let home = Home::new();
    let mut terminal = in_a_shell(&home);
    for (stops, depth) in [(1, "128 → 256"), (2, "256 → 512")] {
        terminal.press("\x1a");
        // The shell's line from the previous stop is still there.
        terminal.wait("the shell", |screen| {
            screen.matches("Stopped").count() == stops && screen.trim_end().ends_with("shell>")
        });
        assert!(!terminal.is_taken());
        terminal.press("echo $((6 * 7))\r");
        terminal.wait("the answer", |screen| screen.matches("\n42\n").count() == stops);
        terminal.press("fg\r");
        terminal.wait("the load again", |screen| {
            first_line(screen).contains("running") && screen.contains("continued: the load was paused")
        });
        assert!(terminal.is_taken());
        // Keys work, and the previous stop signal does not stop it again.
        terminal.choose("scan.depth");
        terminal.press("l");
        terminal.wait_for(&format!("scan.depth {depth}"));
    }
    terminal.press("q");
    terminal.wait("the shell", |screen| !screen.contains("─ stack") && screen.ends_with("shell> "));
    terminal.press("exit\r");
    terminal.left().expect(0);
}

/// Without a screen, too, it stops only while none of its threads is ending.
#[test]
fn ctrl_z_stops_a_recording_and_fg_ends_it() {
    let home = Home::new();
    let mut terminal = shell(&home);
    let program = env!("CARGO_BIN_EXE_stacktune");
    let sets = home.sets(&MODEST).join("' '");
    let out = home.path("recorded");
    terminal.press(&format!("{program} record demo '{sets}' --for 2s --out {}\r", out.display()));
    terminal.wait_for("MB/s: scan ");
    terminal.press("\x1a");
    terminal.wait("the shell", |screen| screen.contains("Stopped") && screen.trim_end().ends_with("shell>"));
    terminal.press("fg; echo ended by $?\r");
    terminal.wait_for("ended by 0");
    let windows = json_lines(&out.join("windows.jsonl"));
    assert!(windows.iter().any(|window| window["paused"] == true), "{windows:#?}");
    terminal.press("exit\r");
    terminal.left().expect(0);
}

#[test]
fn without_a_shell_that_would_continue_it_ctrl_z_does_nothing_and_says_so() {
    let home = Home::new();
    let mut terminal = running(&home, &[]);
    terminal.press("\x1a");
    terminal.wait_for("no shell waits for stacktune");
    terminal.press("j");
    terminal.wait_until_gone("no shell waits");
    terminal.signal(Signal::TSTP);
    terminal.wait_for("no shell waits for stacktune");
    terminal.choose("scan.depth");
    assert!(terminal.is_taken() && !terminal.screen().contains("PAUSED"));
    terminal.press("q");
    terminal.left().expect(0);
}

#[test]
fn without_a_terminal_it_names_record() {
    let home = Home::new();
    let outcome = home.run(home.sets(&[])).expect(2);
    assert!(outcome.stderr.contains("needs a terminal"), "{outcome:?}");
    assert!(outcome.stderr.contains("stacktune record"), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(!home.target().exists());
}
