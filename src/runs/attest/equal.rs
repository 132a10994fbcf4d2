//! A duel of equal settings, which must not find a difference.

use super::bed::{Bed, Onlooker, with};
use super::checks::{Check, CheckOutcome, CheckVerdict};
use crate::error::Result;
use crate::runs::duel::report::{ENOUGH, Verdict as Decided};
use crate::runs::duel::{DuelSpec, Figure, PAIRS_MIN, Report};
use crate::runs::session::{Duel, Event, Session};
use crate::units::format_duration;

/// A knob that does not affect any measurement, yet restarts the classes like any other: the time from which
/// slow I/Os are kept.
const KNOB: &str = "run.slow_log";
const VALUES: [&str; 2] = ["59s", "60s"];
const MARGIN: f64 = 0.05;

/// The check.
pub(super) fn check(bed: &mut Bed) -> Result<CheckOutcome> {
    let window = format_duration(bed.amounts.duel_window);
    let settings = with(
        &bed.settings,
        &[
            ("point.enabled", "true"),
            ("point.depth", "4"),
            ("run.window", &window),
            ("io.buffering", if bed.not_direct().is_some() { "cached" } else { "direct" }),
            (KNOB, VALUES[0]),
        ],
    )?;
    let spec = DuelSpec {
        knob: KNOB.to_owned(),
        values: VALUES.map(str::to_owned),
        figure: Figure::Total,
        margin: MARGIN,
        seed: rand::random::<u32>().into(),
    };
    let mut duel = Duel::new(spec, &settings)?;
    bed.run(&settings, bed.amounts.duel, &mut duel)?;
    Ok(judged(&duel.report()))
}

impl Onlooker for Duel {
    fn event(&mut self, session: &mut Session, event: &Event) -> Result<bool> {
        self.watch(session, event)
    }
}

/// Whether the duel found a difference; it may also end without a decision.
fn judged(report: &Report) -> CheckOutcome {
    let (check, pairs) = (Check::EqualDuel, report.pairs.len());
    let shown = CheckOutcome {
        beside: Some("the evidence that calls a difference".to_owned()),
        ours: report.figures.first().map(|row| row.evidence),
        theirs: Some(ENOUGH),
        why: None,
        ..CheckOutcome::not_checkable(check, "")
    };
    match report.verdict {
        Decided::First | Decided::Second | Decided::LessDurable => {
            CheckOutcome { verdict: CheckVerdict::Fail, ..shown }
                .because("equal settings were called different")
        }
        Decided::NotJudged => shown.because(report.why.clone().unwrap_or_default()),
        Decided::NoDifference | Decided::Unclear if pairs < PAIRS_MIN => {
            shown.because(format!("{pairs} pairs are too few to call anything, {PAIRS_MIN} are needed"))
        }
        Decided::NoDifference | Decided::Unclear => {
            CheckOutcome { verdict: CheckVerdict::Pass, ..shown }.because(format!("after {pairs} pairs"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::duel::Begins;
    use crate::runs::duel::report::{DuelRow, Pair};

    fn report(verdict: Decided, pairs: usize) -> Report {
        let row = DuelRow {
            figure: Figure::Total,
            pairs,
            evidence: 3.0,
            threshold: ENOUGH,
            change: None,
            interval: Some((0.0, 0.0)),
        };
        Report {
            knob: KNOB.into(),
            values: VALUES.map(str::to_owned),
            figure: Figure::Total,
            margin: MARGIN,
            seed: 1,
            block_windows: (0, 3),
            begins: Begins::Turned,
            less_durable: None,
            unsettled: Vec::new(),
            measured: vec![Figure::Total],
            pairs: vec![Pair::default(); pairs],
            dropped: Vec::new(),
            figures: vec![row],
            verdict,
            why: Some("cache 97%".into()),
        }
    }

    #[test]
    fn calling_a_difference_fails_and_too_few_pairs_show_nothing() {
        let of = |verdict, pairs| judged(&report(verdict, pairs)).verdict;
        assert_eq!(of(Decided::NoDifference, 9), CheckVerdict::Pass);
        assert_eq!(of(Decided::Unclear, 7), CheckVerdict::Pass);
        assert_eq!(of(Decided::Unclear, 6), CheckVerdict::NotCheckable);
        assert_eq!(of(Decided::NotJudged, 9), CheckVerdict::NotCheckable);
        for called in [Decided::First, Decided::Second, Decided::LessDurable] {
            assert_eq!(of(called, 8), CheckVerdict::Fail);
        }
        let outcome = judged(&report(Decided::NoDifference, 9));
        assert_eq!((outcome.ours, outcome.theirs), (Some(3.0), Some(40.0)));
        assert_eq!(judged(&report(Decided::NotJudged, 0)).why.as_deref(), Some("cache 97%"));
    }

    #[test]
    fn the_knob_turns_between_its_values_without_effect() {
        let knob = crate::settings::knobs::find(KNOB).unwrap();
        assert!(VALUES.iter().all(|text| knob.parse(text).is_ok()) && !knob.spec.only_reckons);
    }
}
