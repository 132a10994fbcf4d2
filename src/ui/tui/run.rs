//! The loop: input, signals and the session's events come in through one channel; the screen is drawn when something
//! has changed, but not too often.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_current_process_group};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use super::answers::TerminalAnswers;
use super::beside::Beside;
use super::glyphs::Glyphs;
use super::message::{Effect, Msg};
use super::profiles::ProfileStore;
use super::replay::Replay;
use super::state::State;
use super::terminal::{self, Screen};
use super::theme::Theme;
use super::update::{self, update};
use super::wake::{Wake, forward, read_input, watch_signals};
use super::{answers, both, glyphs, shelf, themes};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::job_control;
use crate::runs::session::candidates;
use crate::runs::session::{Command, Event, raise_thread_priority};
use crate::stopping::NoneEnding;
use crate::threads;
use crate::ui::clock;
use crate::ui::report::ran::Ran;

/// The two ends of a session that runs in a thread of its own.
#[derive(Debug)]
pub struct Link {
    /// The operator's commands.
    pub commands: Sender<Command>,
    /// The run's events.
    pub events: Receiver<Event>,
}

/// How the screen ended.
#[derive(Debug)]
pub struct ScreenEnd {
    /// How the run ended.
    pub ended: Result<()>,
    /// The commands that remove a retained stack; empty if there is none.
    pub kept: Vec<String>,
    /// What ran.
    pub ran: Ran,
}

/// How the screen is drawn, and where profiles and recordings are.
pub struct Options {
    /// The palette; the one that suits the terminal if there is none.
    pub theme: Option<Theme>,
    /// The folder of theme files, if there is one.
    pub themes: Option<PathBuf>,
    /// Draw without colours (`NO_COLOR`).
    pub no_color: bool,
    /// Draw twice a second at most instead of ten times.
    pub over_ssh: bool,
    /// The profiles.
    pub profiles: Box<dyn ProfileStore>,
    /// The folder in which each recording gets a new folder.
    pub recordings: PathBuf,
    /// The folders whose recordings are listed.
    pub shelves: Vec<PathBuf>,
    /// What outlives the screen.
    pub memory: Box<dyn Memory>,
    /// Whether the profile was changed on the command line.
    pub is_set_apart: bool,
}

/// What outlives the screen.
pub trait Memory {
    /// Keeps a closed line of the ledger.
    fn keep(&mut self, line: &str) -> Result<()>;
    /// Whether nobody has turned a knob yet, nor hidden the first steps.
    fn is_new(&self) -> bool;
    /// Stops showing the first steps from now on.
    fn drop_first_steps(&mut self) -> Result<()>;
}

/// Time between two drawings.
const REDRAW: Duration = Duration::from_millis(100);
/// Time between two drawings over ssh.
const REDRAW_OVER_SSH: Duration = Duration::from_millis(500);
/// How long a drain may take after a signal.
const DRAIN_MAX: Duration = Duration::from_secs(30);
/// The same while something is being built or torn down, counted from its last event: a slow tool must not make us
/// leave a stack behind.
const TAKE_DOWN_MAX: Duration = Duration::from_mins(10);

/// How long a signal that we send ourselves may take to arrive.
const OWN_SIGNAL_MAX: Duration = Duration::from_secs(1);

/// Why the loop ended.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// The operator or the run's end.
    Done,
    /// SIGINT, SIGTERM or SIGQUIT.
    Interrupted,
    /// SIGHUP, or the terminal is gone.
    HungUp,
    /// A thread panicked; the terminal was restored for its message.
    Panicked,
}

/// Runs the screen until the operator quits, the run ends, or a signal comes.
///
/// The terminal is restored however it ends. An error is what ended the run: [`Kind::Interrupted`] after SIGINT,
/// SIGTERM, SIGQUIT, SIGHUP or a second `q`. If the operator kept the stack, the commands that remove it are returned.
///
/// [`Kind::Interrupted`]: crate::error::Kind::Interrupted
pub fn run(link: Link, options: Options) -> ScreenEnd {
    let (mut kept, mut ran) = (Vec::new(), Ran::default());
    ScreenEnd { ended: run_until_end(Shown::Run(link), options, &mut kept, &mut ran), kept, ran }
}

/// Shows one or two recordings until the operator quits or a signal comes. There is no session: nothing runs, and
/// no command can be sent.
///
/// # Errors
/// As for [`run`], if it is interrupted or there is no terminal.
pub fn show(replay: Replay, beside: Option<Beside>, options: Options) -> Result<()> {
    let shown = Shown::Recording(Box::new((replay, beside)));
    run_until_end(shown, options, &mut Vec::new(), &mut Ran::default())
}

