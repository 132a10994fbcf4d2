//! Whether a run has reached its steady state (Didona et al. 2021, 4.1): throughput, WA-A and WA-D no longer
//! change.
//!
//! The counted windows of one setting are put into bins ([`super::bins`]). For each class's MB/s per bin, and
//! for WA-A and WA-D, both per bin and cumulative at its end, CUSUM finds where the level changes
//! ([`super::cusum`]). A change after a long time shows in the bins long before it shows in the cumulative
//! ratio; a small change among noisy bins shows only in the cumulative one. The run is
//!
//! - **steady** since the last change of any of them, once each has kept its level for thirty bins. A bin
//!   is a second in the first ten minutes, and a 300th to a 600th of a longer run, so that the longer it
//!   took to reach a level, the longer it must last;
//! - **changed** at the first change after a level that lasted thirty bins, until the next one has lasted as long;
//! - **warming** otherwise.
//!
//! A drive that does not report its WA-D counts as steady only after it was written three times over (the
//! rule of thumb of 4.1): bytes that the drives took since the measurement began, and those that stacktune
//! wrote to the target before it (fill, warm-up; counted once each, whatever a mirror makes of them), over
//! the drives' capacity. A drive that reports a WA-D of 1 may still have room that has not been written since
//! it was trimmed: its level counts from when it was written once over, as garbage collection begins then. A
//! load that writes nothing need not wait for either. A turn or a pause restarts all of this.
//!
//! Where a program is the load, a figure that it reports stands in for the classes' MB/s: of those that it
//! reports most often, one that is better if higher, else if lower, else any, and the first by name. Its reports
//! may be further apart than the bins: a level needs thirty of them, and ends if they stop. A program that
//! reports nothing has no steady state. It counts as writing if the drives took over a megabyte a second.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::bins::{self, Bin, Bins};
use super::cusum::{self, LEVEL};
use crate::class::Class;
use crate::meter::window::Window;
use crate::meter::written::Written;
use crate::settings::Better;
use crate::units::{SECOND_NS, approx_span, mb_per_s};

/// How many capacities must be written to a drive that does not report its WA-D.
pub const CAPACITIES: f64 = 3.0;
/// A drive whose WA-D is below this copies nothing yet; it must be written this many times.
const WA_D_FRESH: f64 = 1.05;
const CAPACITIES_FRESH: f64 = 1.0;
/// Burst and steady figures are means over this time, if the run is at least three times as long.
const MEAN_S: f64 = 600.0;
/// Otherwise over this share of the run.
const MEAN_ONE_IN: f64 = 3.0;

/// The state of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SteadyState {
    /// No level has been reached yet.
    #[default]
    Warming,
    /// A level lasts.
    Steady,
    /// A level that lasted was left.
    Changed,
}

/// Whether the run is steady, and its figures at the beginning and at the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// The state of a run.
    pub state: SteadyState,
    /// Since when it is steady, or when it changed, in seconds from the run's start.
    pub at_s: Option<f64>,
    /// Since when all figures have been level, even if too little has been written; none if they are not.
    pub level_since_s: Option<f64>,
    /// How many times over the drives were written, if the load writes and WA-D is not reported (the rule of
    /// three) or is still 1.
    pub capacities_written: Option<f64>,
    /// How many times are needed.
    #[serde(default)]
    pub capacities_needed: Option<f64>,
    /// The figures considered: `scan MB/s`, `WA-A`, `WA-D`; of a program, first the one that it reports.
    pub figures: Vec<String>,
    /// Means at the beginning.
    pub burst: Option<Mean>,
    /// Means at the end, if the run is steady.
    pub steady: Option<Mean>,
}

/// Figures over a span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mean {
    /// Its start, in seconds from the run's start.
    pub from_s: f64,
    /// Its end, in seconds from the run's start.
    pub to_s: f64,
    /// Decimal MB per second of all classes.
    pub mb_per_s: f64,
    /// I/Os per second of all classes.
    pub iops: f64,
    /// WA-A of what was written in this span alone.
    pub wa_a: Option<f64>,
    /// Bytes written to flash per byte that the drives accepted in this span; none where no drive reports it.
    pub wa_d: Option<f64>,
    /// The first figure, if a program is the load and reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<f64>,
}

/// A program counts as writing above this, in bytes per second: file systems themselves write a little.
const PROGRAM_WRITES: u64 = 1_000_000;

