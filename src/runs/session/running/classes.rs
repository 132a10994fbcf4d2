//! The classes of a session and their workers: which run, drain, or are stopped and why.

use std::sync::Arc;

use crate::class::Class;
use crate::error::{Result, describe, describe_errno};
use crate::host::{Facts, FlashWrites};
use crate::load::workers::observer::Observer;
use crate::load::workers::{Activity, Workers};
use crate::meter::Meters;
use crate::meter::context::ClassContext;
use crate::meter::window::ClassState;
use crate::runs::session::opening::page_cache::Dropping;
use crate::runs::session::resolve::Resolved;
use crate::runs::session::targets::{Target, paths_of};
use crate::runs::session::write_budget::WriteBudget;
use crate::settings::jobs::Job;
use crate::settings::{Buffering, Cpus};
use crate::units::{SECOND_NS, format_size};

/// The classes. Dropping them stops their workers, and waits for their end.
pub(in crate::runs::session) struct Classes {
    workers: Box<dyn Workers>,
    runs: [ClassRun; 4],
}

#[derive(Debug, Default)]
struct ClassRun {
    /// The job of the workers that are running or draining.
    running: Option<Job>,
    /// Whether its workers used the page cache since it was last dropped.
    cached: bool,
    draining: bool,
    /// Whether it was draining, or waiting to be started, when the current window began.
    drained: bool,
    stopped: Option<Stopped>,
    /// Writes back and drops cached pages before direct I/O begins.
    dropping: Option<Dropping>,
}

/// Why a class was stopped.
#[derive(Debug)]
pub(in crate::runs::session) struct Stopped {
    pub why: String,
    /// Nothing more may be written; a higher limit restarts it.
    pub exhausted: bool,
    /// Its workers could not start, or failed by themselves or through their interface, not because of the
    /// storage's answers.
    pub failed: bool,
}

impl Stopped {
    fn because(why: String) -> Self {
        Self { why, exhausted: false, failed: false }
    }

    fn failed(why: String) -> Self {
        Self { failed: true, ..Self::because(why) }
    }
}

/// The surroundings of the classes.
pub(in crate::runs::session) struct ClassSurroundings<'a> {
    pub resolved: &'a Resolved,
    pub target: &'a mut Target,
    pub meters: &'a mut Meters,
    /// Whether no class may run now: paused, or ending.
    pub rests: bool,
}

/// The result of a check of the classes.
#[derive(Debug, Default)]
pub(in crate::runs::session) struct Settled {
    /// Sentences for the operator.
    pub notices: Vec<String>,
    /// Whether the measured load has changed.
    pub turned: bool,
    /// Classes that failed, and why.
    pub failed: Vec<(Class, String)>,
}

impl Classes {
    /// With no class running yet.
    pub fn new(workers: Box<dyn Workers>) -> Self {
        Self { workers, runs: Default::default() }
    }

    /// Observes the I/Os of all workers that start from now on, if they are in this process.
    pub fn observe(&mut self) -> Option<Arc<Observer>> {
        self.workers.observe()
    }

    /// The workers' clock.
    pub fn now_ns(&self) -> u64 {
        self.workers.now_ns()
    }

    /// Whether time passes only through [`Self::run_until`].
    pub fn is_simulated(&self) -> bool {
        self.workers.is_simulated()
    }

    /// Lets simulated time pass until then.
    pub fn run_until(&mut self, ns: u64) {
        self.workers.run_until(ns);
    }

    /// Writes to flash of drives with a model of it; none without any.
    pub fn flash_writes(&self) -> Option<FlashWrites> {
        self.workers.flash_writes()
    }

    /// Whether a class is draining or waits to be started.
    pub fn any_pending(&self) -> bool {
        self.runs.iter().any(|run| run.draining || run.dropping.is_some())
    }

    /// A window begins: a class that drains now counts as draining in it, even if it is done when the window ends.
    pub fn begin_window(&mut self) {
        for run in &mut self.runs {
            run.drained = run.draining || run.dropping.is_some();
        }
    }

    /// A class from the meters' view.
    pub fn context(&self, job: &Job, paused: bool) -> ClassContext {
        let run = &self.runs[job.class.index()];
        let state = match &run.stopped {
            _ if run.draining || run.dropping.is_some() => ClassState::Draining,
            Some(stopped) if job.enabled && stopped.failed => ClassState::Failed(stopped.why.clone()),
            Some(stopped) if job.enabled => ClassState::Stopped(stopped.why.clone()),
            _ if !job.enabled => ClassState::Off,
            _ if paused => ClassState::Paused,
            _ => ClassState::Running,
        };
        let job = run.running.as_ref().unwrap_or(job);
        ClassContext {
            state,
            drained: run.drained,
            interface: job.interface,
            buffering: job.buffering,
            rate_bytes_per_s: job.rate_bytes_per_s,
            in_flight_bytes_max: job.workers * job.depth * job.page_bytes,
        }
    }