/// What the screen shows.
enum Shown {
    Run(Link),
    Recording(Box<(Replay, Option<Beside>)>),
}

fn run_until_end(shown: Shown, options: Options, kept: &mut Vec<String>, ran: &mut Ran) -> Result<()> {
    raise_thread_priority();
    let (wake, woken) = channel();
    let signals = watch_signals(wake.clone())?;
    let mut screen = Screen::take()?;
    // Before the input thread starts, which would read the terminal's answers.
    let mut state = first_state(&options, &screen);
    let wanted = Arc::new(AtomicBool::new(true));
    read_input(wake.clone(), Arc::clone(&wanted))?;
    let commands = match shown {
        Shown::Run(Link { commands, events }) => {
            // It ends with the session, which may outlive a second `q`, so it is not joined.
            forward(events, wake.clone())?;
            Some(commands)
        }
        Shown::Recording(shown) => {
            let (replay, beside) = *shown;
            update::replay::open(&mut state, replay, beside);
            state.list_knobs();
            None
        }
    };

    let mut ui = Ui {
        state,
        commands,
        options,
        exit: false,
        stop: false,
        wake,
        played: None,
        #[cfg(feature = "trace")]
        tracing: super::tracer::Thread::default(),
    };
    let left = ui.run_loop(&mut screen, &woken);

    drop(screen);
    wanted.store(false, Ordering::Relaxed);
    #[cfg(feature = "trace")]
    ui.end_trace();
    let outcome = ui.finish(left, &woken);
    (*kept, *ran) = (ui.state.kept, ui.state.ran);
    signals.close();
    outcome
}

fn first_state(options: &Options, screen: &Screen) -> State {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let full = variable("COLORTERM").is_some_and(|value| matches!(&*value, "truecolor" | "24bit"));
    let colour = variable("COLORFGBG").and_then(|value| value.rsplit(';').next()?.parse::<u8>().ok());
    let said = variable(glyphs::VARIABLE).and_then(|name| Glyphs::named(&name));
    let is_unknown = said.is_none() || (options.theme.is_none() && colour.is_none());
    // Neither the background nor octants matter without full colours.
    let asks = full && !options.no_color && is_unknown;
    let answers = if asks { answers::ask() } else { TerminalAnswers::default() };
    let is_light = colour.map(|colour| matches!(colour, 7 | 9..=15)).or(answers.is_light);
    let suitable = || Theme::of_terminal(options.no_color, full, is_light);
    let theme = options.theme.clone().unwrap_or_else(suitable);
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let term = variable("TERM");
    let [term, locale, version] = [&term, &locale, &answers.version].map(Option::as_deref);
    let glyphs = Glyphs::of_terminal(said, term, locale, version);
    let size = screen.terminal.size().unwrap_or_default();
    State {
        glyphs,
        first_steps: options.memory.is_new(),
        is_set_apart: options.is_set_apart,
        ..State::new(theme, size.width, size.height)
    }
}

struct Ui {
    state: State,
    /// The way to the session; none while a recording is shown.
    commands: Option<Sender<Command>>,
    options: Options,
    exit: bool,
    /// Whether to stop the program now.
    stop: bool,
    /// Where work in other threads reports.
    wake: Sender<Wake>,
    /// When playback last advanced; none while nothing plays.
    played: Option<Instant>,
    /// The thread of a trace.
    #[cfg(feature = "trace")]
    tracing: super::tracer::Thread,
}

