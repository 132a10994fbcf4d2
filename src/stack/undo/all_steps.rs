//! Undoing everything in a journal, last step first.

use super::one_step::UndoOutcome;
use super::undoer::{Scrutiny, Undoer};
use crate::error::{Error, Kind, Result};
use crate::stack::journal::{Journal, Undo, boot_id};
use crate::stack::runner::Runner;
use crate::stack::supervise::{Advance, Watch, attended};

/// Undoes everything in the journal, last step first, and removes the journal.
pub fn undo_all(journal: Journal, runner: &Runner, watch: Watch) -> Result<()> {
    undo_with(journal, runner, Terms::default(), watch)
}

/// Conditions for removing things.
#[derive(Clone, Copy, Default)]
pub(super) struct Terms<'a> {
    /// Give up on what is on missing drives.
    pub(super) forget_missing: bool,
    /// Given if the drives were out of this process's hands.
    pub(super) scrutiny: Option<Scrutiny<'a>>,
}

/// The same on these terms.
pub(super) fn undo_with(mut journal: Journal, runner: &Runner, terms: Terms, watch: Watch) -> Result<()> {
    let header = journal.record().header.clone();
    let same_boot = header.boot == boot_id()?;
    let made = (&header, journal.record().entries.as_slice(), journal.record().retained);
    let data_sets = journal.record().data_sets().collect();
    let undoer = Undoer::of(made, runner, (same_boot, terms.forget_missing));
    let undoer = undoer.under(terms.scrutiny, data_sets);
    let steps = journal.record().entries.len();
    let mut problems = Vec::new();
    let mut blocked = false;
    for number in (0..steps).rev() {
        let Some(undo) = journal.record().entries[number].to_undo().cloned() else { continue };
        // Anything below a device that is still in place can't be removed, but settings can be restored.
        if blocked && !is_setting(&undo) {
            continue;
        }
        let command = undo.describe();
        let advance = Advance { step: number, steps, command, undoing: true, bytes: None, left_s: None };
        watch(&advance);
        let (outcome, _) =
            journal.shared_with_tools(|| attended(&mut *watch, advance, |_| undoer.undo(&undo)));
        match outcome {
            Ok(UndoOutcome::Undone) => journal.undone(number as u64),
            Ok(UndoOutcome::Missing(error)) => problems.push(error),
            Err(error) => {
                // Formatting a drive back comes last: nothing else of the stack is left on it by then.
                blocked |= !is_setting(&undo) && !matches!(undo, Undo::RestoreFormat { .. });
                problems.push(Error { what: format!("{}: {}", undo.describe(), error.what), ..error });
            }
        }
    }
    if problems.is_empty() { journal.end() } else { Err(left_over(&journal, &problems)) }
}

fn is_setting(undo: &Undo) -> bool {
    matches!(
        undo,
        Undo::RestoreQueue { .. }
            | Undo::RestoreArray { .. }
            | Undo::ReplaceMember { .. }
            | Undo::RemoveCgroup { .. }
            | Undo::GiveBack { .. }
    )
}

fn left_over(journal: &Journal, problems: &[Error]) -> Error {
    let record = journal.record();
    let left = record.entries.iter().filter(|entry| entry.to_undo().is_some()).count();
    let mut why: Vec<&str> = problems.iter().map(|problem| problem.what.as_str()).collect();
    why.dedup();
    let what =
        format!("not all of stack {} could be undone ({left} left): {}", record.header.id.0, why.join("; "));
    let again = format!("after that, `stacktune cleanup {}` undoes the rest", record.header.id.0);
    let mut hints: Vec<String> = problems.iter().filter_map(|problem| problem.hint.clone()).collect();
    hints.dedup();
    hints.push(again);
    let refused = problems.iter().all(|problem| problem.kind == Kind::Refused);
    let error = if refused { Error::refused(what) } else { Error::failed(what) };
    error.hint(hints.join("\n  "))
}
