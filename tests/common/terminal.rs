//! The real program in a real pseudo-terminal: keys in, screen out.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::Signal;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::program::{DEADLINE, Home, signal, wait_for};

const UPDATE_BEGINS: &[u8] = b"\x1b[?2026h";
const UPDATE_ENDS: &[u8] = b"\x1b[?2026l";

/// Columns and lines.
pub type Size = (u16, u16);

/// The screen as a person reads it, and every byte received.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    /// How many of the bytes are on the screen.
    shown: usize,
    ended: bool,
    /// The window closes when the next bytes arrive.
    closing: bool,
}

impl Seen {
    /// Processes new bytes. Like a terminal, it shows nothing of a synchronized update before its end.
    fn take(&mut self, came: &[u8]) {
        self.bytes.extend_from_slice(came);
        // A mark may arrive in two pieces.
        let from = self.shown.saturating_sub(UPDATE_BEGINS.len());
        let last = |mark: &[u8]| self.bytes[from..].windows(mark.len()).rposition(|part| part == mark);
        let whole = match (last(UPDATE_BEGINS), last(UPDATE_ENDS)) {
            (Some(begin), end) if end < Some(begin) => (from + begin).max(self.shown),
            _ => self.bytes.len(),
        };
        self.parser.process(&self.bytes[self.shown..whole]);
        self.shown = whole;
    }
}

type Shared = Arc<(Mutex<Seen>, Condvar)>;

/// The program on a terminal of its own. Dropping it ends the program.
pub struct Terminal {
    master: Option<Box<dyn MasterPty + Send>>,
    keys: Option<Box<dyn Write + Send>>,
    /// Keeps the terminal's modes readable after the program has ended.
    line: Option<File>,
    before: Termios,
    child: Box<dyn Child + Send + Sync>,
    seen: Shared,
    reader: Option<JoinHandle<()>>,
}

/// The program's exit status, output and effect on the terminal.
pub struct Left {
    /// The exit status.
    pub status: u32,
    /// Every byte that it wrote to the terminal.
    pub bytes: Vec<u8>,
    /// The screen after its end.
    pub screen: String,
    /// Terminal state that was not restored: empty if all of it was.
    pub not_restored: Vec<&'static str>,
}

impl Left {
    /// Fails unless it ended with this status and restored the terminal.
    #[track_caller]
    pub fn expect(&self, status: u32) {
        assert_eq!((self.status, &self.not_restored[..]), (status, &[][..]), "{}", self.screen);
    }
}

