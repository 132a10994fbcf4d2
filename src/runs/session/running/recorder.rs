//! A session's reports: events for the screen, and a recording if there is one.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::meter::turns::ledger::Ledger;
use crate::meter::whole_run::totals::Totals;
use crate::meter::window::{LedgerLine, Window};
use crate::runs::record::{Destination, Header, Outcome, Summary, Writer};
use crate::runs::session::message::Event;

/// Pending events, and the recording.
#[derive(Default)]
pub(in crate::runs::session) struct Recorder {
    events: VecDeque<Event>,
    recording: Option<Writer>,
}

impl Recorder {
    /// Events since the last call.
    pub fn events(&mut self) -> impl Iterator<Item = Event> {
        self.events.drain(..)
    }

    /// Reports an event.
    pub fn report(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// The folder of the recording, if there is one.
    pub fn dir(&self) -> Option<&Path> {
        self.recording.as_ref().map(Writer::dir)
    }

    /// Starts a recording into a new folder.
    ///
    /// # Errors
    /// If the folder can't be made.
    pub fn begin(&mut self, place: Destination, header: &Header) -> Result<()> {
        let writer = Writer::create(place, header)?;
        self.report(Event::Recording(Some(writer.dir().to_owned())));
        self.recording = Some(writer);
        Ok(())
    }

    /// Ends the recording, if there is one, with its summary.
    ///
    /// # Errors
    /// If that can't be written.
    pub fn end(
        &mut self,
        ledger: &mut Ledger,
        totals: &Totals,
        outcome: &Outcome,
    ) -> Result<Option<Summary>> {
        let Some(mut writer) = self.recording.take() else { return Ok(None) };
        if let Some(line) = ledger.close() {
            writer.ledger(&line)?;
            self.report(Event::Ledger(Arc::new(line)));
        }
        let summary = writer.finish(totals, outcome)?;
        self.report(Event::Recording(None));
        Ok(Some(summary))
    }

    /// Writes a window and its ledger lines.
    ///
    /// # Errors
    /// If that fails; the recording has then ended.
    pub fn window(&mut self, window: &Window, lines: &[LedgerLine]) -> Result<()> {
        let Some(writer) = &mut self.recording else { return Ok(()) };
        let written =
            writer.window(window).and_then(|()| lines.iter().try_for_each(|line| writer.ledger(line)));
        if written.is_err() {
            self.recording = None;
            self.report(Event::Recording(None));
        }
        written
    }

    /// Reports and writes a ledger line.
    pub fn line(&mut self, line: LedgerLine) {
        if let Some(writer) = &mut self.recording
            && let Err(error) = writer.ledger(&line)
        {
            self.recording = None;
            self.report(Event::Notice(format!("the recording ended: {}", error.one_line())));
            self.report(Event::Recording(None));
        }
        self.report(Event::Ledger(Arc::new(line)));
    }
}