    /// Whether no class has workers any more.
    pub fn are_idle(&mut self) -> bool {
        if self.workers.is_simulated() {
            let now_ns = self.workers.now_ns();
            self.workers.run_until(now_ns + SECOND_NS);
        }
        let Self { workers, runs } = self;
        Class::ALL.into_iter().all(|class| {
            runs[class.index()].dropping.as_ref().is_none_or(Dropping::is_finished)
                && !workers.activity(class).is_busy()
        })
    }

    /// Whether a class's workers run.
    pub fn is_running(&mut self, class: Class) -> bool {
        self.workers.activity(class) == Activity::Running
    }

    /// Whether some of a class's workers have not been seen to end.
    pub fn works(&self, class: Class) -> bool {
        self.runs[class.index()].running.is_some()
    }

    /// Restarts classes that were stopped because nothing more could be written.
    pub fn forgive_exhausted(&mut self) {
        for run in &mut self.runs {
            if run.stopped.as_ref().is_some_and(|stopped| stopped.exhausted) {
                run.stopped = None;
            }
        }
    }

    /// Forgets why a class was stopped.
    pub fn forgive(&mut self, class: Class) {
        self.runs[class.index()].stopped = None;
    }

    /// Lets a class drain; it then restarts with its job.
    pub fn stop(&mut self, class: Class) {
        self.workers.stop(class);
        let run = &mut self.runs[class.index()];
        run.draining = run.running.is_some();
    }

    /// Lets a class drain without restarting by itself.
    pub fn give_up(&mut self, class: Class, why: &str) {
        self.stop(class);
        let why = why.trim_end_matches('.').to_owned();
        self.runs[class.index()].stopped = Some(Stopped::because(why));
    }

    /// Lets all drain for good.
    pub fn end(&mut self) {
        Class::ALL.into_iter().for_each(|class| self.workers.stop(class));
    }

    /// Advances every class by one step: restarts those that have drained, reports those that stopped by themselves.
    pub fn settle(&mut self, around: &mut ClassSurroundings) -> Settled {
        let mut settled = Settled::default();
        for class in Class::ALL {
            if let Some(stopped) = self.take_on(class, around, &mut settled) {
                if stopped.failed {
                    settled.notices.push(format!("{class} failed: {}", stopped.why));
                    settled.failed.push((class, stopped.why.clone()));
                } else {
                    settled.notices.push(format!("{class} stopped: {}", stopped.why));
                }
                self.runs[class.index()].stopped = Some(stopped);
                settled.turned = true;
            }
        }
        settled
    }

    /// Advances a class by one step. Returns why it stopped, if it did so by itself.
    fn take_on(
        &mut self,
        class: Class,
        around: &mut ClassSurroundings,
        settled: &mut Settled,
    ) -> Option<Stopped> {
        let activity = self.workers.activity(class);
        if activity.is_busy() {
            return None;
        }
        let run = &mut self.runs[class.index()];
        run.running = None;
        let by_turn = std::mem::take(&mut run.draining);
        match activity {
            // Even if it drained for a turn: a class that failed does not restart by itself.
            Activity::Gone(why) => return Some(Stopped::failed(why)),
            Activity::Panicked(message) => {
                return Some(Stopped::failed(format!("a worker panicked: {message}")));
            }
            Activity::Broken(why) => {
                return Some(Stopped::failed(format!("its interface failed: {why}")));
            }
            _ if by_turn => {}
            Activity::Tripped(errno) => {
                let why = format!("over 1,000 errors in a second, the last: {}", describe_errno(errno));
                return Some(Stopped::because(why));
            }
            Activity::Exhausted => return Some(exhausted(&around.resolved.budget)),
            _ => {}
        }
        if self.waits_for_database(around, settled) {
            let should_run = self.should_run(class, around);
            self.runs[class.index()].draining = by_turn || should_run;
            return None;
        }
        // Once begun, dropping is completed, even if the class was muted or paused meanwhile.
        if self.drops_cache(class, settled) || !self.should_run(class, around) {
            return None;
        }
        if self.begins_to_drop(class, around) {
            settled.turned = true;
            return None;
        }
        // A run without one of its classes would measure something else.
        self.start(class, around).err().map(|error| Stopped::failed(error.one_line()))
    }

    /// Whether classes must wait until the database is open with the current settings.
    fn waits_for_database(&self, around: &mut ClassSurroundings, settled: &mut Settled) -> bool {
        let works = Class::ALL.into_iter().any(|class| self.works(class));
        let Some(pairs) = around.target.key_value_mut() else { return false };
        let reopening = pairs.reopens(&around.resolved.settings.kv.rocksdb, works);
        settled.notices.extend(reopening.failed);
        settled.turned |= reopening.began;
        reopening.waits
    }

    fn should_run(&self, class: Class, around: &ClassSurroundings) -> bool {
        let stopped = self.runs[class.index()].stopped.is_some();
        around.resolved.job(class).enabled && !around.rests && !stopped
    }

