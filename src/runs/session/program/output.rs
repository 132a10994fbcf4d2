//! The output of a process: its last line, and the figures in all of them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeReader};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use regex_lite::Regex;

use super::log::ProgramLog;
use crate::error::Result;
use crate::meter::programs::program::MetricFigures;
use crate::printable;
use crate::settings::Metric;
use crate::settings::values::program::pattern;
use crate::threads;

/// Per line; anything beyond is cut off.
const LINE_BYTES_MAX: usize = 4096;
/// How long to wait for the rest of the output.
const SETTLE: Duration = Duration::from_millis(200);

/// A program's log, and the phase of it that prints.
pub(super) type LogOf = (Arc<ProgramLog>, &'static str);

/// The output of a process so far.
#[derive(Debug, Default)]
pub(super) struct Output(Mutex<Printed>);

#[derive(Debug, Default)]
struct Printed {
    last: Option<String>,
    /// Set once nobody can write any more.
    closed: bool,
    values: BTreeMap<String, MetricFigures>,
}

impl Output {
    /// Reads in a thread of its own until all writers have closed the pipe, into a log if it is to be kept.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn read(from: PipeReader, metrics: &[Metric], log: Option<LogOf>) -> Result<Arc<Self>> {
        let output = Arc::new(Self::default());
        let theirs = output.clone();
        let compiled = |metric: &Metric| Some((pattern(&metric.line).ok()?, metric.clone()));
        let metrics: Vec<(Regex, Metric)> = metrics.iter().filter_map(compiled).collect();
        threads::start("read what the program prints", move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while let Ok(bytes) = from.fill_buf() {
                if bytes.is_empty() {
                    break;
                }
                // Progress that overwrites its line ends with a carriage return.
                let end = bytes.iter().position(|byte| b"\n\r".contains(byte));
                let taken = end.unwrap_or(bytes.len());
                let room = LINE_BYTES_MAX - line.len();
                line.extend_from_slice(&bytes[..taken.min(room)]);
                from.consume(taken + usize::from(end.is_some()));
                if end.is_some() {
                    theirs.line(&std::mem::take(&mut line), &metrics, log.as_ref());
                }
            }
            theirs.line(&line, &metrics, log.as_ref());
            theirs.0.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        })?;
        Ok(output)
    }

    fn line(&self, bytes: &[u8], metrics: &[(Regex, Metric)], log: Option<&LogOf>) {
        let line = String::from_utf8_lossy(bytes);
        if line.trim().is_empty() {
            return;
        }
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (pattern, metric) in metrics {
            let found = pattern.captures(&line).and_then(|found| found.get(1)?.as_str().parse::<f64>().ok());
            let Some(value) = found.filter(|value| value.is_finite()) else { continue };
            let of = MetricFigures { better: metric.better, ..MetricFigures::of(value, &metric.unit) };
            printed.values.entry(metric.name.clone()).and_modify(|sum| sum.add(&of)).or_insert(of);
        }
        let line = printable::line(&line).into_owned();
        printed.last = Some(line.clone());
        // A slow disk must not delay whoever takes the values.
        drop(printed);
        if let Some((log, phase)) = log {
            log.line(phase, &line);
        }
    }

    /// Waits until all output is read; not for long, since orphaned processes may still be printing.
    pub fn settle(&self) {
        let until = Instant::now() + SETTLE;
        while !self.0.lock().unwrap_or_else(PoisonError::into_inner).closed && Instant::now() < until {
            std::thread::sleep(SETTLE / 100);
        }
    }

    /// The figures since the last call.
    pub fn take_values(&self) -> BTreeMap<String, MetricFigures> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).values)
    }

    /// Its last line.
    pub fn last_line(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn figures_are_found_in_lines_and_the_last_lines_are_kept() {
        let (from, mut to) = std::io::pipe().unwrap();
        let metric = Metric {
            name: "tps".into(),
            line: "tps ([0-9.a-z]+)".into(),
            unit: "txn/s".into(),
            better: None,
        };
        let log = Arc::new(ProgramLog::default());
        let output = Output::read(from, &[metric], Some((log.clone(), "run"))).unwrap();
        let long = "x".repeat(3 * LINE_BYTES_MAX);
        write!(to, "tps 1.5\rother\ntps 2.5\n\ntps nan\ntps abc\n{long}tps 9\n\x1b[2Jtps 5").unwrap();
        drop(to);
        output.settle();
        let values = output.take_values();
        assert_eq!((values["tps"].count, values["tps"].mean, values["tps"].max), (3, 3.0, 5.0));
        assert!(output.take_values().is_empty());
        let lines = log.last(usize::MAX);
        assert_eq!((lines[0].1.as_str(), lines[5].1.len()), ("tps 1.5", LINE_BYTES_MAX));
        assert!(lines.iter().all(|(phase, line)| *phase == "run" && printable::is_line(line)), "{lines:?}");
        assert_eq!(output.last_line().as_ref(), lines.last().map(|(_, line)| line));
    }
}
