//! What a turn did, in a word.

use super::estimate::WINDOWS_MIN;
use crate::meter::flag::{FlagKind, forbids_verdict, kind_of_turns};
use crate::meter::ledger_figure::{FigureUnit, LedgerFigure};
use crate::meter::window::{Change, LedgerLine, Verdict};

/// What the windows on both sides of a turn together say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnOutcome {
    /// A duel, which has its own verdict.
    Duel,
    /// Not decided yet.
    Gathering,
    /// Something forbids a verdict.
    NotJudged,
    /// Nothing changed clearly.
    NoClearChange,
    /// Something got better, and nothing worse.
    Better,
    /// Something got worse, nothing got better, and no more is survived.
    Worse,
    /// Both; or a gain after which less is survived, or a loss after which more is.
    TradeOff,
    /// A program's figure changed, and its profile does not say which direction is better; or the I/Os have
    /// another size, and so another latency.
    Different,
}

impl TurnOutcome {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Duel => "duel",
            Self::Gathering => "gathering",
            Self::NotJudged => "can't be judged",
            Self::NoClearChange => "no clear change",
            Self::Better => "BETTER",
            Self::Worse => "WORSE",
            Self::TradeOff => "TRADE-OFF",
            Self::Different => "DIFFERENT",
        }
    }
}

/// Whether a clear change of a figure is a gain; none if it is not clear.
pub fn is_gain(figure: LedgerFigure, change: &Change) -> Option<bool> {
    match change.verdict {
        Verdict::None | Verdict::NoClearChange => None,
        Verdict::Higher => Some(figure.more_is_gain()),
        Verdict::Lower => Some(!figure.more_is_gain()),
    }
}

impl LedgerLine {
    /// What the turn did. A turn after which less is survived is never better, and one after which more is
    /// survived is never worse: a gain in the first case, or a loss in the second, is a trade-off.
    pub fn outcome(&self) -> TurnOutcome {
        if !self.duel.is_empty() {
            return TurnOutcome::Duel;
        }
        if self.open {
            // Windows missing before a turn never come, and of all flags only a trend may end.
            let stays =
                |flag: &String| forbids_verdict(flag) && kind_of_turns(flag) != Some(FlagKind::Drifting);
            let never = self.windows.0 == 0 || self.flags.iter().any(stays);
            return if never { TurnOutcome::NotJudged } else { TurnOutcome::Gathering };
        }
        let changes = self.changes();
        let all = changes.iter().map(|(_, change)| *change).chain(self.metrics.values());
        if all.into_iter().all(|change| change.verdict == Verdict::None) {
            return TurnOutcome::NotJudged;
        }
        if self.is_of_other_sizes() {
            return TurnOutcome::Different;
        }
        let any = |wanted: bool| {
            let of_program = || self.metrics.values().any(|change| change.is_gain() == Some(wanted));
            changes.iter().any(|(figure, change)| is_gain(*figure, change) == Some(wanted)) || of_program()
        };
        match (any(true), any(false) || self.is_less_safe()) {
            (true, false) => TurnOutcome::Better,
            (false, true) if !self.more_durable => TurnOutcome::Worse,
            (_, true) => TurnOutcome::TradeOff,
            (false, false) if self.metrics.values().any(|change| change.verdict.is_clear()) => {
                TurnOutcome::Different
            }
            (false, false) => TurnOutcome::NoClearChange,
        }
    }

    /// Whether the only clear changes are latencies of I/Os that the turn made larger or smaller: as long as
    /// they move the same bytes, a small I/O that is fast is no gain, and a large one that is slow is no loss.
    pub fn is_of_other_sizes(&self) -> bool {
        let resized = |figure: LedgerFigure| {
            let class = figure.name.split(' ').next().unwrap_or_default().to_lowercase();
            let by = |knob: &str| knob == "io.page_size" || knob == format!("{class}.page_size");
            figure.unit == FigureUnit::LatencyNs && self.by_knob().iter().any(|(knob, _)| by(knob))
        };
        let changes = self.changes();
        let mut clear = changes.iter().filter(|(_, change)| change.verdict.is_clear()).peekable();
        let of_program = self.metrics.values().any(|change| change.verdict.is_clear());
        clear.peek().is_some()
            && clear.all(|(figure, _)| resized(*figure))
            && !of_program
            && !self.is_less_safe()
    }

