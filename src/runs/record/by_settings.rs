//! Flags that windows have because of a run's settings and target, whatever was measured. They follow from
//! the profile as run and from `host.json`: whoever removes them has to edit these, too.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names::PROFILE;
use crate::class::Class;
use crate::json;
use crate::meter::flag::FlagKind;
use crate::meter::window::{ClassState, LedgerLine, Window};
use crate::runs::pitfalls::Circumstances;
use crate::settings::jobs::{Job, jobs};
use crate::settings::profile::parse;
use crate::settings::{Buffering, Settings, Sync};

/// Contradictions of the profile as run, as clauses. If the run was turned, only `host.json` is compared,
/// since not all its windows have that profile.
pub(super) fn contradictions(
    windows: &[Window],
    ledger: &[LedgerLine],
    profile_toml: &str,
    host: &Value,
) -> Vec<String> {
    let Ok(profile) = parse(profile_toml, PROFILE) else { return Vec::new() };
    let circumstances = json::read_value(&host["circumstances"]).ok();
    let mut found = circumstances.as_ref().map_or_else(Vec::new, |of| of_host(of, &profile.settings));
    let same = |window: &Window| !window.turned && window.setting == windows[0].setting;
    if ledger.is_empty() && windows.iter().all(same) {
        found.extend(missing_flags(windows, &profile.settings, circumstances.as_ref(), host));
    }
    found
}

/// Contradictions of the settings in `host.json`.
fn of_host(has: &Circumstances, settings: &Settings) -> Vec<String> {
    let again = Circumstances::of(settings, &crate::host::Levels::default(), 0, 0);
    let cached = |of: &Circumstances| if of.cached { "the page cache" } else { "no page cache" };
    let used = |of: &Circumstances| format!("{}% of each drive", of.use_percent);
    let pairs = [
        (cached(has).to_owned(), cached(&again).to_owned()),
        (used(has), used(&again)),
        (format!("drives {}", has.state), format!("drives {}", again.state)),
    ];
    // Earlier versions, and runs without drives, leave them empty.
    let is_known = [true, has.use_percent > 0, !has.state.is_empty()];
    let unlike = pairs.into_iter().zip(is_known).filter(|((has, again), known)| *known && has != again);
    unlike
        .map(|((has, again), _)| format!("host.json has {has}, but the profile as run has {again}"))
        .collect()
}

/// Flags that windows lack, each with the number of such windows.
fn missing_flags(
    windows: &[Window],
    settings: &Settings,
    circumstances: Option<&Circumstances>,
    host: &Value,
) -> Vec<String> {
    let fits = circumstances.is_some_and(|of| of.data_bytes < of.memory_bytes) && !settings.is_keyed();
    let target = &host["target"];
    let jobs = jobs(settings);
    let mut lacking: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for window in windows {
        let has = |flags: &[crate::meter::flag::Flag], kind| flags.iter().any(|flag| flag.is(kind));
        for class in Class::ALL.into_iter().filter(|class| window.class(*class).state != ClassState::Off) {
            for kind in of_class(&jobs[class.index()], target, fits) {
                if !has(&window.class(class).flags, kind) {
                    *lacking.entry((class.name(), kind.text())).or_default() += 1;
                }
            }
        }
        // A program's classes are off, so its windows have the flag themselves.
        let is_emulated = settings.program.is_some() && target["emulated"].is_string();
        for (is_raised, kind) in
            [(target["mounted"].is_string(), FlagKind::Mounted), (is_emulated, FlagKind::Emulated)]
        {
            if is_raised && !has(&window.flags, kind) {
                *lacking.entry(("the run", kind.text())).or_default() += 1;
            }
        }
    }
    lacking
        .into_iter()
        .map(|((what, flag), count)| {
            format!(
                "{what} is not flagged `{flag}` in {count} windows, although its settings and target raise it"
            )
        })
        .collect()
}

/// The flags of a class that runs such a job.
fn of_class(job: &Job, target: &Value, fits: bool) -> Vec<FlagKind> {
    let mut kinds = Vec::new();
    if job.interface.touches_storage() {
        let is_cached = job.class != Class::Wal && job.buffering == Buffering::Cached;
        kinds.extend((is_cached && fits).then_some(FlagKind::DataFitsMemory));
        kinds.extend(target["emulated"].is_string().then_some(FlagKind::Emulated));
    } else if job.interface.is_simulated() {
        kinds.push(FlagKind::Simulated);
    } else {
        kinds.push(FlagKind::NoStorage);
    }
    kinds.extend((job.class == Class::Wal && job.sync == Sync::None).then_some(FlagKind::NotDurable));
    kinds
}