    /// Starts a class's workers, if it should run.
    ///
    /// # Errors
    /// Why they can't be started.
    pub fn start(&mut self, class: Class, around: &mut ClassSurroundings) -> Result<()> {
        if !self.should_run(class, around) {
            return Ok(());
        }
        let job = around.resolved.job(class).clone();
        let cpus = cpus_of(&job.cpus, &around.resolved.facts);
        for source in self.workers.start(&job, &cpus)? {
            around.meters.add(source);
        }
        let run = &mut self.runs[class.index()];
        run.cached |= job.buffering != Buffering::Direct;
        run.running = Some(job);
        Ok(())
    }

    /// Before a class that ever used the page cache begins with direct I/O, its cached pages are written back
    /// and dropped, in a separate thread. Returns whether that has begun.
    fn begins_to_drop(&mut self, class: Class, around: &ClassSurroundings) -> bool {
        let run = &mut self.runs[class.index()];
        let leaves_cache = run.cached && around.resolved.job(class).buffering == Buffering::Direct;
        if !leaves_cache || around.target.pages().is_none() {
            return false;
        }
        let layout = around.target.layout();
        let paths = paths_of(if class == Class::Wal { &layout.wal } else { &layout.data });
        run.cached = false;
        run.dropping = Some(Dropping::begin(paths));
        true
    }

    /// Whether a class's cached pages are still being dropped.
    fn drops_cache(&mut self, class: Class, settled: &mut Settled) -> bool {
        let dropping = &mut self.runs[class.index()].dropping;
        if dropping.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return true;
        }
        if let Some(Ok(Err(error))) = dropping.take().map(Dropping::join) {
            let why = describe(&error);
            settled.notices.push(format!("cached pages could not be written back and dropped: {why}"));
        }
        false
    }
}

fn exhausted(budget: &WriteBudget) -> Stopped {
    let limit = budget.limit_bytes.map_or_else(String::new, format_size);
    let why = format!("{limit} have been written, the limit of run.max_writes: raise it to go on");
    Stopped { exhausted: true, ..Stopped::because(why) }
}

fn cpus_of(cpus: &Cpus, facts: &Facts) -> Vec<u32> {
    match cpus {
        Cpus::Any => Vec::new(),
        Cpus::List(list) => list.clone(),
        Cpus::Node(id) => {
            let node = facts.cpu.nodes.iter().find(|node| node.id == *id);
            node.map(|node| node.cpus.clone()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::session::headless::tests::Nobody;
    use crate::runs::session::message::Event;
    use crate::runs::session::options::Options;
    use crate::runs::session::run::Session;
    use crate::settings::knobs::Value;
    use crate::settings::{Interface, Settings};
    use crate::units::MIB;

    /// Scans alone, through the page cache.
    fn scanning(dir: &std::path::Path) -> Session {
        let mut settings = Settings::default();
        (settings.io.interface, settings.io.buffering) = (Interface::Sync, Buffering::Cached);
        (settings.target.count, settings.target.size_bytes) = (1, 16 * MIB);
        settings.target.dir = dir.join("target").to_string_lossy().into_owned();
        settings.classes.iter_mut().skip(1).for_each(|class| class.enabled = false);
        settings.classes[0].depth = 1;
        let facts = std::sync::Arc::new(crate::runs::record::fixture::facts());
        let mut session = Session::open(settings, Options::default(), facts, &mut Nobody).unwrap();
        session.start().unwrap();
        session
    }

    /// Waits until draining and dropping are done.
    fn settle(session: &mut Session) {
        while session.is_settling() {
            std::thread::yield_now();
            session.settle_classes();
        }
    }

    fn turn(session: &mut Session, knob: &str, value: &Value) {
        session.turn(knob, value);
        let refused = |event: &Event| matches!(event, Event::Turned { outcome: Err(_), .. });
        assert!(!session.events().any(|event| refused(&event)), "{knob} was not turned");
    }

    #[test]
    fn what_is_cached_is_dropped_even_where_the_turn_to_direct_came_while_nothing_ran() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut session = scanning(dir.path());
        let direct = session.target.facts().map(|facts| facts.direct.clone());
        assert_eq!(direct, Some(crate::host::Feature::Present), "/var/tmp needs direct I/O");
        let rest = |session: &mut Session, muted: bool, rests: bool| {
            if muted {
                turn(session, "scan.enabled", &Value::Bool(!rests));
            } else {
                session.pause(rests);
            }
        };
        for muted in [false, true] {
            turn(&mut session, "io.buffering", &Value::Choice("cached"));
            settle(&mut session);
            rest(&mut session, muted, true);
            settle(&mut session);
            turn(&mut session, "io.buffering", &Value::Choice("direct"));
            assert!(session.classes.runs[0].running.is_none() && session.classes.runs[0].dropping.is_none());
            rest(&mut session, muted, false);
            assert!(session.classes.runs[0].dropping.is_some(), "muted: {muted}");
            // Dropping completes even if the class rests again meanwhile.
            rest(&mut session, muted, true);
            settle(&mut session);
            rest(&mut session, muted, false);
            settle(&mut session);
            assert!(session.classes.runs[0].running.is_some() && !session.classes.runs[0].cached);
        }
        session.end();
    }
}

#[cfg(test)]
#[path = "failed_tests.rs"]
mod failed_tests;
