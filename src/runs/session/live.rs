//! A session under an operator's commands, in a thread of its own.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::attendant::Attendant;
use super::live_duels::Duels;
use super::message::{Advance, Command, Event, Phase, PlanShown, Progress, Status, Wanted};
use super::options::Options;
use super::run::Session;
use super::thread_priority::raise_thread_priority;
use super::turning::rebuild::{Former, Rebuild};
use super::turning::turns::Carried;
use crate::error::{Error, Result};
use crate::host::Facts;
use crate::runs::record::Outcome;
use crate::settings::Settings;
use crate::settings::profile::is_demo;

/// Classes that stop by themselves are noticed within this time.
const LOOK: Duration = Duration::from_millis(250);
/// Interval between checks of a class that drains or starts.
const SETTLE: Duration = Duration::from_millis(2);

/// What follows a session.
enum Next {
    Quit {
        keep: bool,
    },
    Open {
        settings: Box<Settings>,
        unused_steps: usize,
    },
    Rebuild(Box<Rebuild>),
    /// Continue as before a plan that failed.
    Former(Box<Former>),
}

/// Runs sessions until the operator quits; every end is reported by [`Event::Ended`]. The facts are read for
/// each session: a device's uses may have changed since the last.
pub fn run(
    mut settings: Settings,
    mut options: Options,
    facts: &dyn Fn() -> Arc<Facts>,
    commands: &Receiver<Command>,
    events: &Sender<Event>,
) {
    raise_thread_priority();
    let mut begin = Begin::default();
    let operated = options.operated.take();
    loop {
        // Of the profiles that the screen opens, some have a program, others classes.
        options.operated = operated.clone().filter(|_| settings.program.is_some());
        if begin.carried.epoch_ns.is_none() {
            let _ = events.send(Event::Began);
        }
        let (next, ended) = run_one((settings, options.clone(), begin), facts(), commands, events);
        // Only the demo falls back; consent to destroy was for the previous target.
        options.destroy.clear();
        (options.typed, options.agreed) = (Vec::new(), None);
        match next {
            Next::Quit { .. } => {
                let _ = events.send(Event::Ended(ended));
                return;
            }
            Next::Open { settings: other, unused_steps } => {
                settings = *other;
                options.unused_steps = unused_steps;
                options.fallbacks = is_demo(&settings);
                begin = Begin::default();
            }
            Next::Rebuild(rebuild) => {
                let Rebuild { settings: new, unused_steps, typed, former, agreed, carried } = *rebuild;
                settings = new;
                options.unused_steps = unused_steps;
                (options.typed, options.agreed) = (typed, agreed);
                options.fallbacks = carried.is_none() && is_demo(&settings);
                begin = Begin { carried: carried.unwrap_or_default(), former: Some(former) };
            }
            Next::Former(former) => {
                settings = former.settings.clone();
                options.unused_steps = former.unused_steps;
                options.fallbacks = false;
                begin = Begin { carried: former.carried.clone(), former: Some(*former) };
            }
        }
    }
}

/// How a session begins.
#[derive(Default)]
struct Begin {
    carried: Carried,
    /// The previous run, if the target is built anew.
    former: Option<Former>,
}

fn run_one(
    (settings, options, begin): (Settings, Options, Begin),
    facts: Arc<Facts>,
    commands: &Receiver<Command>,
    events: &Sender<Event>,
) -> (Next, Result<()>) {
    let mut waiting = Waiting {
        settings: settings.clone(),
        facts: facts.clone(),
        written_bytes: options.written_bytes.clone(),
        runs_programs: options.program,
        commands,
        events,
        next: None,
        phase: Phase::Opening,
    };
    waiting.status();
    match Session::open_after(settings, options, facts, &mut waiting, begin.carried) {
        Ok(session) => match begin_program(session, &mut waiting) {
            Ok(session) => operate(session, commands, events),
            Err(error) if waiting.next.is_none() => {
                (after_failure(&error, begin.former, commands, events), Err(error))
            }
            Err(_) => (waiting.next.unwrap_or(Next::Quit { keep: false }), Ok(())),
        },
        Err(error) => {
            if let Some(next) = waiting.next {
                return (next, Ok(()));
            }
            (after_failure(&error, begin.former, commands, events), Err(error))
        }
    }
}

