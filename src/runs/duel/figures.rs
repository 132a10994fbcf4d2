//! The figures of a block: rates over all of its time, percentiles of all of its samples, means of a program's reports.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::class::Class;
use crate::meter::flag::FlagKind;
use crate::meter::latencies::latency::p99_ns;
use crate::meter::turns::estimate::STALLED;
use crate::meter::window::{ClassState, Window};
use crate::settings::{Better, Metric, Settings};
use crate::short_list;
use crate::units::mb_per_s;

/// A figure by which settings are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// MB/s of all classes.
    Total,
    /// MB/s of the scan.
    Scan,
    /// MB/s of the point reads.
    Point,
    /// MB/s of the WAL.
    Wal,
    /// MB/s of the background writer.
    Background,
    /// The service latency that one in a hundred point reads exceeds.
    PointP99,
    /// The latency that one in a hundred commits exceeds.
    WalP99,
    /// The system's cycles over the bytes of all classes.
    CyclesPerByte,
    /// A figure reported by the program that is the load.
    #[value(skip)]
    #[serde(untagged)]
    Reported(ReportedFigure),
}

/// A figure that a program reports: from `[command.metrics]` or `[command.probes]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ReportedFigure {
    /// Its name there.
    pub name: String,
    /// Which way it gets better; none if the profile does not say.
    #[serde(skip_serializing)]
    pub better: Option<Better>,
}

impl ReportedFigure {
    /// Whether it can be compared as a ratio. A rate of 0 is a stall; such a latency may be a good one, or
    /// mean that nothing was done.
    fn is_a_value(&self, value: f64) -> bool {
        value > 0.0 || value == 0.0 && self.better == Some(Better::Higher)
    }
}

impl Figure {
    /// All of the classes.
    pub const ALL: [Self; 8] = [
        Self::Total,
        Self::Scan,
        Self::Point,
        Self::Wal,
        Self::Background,
        Self::PointP99,
        Self::WalP99,
        Self::CyclesPerByte,
    ];

    /// The figures of a run with these settings: the classes', or those of the program that is its load. The first of
    /// a program is the likeliest: one that is better if higher, as rates are, or else better if lower.
    pub fn all_of(settings: &Settings) -> Vec<Self> {
        let Some(program) = &settings.program else { return Self::ALL.to_vec() };
        let probes = program.probes.iter().map(|probe| &probe.metric);
        let mut metrics: Vec<&Metric> = program.metrics.iter().chain(probes).collect();
        short_list::sort_by_key(&mut metrics, |metric| Better::rank(metric.better));
        let of = |metric: &Metric| ReportedFigure { name: metric.name.clone(), better: metric.better };
        metrics.into_iter().map(|metric| Self::Reported(of(metric))).collect()
    }

    /// Those of a run with these settings that can decide a duel: it must be known which way they get better.
    pub fn deciding(settings: &Settings) -> Vec<Self> {
        let decides = |figure: &Self| !matches!(figure, Self::Reported(ReportedFigure { better: None, .. }));
        Self::all_of(settings).into_iter().filter(decides).collect()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Total => "total MB/s",
            Self::Scan => "scan MB/s",
            Self::Point => "point MB/s",
            Self::Wal => "WAL MB/s",
            Self::Background => "background MB/s",
            Self::PointP99 => "point p99",
            Self::WalP99 => "WAL p99",
            Self::CyclesPerByte => "cycles/byte",
            Self::Reported(of) => &of.name,
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(&self) -> bool {
        match self {
            Self::Total | Self::Scan | Self::Point | Self::Wal | Self::Background => true,
            Self::PointP99 | Self::WalP99 | Self::CyclesPerByte => false,
            Self::Reported(of) => of.better == Some(Better::Higher),
        }
    }

    /// The factor of the other block's figure that stands in, at worst, for a missing one. If it is not known
    /// which way the figure gets better, there is one for either way.
    pub fn at_worst(&self) -> &'static [f64] {
        match self {
            Self::Reported(ReportedFigure { better: None, .. }) => &[STALLED, 1.0 / STALLED],
            _ if self.more_is_better() => &[STALLED],
            _ => &[1.0 / STALLED],
        }
    }

    /// Over these windows: MB/s, nanoseconds, cycles or the program's own unit. If nothing was done, a rate is 0, and
    /// other figures are none; so are percentiles of too few samples, and figures that a program did not report.
    pub fn of(&self, windows: &[Window]) -> Option<f64> {
        match self {
            Self::Total => rate(windows, |window| Some(window.total.bytes)),
            Self::Scan => rate(windows, |window| bytes(window, Class::Scan)),
            Self::Point => rate(windows, |window| bytes(window, Class::Point)),
            Self::Wal => rate(windows, |window| bytes(window, Class::Wal)),
            Self::Background => rate(windows, |window| bytes(window, Class::Background)),
            Self::PointP99 => p99(windows, Class::Point),
            Self::WalP99 => p99(windows, Class::Wal),
            Self::CyclesPerByte => cycles_per_byte(windows),
            Self::Reported(of) => reported(windows, &of.name).filter(|value| of.is_a_value(*value)),
        }
    }
}

