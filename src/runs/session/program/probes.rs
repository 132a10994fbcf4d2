//! Questions asked of a program now and then, by a command: never waited for, and killed when it takes too long.

use std::time::Instant;

use rustix::process::Signal;

use super::process::{PROBES, Process, Site};
use crate::meter::programs::program::{MetricFigures, ProgramFigures};
use crate::meter::programs::program_probe::ProgramProbe;
use crate::settings::{Probe, ProbeKind};

/// A command in progress.
#[derive(Debug)]
struct Question {
    process: Process,
    began: Instant,
    late: bool,
}

/// A probe, and its command in progress.
#[derive(Debug)]
pub(super) struct Asked {
    probe: Probe,
    next: Instant,
    question: Option<Question>,
    /// A counter's last value, and its time.
    last: Option<(f64, Instant)>,
    answer: Option<f64>,
    /// Bytes that the application wrote since the last window, and that the drives took between the same answers.
    grew: Option<(f64, Option<u64>)>,
    /// Whether a failure was reported.
    reported: bool,
}

impl Asked {
    /// Due at once.
    pub fn new(probe: Probe) -> Self {
        let next = Instant::now();
        Self { probe, next, question: None, last: None, answer: None, grew: None, reported: false }
    }

    /// Starts the command when it is due, and takes its answer; returns a sentence about the first failure.
    pub fn look(&mut self, site: &Site, figures: &mut ProgramProbe) -> Option<String> {
        let now = Instant::now();
        let mut failed = None;
        if let Some(mut question) = self.question.take() {
            if let Some(status) = question.process.ended() {
                let values = question.process.output().take_values();
                let value =
                    values.get(&self.probe.metric.name).filter(|_| status.success() && !question.late);
                match value.map(|value| value.mean) {
                    Some(value) => self.take(value, now, figures),
                    None => failed = Some(question.process.in_words()),
                }
            } else {
                if !question.late && question.began.elapsed() >= self.probe.timeout {
                    question.process.signal(Signal::KILL);
                    question.late = true;
                    failed = Some("it took too long".to_owned());
                }
                self.question = Some(question);
            }
        } else if now >= self.next {
            self.next = now + self.probe.every;
            let metrics = std::slice::from_ref(&self.probe.metric);
            match Process::start(site, PROBES, &self.probe.run, metrics) {
                Ok(process) => self.question = Some(Question { process, began: now, late: false }),
                Err(error) => failed = Some(error.one_line()),
            }
        }
        let why = failed.filter(|_| !std::mem::replace(&mut self.reported, true))?;
        Some(format!("command.probes.{} has no answer: {why}", self.probe.metric.name))
    }

    fn take(&mut self, value: f64, now: Instant, figures: &mut ProgramProbe) {
        if self.probe.kind == ProbeKind::Gauge {
            self.answer = Some(value);
            return;
        }
        let is_application = self.probe.kind == ProbeKind::ApplicationBytes;
        let drives = if is_application { figures.written_since_answer() } else { None };
        // The first answer is only a starting point, and so is a counter that has been reset.
        let Some((before, at)) = self.last.replace((value, now)).filter(|(before, _)| value >= *before)
        else {
            return;
        };
        self.answer = Some((value - before) / now.duration_since(at).as_secs_f64().max(1e-9));
        if is_application {
            let (sum, of_drives) = self.grew.unwrap_or((0.0, Some(0)));
            self.grew = Some((sum + value - before, of_drives.zip(drives).map(|(sum, more)| sum + more)));
        }
    }

    /// Adds its answer since the last window.
    pub fn add_to(&mut self, figures: &mut ProgramFigures) {
        if let Some(value) = self.answer.take() {
            let metric = &self.probe.metric;
            let of = MetricFigures { better: metric.better, ..MetricFigures::of(value, &metric.unit) };
            figures.metrics.insert(self.probe.metric.name.clone(), of);
        }
        if let Some((bytes, drives)) = self.grew.take() {
            (figures.application_bytes, figures.application_drives_bytes) = (Some(bytes as u64), drives);
        }
    }
}