impl Terminal {
    /// Starts the program on a terminal of that size.
    pub fn start(home: &Home, arguments: &[String], size: Size, environment: &[(&str, &str)]) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_stacktune"));
        Self::start_program(program, home, arguments, size, environment)
    }

    /// Starts another program in the same way.
    pub fn start_program(
        program: &Path,
        home: &Home,
        arguments: &[String],
        size: Size,
        environment: &[(&str, &str)],
    ) -> Self {
        let pair = native_pty_system().openpty(pty_size(size)).unwrap();
        let name = pair.master.tty_name().unwrap();
        let no_control = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
        let line = OpenOptions::new().read(true).write(true).custom_flags(no_control).open(name).unwrap();
        let before = tcgetattr(&line).unwrap();
        let mut command = CommandBuilder::new(program);
        command.env_clear();
        home.environment().iter().for_each(|(name, value)| command.env(name, value));
        command.env("TERM", "xterm-256color");
        environment.iter().for_each(|(name, value)| command.env(name, value));
        command.args(arguments);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let parser = vt100::Parser::new(cells(size.1), cells(size.0), 0);
        let seen: Shared = Arc::new((
            Mutex::new(Seen { parser, bytes: Vec::new(), shown: 0, ended: false, closing: false }),
            Condvar::new(),
        ));
        let reader = pair.master.try_clone_reader().unwrap();
        let theirs = seen.clone();
        Self {
            keys: Some(pair.master.take_writer().unwrap()),
            master: Some(pair.master),
            line: Some(line),
            before,
            child,
            seen,
            reader: Some(std::thread::spawn(move || read(reader, &theirs))),
        }
    }

    /// The demo on a home's small files.
    pub fn demo(home: &Home, sets: &[&str], size: Size) -> Self {
        Self::start(home, &home.sets(sets), size, &[])
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// The screen's text.
    pub fn screen(&self) -> String {
        self.seen().parser.screen().contents()
    }

    /// Every byte received.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen().bytes.clone()
    }

    /// Types these keys.
    pub fn press(&mut self, keys: &str) {
        let writer = self.keys.as_mut().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// Waits for a screen that satisfies this, and returns it.
    #[track_caller]
    pub fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + DEADLINE;
        let mut seen = self.seen();
        loop {
            let screen = seen.parser.screen().contents();
            if is_there(&screen) {
                return screen;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.ended, "waited in vain for {what}; the screen:\n{screen}");
            seen = self.seen.1.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for a text on the screen.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits until a text is gone from the screen.
    #[track_caller]
    pub fn wait_until_gone(&self, text: &str) -> String {
        self.wait(&format!("{text} to go"), |screen| !screen.contains(text))
    }

    /// Waits until the load runs and its first window is shown.
    #[track_caller]
    pub fn wait_until_running(&self) -> String {
        self.wait("a running load", |screen| {
            first_line(screen).contains("running") && mb_of(screen, "scan") > 0.0
        })
    }

    /// Chooses a knob by searching for it.
    #[track_caller]
    pub fn choose(&mut self, path: &str) {
        self.press(&format!("/{path}"));
        self.wait_for(&format!("/{path}"));
        self.press("\r");
        self.wait_for(&format!("{path}: "));
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, size: Size) {
        self.seen().parser.screen_mut().set_size(cells(size.1), cells(size.0));
        self.master.as_ref().unwrap().resize(pty_size(size)).unwrap();
    }

    /// The program's process id.
    pub fn process_id(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Sends a signal to the program.
    pub fn signal(&self, which: Signal) {
        signal(self.process_id(), which);
    }

    /// Closes the window, so the terminal is gone. Returns the exit status.
    pub fn hang_up(mut self) -> u32 {
        // The reader holds the terminal too, and wakes up at the next frame.
        self.seen().closing = true;
        self.reader.take().unwrap().join().unwrap();
        (self.line, self.keys, self.master) = (None, None, None);
        self.exit_status()
    }

    fn exit_status(&mut self) -> u32 {
        let ended = || self.child.try_wait().unwrap();
        let status = wait_for("the program's end", ended);
        assert_eq!(status.signal(), None);
        status.exit_code()
    }

    /// Waits for the program to end.
    #[track_caller]
    pub fn left(mut self) -> Left {
        let status = self.exit_status();
        let line = self.line.take().unwrap();
        let after = tcgetattr(&line).unwrap();
        drop(line);
        self.reader.take().unwrap().join().unwrap();
        let seen = self.seen();
        let screen = seen.parser.screen();
        let same_modes = after.local_modes == self.before.local_modes
            && after.input_modes == self.before.input_modes
            && after.output_modes == self.before.output_modes;
        let checks = [
            ("raw mode", same_modes && after.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)),
            ("the other screen", !screen.alternate_screen()),
            ("the cursor", !screen.hide_cursor()),
            ("the mouse", screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None),
        ];
        Left {
            status,
            bytes: seen.bytes.clone(),
            screen: screen.contents(),
            not_restored: checks.iter().filter(|(_, fine)| !fine).map(|(what, _)| *what).collect(),
        }
    }

    /// Whether the program has the terminal: raw mode, alternate screen.
    pub fn is_taken(&self) -> bool {
        let modes = tcgetattr(self.line.as_ref().unwrap()).unwrap().local_modes;
        !modes.contains(LocalModes::ICANON) && self.seen().parser.screen().alternate_screen()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(line) = &self.line {
            // Output that a failed test left unread must not block the reader.
            let _ = tcsetattr(line, OptionalActions::Flush, &self.before);
        }
    }
}

/// A test that failed while it held the screen doesn't affect the reader.
fn lock(seen: &Shared) -> MutexGuard<'_, Seen> {
    seen.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(mut from: Box<dyn Read + Send>, seen: &Shared) {
    let mut buffer = [0; 4096];
    // Closing the last end of the terminal is reported as an error.
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut seen_now = lock(seen);
        seen_now.take(&buffer[..count]);
        let closing = seen_now.closing;
        drop(seen_now);
        seen.1.notify_all();
        if closing {
            break;
        }
    }
    lock(seen).ended = true;
    seen.1.notify_all();
}

fn pty_size((columns, lines): Size) -> PtySize {
    PtySize { rows: lines, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

/// The header.
pub fn first_line(screen: &str) -> &str {
    screen.lines().next().unwrap_or_default()
}

/// The row of a class in the table: the cells after its name.
pub fn class_row<'a>(screen: &'a str, class: &str) -> Vec<&'a str> {
    let is_title = |line: &&str| line.contains("class ") && line.contains("MB/s") && line.contains("IOPS");
    let Some(title) = screen.lines().find(is_title) else { return Vec::new() };
    // Other panels may be to the left.
    let left = title[..title.find("class ").unwrap()].chars().count();
    let rows = screen.lines().skip_while(|line| *line != title).skip(1).take(8);
    let from_left = rows.map(|line| line.char_indices().nth(left).map_or("", |(at, _)| &line[at..]));
    let row = from_left.into_iter().find_map(|line| line.strip_prefix(&format!("{class}  ")));
    row.unwrap_or_default().split_whitespace().collect()
}

/// A class's MB/s in the table; 0 if there is none.
pub fn mb_of(screen: &str, class: &str) -> f64 {
    class_row(screen, class).first().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Runs something and measures how long it takes.
pub fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let done = act();
    (done, began.elapsed())
}
