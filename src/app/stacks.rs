//! `stacktune status` and `stacktune cleanup`: the stacks on this host.

use std::io::{IsTerminal, stderr};
use std::time::{SystemTime, UNIX_EPOCH};

use super::inputs::facts;
use super::output::{eprint_line, print, print_json};
use super::signals::Interrupts;
use crate::error::{Error, Result};
use crate::runs::session::OursCheck;
use crate::stack::guard::Consent;
use crate::stack::paths::state_dir;
use crate::stack::runner::Runner;
use crate::stack::supervise::Advance;
use crate::stack::undo::{self, CleanupRequest};
use crate::ui::cli::CleanupArgs;
use crate::ui::report::stacks as report;

/// `stacktune status`.
pub fn status(json: bool) -> Result<()> {
    let found = undo::leftovers(&state_dir())?;
    if json { print_json(&found) } else { print(&report::status(&found, now_unix_s())) }
}

/// `stacktune cleanup`.
pub fn cleanup(args: &CleanupArgs) -> Result<()> {
    // Removal runs to its end: a signal must not stop it half-way.
    let _interrupts = Interrupts::watch()?;
    let consent = match args.destroy.as_slice() {
        [] => Consent::default(),
        names => Consent::named(names, &facts())?,
    };
    let (ids, forget_missing) = (args.ids.clone(), args.forget_missing);
    let wanted = CleanupRequest { ids, retained: args.all, forget_missing, consent };
    let mut last = None;
    let mut watch = |advance: &Advance| {
        if stderr().is_terminal() && last != Some(advance.step) {
            last = Some(advance.step);
            eprint_line(&format!("stacktune: removing {}", advance.command));
        }
        true
    };
    let cleaned = undo::cleanup(&state_dir(), &wanted, (&Runner::default(), &OursCheck), &mut watch)?;
    if args.output.json {
        print_json(&cleaned)?;
    } else {
        // A retained stack that could not be removed is shown above.
        let is_shown = |stack: &undo::Leftover| cleaned.iter().any(|one| one.leftover.id == stack.id);
        let retained = undo::retained(&state_dir())?.into_iter().filter(|stack| !is_shown(stack));
        print(&report::cleaned(&cleaned, &retained.collect::<Vec<_>>()))?;
    }
    let failed: Vec<_> = cleaned.iter().filter(|one| one.problem.is_some()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let what = format!("{} of {} stacks could not be removed completely", failed.len(), cleaned.len());
    let refused = failed.iter().all(|one| one.refused);
    let error = if refused { Error::refused(what) } else { Error::failed(what) };
    Err(error.hint("see the reasons above, and run `stacktune cleanup` again"))
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
