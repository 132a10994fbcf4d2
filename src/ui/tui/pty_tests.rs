//! The screen in a real pseudo-terminal: this test program runs itself again, with a made-up session.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::{Link, Memory, Options, ProfileEntry, ProfileStore, fixture};
use crate::error::Error;
use crate::host::Facts;
use crate::runs::session::message::Phase;
use crate::runs::session::{Command, Event};
use crate::settings::Settings;
use crate::settings::profile::Profile;

/// Names the file to which the session writes how it ended; set only in the second program.
const CHILD: &str = "STACKTUNE_TUI_TEST_CHILD";
const LEAVE_ALTERNATE_SCREEN: &str = "\x1b[?1049l";

struct NoProfiles;

impl ProfileStore for NoProfiles {
    fn list(&self) -> Vec<ProfileEntry> {
        Vec::new()
    }
    fn load(&self, name: &str) -> Result<Profile, Error> {
        Err(Error::input(format!("there is no profile {name}")))
    }
    fn save(&self, _: &Settings, _: &Facts, name: &str, _: bool) -> Result<PathBuf, Error> {
        Ok(name.into())
    }
}

struct Forgetful;

impl Memory for Forgetful {
    fn keep(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }
    fn is_new(&self) -> bool {
        false
    }
    fn drop_first_steps(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The second program: a session that reports a few windows, and drains on request.
fn session(
    commands: &std::sync::mpsc::Receiver<Command>,
    events: &std::sync::mpsc::Sender<Event>,
    log: &str,
) {
    let send = |event| drop(events.send(event));
    send(Event::Status(Arc::new(fixture::status(Phase::Running))));
    for index in 0..5 {
        send(Event::Window(Arc::new(fixture::window(index)), Arc::new(fixture::totals(index + 1))));
    }
    for command in commands {
        match command {
            Command::Quit | Command::QuitKeeping => {
                std::fs::write(log, "drained").expect("the log");
                if command == Command::QuitKeeping {
                    send(Event::Retained(vec!["umount /what/was/built".into()]));
                }
                send(Event::Ended(Ok(())));
                return;
            }
            Command::Undo => {
                send(Event::Status(Arc::new(fixture::standing_status())));
                send(Event::Notice("something stands".into()));
            }
            Command::Pause(_) => panic!("a session that fails"),
            _ => {}
        }
    }
}

/// The second program's part; does nothing in the first one.
#[test]
fn child() {
    let Ok(log) = std::env::var(CHILD) else { return };
    let (commands, asked) = channel();
    let (report, events) = channel();
    thread::spawn(move || session(&asked, &report, &log));
    let options = Options {
        theme: None,
        themes: None,
        no_color: true,
        over_ssh: false,
        profiles: Box::new(NoProfiles),
        recordings: std::env::temp_dir(),
        shelves: Vec::new(),
        memory: Box::new(Forgetful),
        is_set_apart: false,
    };
    let outcome = super::run(Link { commands, events }, options);
    outcome.kept.iter().for_each(|command| println!("{command}"));
    std::process::exit(outcome.ended.map_or_else(|error| i32::from(error.exit_status()), |()| 0));
}

fn nonzero(n: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(n).expect("not zero")
}

struct Terminal {
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    reader: Box<dyn Read + Send>,
    seen: Vec<u8>,
    log: tempfile::TempDir,
}

impl Terminal {
    fn start() -> Self {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let log = tempfile::tempdir().expect("a folder");
        let mut command = CommandBuilder::new(std::env::current_exe().expect("this program"));
        command.args(["ui::tui::pty_tests::child", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(CHILD, log.path().join("log"));
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).expect("the second program");
        let reader = pair.master.try_clone_reader().expect("a reader");
        drop(pair.slave);
        let mut terminal = Self {
            writer: pair.master.take_writer().expect("a writer"),
            master: pair.master,
            child,
            reader,
            seen: Vec::new(),
            log,
        };
        terminal.until("demo  running");
        terminal
    }

    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let n = self.reader.read(&mut bytes).unwrap_or(0);
        self.seen.extend_from_slice(&bytes[..n]);
        n > 0
    }

    /// What a terminal shows after everything that was written.
    fn screen(&self) -> String {
        let mut parser = vt100::Parser::new(nonzero(24), nonzero(80), 0);
        parser.process(&self.seen);
        parser.screen().contents()
    }

    /// Reads until the screen shows this text.
    fn until(&mut self, text: &str) {
        while !self.screen().contains(text) {
            assert!(self.read(), "ended without showing {text:?}:\n{}", self.screen());
        }
    }

    fn write(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).expect("keys");
        self.writer.flush().expect("keys");
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = self.child.process_id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()));
        rustix::process::kill_process(pid.expect("a process"), signal).expect("a signal");
    }

    /// Waits for the end: exit status, and whether the session had drained.
    fn end(&mut self) -> (u32, bool) {
        while self.read() {}
        let status = self.child.wait().expect("an end").exit_code();
        (status, self.log.path().join("log").exists())
    }

    fn is_restored(&self) -> bool {
        let text = String::from_utf8_lossy(&self.seen);
        text.contains(LEAVE_ALTERNATE_SCREEN) && text.contains("\x1b[?1000l") && text.contains("\x1b[?25h")
    }
}