fn bytes(window: &Window, class: Class) -> Option<u64> {
    let figures = window.class(class);
    (figures.state == ClassState::Running).then_some(figures.bytes)
}

fn rate(windows: &[Window], bytes: impl Fn(&Window) -> Option<u64>) -> Option<f64> {
    let bytes: u64 = windows.iter().map(bytes).sum::<Option<u64>>()?;
    Some(mb_per_s(bytes, windows.iter().map(|window| window.duration_ns).sum()))
}

/// The mean of all reported values.
fn reported(windows: &[Window], name: &str) -> Option<f64> {
    let found = windows.iter().filter_map(|window| window.program.as_ref()?.metrics.get(name));
    let (sum, count) = found.fold((0.0, 0.0), |(sum, count), metric| {
        let values = metric.count as f64;
        (sum + metric.mean * values, count + values)
    });
    (count > 0.0).then(|| sum / count)
}

fn p99(windows: &[Window], class: Class) -> Option<f64> {
    let mut all = Histogram::<u64>::new(3).ok()?;
    for window in windows {
        if let Some(histogram) = &window.histograms[class.index()].service {
            all.add(histogram).ok()?;
        }
    }
    p99_ns(&all).map(|ns| ns as f64)
}

/// None if other programs ran, whose cycles would be included.
fn cycles_per_byte(windows: &[Window]) -> Option<f64> {
    let bytes: u64 = windows.iter().map(|window| window.total.bytes).sum();
    let cycles = |window: &Window| {
        let known = !window.cpu.coarse && !window.flags.iter().any(|flag| flag.is(FlagKind::Others));
        let all = match window.total.bytes {
            // The cycles are spent all the same.
            0 => Some(window.cpu.cycles).filter(|cycles| *cycles > 0.0),
            bytes => window.total.cycles_per_byte.map(|per_byte| per_byte * bytes as f64),
        };
        all.filter(|_| known)
    };
    let cycles: f64 = windows.iter().map(cycles).sum::<Option<f64>>()?;
    (bytes > 0).then(|| cycles / bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::programs::program::{MetricFigures, ProgramFigures};
    use crate::settings::Program;

    fn metric(name: &str, better: Option<Better>) -> Metric {
        Metric { name: name.into(), line: "([0-9]+)".into(), unit: String::new(), better }
    }

    #[test]
    fn a_programs_rate_is_most_likely_meant_and_what_has_no_better_side_decides_nothing() {
        let metrics = vec![
            metric("load", None),
            metric("lat", Some(Better::Lower)),
            metric("tps", Some(Better::Higher)),
        ];
        let program = Some(Program { metrics, ..Program::default() });
        let settings = Settings { program, ..Settings::default() };
        let names = |figures: Vec<Figure>| figures.iter().map(|of| of.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(Figure::all_of(&settings)), ["tps", "lat", "load"]);
        let deciding = Figure::deciding(&settings);
        assert_eq!(deciding.iter().map(Figure::more_is_better).collect::<Vec<_>>(), [true, false]);
        assert_eq!(serde_json::to_string(&deciding).unwrap(), r#"["tps","lat"]"#);
        assert_eq!(Figure::deciding(&Settings::default()), Figure::ALL);
    }

    #[test]
    fn what_a_program_reports_is_the_mean_of_all_values_of_a_block() {
        let window = |metric: Option<MetricFigures>| {
            let metrics = metric.map(|metric| ("tps".to_owned(), metric)).into_iter().collect();
            Window {
                program: Some(ProgramFigures { metrics, ..ProgramFigures::default() }),
                ..Window::default()
            }
        };
        let three = MetricFigures { count: 3, ..MetricFigures::of(10.0, "") };
        let figure = |better| Figure::Reported(ReportedFigure { name: "tps".into(), better });
        let windows = [window(Some(three)), window(None), window(Some(MetricFigures::of(30.0, "")))];
        let none = [window(Some(MetricFigures::of(0.0, "")))];
        for (better, of_none) in
            [(Some(Better::Higher), Some(0.0)), (Some(Better::Lower), None), (None, None)]
        {
            let figure = figure(better);
            assert_eq!(figure.of(&windows), Some(15.0));
            assert_eq!(figure.of(&windows[1..2]), None, "it said nothing");
            assert_eq!(figure.of(&none), of_none, "a rate alone stalls: {better:?}");
        }
        let figure = figure(None);
        assert_eq!(figure.of(&[Window::default()]), None);
    }
}
