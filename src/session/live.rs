//! A session under an operator's commands, in a thread of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::message::{Command, Event, Phase, Progress, Status, Wanted};
use super::prompt::answer_promptly;
use super::run::{Attendant, Options, Session};
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::profile::{Settings, builtin};
use crate::record::Outcome;

/// Classes that stop by themselves are noticed within this.
const LOOK: Duration = Duration::from_millis(250);
/// A class that drains or starts is looked at this often.
const SETTLE: Duration = Duration::from_millis(2);

/// What comes after a session.
enum Next {
    Quit,
    Open(Box<Settings>),
}

/// Runs sessions until the operator quits; every end is told by [`Event::Ended`]. The facts are read
/// for each: what uses a device may have changed since the last.
pub fn run(
    mut settings: Settings,
    mut options: Options,
    facts: &dyn Fn() -> Arc<Facts>,
    commands: &Receiver<Command>,
    events: &Sender<Event>,
) {
    answer_promptly();
    loop {
        let (next, ended) = run_one(settings, options.clone(), facts(), commands, events);
        match next {
            Next::Quit => {
                let _ = events.send(Event::Ended(ended));
                return;
            }
            Next::Open(other) => settings = *other,
        }
        // Only the demo falls back; what may be destroyed was named for the target before.
        options.fallbacks = builtin("demo").as_ref() == Some(&settings);
        options.destroy.clear();
    }
}

fn run_one(
    settings: Settings,
    options: Options,
    facts: Arc<Facts>,
    commands: &Receiver<Command>,
    events: &Sender<Event>,
) -> (Next, Result<()>) {
    let mut waiting = Waiting {
        settings: settings.clone(),
        facts: facts.clone(),
        written_bytes: options.written_bytes.clone(),
        commands,
        events,
        next: None,
        filling: false,
    };
    waiting.status(Phase::Opening);
    match Session::open(settings, options, facts, &mut waiting) {
        Ok(session) => operate(session, commands, events),
        Err(error) => match waiting.next {
            Some(next) => (next, Ok(())),
            None => (after_failure(&error, commands, events), Err(error)),
        },
    }
}

/// The run can't go on: the operator sees why, and opens another profile or quits.
fn after_failure(error: &Error, commands: &Receiver<Command>, events: &Sender<Event>) -> Next {
    let _ = events.send(Event::Ended(Err(error.clone())));
    loop {
        match commands.recv() {
            Ok(Command::Open(settings)) => return Next::Open(settings),
            Ok(Command::Quit) | Err(_) => return Next::Quit,
            Ok(command) => decline(&command, "the run has ended", events),
        }
    }
}

/// Runs an opened session.
fn operate(mut session: Session, commands: &Receiver<Command>, events: &Sender<Event>) -> (Next, Result<()>) {
    let began = Instant::now();
    let mut next = None;
    session.begin();
    while next.is_none() {
        match commands.recv_timeout(pause_of(&session, began)) {
            Ok(Command::Quit) | Err(RecvTimeoutError::Disconnected) => next = Some(Next::Quit),
            Ok(Command::Open(settings)) => next = Some(Next::Open(settings)),
            Ok(command) => session.obey(command),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if session.is_simulated() {
            session.advance(began.elapsed().as_nanos() as u64);
        }
        if let Err(error) = session.tick() {
            let _ = events.send(Event::Notice(format!("the recording ended: {error}")));
        }
        session.events().for_each(|event| drop(events.send(event)));
    }
    let ended = close(&mut session, commands, events);
    (next.unwrap_or(Next::Quit), ended)
}

fn pause_of(session: &Session, began: Instant) -> Duration {
    if session.is_settling() {
        return SETTLE;
    }
    let now_ns = if session.is_simulated() { began.elapsed().as_nanos() as u64 } else { session.now_ns() };
    Duration::from_nanos(session.next_ns().saturating_sub(now_ns)).min(LOOK)
}

/// Ends a recording in order and drains; a further quit no longer waits.
fn close(session: &mut Session, commands: &Receiver<Command>, events: &Sender<Event>) -> Result<()> {
    let ended = session.finish_window().and_then(|()| session.end_recording(&Outcome::Complete)).map(drop);
    session.end();
    session.events().for_each(|event| drop(events.send(event)));
    while !session.is_drained() {
        match commands.recv_timeout(SETTLE) {
            Ok(Command::Quit) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(command) => decline(&command, "the run is ending", events),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    ended
}

/// Tells that a command can't be obeyed now, where its asker waits for an answer.
fn decline(command: &Command, why: &str, events: &Sender<Event>) {
    let event = match command {
        Command::Turn { knob, .. } => Event::Turned { knob: knob.clone(), outcome: Err(why.to_owned()) },
        Command::Undo => Event::Notice(format!("nothing was taken back: {why}")),
        Command::Record(Some(_)) => Event::Notice(format!("nothing is recorded: {why}")),
        _ => return,
    };
    let _ = events.send(event);
}

impl Session {
    /// Starts the classes; one that can't be started is shown as stopped, the others run.
    fn begin(&mut self) {
        self.settle_classes();
        self.status();
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Turn { knob, value } => self.turn(&knob, &value),
            Command::Undo => self.undo(),
            Command::Pause(paused) => self.pause(paused),
            Command::Restart(class) => self.restart(class),
            Command::Record(Some(dir)) => self.begin_recording(&dir),
            Command::Record(None) => {
                let ended = self.finish_window().and_then(|()| self.end_recording(&Outcome::Complete));
                if let Err(error) = ended {
                    self.tell(Event::Notice(error.to_string()));
                }
            }
            // Nothing waits for consent while a session runs, and the rest is the caller's.
            Command::Consent(_) | Command::Open(_) | Command::Quit => {}
        }
    }

    fn begin_recording(&mut self, dir: &Path) {
        // The recording begins with a window of its own.
        let begun = self.finish_window().and_then(|()| self.record(dir));
        if let Err(error) = begun {
            self.tell(Event::Notice(error.to_string()));
        }
    }
}

/// The operator, while a session is being opened.
struct Waiting<'a> {
    settings: Settings,
    facts: Arc<Facts>,
    written_bytes: Arc<AtomicU64>,
    commands: &'a Receiver<Command>,
    events: &'a Sender<Event>,
    next: Option<Next>,
    /// Whether it was told that a fill goes on.
    filling: bool,
}

impl Waiting<'_> {
    fn status(&self, phase: Phase) {
        let status = Status {
            settings: self.settings.clone(),
            facts: self.facts.clone(),
            target: None,
            phase,
            draining: Vec::new(),
            fallbacks: Vec::new(),
            notes: Vec::new(),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            recording: None,
        };
        let _ = self.events.send(Event::Status(Arc::new(status)));
    }

    /// Takes a command that ends the opening; others can't be obeyed yet.
    fn take(&mut self, command: Option<Command>) {
        match command {
            Some(Command::Open(settings)) => self.next = Some(Next::Open(settings)),
            Some(Command::Quit) | None => self.next = Some(Next::Quit),
            Some(command) => decline(&command, "not yet: the target is being opened", self.events),
        }
    }
}