/// Begins the program of a session that has one; if that fails, the session is taken down.
fn begin_program(mut session: Session, waiting: &mut Waiting) -> Result<Session> {
    let waiting = RefCell::new(waiting);
    let begun = session.begin_operated(&mut |text| waiting.borrow_mut().notice(text), &mut || {
        waiting.borrow_mut().may_go_on()
    });
    match begun {
        Ok(()) => Ok(session),
        Err(error) => match session.dismantle(false, &mut |_| true) {
            Ok(_) => Err(error),
            Err(left) => Err(error.and_then(&left)),
        },
    }
}

/// The run can't continue: the operator sees why, and goes back to the previous run, opens another profile, or quits.
fn after_failure(
    error: &Error,
    mut former: Option<Former>,
    commands: &Receiver<Command>,
    events: &Sender<Event>,
) -> Next {
    if let Some(former) = &former {
        let _ = events.send(Event::Former(Box::new(former.settings.clone())));
    }
    let _ = events.send(Event::Ended(Err(error.clone())));
    loop {
        match commands.recv() {
            Ok(Command::Open { settings, .. })
                if former.as_ref().is_some_and(|former| former.settings == *settings) =>
            {
                if let Some(former) = former.take() {
                    return Next::Former(Box::new(former));
                }
            }
            Ok(Command::Open { settings, unused_steps }) => return Next::Open { settings, unused_steps },
            Ok(Command::Quit | Command::QuitKeeping) | Err(_) => return Next::Quit { keep: false },
            Ok(command) => decline(&command, "the run has ended", events),
        }
    }
}

/// Runs an opened session.
fn operate(mut session: Session, commands: &Receiver<Command>, events: &Sender<Event>) -> (Next, Result<()>) {
    let began = Instant::now();
    let (mut next, mut planned, mut duels) = (None, None, Duels::default());
    begin(&mut session);
    while next.is_none() && planned.is_none() {
        let command = commands.recv_timeout(pause_of(&session, began));
        let command = command.map(|command| duels.command(&mut session, command));
        match command {
            Ok(Some(Command::Quit)) | Err(RecvTimeoutError::Disconnected) => {
                next = Some(Next::Quit { keep: false });
            }
            Ok(Some(Command::QuitKeeping)) => next = Some(Next::Quit { keep: true }),
            Ok(Some(Command::Open { settings, unused_steps })) => {
                let opens = session.plan_to_open(*settings, unused_steps);
                next = opens.map(|settings| Next::Open { settings: Box::new(settings), unused_steps });
            }
            Ok(Some(Command::Build { plan, typed })) => planned = session.agreed(plan, typed),
            Ok(Some(command)) => obey(&mut session, command),
            Ok(None) | Err(RecvTimeoutError::Timeout) => {}
        }
        if session.is_simulated() {
            session.advance(began.elapsed().as_nanos() as u64);
        }
        session.run_again();
        if let Err(error) = session.tick() {
            let _ = events.send(Event::Notice(format!("the recording ended: {}", error.one_line())));
        }
        duels.pass_on(&mut session, events);
    }
    let (ended, quit) = close(&mut session, &mut duels, commands, events);
    if let Some((pending, typed)) = planned {
        // The recording ends here, with the ledger that the next session continues.
        if let Err(error) = &ended {
            let _ = events.send(Event::Notice(error.one_line()));
        }
        next = Some(Next::Rebuild(Box::new(session.carry(pending, typed))));
    }
    // An operator who quits while the load drains wants nothing else built.
    let hurried = quit.is_some();
    let next = quit.or(next).unwrap_or(Next::Quit { keep: false });
    let keep = matches!(next, Next::Quit { keep: true });
    if matches!(next, Next::Quit { .. } | Next::Open { .. }) && session.close_turn() {
        duels.pass_on(&mut session, events);
    }
    if hurried {
        session.kill_program();
    }
    let dismantled = session.dismantle(keep, &mut |advance| {
        let _ = events.send(Event::Step(advance.clone()));
        true
    });
    match dismantled {
        Ok(commands) if keep => drop(events.send(Event::Retained(commands))),
        Ok(_) => {}
        // Nothing is built on top of something that could not be removed.
        Err(error) if !matches!(next, Next::Quit { .. }) => {
            let former = if let Next::Rebuild(rebuild) = next { Some(rebuild.former) } else { None };
            return (after_failure(&error, former, commands, events), Err(error));
        }
        Err(error) => return (next, Err(error)),
    }
    (next, ended)
}

