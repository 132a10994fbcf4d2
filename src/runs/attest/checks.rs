//! The checks, how far apart their figures may be, and how two figures are judged.

use serde::Serialize;

use crate::meter::spread::Spread;

/// A check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The median service latency of a read, compared with fio's.
    LatencyP50,
    /// The 99th percentile, likewise.
    LatencyP99,
    /// Bytes read, compared with the block layer's count.
    BytesRead,
    /// Bytes written, likewise.
    BytesWritten,
    /// This process's CPU time, compared with the time that the kernel charges to it.
    OwnCpu,
    /// Busy cores of the whole system, compared with those in `/proc/stat` as another program reads it.
    BusyCores,
    /// Cycles of the whole system, compared with those that `perf` counts.
    Cycles,
    /// The figures of a recording, compared with those that another program reads from its log.
    Log,
    /// Reverted writes, compared with those that verification finds.
    LostWrites,
    /// A duel of equal settings, which must find no difference.
    EqualDuel,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Cores, over the time of the check.
    #[serde(rename = "cores")]
    Cores,
    /// CPU cycles a second.
    #[serde(rename = "cycles/s")]
    CyclesPerSecond,
    /// Pages.
    #[serde(rename = "pages")]
    Pages,
    /// Evidence of a duel.
    #[serde(rename = "evidence")]
    Evidence,
}

/// What a check compares, and how far apart its two figures may be: by a share of the other program's figure
/// or by an amount, whichever is larger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckRow {
    /// What is compared, in words.
    pub title: &'static str,
    /// The figures' unit.
    pub unit: Unit,
    /// A share of the other program's figure.
    pub share: f64,
    /// An amount in the unit.
    pub amount: f64,
    /// The reason for this tolerance.
    pub reason: &'static str,
}

/// The reason for the tolerances of latencies.
const FIO: &str = "two programs on one drive, one after the other; or as far as fio's own runs are apart";
/// The reason for the tolerances of processor time.
const TICKS: &str = "read within 10 ms of each other, of a run of a second or more, in ticks of 10 ms";
/// If fio's own runs are further from their median, they can't show whether another program's figure is right.
pub(super) const FIO_APART_MAX: f64 = 0.5;
/// Pairs of runs needed for a judgement.
pub(super) const PAIRS_MIN: usize = 3;

impl Check {
    /// All of them, in the order in which they run.
    #[cfg(test)]
    pub const ALL: [Self; 10] = [
        Self::LatencyP50,
        Self::LatencyP99,
        Self::BytesRead,
        Self::BytesWritten,
        Self::OwnCpu,
        Self::BusyCores,
        Self::Cycles,
        Self::Log,
        Self::LostWrites,
        Self::EqualDuel,
    ];