impl Ui {
    fn run_loop(&mut self, screen: &mut Screen, woken: &Receiver<Wake>) -> Left {
        let pause = if self.options.over_ssh { REDRAW_OVER_SSH } else { REDRAW };
        let mut next_draw = Instant::now();
        let mut changed = true;
        loop {
            if !terminal::is_taken() {
                return Left::Panicked;
            }
            let next_step = self.play_on(pause);
            changed |= next_step.is_some();
            if changed && Instant::now() >= next_draw {
                let state = &mut self.state;
                if screen.draw(|buffer| both::draw(state, buffer)).is_err() {
                    return Left::HungUp;
                }
                changed = false;
                next_draw = Instant::now() + pause;
            }
            let due = next_step.map_or(changed.then_some(next_draw), |step| Some(next_draw.max(step)));
            match wait(woken, due) {
                Ok(Wake::Msg(msg)) => {
                    self.take(msg);
                    changed = true;
                }
                Ok(Wake::Signal(SIGHUP) | Wake::InputGone) | Err(RecvTimeoutError::Disconnected) => {
                    return Left::HungUp;
                }
                Ok(Wake::Signal(SIGTSTP)) => {
                    self.take(Msg::StopAsked);
                    changed = true;
                }
                Ok(Wake::Signal(SIGCONT)) => {
                    if screen.retake().is_err() {
                        return Left::HungUp;
                    }
                    changed = true;
                }
                Ok(Wake::Signal(_)) => return Left::Interrupted,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.exit {
                return Left::Done;
            }
            if std::mem::take(&mut self.stop) {
                if let Some(left) = self.stop(screen, woken) {
                    return left;
                }
                changed = true;
            }
        }
    }

    /// Advances a recording that plays; returns when the next step is due.
    fn play_on(&mut self, pause: Duration) -> Option<Instant> {
        let now = Instant::now();
        let plays = self.state.replay.as_ref().is_some_and(|replay| replay.plays);
        if !plays {
            self.played = None;
            return None;
        }
        let until = self.played.get_or_insert(now);
        let elapsed = now.saturating_duration_since(*until);
        if elapsed >= pause {
            *until = now;
            self.take(Msg::Played(elapsed));
        }
        self.played.map(|until| until + pause)
    }

    /// Gives the terminal back, stops, and resumes when a shell continues it; returns why the loop ends, if so.
    fn stop(&mut self, screen: &mut Screen, woken: &Receiver<Wake>) -> Option<Left> {
        // Before anything stops: otherwise a shell that continues the job at once would be too early.
        let none_ending = NoneEnding::wait();
        Screen::lend();
        // Whoever started this and waits for it (make, sudo) must stop, too, or the shell would never know.
        if kill_current_process_group(Signal::TSTP).is_err() {
            return Some(Left::HungUp);
        }
        // This process gets it, too: if it were still pending after we resume, it would stop us again.
        let until = Instant::now() + OWN_SIGNAL_MAX;
        loop {
            match woken.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Wake::Signal(SIGTSTP)) | Err(RecvTimeoutError::Timeout) => break,
                Ok(Wake::Signal(SIGCONT)) => {}
                Ok(Wake::Msg(msg)) => self.take(msg),
                Ok(Wake::Signal(SIGHUP) | Wake::InputGone) | Err(RecvTimeoutError::Disconnected) => {
                    return Some(Left::HungUp);
                }
                Ok(Wake::Signal(_)) => return Some(Left::Interrupted),
            }
        }
        if none_ending.stop_this_process().is_err() || screen.retake().is_err() {
            return Some(Left::HungUp);
        }
        if let Ok(size) = screen.terminal.size() {
            self.take(Msg::Resize(size.width, size.height));
        }
        self.take(Msg::Resumed);
        (self.stop, self.played) = (false, None);
        None
    }

    /// Takes a message and performs its effects, whose results are messages again.
    fn take(&mut self, msg: Msg) {
        let mut waiting = vec![msg];
        while let Some(msg) = waiting.pop() {
            for effect in update(&mut self.state, msg) {
                waiting.extend(self.perform(effect));
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<Msg> {
        // Whatever asked for it, a recording writes nothing and opens nothing.
        if self.commands.is_none() && !effect.suits_recording() {
            return None;
        }
        match effect {
            Effect::Send(command) => return self.send(command),
            Effect::StartRecording(profile) => {
                let safe = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
                let name: String = profile.chars().map(safe).collect();
                let folder = self.options.recordings.join(format!("{name}-{}", clock::local_stamp()));
                return self.send(Command::Record(Some((folder, profile))));
            }
            Effect::Keep(line) => return self.options.memory.keep(&line).err().map(Msg::NotKept),
            Effect::DropFirstSteps => {
                return self.options.memory.drop_first_steps().err().map(Msg::NotKept);
            }
            Effect::ListThemes => {
                let folder = self.options.themes.as_deref();
                return Some(Msg::ThemesListed(folder.map_or_else(|| Ok(Vec::new()), themes::list)));
            }
            Effect::ListRecordings => {
                let folders = self.options.shelves.clone();
                return self.beside(move || Msg::RecordingsListed(shelf::listed(&folders)));
            }
            Effect::ReadRecordings(dirs) => {
                return self.beside(move || {
                    let text = shelf::read(&dirs);
                    Msg::RecordingsRead(dirs, text)
                });
            }
            Effect::ExamineDrives { facts, named, held } => {
                return self.beside(move || Msg::DrivesExamined(candidates(&facts, &named, &held)));
            }
            Effect::ReadDevices => return self.beside(|| Msg::DevicesRead(Facts::read_devices())),
            Effect::List => return Some(Msg::Listed(self.options.profiles.list())),
            Effect::Load(name) => {
                return Some(Msg::Loaded(self.options.profiles.load(&name).map(Box::new)));
            }
            Effect::Save { settings, facts, name, replace } => {
                let outcome = self.options.profiles.save(&settings, &facts, &name, replace);
                return Some(Msg::Saved(name, outcome));
            }
            #[cfg(feature = "trace")]
            Effect::Trace(wanted) => {
                return self.tracing.turn(wanted, &self.options.recordings, &self.wake);
            }
            Effect::Suspend => return Some(Msg::MayStop(!job_control::is_without_shell())),
            Effect::Stop => self.stop = true,
            Effect::Exit => self.exit = true,
        }
        None
    }

    /// Works in another thread, as the screen must keep responding; its message comes later.
    fn beside(&self, work: impl FnOnce() -> Msg + Send + 'static) -> Option<Msg> {
        let wake = self.wake.clone();
        let started = threads::start("read beside the screen", move || drop(wake.send(Wake::Msg(work()))));
        started.err().map(Msg::NotRead)
    }

    fn send(&mut self, command: Command) -> Option<Msg> {
        // Quitting does not need the session.
        let quits = matches!(command, Command::Quit | Command::QuitKeeping);
        let gone = self.commands.as_ref().is_none_or(|commands| commands.send(command).is_err());
        (gone && !quits).then_some(Msg::SessionGone)
    }

    /// Ends and keeps a trace that is under way.
    #[cfg(feature = "trace")]
    fn end_trace(&mut self) {
        let (status, recording) = (self.state.status.as_ref(), self.state.recording.clone());
        let name = status.map_or("", |status| &status.settings.name);
        if let Some(said) = self.tracing.leave(recording, &self.options.recordings, name) {
            // If the terminal is gone, nobody can read it.
            let _ = writeln!(std::io::stderr(), "stacktune: {said}");
        }
    }

    /// Waits for the drain if one is due, and returns how the run ended.
    fn finish(&mut self, left: Left, woken: &Receiver<Wake>) -> Result<()> {
        let (reports, error) = match left {
            Left::Done => {
                return match self.state.ended.take() {
                    Some(outcome) => outcome,
                    None => Err(Error::interrupted("quit before the I/O had drained")),
                };
            }
            Left::Interrupted => (true, Error::interrupted("interrupted")),
            Left::HungUp => (false, Error::interrupted("the terminal hung up")),
            Left::Panicked => (
                true,
                Error::failed("a part of stacktune failed, see above")
                    .hint("this is a bug: please report it"),
            ),
        };
        if let (None, Some(commands)) = (&self.state.ended, &self.commands) {
            if reports {
                let stack = if self.state.is_standing() { ", tearing down the stack" } else { "" };
                // The stack is torn down even if this can't be written.
                let _ = writeln!(std::io::stderr(), "stacktune: {}, draining{stack}…", error.what);
            }
            let _ = commands.send(Command::Quit);
            let kept = self.drain(woken);
            self.state.kept.extend(kept);
        }
        Err(error)
    }

    /// Waits until the run has ended, keeping its last turns; a second SIGINT, SIGTERM or SIGQUIT, or a drain that
    /// hangs, ends the waiting. If the operator had asked to keep the stack, the commands that remove it are returned.
    fn drain(&mut self, woken: &Receiver<Wake>) -> Vec<String> {
        let mut kept = Vec::new();
        let standing = self.state.is_standing();
        let mut until = Instant::now() + if standing { TAKE_DOWN_MAX } else { DRAIN_MAX };
        loop {
            match woken.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(
                    Wake::Msg(Msg::Session(Event::Ended(_)) | Msg::SessionGone)
                    | Wake::Signal(SIGINT | SIGTERM | SIGQUIT),
                )
                | Err(_) => return kept,
                Ok(Wake::Msg(Msg::Session(Event::Step(_)))) => until = Instant::now() + TAKE_DOWN_MAX,
                Ok(Wake::Msg(Msg::Session(Event::Retained(commands)))) => kept = commands,
                Ok(Wake::Msg(msg @ Msg::Session(Event::Ledger(_)))) => self.take(msg),
                Ok(_) => {}
            }
        }
    }
}

/// The next event, or a timeout if none comes in time.
fn wait(woken: &Receiver<Wake>, until: Option<Instant>) -> std::result::Result<Wake, RecvTimeoutError> {
    match until {
        Some(until) => woken.recv_timeout(until.saturating_duration_since(Instant::now())),
        None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}
