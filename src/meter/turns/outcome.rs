//! What a turn did, in a word.

use super::estimate::WINDOWS_MIN;
use crate::meter::ledger_figure::LedgerFigure;
use crate::meter::window::{Change, LedgerLine, Verdict};

/// What the windows on both sides of a turn say of it together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnOutcome {
    /// It is not decided yet.
    Gathering,
    /// Something forbids a verdict.
    NotJudged,
    /// Nothing changed clearly.
    NoClearChange,
    /// Something got better, and nothing worse.
    Better,
    /// Something got worse, and nothing better.
    Worse,
    /// Both.
    TradeOff,
    /// What a program reports changed: whether for the better its profile does not say.
    Different,
}

impl TurnOutcome {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
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
    /// What the turn did. One after which less is survived is never better: what it gains is a trade-off.
    pub fn outcome(&self) -> TurnOutcome {
        if self.open {
            return TurnOutcome::Gathering;
        }
        let changes = self.changes();
        let all = changes.iter().map(|(_, change)| *change).chain(self.metrics.values());
        if all.into_iter().all(|change| change.verdict == Verdict::None) {
            return TurnOutcome::NotJudged;
        }
        let any = |wanted: bool| {
            let of_program = || self.metrics.values().any(|change| change.is_gain() == Some(wanted));
            changes.iter().any(|(figure, change)| is_gain(*figure, change) == Some(wanted)) || of_program()
        };
        match (any(true), any(false) || self.is_less_safe()) {
            (true, false) => TurnOutcome::Better,
            (false, true) => TurnOutcome::Worse,
            (true, true) => TurnOutcome::TradeOff,
            (false, false) if self.metrics.values().any(|change| change.verdict.is_clear()) => {
                TurnOutcome::Different
            }
            (false, false) => TurnOutcome::NoClearChange,
        }
    }

    /// Why there is no verdict, where there is none.
    pub fn why_not_judged(&self) -> Option<String> {
        if self.outcome() != TurnOutcome::NotJudged {
            return None;
        }
        let too_few = (self.windows.0 as usize) < WINDOWS_MIN;
        let no_baseline = || "no baseline: it was turned too early".to_owned();
        self.flags.first().cloned().or_else(|| too_few.then(no_baseline))
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
        let open = LedgerLine { open: true, ..LedgerLine::default() };
        assert_eq!(open.outcome(), TurnOutcome::Gathering);
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
        assert_eq!(names, ["scan MB/s", "WAL MB/s", "total MB/s"]);
    }
}