    /// Why there is no verdict, where there is none.
    pub fn why_not_judged(&self) -> Option<String> {
        if self.outcome() != TurnOutcome::NotJudged {
            return None;
        }
        let [too_few_before, too_few_after] =
            [self.windows.0, self.windows.1].map(|windows| (windows as usize) < WINDOWS_MIN);
        if too_few_before {
            return Some("no baseline: it was turned too early".to_owned());
        }
        // Too few windows are the reason only if no other flag was one throughout. A drift may end.
        let is_short =
            |flag: &&String| matches!(kind_of_turns(flag), Some(FlagKind::Overtaken | FlagKind::TooShort));
        let drifts = |flag: &&String| kind_of_turns(flag) == Some(FlagKind::Drifting);
        let lasts = |flag: &&String| forbids_verdict(flag) && !is_short(flag) && !drifts(flag);
        let other = self.flags.iter().find(lasts);
        let short = self.flags.iter().rfind(|flag| too_few_after && is_short(flag));
        other.or(short).or_else(|| self.forbidding()).cloned()
    }

    /// The first flag that forbids a verdict.
    fn forbidding(&self) -> Option<&String> {
        self.flags.iter().find(|flag| forbids_verdict(flag))
    }

    /// Whether there are enough windows on both sides, and only a flag forbids the verdict.
    pub fn is_flagged(&self) -> bool {
        let windows = self.windows.0.min(self.windows.1) as usize;
        windows >= WINDOWS_MIN && self.outcome() == TurnOutcome::NotJudged && self.forbidding().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Better;

    fn with(scan: Verdict, wal_p99: Verdict, less_durable: bool) -> TurnOutcome {
        let change = |verdict| Change { verdict, ..Change::default() };
        let line = LedgerLine {
            scan_mb_per_s: change(scan),
            wal_p99_ns: change(wal_p99),
            less_durable,
            ..LedgerLine::default()
        };
        line.outcome()
    }

    #[test]
    fn one_word_for_all_figures() {
        use Verdict::{Higher, Lower, NoClearChange, None};
        assert_eq!(with(Higher, NoClearChange, false), TurnOutcome::Better);
        assert_eq!(with(Higher, Lower, false), TurnOutcome::Better);
        assert_eq!(with(Higher, Higher, false), TurnOutcome::TradeOff);
        assert_eq!(with(Lower, None, false), TurnOutcome::Worse);
        assert_eq!(with(Higher, Lower, true), TurnOutcome::TradeOff, "less durable never wins");
        assert_eq!(with(NoClearChange, NoClearChange, true), TurnOutcome::Worse);
        assert_eq!(with(NoClearChange, None, false), TurnOutcome::NoClearChange);
        assert_eq!(with(None, None, true), TurnOutcome::NotJudged);
        let of_size = |knob: &str, scan, point_p50| {
            let change = |verdict| Change { verdict, ..Change::default() };
            let line = LedgerLine {
                knob: knob.into(),
                scan_mb_per_s: change(scan),
                point_p50_ns: change(point_p50),
                ..LedgerLine::default()
            };
            line.outcome()
        };
        for (knob, scan, expected) in [
            ("io.page_size", NoClearChange, TurnOutcome::Different),
            ("point.page_size", NoClearChange, TurnOutcome::Different),
            ("scan.page_size", NoClearChange, TurnOutcome::Better),
            ("point.depth", NoClearChange, TurnOutcome::Better),
            ("io.page_size", Lower, TurnOutcome::TradeOff),
            ("io.page_size", Higher, TurnOutcome::Better),
        ] {
            assert_eq!(of_size(knob, scan, Lower), expected, "{knob} {scan:?}");
        }
        assert_eq!(of_size("io.page_size", NoClearChange, Higher), TurnOutcome::Different);
        let back = |verdict| {
            let scan_mb_per_s = Change { verdict, ..Change::default() };
            LedgerLine { scan_mb_per_s, more_durable: true, ..LedgerLine::default() }.outcome()
        };
        let outcomes = [TurnOutcome::TradeOff, TurnOutcome::Better, TurnOutcome::NoClearChange];
        assert_eq!([Lower, Higher, NoClearChange].map(back), outcomes, "more durable is never worse");
        let duel = LedgerLine { duel: vec![(1, "2".into())], ..LedgerLine::default() };
        assert_eq!((duel.outcome(), duel.why_not_judged()), (TurnOutcome::Duel, Option::None));
        let open = |before| LedgerLine { open: true, windows: (before, 0), ..LedgerLine::default() };
        assert_eq!(open(3).outcome(), TurnOutcome::Gathering);
        assert_eq!(open(0).outcome(), TurnOutcome::NotJudged, "there is nothing to compare it with");
        for (flag, outcome) in [
            ("scan drifting", TurnOutcome::Gathering),
            ("others 1.3 cores", TurnOutcome::Gathering),
            ("others changed queue.scheduler", TurnOutcome::NotJudged),
            ("wal failed", TurnOutcome::NotJudged),
        ] {
            let line = LedgerLine { flags: vec![flag.into()], ..open(3) };
            assert_eq!(line.outcome(), outcome, "{flag}");
        }
    }

    #[test]
    fn why_there_is_no_verdict_is_what_forbids_it() {
        let why = |windows: (u64, u64), flags: &[&str]| {
            let flags = flags.iter().map(ToString::to_string).collect();
            let line = LedgerLine { windows, flags, ..LedgerLine::default() };
            (line.why_not_judged().unwrap_or_default(), line.is_flagged())
        };
        let early = "no baseline: it was turned too early";
        for (windows, flags, reason, flagged) in [
            ((0, 5), &["scan data fits memory", "background simulated"][..], early, false),
            ((0, 1), &["others 1.3 cores", "too short"], early, false),
            (
                (8, 1),
                &["background simulated", "turns 2–3 together", "overtaken by turn 4"],
                "overtaken by turn 4",
                false,
            ),
            ((8, 2), &["scan drifting", "overtaken by turn 4"], "overtaken by turn 4", false),
            ((8, 0), &["scan cache 97%", "too short"], "scan cache 97%", false),
            ((8, 0), &["background simulated", "too short"], "too short", false),
            ((8, 5), &["background simulated", "steal 5%", "drifting"], "steal 5%", true),
            ((8, 5), &["wal not durable", "scan data fits memory"], "scan data fits memory", true),
            ((8, 5), &["others 1.3 cores", "wal errors", "less durable"], "", false),
        ] {
            assert_eq!(why(windows, flags), (reason.to_owned(), flagged), "{windows:?} {flags:?}");
        }
        let open = LedgerLine { open: true, windows: (0, 2), ..LedgerLine::default() };
        assert_eq!(open.why_not_judged().as_deref(), Some(early));
    }

    #[test]
    fn what_a_program_reports_is_judged_as_its_profile_says() {
        use Verdict::{Higher, Lower, NoClearChange};
        let of = |figures: &[(Verdict, Option<Better>)]| {
            let change = |(at, &(verdict, better)): (usize, &(Verdict, Option<Better>))| {
                (at.to_string(), Change { verdict, better, ..Change::default() })
            };
            let metrics = figures.iter().enumerate().map(change).collect();
            LedgerLine { metrics, ..LedgerLine::default() }.outcome()
        };
        let (more, less) = (Some(Better::Higher), Some(Better::Lower));
        for (figures, outcome) in [
            (&[(Higher, None)][..], TurnOutcome::Different),
            (&[(NoClearChange, more)], TurnOutcome::NoClearChange),
            (&[(Verdict::None, more)], TurnOutcome::NotJudged),
            (&[(Higher, more), (Lower, less)], TurnOutcome::Better),
            (&[(Lower, more), (NoClearChange, less)], TurnOutcome::Worse),
            (&[(Higher, more), (Higher, less)], TurnOutcome::TradeOff),
            (&[(Higher, more), (Higher, None)], TurnOutcome::Better),
        ] {
            assert_eq!(of(figures), outcome, "{figures:?}");
        }
    }

    #[test]
    fn of_rates_more_is_a_gain() {
        let line = LedgerLine::default();
        let gains = line.changes().into_iter().filter(|(figure, _)| figure.more_is_gain());
        let names: Vec<_> = gains.map(|(figure, _)| figure.name).collect();
        assert_eq!(names, ["scan MB/s", "point MB/s", "WAL MB/s", "background MB/s", "total MB/s"]);
    }
}
