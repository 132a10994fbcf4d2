//! The figures that the paper's tables and drawings show, taken from a recording.

use serde::{Serialize, Serializer};

use super::kept_figure::KeptFigure;
use crate::class::Class;
use crate::meter::window::{Latency, Window};
use crate::runs::record::Recording;
use crate::runs::record::summary::ClassSummary;

/// A figure of the paper. Its measurement is defined with [`Summary`](crate::runs::record::Summary)'s fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// The scan's MB/s.
    ScanMbPerS,
    /// The point reads' MB/s.
    PointMbPerS,
    /// The background writer's MB/s.
    BackgroundMbPerS,
    /// The WAL's MB/s.
    WalMbPerS,
    /// Both writers' MB/s together, as in Tables 4 and 5.
    WriteMbPerS,
    /// All classes' MB/s.
    TotalMbPerS,
    /// The whole system's cycles per byte.
    CyclesPerByte,
    /// Mean service latency of the scan, in µs.
    ScanMeanUs,
    /// 99th percentile of the scan's service latency, in µs.
    ScanP99Us,
    /// Mean service latency of point reads, in µs.
    PointMeanUs,
    /// 99th percentile of the point reads' service latency, in µs.
    PointP99Us,
    /// Mean latency of the WAL's flushes, in µs.
    FlushMeanUs,
    /// 99th percentile of the WAL's flushes, in µs.
    FlushP99Us,
    /// A program's transactions, in thousands per second.
    KtxnPerS,
    /// MB/s read from the drives below a program.
    DrivesReadMbPerS,
    /// MB/s written to them.
    DrivesWrittenMbPerS,
    /// The share of all CPU time in use, in percent.
    CpuBusyPercent,
    /// A figure of a traced run.
    Kept(KeptFigure),
}

/// A statistic of a latency.
#[derive(Clone, Copy)]
enum Of {
    Mean,
    P99,
}

impl Figure {
    /// Its heading in two lines: the subject, and its unit.
    pub fn heading(self) -> [&'static str; 2] {
        match self {
            Self::ScanMbPerS => ["scan", "MB/s"],
            Self::PointMbPerS => ["point", "MB/s"],
            Self::BackgroundMbPerS => ["bg wr", "MB/s"],
            Self::WalMbPerS => ["WAL", "MB/s"],
            Self::WriteMbPerS => ["write", "MB/s"],
            Self::TotalMbPerS => ["total", "MB/s"],
            Self::CyclesPerByte => ["cycles", "/byte"],
            Self::ScanMeanUs => ["scan mean", "µs"],
            Self::ScanP99Us => ["scan p99", "µs"],
            Self::PointMeanUs => ["point mean", "µs"],
            Self::PointP99Us => ["point p99", "µs"],
            Self::FlushMeanUs => ["flush mean", "µs"],
            Self::FlushP99Us => ["flush p99", "µs"],
            Self::KtxnPerS => ["txns", "k/s"],
            Self::DrivesReadMbPerS => ["read", "MB/s"],
            Self::DrivesWrittenMbPerS => ["written", "MB/s"],
            Self::CpuBusyPercent => ["CPU busy", "%"],
            Self::Kept(of) => of.heading(),
        }
    }

    /// Its name in a line of text: `scan MB/s`, `cycles/byte`.
    pub fn name(self) -> String {
        let [what, unit] = self.heading();
        let gap = if unit.starts_with('/') { "" } else { " " };
        format!("{what}{gap}{unit}")
    }