/// Watches a run.
#[derive(Debug, Default)]
pub struct SteadyWatch {
    bins: Bins,
    /// Whether a program is the load.
    of_program: bool,
    setting: Option<u64>,
    /// Bytes written to the target before the first counted window.
    before_bytes: Option<u64>,
    /// [`Window::written_bytes_total`] of the last window.
    total_bytes: u64,
    written: Written,
    /// When a turn or a pause ended a lasting level.
    left_s: Option<f64>,
}

impl SteadyWatch {
    /// Takes the next counted window.
    pub fn add(&mut self, window: &Window) {
        self.before_bytes
            .get_or_insert_with(|| window.written_bytes_total.saturating_sub(window.written.engine_bytes));
        self.written.add(&window.written);
        self.of_program |= window.program.is_some();
        self.total_bytes = window.written_bytes_total;
        let other = self.setting.replace(window.setting).is_some_and(|setting| setting != window.setting);
        if other || window.turned || window.paused {
            if self.steadiness().state == SteadyState::Steady {
                self.left_s = Some(seconds(window.start_ns));
            }
            self.bins.clear();
        }
        if !window.turned && !window.paused {
            self.bins.add(window);
        }
    }

    /// The result so far.
    pub fn steadiness(&self) -> Steadiness {
        let bins = self.bins.whole();
        let reported = self.of_program.then(|| leading(bins));
        if reported == Some(None) {
            return Steadiness::default();
        }
        let reported = reported.flatten();
        let series = series(bins, reported.as_deref());
        let mut figures: Vec<String> = series.iter().map(|series| series.name.clone()).collect();
        // Both series of an amplification are one figure.
        figures.dedup();
        let mut changes: Vec<usize> = series.iter().flat_map(Series::changes).collect();
        changes.sort_unstable();
        changes.dedup();
        // A level needs all figures: if one appears later, there is none before that.
        let known = series.iter().filter_map(|series| series.places.first()).max().copied().unwrap_or(0);
        let writes = self.writes(bins);
        let capacities = self.capacities(bins).filter(|_| writes || bins.is_empty());
        let full = capacities.as_ref().and_then(|of| of.full_since).unwrap_or(0);
        let since = changes.last().copied().unwrap_or(0).max(known).max(full);
        let at_s = |bin: usize| bins.get(bin).map(|bin| seconds(bin.start_ns));
        let level = !series.is_empty()
            && bins.len() - since >= LEVEL
            && series.iter().all(|series| series.has_level(since, bins.len()));
        // WA-D was known before a turn, but is not yet known for the time since.
        let wa_d_due = writes && self.written.wa_d().is_some() && !figures.iter().any(|name| name == "WA-D");
        let enough = !wa_d_due && capacities.as_ref().is_none_or(|of| of.written >= of.needed);
        let (state, at_s_of) = if level && enough {
            (SteadyState::Steady, at_s(since))
        } else if let Some(left) = left_at(&changes).filter(|_| enough) {
            (SteadyState::Changed, at_s(left))
        } else if let Some(left_s) = self.left_s {
            (SteadyState::Changed, Some(left_s))
        } else {
            (SteadyState::Warming, None)
        };
        let (burst, steady) = means(bins, since, reported.as_deref());
        Steadiness {
            state,
            at_s: at_s_of,
            level_since_s: at_s(since).filter(|_| level),
            capacities_written: capacities.as_ref().map(|of| of.written),
            capacities_needed: capacities.as_ref().map(|of| of.needed),
            figures,
            burst,
            steady: steady.filter(|_| state == SteadyState::Steady),
        }
    }

    /// Whether the load writes.
    fn writes(&self, bins: &[Bin]) -> bool {
        if !self.of_program {
            return bins.iter().any(|bin| bin.written.application_bytes > 0);
        }
        let sum = bins::sum(bins);
        let written = u128::from(sum.written.drives_bytes.unwrap_or(0)) * u128::from(SECOND_NS);
        written > u128::from(PROGRAM_WRITES) * u128::from(sum.duration_ns)
    }