    /// What it compares, and its tolerance: the one definition.
    pub fn row(self) -> CheckRow {
        let row = |title, unit, share, amount, reason| CheckRow { title, unit, share, amount, reason };
        match self {
            Self::LatencyP50 => row("read latency p50", Unit::Nanoseconds, 0.05, 0.0, FIO),
            Self::LatencyP99 => row("read latency p99", Unit::Nanoseconds, 0.10, 0.0, FIO),
            Self::BytesRead => row("bytes read", Unit::Bytes, 0.01, 1e6, "little else reads this device"),
            Self::BytesWritten => {
                row("bytes written", Unit::Bytes, 0.01, 1e6, "a file system writes some metadata")
            }
            Self::OwnCpu => row("own CPU", Unit::Cores, 0.05, 0.02, TICKS),
            Self::BusyCores => row("busy cores", Unit::Cores, 0.05, 0.05, TICKS),
            Self::Cycles => row("cycles", Unit::CyclesPerSecond, 0.05, 0.0, TICKS),
            Self::Log => row("latency.hlog p99", Unit::Nanoseconds, 2e-3, 0.0, "a bucket of three digits"),
            Self::LostWrites => row("lost writes found", Unit::Pages, 0.0, 0.0, "every one is to be found"),
            Self::EqualDuel => row(
                "duel of equal settings",
                Unit::Evidence,
                0.0,
                0.0,
                "by chance, one duel of 40 has more evidence than that for a difference",
            ),
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// Both figures exist, and are close enough.
    Pass,
    /// Both exist, and are too far apart.
    Fail,
    /// One is missing, or shows nothing.
    NotCheckable,
}

/// The outcome of a check. Its texts name no path, device, host or user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckOutcome {
    /// The check.
    pub check: Check,
    /// Pass, fail, or not checkable here.
    pub verdict: CheckVerdict,
    /// The source of the other figure.
    pub beside: Option<String>,
    /// stacktune's figure.
    pub ours: Option<f64>,
    /// The other one.
    pub theirs: Option<f64>,
    /// The unit of both.
    pub unit: Unit,
    /// How much ours differs, as a share of theirs; for pairs, the median of their ratios, less one.
    pub difference: Option<f64>,
    /// How much it may differ, as shares: at least and at most.
    pub allowed: Option<(f64, f64)>,
    /// The reason for that tolerance.
    pub tolerance: &'static str,
    /// Why it failed or can't be checked, or anything else worth knowing.
    pub why: Option<String>,
    /// The figures of each pair of runs, ours first; empty where there was one comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<(f64, f64)>,
}

impl CheckOutcome {
    /// Not checkable here.
    pub fn not_checkable(check: Check, why: impl Into<String>) -> Self {
        Self {
            check,
            verdict: CheckVerdict::NotCheckable,
            beside: None,
            ours: None,
            theirs: None,
            unit: check.row().unit,
            tolerance: check.row().reason,
            difference: None,
            allowed: None,
            why: Some(why.into()),
            pairs: Vec::new(),
        }
    }

    /// The same for several checks.
    pub fn none(checks: &[Check], why: &str) -> Vec<Self> {
        checks.iter().map(|check| Self::not_checkable(*check, why)).collect()
    }

    /// Compares two figures by the check's tolerance; if both are zero, nothing was compared.
    pub fn of(check: Check, beside: impl Into<String>, ours: f64, theirs: f64) -> Self {
        let beside = Some(beside.into());
        let is_figure = |figure: f64| figure.is_finite() && figure >= 0.0;
        if !is_figure(ours) || !is_figure(theirs) || theirs == 0.0 {
            let why =
                if ours == 0.0 || theirs == 0.0 { "nothing was counted" } else { "a figure is missing" };
            return Self { beside, ..Self::not_checkable(check, why) };
        }
        let row = check.row();
        let most = row.share.max(row.amount / theirs);
        let difference = ours / theirs - 1.0;
        let is_close = difference.abs() <= most;
        Self {
            verdict: if is_close { CheckVerdict::Pass } else { CheckVerdict::Fail },
            beside,
            ours: Some(ours),
            theirs: Some(theirs),
            difference: Some(difference),
            allowed: Some((-most, most)),
            why: None,
            ..Self::not_checkable(check, "")
        }
    }

