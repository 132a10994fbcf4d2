//! The end of windows, recordings and runs. I/O in flight at the end of a recording belongs to it: it is
//! waited for, at most for `run.drain`, and counted in the last window.

use std::sync::Arc;

use super::last_window::Last;
use crate::class::Class;
use crate::error::Result;
use crate::host::TargetFacts;
use crate::meter::context::WindowContext;
use crate::meter::flag::FlagKind;
use crate::meter::window::Window;
use crate::runs::record::{Destination, Header, Outcome, Summary};
use crate::runs::session::message::Event;
use crate::runs::session::program::Running;
use crate::runs::session::run::Session;

impl Session {
    /// Starts a recording into a new folder; totals begin anew with the next window.
    pub fn record<'a>(&mut self, place: impl Into<Destination<'a>>) -> Result<()> {
        let profile = self.resolved.settings.name.clone();
        self.record_as(place, &profile)
    }

    /// The same for settings that were saved under that name since.
    pub fn record_as<'a>(&mut self, place: impl Into<Destination<'a>>, profile: &str) -> Result<()> {
        if self.ending.recording_ns.is_some() {
            self.write_summary(&Outcome::Complete)?;
        }
        let (resolved, target) = (&self.resolved, self.target.facts().cloned());
        let notes = [&resolved.fallbacks, &self.target.layout().notes, &resolved.notes(target.as_ref())];
        let header = Header {
            profile: profile.to_owned(),
            profile_toml: resolved.profile_toml(profile),
            facts: (*resolved.facts).clone(),
            notes: notes.into_iter().flatten().cloned().collect(),
            target,
            run_started: self.schedule.started,
            worth: self.properties().map(|stack| (stack.price, stack.usable_bytes)),
            circumstances: self.circumstances(),
        };
        self.recorder.begin(place.into(), &header)?;
        self.meters.reset_totals();
        let kept =
            self.program.as_ref().zip(self.recorder.dir()).map(|(program, dir)| program.keep_log_in(dir));
        if let Some(Err(error)) = kept {
            self.notice(error.one_line());
        }
        self.status();
        Ok(())
    }

    /// Ends the current window, whether or not it is due.
    pub(in crate::runs::session) fn end_window(&mut self) -> Result<()> {
        let target = self.target.facts().cloned();
        let context = self.context_now(target.as_ref());
        let window = self.meters.window(&context);
        self.take_window(window)
    }

    /// The context of a window that ends now.
    fn context_now<'a>(&mut self, target: Option<&'a TargetFacts>) -> WindowContext<'a> {
        let (engine, program, by_trace) = (self.engine_figures(), self.program_figures(), self.take_traced());
        WindowContext { engine, program, by_trace, ..self.context(self.now_ns(), target) }
    }

    fn take_window(&mut self, window: Arc<Window>) -> Result<()> {
        let end_ns = window.start_ns + window.duration_ns;
        self.schedule.end_window(end_ns, self.classes.any_pending(), self.resolved.pace);
        self.classes.begin_window();
        // A window that was cut short scatters more than others, so it is not compared with them.
        let is_cut = window.duration_ns < self.resolved.pace.window_ns / 2;
        let lines = if is_cut { Vec::new() } else { self.turns.ledger.window(&window) };
        let written = self.recorder.window(&window, &lines);
        self.look_for_losses(&window);
        let totals = self.meters.totals();
        self.report(Event::Window(window, totals));
        self.report(Event::Written(self.written.writes.written_bytes()));
        let printed = self.program.as_ref().map(Running::printed);
        printed.into_iter().for_each(|lines| self.report(Event::Printed(lines)));
        lines.into_iter().for_each(|line| self.report(Event::Ledger(Arc::new(line))));
        written
    }

    /// Ends the current window, unless it has only just begun.
    pub fn finish_window(&mut self) -> Result<()> {
        let age_ns = self.now_ns().saturating_sub(self.meters.start_ns());
        if age_ns < self.resolved.pace.window_ns / 100 { Ok(()) } else { self.end_window() }
    }

    /// Requests the end of the recording, if there is one, while the load goes on: it ends once the I/O in
    /// flight now is done.
    pub(in crate::runs::session) fn end_recording(&mut self) {
        if self.recorder.dir().is_some() {
            self.ending.recording_ns.get_or_insert(self.classes.now_ns());
        }
    }

    /// Ends the recording as requested, if the I/O in flight at the request is done.
    pub(in crate::runs::session) fn end_awaited_recording(&mut self) -> Result<()> {
        let Some(asked_ns) = self.ending.recording_ns else { return Ok(()) };
        let in_vain = self.classes.now_ns() >= asked_ns + self.drain_ns();
        if !in_vain && self.meters.waits_since(asked_ns) {
            return Ok(());
        }
        self.ending.recording_ns = None;
        let ended = if in_vain { self.end_window_with_rest(asked_ns) } else { self.finish_window() };
        ended.and_then(|()| self.write_summary(&Outcome::Complete)).map(drop)
    }

    /// Ends the current window, including I/O that began before that time of the workers' clock and is unfinished.
    fn end_window_with_rest(&mut self, begun_ns: u64) -> Result<()> {
        let target = self.target.facts().cloned();
        let context = self.context_now(target.as_ref());
        let mut reading = self.meters.read(&context);
        self.meters.read_rest(&mut reading, begun_ns, self.classes.now_ns());
        let window = self.meters.conclude(&context, reading);
        self.take_window(window)
    }

    /// Stops all classes, and ends the last window; [`Self::conclude`] makes it, once [`Self::is_drained`] or
    /// [`Self::drains_in_vain`].
    pub fn end(&mut self) {
        if self.schedule.ending {
            return;
        }
        let target = self.target.facts().cloned();
        let context = WindowContext { target: None, ..self.context_now(None) };
        let end_ns = self.classes.now_ns();
        self.schedule.ending = true;
        self.classes.end();
        let reading = self.meters.read(&WindowContext { target: target.as_ref(), ..context.clone() });
        self.ending.run = Some(Last { reading, context, target, end_ns });
        self.status();
    }

    /// Whether no I/O is outstanding any more.
    pub fn is_drained(&mut self) -> bool {
        let idle = self.classes.are_idle() & self.is_program_over();
        self.settle_classes();
        idle
    }

    /// Whether I/O has been waited for as long as `run.drain` allows.
    pub fn drains_in_vain(&self) -> bool {
        self.ending.run.as_ref().is_some_and(|last| self.classes.now_ns() >= last.end_ns + self.drain_ns())
    }

    fn drain_ns(&self) -> u64 {
        self.resolved.settings.run.drain.as_nanos() as u64
    }

    /// Makes the last window of a run that was ended, including what has drained since and the age of what
    /// has not, and ends the recording, if there is one, with its summary.
    pub fn conclude(&mut self, outcome: &Outcome) -> Result<Option<Summary>> {
        let mut written = Ok(());
        if let Some(Last { mut reading, context, target, end_ns }) = self.ending.run.take() {
            self.meters.read_rest(&mut reading, end_ns, self.classes.now_ns());
            let context = WindowContext { target: target.as_ref(), ..context };
            let window = self.meters.conclude(&context, reading);
            let flags = Class::ALL
                .into_iter()
                .flat_map(|class| window.class(class).flags.iter().map(move |flag| (class, flag)));
            let unfinished = flags.filter(|(_, flag)| flag.is(FlagKind::Unfinished));
            let notices: Vec<_> = unfinished.map(|(class, flag)| format!("{class}: {}", flag.why)).collect();
            written = self.take_window(window);
            notices.into_iter().for_each(|text| self.notice(text));
        }
        written.and_then(|()| self.write_summary(outcome))
    }

    /// Ends the turn that still collects windows, since nothing will continue it; returns whether there was one.
    pub(in crate::runs::session) fn close_turn(&mut self) -> bool {
        let closed = self.turns.ledger.close();
        closed.map(|line| self.report(Event::Ledger(Arc::new(line)))).is_some()
    }

    fn write_summary(&mut self, outcome: &Outcome) -> Result<Option<Summary>> {
        self.ending.recording_ns = None;
        let summary = self.recorder.end(&mut self.turns.ledger, &self.meters.totals(), outcome)?;
        if summary.is_some() {
            self.status();
        }
        // At the end of a run, its program's last words are still to come.
        if let Some(program) = self.program.as_ref().filter(|_| !self.schedule.ending) {
            program.end_log()?;
        }
        Ok(summary)
    }
}

#[cfg(test)]
#[path = "ending_tests.rs"]
mod tests;
