//! The figures of a block: rates over all of its time, percentiles of all of its samples.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::class::Class;
use crate::meter::flag::FlagKind;
use crate::meter::latencies::latency::SAMPLES_BEYOND;
use crate::meter::window::{ClassState, Window};
use crate::units::mb_per_s;

/// What settings are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// MB/s of all classes.
    Total,
    /// MB/s of the scan.
    Scan,
    /// MB/s of the WAL.
    Wal,
    /// Service latency of a point read that one in a hundred exceeds.
    PointP99,
    /// Commit latency that one in a hundred exceeds.
    WalP99,
    /// The system's cycles over the bytes of all classes.
    CyclesPerByte,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Total, Self::Scan, Self::Wal, Self::PointP99, Self::WalP99, Self::CyclesPerByte];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Total => "total MB/s",
            Self::Scan => "scan MB/s",
            Self::Wal => "WAL MB/s",
            Self::PointP99 => "point p99",
            Self::WalP99 => "WAL p99",
            Self::CyclesPerByte => "cycles/byte",
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Total | Self::Scan | Self::Wal)
    }

    /// Over these windows: MB/s, nanoseconds or cycles. Where nothing was done a rate is 0, and there is none of the
    /// others; nor is there a percentile of too few samples.
    pub fn of(self, windows: &[Window]) -> Option<f64> {
        match self {
            Self::Total => rate(windows, |window| Some(window.total.bytes)),
            Self::Scan => rate(windows, |window| bytes(window, Class::Scan)),
            Self::Wal => rate(windows, |window| bytes(window, Class::Wal)),
            Self::PointP99 => p99(windows, Class::Point),
            Self::WalP99 => p99(windows, Class::Wal),
            Self::CyclesPerByte => cycles_per_byte(windows),
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

fn p99(windows: &[Window], class: Class) -> Option<f64> {
    let mut all = Histogram::<u64>::new(3).ok()?;
    for window in windows {
        if let Some(histogram) = &window.histograms[class.index()].service {
            all.add(histogram).ok()?;
        }
    }
    (all.len() / 100 >= SAMPLES_BEYOND).then(|| all.value_at_quantile(0.99) as f64)
}

/// None beside others, whose cycles would be in it.
fn cycles_per_byte(windows: &[Window]) -> Option<f64> {
    let bytes: u64 = windows.iter().map(|window| window.total.bytes).sum();
    let cycles = |window: &Window| {
        let known = !window.cpu.coarse && !window.flags.iter().any(|flag| flag.is(FlagKind::Others));
        let all = match window.total.bytes {
            // They are spent all the same.
            0 => Some(window.cpu.cycles).filter(|cycles| *cycles > 0.0),
            bytes => window.total.cycles_per_byte.map(|per_byte| per_byte * bytes as f64),
        };
        all.filter(|_| known)
    };
    let cycles: f64 = windows.iter().map(cycles).sum::<Option<f64>>()?;
    (bytes > 0).then(|| cycles / bytes as f64)
}