    /// Compares pairs of runs: the median of the pairs' ratios is judged by the tolerance or, if that is
    /// larger, by how far the other program's runs are from their own median. If they are further from it
    /// than [`FIO_APART_MAX`], only a failure can be shown.
    pub fn of_pairs(check: Check, beside: impl Into<String>, pairs: Vec<(f64, f64)>) -> Self {
        let beside = beside.into();
        let column = |of: fn(&(f64, f64)) -> f64| Spread::of(&pairs.iter().map(of).collect::<Vec<_>>());
        let columns = (column(|pair| pair.0), column(|pair| pair.1), column(|pair| pair.0 / pair.1));
        let is_whole = |&(ours, theirs): &(f64, f64)| ours > 0.0 && theirs > 0.0;
        let (Some(ours), Some(theirs), Some(ratio)) = columns else {
            return Self { beside: Some(beside), ..Self::not_checkable(check, "no run has a figure") };
        };
        if pairs.len() < PAIRS_MIN || !pairs.iter().all(is_whole) {
            let why = format!("{PAIRS_MIN} pairs of runs with both figures are needed");
            return Self { beside: Some(beside), pairs, ..Self::not_checkable(check, why) };
        }
        let row = check.row();
        let own = (theirs.low / theirs.median - 1.0, theirs.high / theirs.median - 1.0);
        let allowed = (own.0.min(-row.share), own.1.max(row.share));
        let difference = ratio.median - 1.0;
        let is_inside = |(low, high): (f64, f64)| (low..=high).contains(&difference);
        let is_wild = own.1.max(-own.0) > FIO_APART_MAX;
        let (verdict, why) = match () {
            // With such scatter, a wrong figure may pass by chance, and even a close one says little.
            () if is_inside(allowed) && is_wild => {
                let apart = own.1.max(-own.0) * 100.0;
                let why = format!("its own runs are up to {apart:.0}% from their median here");
                (CheckVerdict::NotCheckable, Some(why))
            }
            () if is_inside((-row.share, row.share)) => (CheckVerdict::Pass, None),
            () if is_inside(allowed) => {
                (CheckVerdict::Pass, Some("no further apart than its own runs are here".to_owned()))
            }
            () => (CheckVerdict::Fail, None),
        };
        Self {
            verdict,
            beside: Some(beside),
            ours: Some(ours.median),
            theirs: Some(theirs.median),
            difference: Some(difference),
            allowed: Some(allowed),
            why,
            pairs,
            ..Self::not_checkable(check, "")
        }
    }

    /// For each check that was run again, the outcome whose figures are closer.
    pub fn closest(known: Vec<Self>, again: Vec<Self>) -> Vec<Self> {
        let far = |outcome: &Self| outcome.difference.map_or(f64::INFINITY, f64::abs);
        let closer = |(one, other): (Self, Self)| {
            let best = if far(&other) < far(&one) { other } else { one };
            let note = "the closest of several runs";
            match &best.why {
                None => best.because(note),
                Some(why) if best.verdict != CheckVerdict::NotCheckable && !why.ends_with(note) => {
                    let why = format!("{why}; {note}");
                    best.because(why)
                }
                Some(_) => best,
            }
        };
        known.into_iter().zip(again).map(closer).collect()
    }

    /// The same with something else worth knowing.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }

    /// Whether a figure is wrong.
    pub fn is_failure(&self) -> bool {
        self.verdict == CheckVerdict::Fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(check: Check, ours: f64, theirs: f64) -> CheckVerdict {
        CheckOutcome::of(check, "another", ours, theirs).verdict
    }

    #[test]
    fn two_figures_pass_within_the_tolerance_and_fail_beyond() {
        assert_eq!(verdict(Check::OwnCpu, 1.049, 1.0), CheckVerdict::Pass);
        assert_eq!(verdict(Check::OwnCpu, 0.951, 1.0), CheckVerdict::Pass);
        assert_eq!(verdict(Check::OwnCpu, 1.051, 1.0), CheckVerdict::Fail);
        assert_eq!(verdict(Check::OwnCpu, 0.949, 1.0), CheckVerdict::Fail);
        // For small figures, the amount counts.
        assert_eq!(verdict(Check::OwnCpu, 0.119, 0.1), CheckVerdict::Pass);
        assert_eq!(verdict(Check::OwnCpu, 0.121, 0.1), CheckVerdict::Fail);
        assert_eq!(verdict(Check::LostWrites, 60.0, 60.0), CheckVerdict::Pass);
        assert_eq!(verdict(Check::LostWrites, 59.0, 60.0), CheckVerdict::Fail);
    }

    #[test]
    fn the_closest_of_several_runs_counts_and_is_called_that() {
        let of = |ours| vec![CheckOutcome::of(Check::BytesRead, "another", ours, 1e9)];
        let closest = |known, again| CheckOutcome::closest(known, again).remove(0);
        assert_eq!(closest(of(0.9e9), of(1e9)).verdict, CheckVerdict::Pass);
        assert_eq!(closest(of(1e9), of(0.9e9)).verdict, CheckVerdict::Pass);
        assert_eq!(closest(of(0.8e9), of(0.9e9)).verdict, CheckVerdict::Fail);
        assert_eq!(closest(of(0.8e9), of(0.9e9)).why.unwrap(), "the closest of several runs");
    }

    #[test]
    fn nothing_passes_without_two_figures() {
        for (ours, theirs) in [(0.0, 0.0), (1.0, 0.0), (f64::NAN, 1.0), (1.0, f64::NAN), (f64::INFINITY, 1.0)]
        {
            for check in Check::ALL {
                let outcome = CheckOutcome::of(check, "another", ours, theirs);
                assert_eq!(outcome.verdict, CheckVerdict::NotCheckable, "{check:?} {ours} {theirs}");
                assert!(outcome.why.is_some());
            }
        }
        assert_eq!(verdict(Check::BytesRead, 0.0, 1e9), CheckVerdict::Fail, "counting nothing is wrong");
        for pairs in [vec![], vec![(1.0, 1.0); 2], vec![(1.0, 1.0), (1.0, 0.0), (1.0, 1.0)]] {
            let outcome = CheckOutcome::of_pairs(Check::LatencyP50, "fio", pairs);
            assert_eq!(outcome.verdict, CheckVerdict::NotCheckable);
        }
    }

    #[test]
    fn pairs_are_judged_by_the_median_of_their_ratios() {
        // The level drifts by half; each pair has the same ratio.
        let drifting = |ratio: f64| (0..9).map(|n| 100.0 + f64::from(n)).map(move |fio| (fio * ratio, fio));
        let of = |pairs| CheckOutcome::of_pairs(Check::LatencyP50, "fio", pairs);
        let outcome = of(drifting(1.03).collect());
        assert_eq!(outcome.verdict, CheckVerdict::Pass);
        assert!((outcome.difference.unwrap() - 0.03).abs() < 1e-9);
        assert_eq!(of(drifting(1.06).collect()).verdict, CheckVerdict::Fail);
        assert_eq!(of(drifting(0.94).collect()).verdict, CheckVerdict::Fail);
        // A single disturbed pair decides nothing.
        let mut disturbed: Vec<_> = drifting(1.0).collect();
        disturbed[4].0 *= 3.0;
        assert_eq!(of(disturbed).verdict, CheckVerdict::Pass);
        let p99 = CheckOutcome::of_pairs(Check::LatencyP99, "fio", drifting(1.09).collect());
        assert_eq!(p99.verdict, CheckVerdict::Pass, "p99 may differ by 10%");
    }

    #[test]
    fn fios_own_range_counts_where_it_is_larger_unless_it_shows_nothing() {
        let noisy = |ratio: f64, most: f64| {
            let fio = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, most];
            fio.map(|fio| (fio * ratio, fio)).to_vec()
        };
        let of = |pairs| CheckOutcome::of_pairs(Check::LatencyP50, "fio", pairs);
        let inside = of(noisy(1.15, 1.2));
        assert_eq!(inside.verdict, CheckVerdict::Pass);
        assert!(inside.why.unwrap().contains("its own runs"));
        assert_eq!(of(noisy(1.25, 1.2)).verdict, CheckVerdict::Fail);
        // fio was slower at times, never faster.
        assert_eq!(of(noisy(0.85, 1.2)).verdict, CheckVerdict::Fail);
        let wild = of(noisy(1.4, 1.8));
        assert_eq!(wild.verdict, CheckVerdict::NotCheckable);
        assert!(wild.why.unwrap().contains("80%"));
        assert_eq!(of(noisy(1.01, 1.8)).verdict, CheckVerdict::NotCheckable, "it may be so by chance");
        assert_eq!(of(noisy(2.0, 1.8)).verdict, CheckVerdict::Fail, "it never differs from itself by that");
    }
}
