//! The report about earlier runs' stacks when a session begins.

use crate::stack::paths::state_dir;
use crate::stack::undo::{Leftover, StackState, leftovers};

/// The remains of dead processes on this host, if any.
pub fn left_over() -> Option<String> {
    match leftovers(&state_dir()) {
        Ok(found) => in_words(&found),
        Err(error) => {
            Some(format!("can't tell whether an earlier run left a stack behind: {}", error.one_line()))
        }
    }
}

/// The first stack whose run died, and how many more there are. Retained stacks, and those whose process is
/// alive, are not reported.
fn in_words(found: &[Leftover]) -> Option<String> {
    let nobodys = |stack: &&Leftover| !matches!(stack.state, StackState::Running | StackState::Retained);
    let (first, count) = (found.iter().find(nobodys)?, found.iter().filter(nobodys).count());
    let (id, profile) = (&first.id, &first.profile);
    let more = match count - 1 {
        0 => String::new(),
        1 => ", and one more stack".to_owned(),
        more => format!(", and {more} more stacks"),
    };
    let what = first.stands.iter().map(|standing| standing.what.as_str()).collect::<Vec<_>>().join(", ");
    Some(match first.state {
        StackState::Ending => format!(
            "a run of `{profile}` died, but a tool that it had started is still running (stack {id}){more}; once that has ended, `stacktune cleanup` removes the stack"
        ),
        StackState::Unreadable => {
            let why = first.problem.as_deref().unwrap_or("it can't be read");
            format!(
                "can't tell what is left of stack {id}, as its journal can't be read: {why}{more}; see `stacktune status`"
            )
        }
        StackState::Dead | StackState::Running | StackState::Retained => format!(
            "a run of `{profile}` died: `stacktune cleanup` removes what it left of stack {id}: {what}{more}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(id: &str, state: StackState, problem: Option<&str>) -> Leftover {
        Leftover {
            id: id.into(),
            state,
            profile: "mine".into(),
            pid: 7,
            since_unix_s: 0,
            restarted: false,
            drives: Vec::new(),
            stands: Vec::new(),
            problem: problem.map(Into::into),
        }
    }

    #[test]
    fn only_abandoned_stacks_are_reported() {
        let of = |state| stack("a", state, None);
        assert_eq!(in_words(&[of(StackState::Running), of(StackState::Retained)]), None);
        let report = |stacks: &[Leftover]| in_words(stacks).unwrap();
        // The way out comes first: the list may be longer than the screen has room for.
        assert!(
            report(&[of(StackState::Retained), of(StackState::Dead)])
                .starts_with("a run of `mine` died: `stacktune cleanup` removes what it left of stack a")
        );
        let ending = report(&[of(StackState::Ending), of(StackState::Dead)]);
        assert!(ending.contains("still running (stack a), and one more stack;"), "{ending}");
        let unreadable =
            report(&[stack("b", StackState::Unreadable, Some("cannot read /j/b: permission denied"))]);
        assert!(unreadable.contains("stack b") && unreadable.contains("permission denied"), "{unreadable}");
    }
}