fn pause_of(session: &Session, began: Instant) -> Duration {
    if session.is_settling() {
        return SETTLE;
    }
    let now_ns = if session.is_simulated() { began.elapsed().as_nanos() as u64 } else { session.now_ns() };
    Duration::from_nanos(session.next_ns().saturating_sub(now_ns)).min(LOOK)
}

/// Drains, and ends a recording with what has drained; a quit meanwhile cuts the wait short, and is returned.
fn close(
    session: &mut Session,
    duels: &mut Duels,
    commands: &Receiver<Command>,
    events: &Sender<Event>,
) -> (Result<()>, Option<Next>) {
    session.end();
    let (mut ended, mut quit) = (None, None);
    while quit.is_none() {
        let drained = session.is_drained();
        if ended.is_none() && session.drains_in_vain() {
            ended = Some(session.conclude(&Outcome::Complete));
        }
        duels.pass_on(session, events);
        match commands.recv_timeout(if drained { Duration::ZERO } else { SETTLE }) {
            Ok(Command::Quit) | Err(RecvTimeoutError::Disconnected) => {
                quit = Some(Next::Quit { keep: false });
            }
            Ok(Command::QuitKeeping) => quit = Some(Next::Quit { keep: true }),
            Ok(command) => decline(&command, "the run is ending", events),
            Err(RecvTimeoutError::Timeout) if drained => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let ended = ended.unwrap_or_else(|| session.conclude(&Outcome::Complete));
    duels.pass_on(session, events);
    (ended.map(drop), quit)
}

/// Rejects a command that can't be obeyed now, if the sender waits for an answer.
fn decline(command: &Command, why: &str, events: &Sender<Event>) {
    let event = match command {
        Command::Turn { knob, .. } => Event::Turned { knob: knob.clone(), outcome: Err(why.to_owned()) },
        Command::Undo => Event::Notice(format!("nothing was undone: {why}")),
        Command::TurnBack(_) => Event::Notice(format!("nothing was turned back: {why}")),
        Command::Plan(_) => Event::Planned(Err(why.to_owned())),
        Command::Build { .. } => Event::Notice(format!("nothing is built: {why}")),
        Command::Record(Some(_)) => Event::Notice(format!("nothing is recorded: {why}")),
        Command::Duel(Some(_)) => Event::Notice(format!("no duel: {why}")),
        _ => return,
    };
    let _ = events.send(event);
}

/// Starts the classes; a class that can't be started is shown as stopped, and the others run.
fn begin(session: &mut Session) {
    session.settle_classes();
    session.status();
}

fn obey(session: &mut Session, command: Command) {
    match command {
        Command::Turn { knob, value } => session.turn_or_plan(&knob, &value),
        Command::Undo => session.undo(),
        Command::TurnBack(turns) => session.turn_back(turns),
        Command::Pause(paused) => session.pause(paused),
        Command::Traced(tap) => session.tap(tap),
        Command::Restart(class) => session.restart(class),
        Command::Record(Some((dir, profile))) => {
            // The recording begins with a fresh window.
            let begun = session.finish_window().and_then(|()| session.record_as(&dir, &profile));
            notice_failed(session, begun);
        }
        Command::Record(None) => session.end_recording(),
        Command::Plan(turns) => session.report_plan(&turns),
        // Nothing waits for consent while a session runs, and the rest is the caller's.
        Command::Consent(_)
        | Command::Duel(_)
        | Command::Open { .. }
        | Command::Build { .. }
        | Command::Quit
        | Command::QuitKeeping => {}
    }
}

fn notice_failed(session: &mut Session, outcome: Result<()>) {
    if let Err(error) = outcome {
        session.notice(error.one_line());
    }
}

/// The operator, while a session is being opened.
struct Waiting<'a> {
    settings: Settings,
    facts: Arc<Facts>,
    written_bytes: Arc<AtomicU64>,
    runs_programs: bool,
    commands: &'a Receiver<Command>,
    events: &'a Sender<Event>,
    next: Option<Next>,
    /// The phase shown last.
    phase: Phase,
}

impl Waiting<'_> {
    /// Shows the phase, unless it is shown already.
    fn enter(&mut self, phase: Phase) {
        if std::mem::replace(&mut self.phase, phase) != phase {
            self.status();
        }
    }

    fn status(&self) {
        let status = Status {
            settings: self.settings.clone(),
            facts: self.facts.clone(),
            target: None,
            phase: self.phase,
            draining: Vec::new(),
            fallbacks: Vec::new(),
            notes: Vec::new(),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            recording: None,
            circumstances: crate::runs::pitfalls::Circumstances::default(),
            properties: None,
            // When it is filled, it has been built.
            standing: self.phase == Phase::Filling && self.settings.builds_stack(),
            drives: Vec::new(),
            runs_programs: self.runs_programs,
        };
        let _ = self.events.send(Event::Status(Arc::new(status)));
    }

    /// Whether no command came that ends the opening.
    fn may_go_on(&mut self) -> bool {
        while let Ok(command) = self.commands.try_recv() {
            self.take(Some(command));
        }
        self.next.is_none()
    }

    /// Takes a command that ends the opening; others can't be obeyed yet.
    fn take(&mut self, command: Option<Command>) {
        match command {
            Some(Command::Open { settings, unused_steps }) => {
                self.next = Some(Next::Open { settings, unused_steps });
            }
            Some(Command::QuitKeeping) => self.next = Some(Next::Quit { keep: true }),
            Some(Command::Quit) | None => self.next = Some(Next::Quit { keep: false }),
            Some(command) => decline(&command, "not yet: the target is being opened", self.events),
        }
    }
}

