//! What is reported of the stacks of former runs when a session begins.

use crate::stack::paths::state_dir;
use crate::stack::undo::{Leftover, StackState, leftovers};

/// What dead processes have left on this host, if anything.
pub fn left_over() -> Option<String> {
    match leftovers(&state_dir()) {
        Ok(found) => in_words(&found),
        Err(error) => Some(format!("whether a former run has left a stack is unknown: {}", error.one_line())),
    }
}

/// The first of them whose run died, and how many more there are. Stacks that were kept, or whose process
/// lives, are nobody's mistake.
fn in_words(found: &[Leftover]) -> Option<String> {
    let nobodys = |stack: &&Leftover| !matches!(stack.state, StackState::Running | StackState::Kept);
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
            "a run of `{profile}` died, and a tool that it had started still works (stack {id}){more}; `stacktune cleanup` removes it afterwards"
        ),
        StackState::Unreadable => {
            let why = first.problem.as_deref().unwrap_or("it can't be read");
            format!(
                "the journal of stack {id} does not say what is left of it: {why}{more}; see `stacktune status`"
            )
        }
        StackState::Dead | StackState::Running | StackState::Kept => format!(
            "left behind by a run of `{profile}` that died (stack {id}): {what}{more}; `stacktune cleanup` removes it"
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
    fn every_stack_that_nobody_looks_after_is_reported_and_no_other() {
        let of = |state| stack("a", state, None);
        assert_eq!(in_words(&[of(StackState::Running), of(StackState::Kept)]), None);
        let told = |stacks: &[Leftover]| in_words(stacks).unwrap();
        assert!(
            told(&[of(StackState::Kept), of(StackState::Dead)])
                .starts_with("left behind by a run of `mine` that died (stack a)")
        );
        let ending = told(&[of(StackState::Ending), of(StackState::Dead)]);
        assert!(ending.contains("still works (stack a), and one more stack;"), "{ending}");
        let unreadable =
            told(&[stack("b", StackState::Unreadable, Some("cannot read /j/b: permission denied"))]);
        assert!(unreadable.contains("stack b") && unreadable.contains("permission denied"), "{unreadable}");
    }
}
