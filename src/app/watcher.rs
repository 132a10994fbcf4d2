//! The attendant at the command line: shows progress on standard error, and asks nothing.

use std::io::{IsTerminal as _, Stderr, stderr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::output::eprint_line;
use super::signals::Interrupts;
use crate::error::Result;
use crate::runs::session::{Advance, Attendant, Event, PlanShown, Progress as Filling, Session, Wanted};
use crate::ui::report::Progress;

/// Reads the target back, and reports the outcome on standard error. The signal that ended the run does not end this;
/// another one does.
pub(super) fn verify(session: &Session, watcher: &mut Watcher) -> Result<()> {
    let (stop, before) = (AtomicBool::new(false), watcher.interrupts.count());
    let mut on_progress = |step: Filling| {
        watcher.progress.fill(&step);
        stop.store(watcher.interrupts.count() > before, Ordering::Relaxed);
    };
    let Some(report) = session.verify(&mut on_progress, &stop)? else { return Ok(()) };
    watcher.notice(&report.to_string());
    report.ended_well()
}

/// Reports how to remove a retained stack.
pub(super) fn report_kept(commands: &[String]) {
    if !commands.is_empty() {
        eprint_line(
            "stacktune: the stack stays in place; `stacktune cleanup --all` removes all retained stacks, these commands just this one:",
        );
        commands.iter().for_each(|command| eprint_line(&format!("  {command}")));
    }
}

pub(super) fn progress_of(time: Option<Duration>) -> Progress<Stderr> {
    Progress::new(stderr(), stderr().is_terminal(), time)
}

/// Shows the progress on standard error.
pub(super) struct Watcher<'a> {
    pub progress: Progress<Stderr>,
    pub interrupts: &'a Interrupts,
    /// Of a sweep or a duel of builds: whether each target is read back.
    pub verifies: bool,
    /// Of a sweep of a program: what is done around each recording.
    pub around: Option<Box<dyn Around>>,
}

/// What is done around each recording of a sweep.
pub(super) trait Around {
    /// Before it; its load will run for that time.
    fn opened(&mut self, session: &mut Session, time: Duration, watcher: &mut Watcher) -> Result<()>;
    /// After it, in that folder.
    fn recorded(&mut self, session: &mut Session, dir: &Path, watcher: &mut Watcher) -> Result<()>;
}

impl<'a> Watcher<'a> {
    /// `time` is how long the load takes, if that is known.
    pub fn new(time: Option<Duration>, interrupts: &'a Interrupts) -> Self {
        Self { progress: progress_of(time), interrupts, verifies: false, around: None }
    }

    /// Does a part of what is done around each recording, if anything is.
    pub fn with_around(&mut self, part: impl FnOnce(&mut dyn Around, &mut Self) -> Result<()>) -> Result<()> {
        let Some(mut around) = self.around.take() else { return Ok(()) };
        let done = part(&mut *around, self);
        self.around = Some(around);
        done
    }

    /// Shows what an event says.
    pub fn watch(&mut self, event: &Event) {
        match event {
            Event::Window(window, totals) => self.progress.window(window, totals),
            Event::Notice(text) => self.notice(text),
            _ => {}
        }
    }
}

impl Attendant for Watcher<'_> {
    fn progress(&mut self, progress: Filling) -> bool {
        self.progress.fill(&progress);
        self.interrupts.count() == 0
    }

    fn notice(&mut self, text: &str) {
        self.progress.done();
        eprint_line(&format!("stacktune: {text}"));
    }

    fn consent(&mut self, _: Vec<Wanted>) -> Option<Vec<String>> {
        None
    }

    fn plan(&mut self, _: PlanShown) -> Option<Vec<String>> {
        None
    }

    fn step(&mut self, advance: &Advance) -> bool {
        self.progress.step(advance);
        self.interrupts.count() == 0
    }
}
