//! What settings survive, for the ledger.

use crate::class::Class;
use crate::host::Facts;
use crate::meter::ledger::{self, Survival};
use crate::settings::{Settings, Sync};
use crate::stack::plan::{PowerCut, Resilience, properties};

/// What the settings survive on this host, for the ledger, with that many drives of the stack lost.
pub fn survival(settings: &Settings, facts: &Facts, lost: u64) -> Survival {
    let wal = &settings.classes[Class::Wal.index()];
    // A class that is off makes no commits less durable.
    let commits = u8::from(!wal.enabled || settings.wal.sync != Sync::None);
    let Resilience { power_cut, drives_lost, .. } = properties(settings, facts, 0).without(lost).resilience;
    let power_cut = match power_cut.verdict() {
        PowerCut::Yes => ledger::PowerCut::Yes,
        PowerCut::No => ledger::PowerCut::No,
        PowerCut::Unknown => ledger::PowerCut::Unknown,
    };
    Survival { commits, power_cut, drives_lost }
}
