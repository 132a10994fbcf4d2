//! Builds the stack of a confirmed plan, and undoes it if a step fails.

use std::sync::atomic::{AtomicU64, Ordering};

use super::builder::{Builder, as_shown};
use super::built::Built;
use super::context::BuildContext;
use super::made::Made;
use super::precondition;
use crate::error::{Error, Kind, Result};
use crate::stack::devices::Drive;
use crate::stack::journal::Journal;
use crate::stack::plan::{Confirmed, durations};
use crate::stack::supervise::Watch;
use crate::stack::undo::undo_all;

/// Builds the stack.
///
/// # Errors
/// If a step fails, with the tool's message; everything before it has been undone by then, or what could not
/// be is named. Refused (3) if a drive has come into use or changed since the plan; interrupted (130) if the
/// watch asked to stop.
pub fn build(confirmed: Confirmed, site: &BuildContext, watch: Watch) -> Result<Built> {
    let mut plan = confirmed.plan;
    for destroyed in &plan.destroys {
        as_shown(&plan, &destroyed.drive, site)?;
    }
    let drives: Vec<Drive> = plan.destroys.iter().map(|destroyed| destroyed.drive.clone()).collect();
    // Before our own writes, which would look like someone else's.
    let progress = drives.iter().map(|drive| precondition::kept(&site.state_dir, drive)).collect();
    let mut journal = Journal::begin(&site.state_dir, &plan.id, &site.profile, &drives)?;
    let builder = Builder {
        plan: &plan,
        site,
        drives,
        progress,
        made: Made::default(),
        layer_bytes: AtomicU64::new(0),
    };
    let ran = builder.run(&mut journal, watch).and_then(|times| {
        let bytes = builder.layer_bytes.load(Ordering::Relaxed);
        Ok((times, if bytes > 0 { Some(plan.measured(bytes)?) } else { None }))
    });
    match ran {
        Ok((times, measured)) => {
            builder.drives.iter().for_each(|drive| precondition::forget(&site.state_dir, drive));
            plan = measured.unwrap_or(plan);
            durations::keep(&site.state_dir, &plan, &times);
            let state_dir = site.state_dir.clone();
            Ok(Built { plan, journal, runner: site.runner.clone(), state_dir, times })
        }
        Err(error) => Err(after(error, undo_all(journal, &site.runner, watch))),
    }
}

/// A step's error, with the outcome of undoing the steps before it.
fn after(error: Error, undone: Result<()>) -> Error {
    match undone {
        Ok(()) => Error { what: format!("{}; everything built so far is undone", error.what), ..error },
        Err(left) => Error {
            // Something is left on the drives, so the exit status must not look like a clean stop.
            kind: if error.kind == Kind::Interrupted { left.kind } else { error.kind },
            what: format!("{}; and then {}", error.what, left.what),
            hint: [error.hint, left.hint]
                .into_iter()
                .flatten()
                .reduce(|one, other| format!("{one}\n  {other}")),
        },
    }
}
