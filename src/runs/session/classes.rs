//! The classes of a session: which run, drain, or are stopped and why.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use super::message::Event;
use super::run::Session;
use crate::class::Class;
use crate::error::{Result, describe, describe_errno};
use crate::load::volume::Region;
use crate::load::workers::{Activity, Workers};
use crate::meter::context::ClassContext;
use crate::meter::window::State;
use crate::settings::jobs::Job;
use crate::settings::{Buffering, Cpus};
use crate::units::format_size;

/// What is known of each class.
#[derive(Debug, Default)]
pub(super) struct Classes([ClassRun; 4]);

#[derive(Debug, Default)]
struct ClassRun {
    /// The plan of the workers that run or drain.
    running: Option<Job>,
    /// Whether its workers went through the page cache since that was last dropped.
    cached: bool,
    draining: bool,
    /// It drained, or waited to be started, when the window that runs began.
    drained: bool,
    stopped: Option<Stopped>,
    /// Writes back and drops what the page cache holds, before direct I/O begins.
    dropping: Option<JoinHandle<io::Result<()>>>,
}

/// Why a class was stopped.
#[derive(Debug)]
pub(super) struct Stopped {
    pub why: String,
    /// Nothing more may be written: a higher limit starts it again.
    pub exhausted: bool,
}

impl Classes {
    /// Whether a class is draining or waits to be started.
    pub fn any_pending(&self) -> bool {
        self.0.iter().any(|run| run.draining || run.dropping.is_some())
    }

    /// A window begins: what drains now belongs to it too, even if that has ended when it ends.
    pub fn begin_window(&mut self) {
        for run in &mut self.0 {
            run.drained = run.draining || run.dropping.is_some();
        }
    }

    /// A class as the meters know it.
    pub fn context(&self, plan: &Job, paused: bool) -> ClassContext {
        let run = &self.0[plan.class.index()];
        let state = match &run.stopped {
            _ if run.draining || run.dropping.is_some() => State::Draining,
            Some(stopped) if plan.enabled => State::Stopped(stopped.why.clone()),
            _ if !plan.enabled => State::Off,
            _ if paused => State::Paused,
            _ => State::Running,
        };
        let plan = run.running.as_ref().unwrap_or(plan);
        ClassContext {
            state,
            drained: run.drained,
            interface: plan.interface,
            buffering: plan.buffering,
            rate_bytes_per_s: plan.rate_bytes_per_s,
            in_flight_bytes_max: plan.workers * plan.depth * plan.page_bytes,
        }
    }

    /// Whether a class has no workers any more.
    pub fn is_idle(&self, class: Class, engine: &mut Workers) -> bool {
        self.0[class.index()].dropping.as_ref().is_none_or(JoinHandle::is_finished)
            && !matches!(engine.activity(class), Activity::Running | Activity::Draining)
    }

    /// Whether a class's workers were not yet seen to have ended all.
    #[must_use]
    pub fn works(&self, class: Class) -> bool {
        self.0[class.index()].running.is_some()
    }

    /// Forgets why classes were stopped, so that they start again.
    pub fn forgive(&mut self, only_exhausted: bool) {
        for run in &mut self.0 {
            if run.stopped.as_ref().is_some_and(|stopped| stopped.exhausted || !only_exhausted) {
                run.stopped = None;
            }
        }
    }

    /// Forgets why one class was stopped.
    pub fn forgive_class(&mut self, class: Class) {
        self.0[class.index()].stopped = None;
    }

    /// A class does not start again by itself.
    pub fn stopped(&mut self, class: Class, why: Stopped) {
        self.0[class.index()].stopped = Some(why);
    }

    /// A class was told to drain.
    pub fn drains(&mut self, class: Class) {
        let run = &mut self.0[class.index()];
        run.draining = run.running.is_some();
    }
}

impl Session {
    /// Lets a class drain; it starts again under its plan then.
    pub(super) fn stop_class(&mut self, class: Class) {
        self.engine.stop(class);
        self.classes.drains(class);
        self.turned = true;
    }

    /// Looks at every class: what has drained starts again, what stopped by itself is told.
    pub(super) fn settle_classes(&mut self) {
        for class in Class::ALL {
            if let Some(stopped) = self.look_at(class) {
                self.tell(Event::Notice(format!("{class} stopped: {}", stopped.why)));
                self.classes.0[class.index()].stopped = Some(stopped);
                self.turned = true;
            }
        }
        if !self.classes.any_pending() && !self.draining.is_empty() {
            for knob in std::mem::take(&mut self.draining) {
                self.tell(Event::Turned { knob, outcome: Ok(true) });
            }
            self.status();
        }
    }