    /// Its key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::ScanMbPerS => "scan_mb_per_s",
            Self::PointMbPerS => "point_mb_per_s",
            Self::BackgroundMbPerS => "background_mb_per_s",
            Self::WalMbPerS => "wal_mb_per_s",
            Self::WriteMbPerS => "write_mb_per_s",
            Self::TotalMbPerS => "total_mb_per_s",
            Self::CyclesPerByte => "cycles_per_byte",
            Self::ScanMeanUs => "scan_mean_us",
            Self::ScanP99Us => "scan_p99_us",
            Self::PointMeanUs => "point_mean_us",
            Self::PointP99Us => "point_p99_us",
            Self::FlushMeanUs => "flush_mean_us",
            Self::FlushP99Us => "flush_p99_us",
            Self::KtxnPerS => "ktxn_per_s",
            Self::DrivesReadMbPerS => "drives_read_mb_per_s",
            Self::DrivesWrittenMbPerS => "drives_written_mb_per_s",
            Self::CpuBusyPercent => "cpu_busy_percent",
            Self::Kept(of) => of.key(),
        }
    }

    /// The classes whose flags bear on it.
    pub fn classes(self) -> &'static [Class] {
        match self {
            Self::ScanMbPerS | Self::ScanMeanUs | Self::ScanP99Us => &[Class::Scan],
            Self::PointMbPerS | Self::PointMeanUs | Self::PointP99Us => &[Class::Point],
            Self::BackgroundMbPerS => &[Class::Background],
            Self::WalMbPerS | Self::FlushMeanUs | Self::FlushP99Us => &[Class::Wal],
            Self::WriteMbPerS => &[Class::Wal, Class::Background],
            Self::TotalMbPerS | Self::CyclesPerByte => &Class::ALL,
            // A program's work, and the traffic that reaches the drives, belong to no class.
            Self::KtxnPerS
            | Self::DrivesReadMbPerS
            | Self::DrivesWrittenMbPerS
            | Self::CpuBusyPercent
            | Self::Kept(_) => &[],
        }
    }

    /// Whether it depends on the count of cycles.
    pub fn is_cycles(self) -> bool {
        self == Self::CyclesPerByte
    }

    /// The figure of a run, in the unit of its heading; none if its class did nothing.
    pub fn of_run(self, recording: &Recording) -> Option<f64> {
        if let Self::Kept(of) = self {
            return of.of_run(recording);
        }
        let summary = &recording.summary;
        let class = |class: Class| Some(summary.class(class)).filter(|figures| is_active(figures));
        let rate = |of: Class| class(of).map(|figures| figures.mb_per_s);
        let service = |of: Class, stat| class(of).and_then(|figures| us(figures.service_ns.as_ref(), stat));
        let flush = |stat| us(summary.classes.wal.flush_ns.as_ref(), stat);
        let program = summary.program.as_ref();
        let mb_per_s = |bytes: u64| bytes as f64 / 1e6 / summary.duration_s;
        let value = match self {
            Self::ScanMbPerS => rate(Class::Scan),
            Self::PointMbPerS => rate(Class::Point),
            Self::BackgroundMbPerS => rate(Class::Background),
            Self::WalMbPerS => rate(Class::Wal),
            Self::WriteMbPerS => {
                let both = [rate(Class::Wal), rate(Class::Background)];
                both.iter().any(Option::is_some).then(|| both.iter().flatten().sum())
            }
            Self::TotalMbPerS => Some(summary.total.mb_per_s),
            Self::CyclesPerByte => summary.total.cycles_per_byte,
            Self::ScanMeanUs => service(Class::Scan, Of::Mean),
            Self::ScanP99Us => service(Class::Scan, Of::P99),
            Self::PointMeanUs => service(Class::Point, Of::Mean),
            Self::PointP99Us => service(Class::Point, Of::P99),
            Self::FlushMeanUs => flush(Of::Mean),
            Self::FlushP99Us => flush(Of::P99),
            Self::KtxnPerS => program.and_then(|of| Some(of.metrics.get("tps")?.mean / 1e3)),
            Self::DrivesReadMbPerS => program.and_then(|of| Some(mb_per_s(of.drives_read_bytes?))),
            Self::DrivesWrittenMbPerS => program.and_then(|of| Some(mb_per_s(of.drives_written_bytes?))),
            Self::CpuBusyPercent => Some(summary.total.cpu_busy * 100.0),
            Self::Kept(_) => None,
        };
        value.filter(|x| x.is_finite())
    }

    /// The figure of a window, for figures that are shown over time.
    pub fn of_window(self, window: &Window) -> Option<f64> {
        let service = |class: Class, stat| us(window.class(class).latencies.service_ns.as_ref(), stat);
        let value = match self {
            Self::ScanMbPerS => Some(window.class(Class::Scan).mb_per_s),
            Self::PointMbPerS => Some(window.class(Class::Point).mb_per_s),
            Self::TotalMbPerS => Some(window.total.mb_per_s),
            Self::PointMeanUs => service(Class::Point, Of::Mean),
            Self::PointP99Us => service(Class::Point, Of::P99),
            Self::ScanMeanUs => service(Class::Scan, Of::Mean),
            Self::ScanP99Us => service(Class::Scan, Of::P99),
            _ => None,
        };
        value.filter(|x| x.is_finite())
    }

    /// A published value as the paper prints such figures.
    pub fn published_text(self, value: f64) -> String {
        match self {
            Self::CyclesPerByte => format!("{value:.2}"),
            _ if value.fract() == 0.0 => format!("{value:.0}"),
            _ => format!("{value:.1}"),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

/// A class that did nothing has no figures, rather than zeros.
fn is_active(figures: &ClassSummary) -> bool {
    figures.ios + figures.errors + figures.intended > 0
}

fn us(latency: Option<&Latency>, stat: Of) -> Option<f64> {
    let latency = latency?;
    let ns = match stat {
        Of::Mean => latency.mean,
        Of::P99 => latency.p99.map(|ns| ns as f64),
    };
    ns.map(|ns| ns / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::record::fixture::{self, Like};
    use crate::runs::record::{Outcome, Writer};

    #[test]
    fn each_figure_is_what_the_summary_says_in_its_unit() {
        let dir = tempfile::tempdir().unwrap();
        let windows = fixture::windows(Like::default());
        let writer = Writer::create(&dir.path().join("run"), &fixture::header()).unwrap();
        let summary = writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
        let recording = Recording::open(&dir.path().join("run")).unwrap();
        let figure = |figure: Figure| figure.of_run(&recording);
        assert_eq!(figure(Figure::ScanMbPerS), Some(summary.classes.scan.mb_per_s));
        let writers = summary.classes.wal.class.mb_per_s + summary.classes.background.mb_per_s;
        assert_eq!(figure(Figure::WriteMbPerS), Some(writers));
        let parts = [Figure::ScanMbPerS, Figure::PointMbPerS, Figure::WriteMbPerS];
        let sum: f64 = parts.into_iter().filter_map(figure).sum();
        assert!((sum / figure(Figure::TotalMbPerS).unwrap() - 1.0).abs() < 1e-9);
        let p99 = summary.classes.point.service_ns.as_ref().unwrap().p99.unwrap();
        assert_eq!(figure(Figure::PointP99Us), Some(p99 as f64 / 1e3));
        let mean = summary.classes.wal.flush_ns.as_ref().unwrap().mean.unwrap();
        assert_eq!(figure(Figure::FlushMeanUs), Some(mean / 1e3));
        let window = &windows[2];
        assert_eq!(Figure::ScanMbPerS.of_window(window), Some(window.classes[0].mb_per_s));
    }
}
