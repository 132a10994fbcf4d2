//! A recording over time: its figures as charts over equal spans.
//!
//! The write amplification of a span is noisy: an engine writes now what it took earlier, a page cache later what it
//! takes now. The cumulative one is what counts; this chart shows how it came about.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::WIDTH;
use super::{cells::paragraph, chart};
use crate::class::Class;
use crate::error::{Error, Result};
use crate::meter::whole_run::bins::{self, Bin, Bins};
use crate::meter::window::Window;
use crate::printable;
use crate::runs::record::Recording;
use crate::units::{approx_span, three_digits};

/// Columns of the charts, one per span.
const SPANS_MAX: usize = 70;

/// What was measured in a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Span {
    /// Its start, in seconds from the run's start.
    pub at_s: f64,
    /// Its length, in seconds.
    pub duration_s: f64,
    /// Decimal MB per second of all classes.
    pub total_mb_per_s: f64,
    /// The same for each class that moved anything, by name.
    pub mb_per_s: BTreeMap<&'static str, f64>,
    /// I/Os per second of all classes.
    pub iops: f64,
    /// Bytes that the drives took over those that the application wrote, of this span alone
    /// ([`crate::meter::written`]); none if nothing was written, or it is not counted.
    pub wa_a: Option<f64>,
    /// Bytes that went to flash over those that the drives took, of this span alone; none if no drive reports it, or
    /// its counters' unit is too coarse for so little.
    pub wa_d: Option<f64>,
    /// The most bytes that the file system had in use.
    pub used_bytes: Option<u64>,
}

/// What `show --over-time` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverTime {
    /// The recording's folder.
    pub dir: String,
    /// The spans in order, without the warm-up.
    pub spans: Vec<Span>,
}

impl OverTime {
    /// The spans of a recording.
    ///
    /// # Errors
    /// Of the kind `Input` if not even a second was measured.
    pub fn of(recording: &Recording) -> Result<Self> {
        let spans = spans(&recording.windows);
        if spans.is_empty() {
            return Err(Error::input(format!(
                "{} holds no measured second",
                printable::path(&recording.dir)
            ))
            .hint("`stacktune show` prints what it contains"));
        }
        Ok(Self { dir: recording.dir.display().to_string(), spans })
    }
}

/// The measured windows, combined into at most [`SPANS_MAX`] spans of equal length.
fn spans(windows: &[Window]) -> Vec<Span> {
    let mut bins = Bins::default();
    windows.iter().filter(|window| !window.warmup).for_each(|window| bins.add(window));
    let bins = bins.whole();
    bins.chunks(bins.len().div_ceil(SPANS_MAX).max(1)).map(|bins| Span::of(&bins::sum(bins))).collect()
}

impl Span {
    fn of(bin: &Bin) -> Self {
        let duration_s = bin.duration_ns as f64 / 1e9;
        let mb_per_s = |bytes: u64| bytes as f64 / duration_s / 1e6;
        let classes = Class::ALL.into_iter().zip(bin.class_bytes);
        Self {
            at_s: bin.start_ns as f64 / 1e9,
            duration_s,
            total_mb_per_s: mb_per_s(bin.bytes()),
            mb_per_s: classes
                .filter(|(_, bytes)| *bytes > 0)
                .map(|(class, bytes)| (class.name(), mb_per_s(bytes)))
                .collect(),
            iops: bin.ios as f64 / duration_s,
            wa_a: bin.written.wa_a(),
            wa_d: bin.written.wa_d(),
            used_bytes: bin.written.used_bytes_max,
        }
    }
}

impl std::fmt::Display for OverTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let span_s = self.spans.first().map_or(0.0, |span| span.duration_s);
        let each = approx_span(span_s);
        let head = format!(
            "{} over time, {each} a column. Over so short a time write amplification is noisy; \
                     `stacktune show` prints the cumulative one.",
            printable::line(&self.dir)
        );
        writeln!(f, "{}", paragraph(&head, WIDTH, "  "))?;
        let mut draw = |title: &str, of: &dyn Fn(&Span) -> Option<f64>| {
            let points: Vec<_> = self.spans.iter().filter_map(|span| Some((span.at_s, of(span)?))).collect();
            // A figure that was always zero or unknown gets no chart.
            if points.iter().all(|(_, value)| *value == 0.0) {
                return Ok(());
            }
            write!(f, "\n{}", chart::over_time(title, &points, &three_digits))
        };
        draw("total MB/s", &|span| Some(span.total_mb_per_s))?;
        for class in Class::ALL {
            let of_class = |span: &Span| Some(span.mb_per_s.get(class.name()).copied().unwrap_or(0.0));
            draw(&format!("{} MB/s", class.name()), &of_class)?;
        }
        draw("WA-A of each column", &|span| span.wa_a)?;
        draw("WA-D of each column", &|span| span.wa_d)?;
        draw("in use on the file system, GB", &|span| span.used_bytes.map(|bytes| bytes as f64 / 1e9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::written::Written;

    /// A second in which the log wrote `wal` bytes, and `drives` bytes reached the drives.
    fn second(at_s: u64, application_bytes: u64, drives_bytes: u64) -> Window {
        let second_ns = 1_000_000_000;
        let mut window = Window { start_ns: at_s * second_ns, duration_ns: second_ns, ..Window::default() };
        window.classes[Class::Wal.index()].bytes = application_bytes;
        window.written =
            Written { application_bytes, drives_bytes: Some(drives_bytes), ..Written::default() };
        window
    }

    #[test]
    fn a_span_has_the_ratio_of_its_own_sums() {
        // 141 seconds come in spans of three: a mean of ratios would be (0 + 0 + 30) / 3.
        let windows: Vec<_> =
            (0..141).map(|at| second(at, 1_000_000, if at % 3 == 2 { 30_000_000 } else { 0 })).collect();
        let spans = spans(&windows);
        assert_eq!(spans.len(), 47);
        for (at, span) in spans.iter().enumerate() {
            assert_eq!((span.at_s, span.duration_s, span.wa_a), (at as f64 * 3.0, 3.0, Some(10.0)));
            assert_eq!((span.total_mb_per_s, span.mb_per_s["wal"], span.wa_d), (1.0, 1.0, None));
        }
    }

    #[test]
    fn the_warm_up_and_figures_that_were_always_zero_are_left_out() {
        let mut windows: Vec<_> = (0..4).map(|at| second(at, at / 2 * 1_000_000, 5_000_000)).collect();
        windows[3].warmup = true;
        let spans = spans(&windows);
        assert_eq!(spans.iter().map(|span| span.wa_a).collect::<Vec<_>>(), [None, None, Some(5.0)]);
        assert_eq!(super::spans(&[]), []);
        let shown = OverTime { dir: "run".into(), spans }.to_string();
        for chart in ["total MB/s", "wal MB/s", "WA-A of each column"] {
            assert!(shown.contains(chart), "{shown}");
        }
        for none in ["scan", "WA-D of", "in use"] {
            assert!(!shown.contains(none), "{shown}");
        }
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
    }
}