    fn capacities(&self, bins: &[Bin]) -> Option<Capacities> {
        let written = &self.written;
        let needed = match written.wa_d() {
            _ if written.application_bytes == 0 && !self.of_program => return None,
            None => CAPACITIES,
            Some(wa_d) if wa_d < WA_D_FRESH => CAPACITIES_FRESH,
            Some(_) => return None,
        };
        // If writes bypass the block layer: what was submitted, counted once.
        let before = self.before_bytes.unwrap_or(0);
        let bytes = written.drives_bytes.map_or(self.total_bytes, |bytes| bytes + before);
        let capacity_bytes = written.capacity_bytes?;
        let full_since = written.wa_d().map(|_| full_since(bins, bytes, capacity_bytes));
        Some(Capacities { written: bytes as f64 / capacity_bytes as f64, needed, full_since })
    }
}

/// How many times over the drives were written.
struct Capacities {
    written: f64,
    needed: f64,
    /// The first bin after the drives were written once over, if that is needed.
    full_since: Option<usize>,
}

/// The first bin before which `bytes` were written, if that many were by the end of the last one.
fn full_since(bins: &[Bin], mut bytes: u64, capacity_bytes: u64) -> usize {
    let mut first = bins.len();
    for (at, bin) in bins.iter().enumerate().rev() {
        if bytes < capacity_bytes {
            return first;
        }
        first = at + 1;
        bytes = bytes.saturating_sub(bin.written.drives_bytes.unwrap_or(bin.written.engine_bytes));
    }
    if bytes < capacity_bytes { first } else { 0 }
}

/// The change that ended the last lasting level.
fn left_at(changes: &[usize]) -> Option<usize> {
    let from = std::iter::once(0).chain(changes.iter().copied());
    from.zip(changes).filter(|(from, to)| **to - from >= LEVEL).map(|(_, to)| *to).last()
}

/// A figure, and the bin of each of its values.
struct Series {
    name: String,
    places: Vec<usize>,
    values: Vec<f64>,
    /// Whether the values are a program's reports, which may be further apart than the bins.
    is_of_reports: bool,
}

impl Series {
    /// One with a value in each bin from the first on.
    fn dense(name: &str, first: usize, values: Vec<f64>) -> Self {
        Self {
            name: name.to_owned(),
            places: (first..first + values.len()).collect(),
            values,
            is_of_reports: false,
        }
    }

    /// Where levels were left.
    fn changes(&self) -> Vec<usize> {
        cusum::changes(&self.values).into_iter().filter_map(|at| self.places.get(at).copied()).collect()
    }

    /// Whether enough reports say that it is level since a bin, and they have not stopped.
    fn has_level(&self, since: usize, bins: usize) -> bool {
        if !self.is_of_reports {
            return true;
        }
        let gaps = self.places.windows(2).map(|pair| pair[1] - pair[0]);
        let (longest, last) = (gaps.max().unwrap_or(1), self.places.last().copied().unwrap_or(0));
        let of_level = self.places.iter().filter(|place| **place >= since).count();
        of_level >= LEVEL && bins - 1 - last <= 2 * longest
    }
}

/// A figure of what was written.
type Ratio = fn(&Written) -> Option<f64>;

/// The figure of a program that stands for its progress.
fn leading(bins: &[Bin]) -> Option<String> {
    let mut reports: BTreeMap<&str, (usize, Option<Better>)> = BTreeMap::new();
    for (name, of) in bins.iter().flat_map(|bin| &bin.metrics) {
        let (count, better) = reports.entry(name).or_default();
        (*count, *better) = (*count + 1, of.better);
    }
    let most = reports.values().map(|(count, _)| *count).max()?;
    let often = reports.into_iter().filter(|(_, (count, _))| 2 * count >= most);
    often.min_by_key(|(name, (_, better))| (Better::rank(*better), *name)).map(|(name, _)| name.to_owned())
}

fn series(bins: &[Bin], reported: Option<&str>) -> Vec<Series> {
    let mut all = Vec::new();
    if let Some(name) = reported {
        let reports = bins.iter().enumerate().filter_map(|(at, bin)| Some((at, bin.metrics.get(name)?.mean)));
        let (places, values) = reports.unzip();
        all.push(Series { name: name.to_owned(), places, values, is_of_reports: true });
    }
    for class in Class::ALL {
        let bytes = |bin: &Bin| bin.class_bytes[class.index()];
        if bins.iter().any(|bin| bytes(bin) > 0) {
            let values = bins.iter().map(|bin| mb_per_s(bytes(bin), bin.duration_ns)).collect();
            all.push(Series::dense(&format!("{class} MB/s"), 0, values));
        }
    }
    let ratios: [(&str, Ratio); 2] = [("WA-A", Written::wa_a), ("WA-D", Written::wa_d)];
    for (name, of) in ratios {
        all.extend(of_bins(bins, of).map(|(first, values)| Series::dense(name, first, values)));
        let mut sum = Written::default();
        let values: Vec<Option<f64>> = bins
            .iter()
            .map(|bin| {
                sum.add(&bin.written);
                of(&sum)
            })
            .collect();
        // Cumulative: once known, it stays known unless a count is lost.
        if values.last().is_some_and(Option::is_some) {
            let first = values.iter().rposition(Option::is_none).map_or(0, |at| at + 1);
            let values = values[first..].iter().copied().flatten().collect();
            all.push(Series::dense(name, first, values));
        }
    }
    all
}

