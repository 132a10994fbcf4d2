//! What a stack survives, for the ledger.

use crate::host::Facts;
use crate::meter::ledger::{self, Survival};
use crate::stack::plan::{PowerCut, Resilience, StackSpec, properties};

/// What a stack survives on this host, for the ledger, with that many of its drives lost: one is, where the
/// settings say so, whether or not a window has shown that yet.
pub fn survival(stack: &StackSpec, facts: &Facts, lost: u64) -> Survival {
    let commits = u8::from(stack.flushes);
    let Resilience { power_cut, drives_lost, .. } =
        properties(stack, facts, 0).without(lost.max(stack.lost_as_set())).resilience;
    let power_cut = match power_cut.verdict() {
        PowerCut::Yes => ledger::PowerCut::Yes,
        PowerCut::No => ledger::PowerCut::No,
        PowerCut::Unknown => ledger::PowerCut::Unknown,
    };
    Survival { commits, power_cut, drives_lost }
}
