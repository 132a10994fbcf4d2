//! All checks, one after the other.

use std::sync::Arc;

use super::bed::{Attester, Bed, CheckedOn, Extent};
use super::bundle::Bundle;
use super::checks::{Check, CheckOutcome};
use super::{bytes, cpu, equal, latency, log, planted};
use crate::error::{Kind, Result};
use crate::host::Facts;
use crate::runs::session::Options;

/// Runs all checks, and removes everything they made. On devices the data set stays, as after any run.
///
/// # Errors
/// Interrupted by a signal; why the target can't be used; or what could not be removed.
pub fn attest(
    on: &CheckedOn,
    extent: Extent,
    options: Options,
    facts: Arc<Facts>,
    attester: &mut dyn Attester,
    interrupts: &dyn Fn() -> usize,
) -> Result<Bundle> {
    let mut bed = Bed::new(on, extent, options, facts, attester, interrupts)?;
    let bundle = all(&mut bed).and_then(|outcomes| {
        let levels = bed.levels()?;
        let below = (bed.target.as_ref(), &levels);
        let names = [on.names(), vec![bed.folder().display().to_string()]].concat();
        Ok(Bundle::of(outcomes, extent == Extent::Quick, &bed.facts, below, &names))
    });
    let removed = bed.remove();
    let bundle = bundle?;
    removed.map(|()| bundle)
}

fn all(bed: &mut Bed) -> Result<Vec<CheckOutcome>> {
    let (mut outcomes, mut ran) = (Vec::new(), None);
    step(bed, &mut outcomes, &[Check::LatencyP50, Check::LatencyP99], latency::check)?;
    step(bed, &mut outcomes, &[Check::BytesRead, Check::BytesWritten], bytes::check)?;
    step(bed, &mut outcomes, &[Check::OwnCpu, Check::BusyCores, Check::Cycles], |bed| {
        let (found, run) = cpu::check(bed)?;
        ran = Some(run);
        Ok(found)
    })?;
    step(bed, &mut outcomes, &[Check::Log], |bed| match &ran {
        Some(ran) => Ok(vec![log::check(ran, bed.interrupts)?]),
        None => Ok(CheckOutcome::none(&[Check::Log], "there is no recording to read")),
    })?;
    step(bed, &mut outcomes, &[Check::LostWrites], |bed| Ok(vec![planted::check(bed)?]))?;
    step(bed, &mut outcomes, &[Check::EqualDuel], |bed| Ok(vec![equal::check(bed)?]))?;
    Ok(outcomes)
}

/// Runs checks that belong together. If the target has been usable before, an error only concerns them.
fn step(
    bed: &mut Bed,
    outcomes: &mut Vec<CheckOutcome>,
    checks: &[Check],
    run: impl FnOnce(&mut Bed) -> Result<Vec<CheckOutcome>>,
) -> Result<()> {
    bed.attester.begins(checks);
    let found = match run(bed) {
        Err(error) if error.kind == Kind::Failed && !outcomes.is_empty() => {
            bed.attester.notice(&error.one_line());
            CheckOutcome::none(checks, "its run failed")
        }
        found => found?,
    };
    found.iter().for_each(|outcome| bed.attester.outcome(outcome));
    outcomes.extend(found);
    Ok(())
}