    /// Takes a class one step on. Returns why it stopped, if it did so by itself.
    fn look_at(&mut self, class: Class) -> Option<Stopped> {
        let activity = self.engine.activity(class);
        if matches!(activity, Activity::Running | Activity::Draining) {
            return None;
        }
        let run = &mut self.classes.0[class.index()];
        run.running = None;
        let by_turn = std::mem::take(&mut run.draining);
        match activity {
            // Also where it was told to drain: there is nothing any more to start it in again.
            Activity::Gone(why) => {
                self.lose_drives(&why);
                return Some(Stopped { why, exhausted: false });
            }
            _ if by_turn => {}
            Activity::Tripped(errno) => {
                let why = format!("over 1,000 errors in a second, the last: {}", describe_errno(errno));
                return Some(Stopped { why, exhausted: false });
            }
            Activity::Broken(why) => {
                self.lose_drives(&why);
                return Some(Stopped { why: format!("its interface failed: {why}"), exhausted: false });
            }
            Activity::Exhausted => return Some(self.exhausted()),
            _ => {}
        }
        if self.is_reopening() {
            let should_run = self.should_run(class);
            let run = &mut self.classes.0[class.index()];
            run.draining = by_turn || should_run;
            return None;
        }
        // What was begun is ended even where the class was muted or paused meanwhile.
        if self.drops_cache(class) || !self.should_run(class) {
            return None;
        }
        if self.begins_to_drop(class) {
            return None;
        }
        self.start_class(class).err().map(|error| Stopped { why: error.to_string(), exhausted: false })
    }

    fn exhausted(&self) -> Stopped {
        let limit = self.settings.run.max_writes_bytes.map_or_else(String::new, format_size);
        Stopped { why: format!("{limit} are written, which is run.max_writes"), exhausted: true }
    }

    fn should_run(&self, class: Class) -> bool {
        let run = &self.classes.0[class.index()];
        self.plans[class.index()].enabled && !self.paused && !self.ending && run.stopped.is_none()
    }

    /// Starts a class's workers, if it is to run.
    pub(super) fn start_class(&mut self, class: Class) -> Result<()> {
        if !self.should_run(class) {
            return Ok(());
        }
        let plan = self.plans[class.index()].clone();
        let cpus = self.cpus(&plan.cpus);
        for source in self.engine.start(&plan, &cpus)? {
            self.meters.add(source);
        }
        let run = &mut self.classes.0[class.index()];
        run.cached |= plan.buffering != Buffering::Direct;
        run.running = Some(plan);
        Ok(())
    }

    fn cpus(&self, cpus: &Cpus) -> Vec<u32> {
        match cpus {
            Cpus::Any => Vec::new(),
            Cpus::List(list) => list.clone(),
            Cpus::Node(id) => {
                let node = self.facts.cpu.nodes.iter().find(|node| node.id == *id);
                node.map(|node| node.cpus.clone()).unwrap_or_default()
            }
        }
    }

    /// Before a class that went through the page cache, however long ago, begins with direct I/O, what
    /// is cached is written back and dropped, in a thread of its own. Returns whether that has begun.
    fn begins_to_drop(&mut self, class: Class) -> bool {
        let run = &mut self.classes.0[class.index()];
        let leaves_cache = run.cached && self.plans[class.index()].buffering == Buffering::Direct;
        if !leaves_cache || self.target.volume.is_none() {
            return false;
        }
        let region = if class == Class::Wal { &self.target.wal } else { &self.target.data };
        let paths = paths_of(region);
        run.cached = false;
        run.dropping = Some(std::thread::spawn(move || drop_cached(&paths)));
        self.turned = true;
        true
    }

    /// Whether what a class left in the page cache is still being dropped.
    fn drops_cache(&mut self, class: Class) -> bool {
        let dropping = &mut self.classes.0[class.index()].dropping;
        if dropping.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return true;
        }
        if let Some(Ok(Err(error))) = dropping.take().map(JoinHandle::join) {
            let text = format!("what is cached could not be written back and dropped: {}", describe(&error));
            self.tell(Event::Notice(text));
        }
        false
    }
}

pub(super) fn paths_of(region: &Region) -> Vec<PathBuf> {
    region.extents.iter().map(|extent| extent.path.clone()).collect()
}

/// Writes back and drops what the page cache holds of these files, devices, or files of folders.
pub(super) fn drop_cached(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        if !path.is_dir() {
            drop_file(path)?;
            continue;
        }
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            // A storage engine removes its files at any time.
            let dropped = if entry.file_type()?.is_file() { drop_file(&entry.path()) } else { Ok(()) };
            dropped
                .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
        }
    }
    Ok(())
}

fn drop_file(path: &Path) -> io::Result<()> {
    let file = std::fs::File::open(path)?;
    rustix::fs::fdatasync(&file)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::session::headless::tests::Nobody;
    use crate::runs::session::run::Options;
    use crate::settings::Interface;
    use crate::settings::Settings;
    use crate::settings::knobs::Value;
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

    /// Lets what drains or drops come to its end.
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
        if session.target.facts().is_none_or(|facts| facts.direct != crate::host::Feature::Present) {
            return;
        }
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
            assert!(session.classes.0[0].running.is_none() && session.classes.0[0].dropping.is_none());
            rest(&mut session, muted, false);
            assert!(session.classes.0[0].dropping.is_some(), "muted: {muted}");
            // It does not stay begun where the class rests again meanwhile.
            rest(&mut session, muted, true);
            settle(&mut session);
            rest(&mut session, muted, false);
            settle(&mut session);
            assert!(session.classes.0[0].running.is_some() && !session.classes.0[0].cached);
        }
        session.end();
    }
}