impl Attendant for Waiting<'_> {
    fn progress(&mut self, progress: Progress) -> bool {
        if !std::mem::replace(&mut self.filling, true) {
            self.status(Phase::Filling);
        }
        let _ = self.events.send(Event::Progress(progress));
        while let Ok(command) = self.commands.try_recv() {
            self.take(Some(command));
        }
        self.next.is_none()
    }

    fn notice(&mut self, text: &str) {
        let _ = self.events.send(Event::Notice(text.to_owned()));
    }

    fn consent(&mut self, wanted: Vec<Wanted>) -> Option<Vec<String>> {
        let _ = self.events.send(Event::ConsentWanted(wanted));
        while self.next.is_none() {
            match self.commands.recv() {
                Ok(Command::Consent(typed)) => return Some(typed),
                command => self.take(command.ok()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::profile::settings::{Buffering, Interface};
    use crate::units::MIB;

    /// The bytes written when the load runs.
    fn written_once_running(told: &Receiver<Event>) -> u64 {
        let running = |event| match event {
            Event::Status(status) if status.phase == Phase::Running => Some(status.written_bytes),
            Event::Ended(ended) => panic!("{ended:?}"),
            _ => None,
        };
        told.iter().find_map(running).unwrap()
    }

    #[test]
    fn what_cannot_be_obeyed_while_a_target_is_opened_is_answered() {
        let ((commands, asked), (events, told)) = (channel(), channel());
        let mut waiting = Waiting {
            settings: Settings::default(),
            facts: Arc::new(crate::record::fixture::facts()),
            written_bytes: Arc::default(),
            commands: &asked,
            events: &events,
            next: None,
            filling: false,
        };
        let turn =
            |value| Command::Turn { knob: "scan.depth".into(), value: crate::knobs::Value::Int(value) };
        let refused =
            |event| matches!(event, Event::Turned { outcome: Err(why), .. } if why.contains("not yet"));
        commands.send(turn(64)).unwrap();
        let progress = Progress { what: String::new(), done_bytes: 0, all_bytes: 1, rate_bytes_per_s: 0.0 };
        assert!(waiting.progress(progress), "a turn does not end the fill");
        assert_eq!(told.try_iter().filter(|event| refused(event.clone())).count(), 1);
        commands.send(turn(32)).unwrap();
        commands.send(Command::Consent(vec!["S1".into()])).unwrap();
        assert_eq!(waiting.consent(Vec::new()), Some(vec!["S1".into()]));
        assert_eq!(told.try_iter().filter(|event| refused(event.clone())).count(), 1);
    }

    #[test]
    fn another_profile_adds_to_the_bytes_written_and_finds_the_facts_of_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let on = |name: &str| {
            let mut settings = Settings::default();
            (settings.io.interface, settings.io.buffering) = (Interface::Sync, Buffering::Cached);
            (settings.target.count, settings.target.size_bytes) = (1, 16 * MIB);
            settings.target.dir = dir.path().join(name).to_string_lossy().into_owned();
            settings.classes.iter_mut().for_each(|class| class.enabled = false);
            settings
        };
        let looks = AtomicU64::new(0);
        let facts = || {
            looks.fetch_add(1, Ordering::Relaxed);
            Arc::new(crate::record::fixture::facts())
        };
        let ((commands, asked), (events, told)) = (channel(), channel());
        std::thread::scope(|scope| {
            let (profile, facts) = (on("first"), &facts);
            scope.spawn(move || run(profile, Options::default(), facts, &asked, &events));
            let first = written_once_running(&told);
            assert!(first >= 15 * MIB, "{first}");
            commands.send(Command::Open(Box::new(on("second")))).unwrap();
            assert_eq!(written_once_running(&told), 2 * first);
            // What is written counts against the limit of the next profile.
            let limited =
                |run: &mut crate::profile::settings::Run| run.max_writes_bytes = Some(3 * first - 1);
            let mut third = on("third");
            limited(&mut third.run);
            commands.send(Command::Open(Box::new(third))).unwrap();
            let ended = told.iter().find_map(|event| match event {
                Event::Ended(ended) => Some(ended),
                _ => None,
            });
            assert!(ended.unwrap().unwrap_err().what.contains("run.max_writes"));
            commands.send(Command::Quit).unwrap();
        });
        assert_eq!(looks.load(Ordering::Relaxed), 3);
        assert!(!dir.path().join("third").exists());
    }
}