impl Attendant for Waiting<'_> {
    fn progress(&mut self, progress: Progress) -> bool {
        self.enter(Phase::Filling);
        let _ = self.events.send(Event::Progress(progress));
        self.may_go_on()
    }

    fn plan(&mut self, plan: PlanShown) -> Option<Vec<String>> {
        let number = plan.number;
        let _ = self.events.send(Event::Planned(Ok(Arc::new(plan))));
        while self.next.is_none() {
            match self.commands.recv() {
                Ok(Command::Build { plan, typed }) if plan == number => return Some(typed),
                Ok(Command::Consent(_)) => return Some(Vec::new()),
                command => self.take(command.ok()),
            }
        }
        None
    }

    fn step(&mut self, advance: &Advance) -> bool {
        self.enter(Phase::Building);
        let _ = self.events.send(Event::Step(advance.clone()));
        self.may_go_on()
    }

    fn keeps(&mut self) -> bool {
        self.phase == Phase::Filling && matches!(self.next, Some(Next::Quit { keep: true }))
    }

    fn kept(&mut self, commands: Vec<String>) {
        let _ = self.events.send(Event::Retained(commands));
    }

    fn notice(&mut self, text: &str) {
        let _ = self.events.send(Event::Notice(text.to_owned()));
    }

    /// The screen's progress shows the same.
    fn passing(&mut self, _: &str) {}

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
#[path = "live_tests.rs"]
mod tests;
