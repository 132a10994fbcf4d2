//! What a setting survives, for the ledger.

use crate::host::Facts;
use crate::meter::turns::ledger::{self, Survival};
use crate::settings::{Program, Settings};
use crate::stack::plan::{PowerCut, Resilience, StackSpec, properties};

/// What these settings' stack and their program's commits survive on this host, for the ledger, with that many of the
/// drives lost: at least one if the settings ask for it, whether or not a window has shown that yet.
pub fn survival((settings, stack): (&Settings, &StackSpec), facts: &Facts, lost: u64) -> Survival {
    let commits = u8::from(stack.flushes);
    let Resilience { power_cut, drives_lost, .. } =
        properties(stack, facts, 0).without(lost.max(stack.lost_as_set())).resilience;
    let power_cut = match power_cut.verdict() {
        PowerCut::Yes => ledger::PowerCut::Yes,
        PowerCut::No => ledger::PowerCut::No,
        PowerCut::Unknown => ledger::PowerCut::Unknown,
    };
    let own = settings.program.as_ref().map(Program::durabilities).unwrap_or_default();
    Survival { commits, own, power_cut, drives_lost }
}

/// Whether a run with each of these settings survives less than with the other, in some respect.
pub fn survives_less(settings: &[Settings; 2], facts: &Facts) -> [bool; 2] {
    let of = |settings: &Settings| survival((settings, &StackSpec::of(settings)), facts, 0);
    let [one, other] = settings.each_ref().map(of);
    [one.is_less_than(other), other.is_less_than(one)]
}
