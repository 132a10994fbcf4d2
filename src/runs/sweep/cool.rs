//! Waiting before a run so that all runs begin under the same conditions: idle time, and drives that have cooled down.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::host::WatchedDrive;
use crate::meter::devices::member::Member;
use crate::settings::profile::sweep::Between;
use crate::units::{approx_span, format_duration};

/// Time between two checks of drives and signals.
const LOOK: Duration = Duration::from_millis(100);
/// How often temperatures are read; the kernel reads them at most once a second.
const ASK: Duration = Duration::from_secs(1);

const NOT_COOLED: &str = "not cooled down to";
const NOT_REPORTED: &str = "no temperature is reported by";
/// The same messages in recordings of earlier versions.
const FORMER: [&str; 2] = ["no temperature is told by", "it was to cool down to"];

/// Whether a note of a run says that it began with drives warmer than requested.
pub fn is_unmet(note: &str) -> bool {
    [NOT_COOLED, NOT_REPORTED].iter().chain(&FORMER).any(|words| note.contains(words))
}

/// Waits as the sweep requests, and returns the result as sentences for the recording. `on_wait` gets the
/// reason for the wait, and returns whether to continue.
///
/// # Errors
/// Interrupted if `on_wait` says so.
pub fn wait(
    between: &Between,
    members: &[Member],
    on_wait: &mut dyn FnMut(&str) -> bool,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    if !between.idle.is_zero() {
        idle(between.idle, on_wait)?;
        notes.push(format!("idle for {} before the run", format_duration(between.idle)));
    }
    if let Some(cool_to_c) = between.cool_to_c {
        let drives = drives(members);
        let read = || hottest(&drives);
        notes.push(cool(cool_to_c, between.cool_within, &read, on_wait)?);
        let without = without_sensor(members);
        if !without.is_empty() && !drives.is_empty() {
            notes.push(format!("{NOT_REPORTED} what is below {}", without.join(", ")));
        }
    }
    Ok(notes)
}

fn idle(time: Duration, on_wait: &mut dyn FnMut(&str) -> bool) -> Result<()> {
    let began = Instant::now();
    while let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        if !on_wait(&format!("idle: {} left", approx_span(left.as_secs_f64().ceil()))) {
            return Err(stopped());
        }
        std::thread::sleep(left.min(LOOK));
    }
    Ok(())
}

/// Waits until the hottest drive is no warmer than that; `read` returns its temperature and name, none if no drive reports one.
fn cool(
    cool_to_c: f64,
    within: Duration,
    read: &dyn Fn() -> Option<(f64, String)>,
    on_wait: &mut dyn FnMut(&str) -> bool,
) -> Result<String> {
    let began = Instant::now();
    let Some((first_c, _)) = read() else {
        return Ok(format!("{NOT_COOLED} {cool_to_c} °C: no drive reports its temperature"));
    };
    let mut asked = began;
    let (mut now_c, mut drive) = (first_c, String::new());
    loop {
        if asked == began || asked.elapsed() >= ASK {
            let Some(found) = read() else {
                return Ok(format!("{NOT_COOLED} {cool_to_c} °C: the drives stopped reporting it"));
            };
            (now_c, drive) = found;
            asked = Instant::now();
        }
        let waited = approx_span(began.elapsed().as_secs_f64());
        if now_c <= cool_to_c {
            return Ok(format!("the drives were at {cool_to_c} °C or below when the run began"));
        }
        if began.elapsed() >= within {
            return Ok(format!(
                "{drive} is still at {now_c:.0} °C after {waited}: {NOT_COOLED} {cool_to_c} °C"
            ));
        }
        if !on_wait(&format!(
            "cooling down: {drive} is at {now_c:.0} °C, waiting for {cool_to_c} °C ({waited})"
        )) {
            return Err(stopped());
        }
        std::thread::sleep(LOOK.min(within));
    }
}

fn stopped() -> Error {
    Error::interrupted("stopped before the run began")
}

/// Each drive below the members that reports its temperature, once.
fn drives(members: &[Member]) -> Vec<WatchedDrive> {
    let found = members.iter().flat_map(below).map(|drive| (drive.name.clone(), drive));
    found.collect::<BTreeMap<_, _>>().into_values().collect()
}

fn below(member: &Member) -> Vec<WatchedDrive> {
    let mut drives = member.path.as_deref().map(WatchedDrive::below_path).unwrap_or_default();
    drives.retain(|drive| drive.look().temperature_c.is_some());
    drives
}

/// The members without any drive that reports its temperature.
fn without_sensor(members: &[Member]) -> Vec<&str> {
    members.iter().filter(|member| below(member).is_empty()).map(|member| member.name.as_str()).collect()
}

fn hottest(drives: &[WatchedDrive]) -> Option<(f64, String)> {
    let read = drives.iter().filter_map(|drive| Some((drive.look().temperature_c?, drive.name.clone())));
    read.max_by(|one, other| one.0.total_cmp(&other.0))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn cooled(readings: &[f64], within: Duration) -> Result<String> {
        let at = Cell::new(0);
        let read = || {
            let reading = readings.get(at.get().min(readings.len().saturating_sub(1)))?;
            at.set(at.get() + 1);
            Some((*reading, "nvme1n1".to_owned()))
        };
        cool(45.0, within, &read, &mut |_| true)
    }

    #[test]
    fn a_cool_drive_is_not_waited_for() {
        let note = cooled(&[44.0], Duration::from_mins(1)).unwrap();
        assert_eq!(note, "the drives were at 45 °C or below when the run began");
        assert!(!is_unmet(&note));
    }

    #[test]
    fn a_warm_drive_is_waited_for_until_it_is_cool() {
        let began = Instant::now();
        let note = cooled(&[50.0, 50.0, 45.0], Duration::from_mins(1)).unwrap();
        assert_eq!(note, "the drives were at 45 °C or below when the run began");
        assert!(began.elapsed() >= ASK);
    }

    #[test]
    fn reaching_the_time_limit_is_noted() {
        let note = cooled(&[60.0], Duration::from_millis(1)).unwrap();
        assert_eq!(note, "nvme1n1 is still at 60 °C after 0s: not cooled down to 45 °C");
        assert!(is_unmet(&note));
        assert!(
            is_unmet("nvme1n1 is still at 60 °C after 0s: it was to cool down to 45 °C"),
            "as versions before wrote it"
        );
        assert!(!is_unmet("the target's cached pages were not dropped"));
    }

    #[test]
    fn a_missing_sensor_is_noted() {
        let note = cooled(&[], Duration::from_mins(1)).unwrap();
        assert_eq!(note, "not cooled down to 45 °C: no drive reports its temperature");
        assert!(is_unmet(&note));
    }

    #[test]
    fn a_signal_ends_the_waiting() {
        let warm = || Some((60.0, "nvme0n1".to_owned()));
        let error = cool(45.0, Duration::from_mins(1), &warm, &mut |_| false).unwrap_err();
        assert_eq!(error.exit_status(), 130);
        assert_eq!(idle(Duration::from_mins(1), &mut |_| false).unwrap_err().exit_status(), 130);
    }
}
