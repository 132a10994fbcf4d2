//! What a run can have counted and noted: values read are checked before use, so that their sums do not
//! overflow, and comparing their flags takes no time.

use std::collections::HashSet;

use serde_json::Value;

use crate::class::Class;
use crate::meter::flag::stem;
use crate::meter::window::Window;

/// More than all counts of a run together: an exabyte in bytes, 36 years in nanoseconds. A lower total leaves
/// room in 64 bits for a few more such sums.
const COUNTS_MAX: u128 = 1 << 60;
/// More than there are kinds of flags.
const FLAGS_MAX: usize = 100;

const COUNTS: &str = "it counts more than any run can";
const TIMES: &str = "it is of a time that no run reaches";
const FLAGS: &str = "it has more flags than exist";

/// Checks windows.
///
/// # Errors
/// A value that no run can have.
pub fn check_windows(windows: &[Window]) -> Result<(), &'static str> {
    if windows.iter().map(Window::counts_sum).sum::<u128>() > COUNTS_MAX {
        return Err(COUNTS);
    }
    if windows.iter().any(|window| u128::from(window.start_ns) > COUNTS_MAX) {
        return Err(TIMES);
    }
    let lists = |window| {
        let of_classes = Class::ALL.map(|class| &Window::class(window, class).flags);
        of_classes.into_iter().chain([&window.flags])
    };
    let mut stems = HashSet::new();
    for flags in windows.iter().flat_map(lists) {
        stems.extend(flags.iter().take(FLAGS_MAX + 1).map(|flag| stem(&flag.text)));
        if flags.len() > FLAGS_MAX || stems.len() > FLAGS_MAX {
            return Err(FLAGS);
        }
    }
    Ok(())
}

/// Checks a summary.
///
/// # Errors
/// A value that no run can have.
pub fn check_summary(summary: &Value) -> Result<(), &'static str> {
    fn sum(value: &Value) -> u128 {
        match value {
            Value::Number(number) => number.as_u64().unwrap_or_default().into(),
            Value::Array(values) => values.iter().map(sum).sum(),
            Value::Object(map) => map.values().map(sum).sum(),
            _ => 0,
        }
    }
    if sum(summary) > COUNTS_MAX {
        return Err(COUNTS);
    }
    let of_classes = Class::ALL.map(|class| &summary["classes"][class.name()]["flags"]);
    let is_long = |flags: &Value| flags.as_array().is_some_and(|flags| flags.len() > FLAGS_MAX);
    if of_classes.into_iter().chain([&summary["flags"]]).any(is_long) { Err(FLAGS) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::fixture::{self, Like};
    use super::super::names::{SUMMARY, WINDOWS};
    use super::super::tests::{set, written};
    use super::super::{Outcome, Recording};

    /// Flags of a window with texts from this number on.
    fn flags(from: usize, count: usize) -> serde_json::Value {
        let flag = |number| serde_json::json!({ "text": format!("f{number} 5%"), "why": "", "forbids_verdict": true });
        (from..from + count).map(flag).collect()
    }

    /// Why a recording is refused with that figure in its first window, or in its summary.
    fn refused(name: &str, at: &str, figure: impl Into<serde_json::Value>) -> Option<String> {
        let (dir, windows) = (tempfile::tempdir().unwrap(), fixture::windows(Like::default()));
        written(dir.path(), &windows).finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
        let path = dir.path().join(name);
        fs::write(&path, set(&fs::read_to_string(&path).unwrap(), at, figure)).unwrap();
        Recording::open(dir.path()).err().map(|error| error.what)
    }

    #[test]
    fn times_and_flags_that_no_run_has_are_refused() {
        let is_refused = |name: &str, at: &str, figure: serde_json::Value, why: &str| {
            let what = refused(name, at, figure).unwrap_or_default();
            assert!(what.contains(&format!("{name} is damaged: {why}")), "{at}: {what}");
        };
        // Its end does not fit into 64 bits.
        is_refused(WINDOWS, "/start_ns", u64::MAX.into(), "it is of a time");
        for at in ["/flags", "/classes/wal/flags"] {
            is_refused(WINDOWS, at, flags(0, 101), "it has more flags");
            is_refused(SUMMARY, at, vec!["a"; 101].into(), "it has more flags");
            assert_eq!(refused(SUMMARY, at, vec!["a"; 100]), None);
        }
        assert_eq!(refused(WINDOWS, "/flags", flags(0, 90)), None);
    }

    #[test]
    fn windows_with_ever_other_flags_are_refused() {
        let windows = |each: usize| {
            let windows = fixture::windows(Like::default());
            let flagged = windows.into_iter().enumerate().map(|(at, mut window)| {
                window.flags = serde_json::from_value(flags(at * each, 60)).unwrap();
                window
            });
            super::check_windows(&flagged.collect::<Vec<_>>())
        };
        assert_eq!(windows(0), Ok(()));
        assert_eq!(windows(60), Err(super::FLAGS));
    }
}