/// An amplification by bin, from the first bin that has one. A bin with too few bytes is merged with those
/// that follow until the ratio is known, which then holds for all of them.
fn of_bins(bins: &[Bin], of: Ratio) -> Option<(usize, Vec<f64>)> {
    let (mut first, mut values) = (None, Vec::new());
    let (mut sum, mut pending) = (Written::default(), 0);
    for (at, bin) in bins.iter().enumerate() {
        sum.add(&bin.written);
        pending += 1;
        if let Some(ratio) = of(&sum) {
            first.get_or_insert(at + 1 - pending);
            values.extend(std::iter::repeat_n(ratio, pending));
            (sum, pending) = (Written::default(), 0);
        }
    }
    Some((first?, values))
}

/// The means at the beginning of the run, and at the end of the level that begins at bin `since`.
fn means(bins: &[Bin], since: usize, reported: Option<&str>) -> (Option<Mean>, Option<Mean>) {
    let run_s = bins.iter().map(|bin| seconds(bin.duration_ns)).sum::<f64>();
    let span_s = (run_s / MEAN_ONE_IN).min(MEAN_S);
    let counted = |all: &mut dyn Iterator<Item = &Bin>| {
        let mut left_s = span_s;
        all.take_while(|bin| {
            left_s -= seconds(bin.duration_ns);
            left_s > -0.01
        })
        .count()
    };
    let first = counted(&mut bins.iter());
    let last = counted(&mut bins[since..].iter().rev());
    (mean(&bins[..first], reported), mean(&bins[bins.len() - last..], reported))
}

fn mean(bins: &[Bin], reported: Option<&str>) -> Option<Mean> {
    let (first, last) = (bins.first()?, bins.last()?);
    let sum = bins::sum(bins);
    Some(Mean {
        from_s: seconds(first.start_ns),
        to_s: seconds(last.start_ns + last.duration_ns),
        mb_per_s: mb_per_s(sum.bytes(), sum.duration_ns),
        iops: crate::meter::rates::per_s(sum.ios, sum.duration_ns),
        wa_a: sum.written.wa_a(),
        wa_d: sum.written.wa_d(),
        reported: reported.and_then(|name| sum.metrics.get(name)).map(|of| of.mean),
    })
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Steadiness {
    /// Whether anything was measured.
    pub fn is_known(&self) -> bool {
        !self.figures.is_empty()
    }

    /// Whether the run is steady.
    pub fn is_steady(&self) -> bool {
        self.state == SteadyState::Steady
    }

    /// What it is still waiting for, in words; none if it is not waiting, or only for time.
    pub fn waits_for(&self) -> Option<String> {
        // Older recordings only had the rule of three.
        let (written, needed) = (self.capacities_written?, self.capacities_needed.unwrap_or(CAPACITIES));
        if written >= needed {
            return None;
        }
        let level =
            self.level_since_s.map_or_else(String::new, |s| format!("level since {}, ", approx_span(s)));
        Some(if needed < CAPACITIES {
            format!("{level}WA-D still at 1, {written:.1} of 1 capacity written")
        } else {
            format!("{level}WA-D not reported, {written:.1} of 3 capacities written")
        })
    }
}

impl fmt::Display for Steadiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = approx_span(self.at_s.unwrap_or(0.0));
        match self.state {
            SteadyState::Warming => f.write_str("not yet steady"),
            SteadyState::Steady => write!(f, "steady since {at}"),
            SteadyState::Changed => write!(f, "changed at {at}"),
        }
    }
}

#[cfg(test)]
#[path = "steady_state_tests.rs"]
mod tests;