#[test]
fn that_a_turn_can_be_judged_is_said_once_there_is_a_baseline() {
    let mut terminal = Terminal::start();
    terminal.until("ready: turn a knob by");
    terminal.write("q");
    assert_eq!(terminal.end(), (0, true));
}

#[test]
fn q_drains_and_restores_the_terminal() {
    let mut terminal = Terminal::start();
    terminal.write("q");
    assert_eq!(terminal.end(), (0, true));
    assert!(terminal.is_restored());
}

#[test]
fn sigterm_drains_restores_the_terminal_and_exits_with_130() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut terminal = Terminal::start();
        terminal.signal(signal);
        assert_eq!(terminal.end(), (130, true));
        assert!(terminal.is_restored());
    }
}

#[test]
fn a_retained_stack_is_reported_after_the_terminal_is_restored() {
    let mut terminal = Terminal::start();
    terminal.write("u");
    terminal.until("something stands");
    terminal.write("q");
    terminal.until("The stack built for this run is still in place.");
    terminal.write("k");
    assert_eq!(terminal.end(), (0, true));
    let text = String::from_utf8_lossy(&terminal.seen).into_owned();
    let (left, printed) = (text.find(LEAVE_ALTERNATE_SCREEN), text.find("umount /what/was/built"));
    assert!(left.is_some() && left < printed, "{text}");
}

#[test]
fn a_signal_tears_down_the_stack_without_asking() {
    let mut terminal = Terminal::start();
    terminal.write("u");
    terminal.until("something stands");
    terminal.write("q");
    terminal.until("The stack built for this run is still in place.");
    terminal.signal(rustix::process::Signal::TERM);
    assert_eq!(terminal.end(), (130, true));
    let text = String::from_utf8_lossy(&terminal.seen).into_owned();
    assert!(text.contains("tearing down the stack") && !text.contains("umount"), "{text}");
}

#[test]
fn a_terminal_that_is_gone_lets_the_load_drain() {
    let mut terminal = Terminal::start();
    terminal.signal(rustix::process::Signal::HUP);
    assert_eq!(terminal.end(), (130, true));
}

#[test]
fn a_panic_restores_the_terminal_before_its_message() {
    let mut terminal = Terminal::start();
    terminal.write(" ");
    assert_eq!(terminal.end().0, 1);
    assert!(terminal.is_restored());
    let text = String::from_utf8_lossy(&terminal.seen).into_owned();
    let (left, printed) = (text.find(LEAVE_ALTERNATE_SCREEN), text.find("a session that fails"));
    assert!(left.is_some() && left < printed, "{text}");
}

#[test]
fn the_screen_follows_the_terminals_size() {
    let mut terminal = Terminal::start();
    let size = PtySize { rows: 20, cols: 60, pixel_width: 0, pixel_height: 0 };
    terminal.master.resize(size).expect("a resize");
    terminal.until("needs 80×24, has 60×20");
    terminal.write("q");
    assert_eq!(terminal.end(), (0, true));
}
