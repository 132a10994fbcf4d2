//! The stacks on this host, as text.

use std::fmt::Write;

use crate::printable::{Shown as _, line};
use crate::stack::undo::{Cleaned, Leftover, StackState};
use crate::units::approx_span;

/// All stacks, each with what is still in place and the commands that remove it by hand. Names and commands are never
/// cut.
pub fn status(found: &[Leftover], now_unix_s: u64) -> String {
    if found.is_empty() {
        return "no stacks, and nothing left behind\n".to_owned();
    }
    let mut out = String::new();
    for leftover in found {
        let _ = writeln!(out, "{}", headline(leftover, now_unix_s));
        if let Some(problem) = &leftover.problem {
            let _ = writeln!(out, "  {}", problem.replace('\n', "\n  "));
        }
        for drive in &leftover.drives {
            let _ = writeln!(out, "  on {}", line(drive));
        }
        for standing in &leftover.stands {
            let _ = writeln!(out, "  {}", line(&standing.what));
            for command in &standing.commands {
                let _ = writeln!(out, "      {}", line(command));
            }
        }
        if let Some(way_out) = way_out(leftover) {
            let _ = writeln!(out, "  {way_out}");
        }
    }
    out
}

fn headline(leftover: &Leftover, now_unix_s: u64) -> String {
    let Leftover { profile, pid, .. } = leftover;
    let id = line(&leftover.id);
    let ago = approx_span(now_unix_s.saturating_sub(leftover.since_unix_s) as f64);
    let restarted = if leftover.restarted { ", before this host was restarted" } else { "" };
    let of = format!("of {}, built {ago} ago{restarted}", line(profile));
    match leftover.state {
        StackState::Running => format!("{id} is in use: {of}, by process {pid}"),
        StackState::Ending => {
            format!("{id} is ending: {of}; its process is dead, one of its tools is still running")
        }
        StackState::Dead => format!("{id} was left behind: {of}; its process is dead"),
        StackState::Retained => format!("{id} is retained: {of}"),
        StackState::Unreadable => format!("{id} has an unreadable journal"),
    }
}

fn way_out(leftover: &Leftover) -> Option<String> {
    match leftover.state {
        StackState::Dead | StackState::Ending => Some("to remove it: stacktune cleanup".to_owned()),
        StackState::Retained => Some(format!("to remove it: stacktune cleanup {}", line(&leftover.id))),
        StackState::Running | StackState::Unreadable => None,
    }
}

/// What was removed, what could not be, and which stacks stay because the operator retained them.
pub fn cleaned(cleaned: &[Cleaned], retained: &[Leftover]) -> String {
    let mut out = String::new();
    if cleaned.is_empty() {
        out += if retained.is_empty() {
            "nothing is left behind\n"
        } else {
            "nothing is left behind by a dead run\n"
        };
    }
    for Cleaned { leftover, problem, folders, .. } in cleaned {
        let Leftover { profile, stands, .. } = leftover;
        let id = line(&leftover.id);
        match problem {
            None => {
                let _ = writeln!(out, "{id} of {} was removed", line(profile));
                for standing in stands {
                    let _ = writeln!(out, "  {}", line(&standing.what));
                }
                for dir in folders {
                    let _ =
                        writeln!(out, "  the folder {} stays, as it is in use: remove it later", dir.shown());
                }
            }
            Some(problem) => {
                let _ = writeln!(out, "{id} was not removed: {}", problem.replace('\n', "\n  "));
            }
        }
    }
    for Leftover { id, profile, .. } in retained {
        let (id, of) = (line(id), line(profile));
        let _ = writeln!(out, "{id} of {of} is retained: stacktune cleanup {id} removes it");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::undo::Remnant;

    fn leftover(state: StackState) -> Leftover {
        let standing =
            |what: &str, command: &str| Remnant { what: what.into(), commands: vec![command.into()] };
        Leftover {
            id: "00112233aabbccdd".into(),
            state,
            profile: "mine".into(),
            pid: 812,
            since_unix_s: 1000,
            restarted: false,
            drives: vec!["/dev/nvme0n1 (serial S1)".into()],
            stands: vec![
                standing("mount at /s/mnt", "umount /s/mnt"),
                standing("folder /s/mnt", "rmdir /s/mnt"),
            ],
            problem: None,
        }
    }

    #[test]
    fn the_status_lists_what_is_in_place_and_how_to_remove_it() {
        let text = status(&[leftover(StackState::Dead)], 1090);
        assert_eq!(
            text,
            "00112233aabbccdd was left behind: of mine, built 1m 30s ago; its process is dead\n\
             \x20 on /dev/nvme0n1 (serial S1)\n\
             \x20 mount at /s/mnt\n\
             \x20     umount /s/mnt\n\
             \x20 folder /s/mnt\n\
             \x20     rmdir /s/mnt\n\
             \x20 to remove it: stacktune cleanup\n"
        );
        assert!(status(&[leftover(StackState::Running)], 1090).contains("is in use: of mine"));
        assert!(
            status(&[leftover(StackState::Retained)], 1090).contains("stacktune cleanup 00112233aabbccdd")
        );
        let old = Leftover { restarted: true, ..leftover(StackState::Dead) };
        assert!(status(&[old], 1090).contains("before this host was restarted"));
        assert!(status(&[], 0).contains("nothing left behind"));
    }

    #[test]
    fn names_in_a_journal_make_no_lines() {
        let evil = "x\n00112233aabbccdd of mine was removed\x1b[2J";
        let mut stack = leftover(StackState::Retained);
        (stack.profile, stack.drives, stack.stands[0].what) = (evil.into(), vec![evil.into()], evil.into());
        stack.id = evil.into();
        stack.stands[0].commands = vec![evil.into()];
        let removed = Cleaned { leftover: stack.clone(), problem: None, refused: false, folders: Vec::new() };
        for text in [status(&[stack.clone()], 1090), cleaned(&[removed], &[stack])] {
            let is_false = |line: &str| line.starts_with("00112233aabbccdd of mine") || line.contains('\x1b');
            assert!(!text.lines().any(is_false), "{text:?}");
        }
    }

    #[test]
    fn retained_stacks_are_named_with_the_command_that_removes_them() {
        assert_eq!(cleaned(&[], &[]), "nothing is left behind\n");
        assert_eq!(
            cleaned(&[], &[leftover(StackState::Retained)]),
            "nothing is left behind by a dead run\n\
             00112233aabbccdd of mine is retained: stacktune cleanup 00112233aabbccdd removes it\n"
        );
    }

    #[test]
    fn what_could_not_be_removed_is_shown_with_the_reason() {
        let dead = leftover(StackState::Dead);
        let gone = Cleaned { leftover: dead, problem: None, refused: false, folders: Vec::new() };
        let busy = Cleaned { problem: Some("it is held by process 9".into()), ..gone.clone() };
        let text = cleaned(&[gone, busy], &[]);
        assert!(text.starts_with("00112233aabbccdd of mine was removed\n  mount at /s/mnt\n"), "{text}");
        assert!(text.ends_with("00112233aabbccdd was not removed: it is held by process 9\n"), "{text}");
    }
}
