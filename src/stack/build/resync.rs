//! Waiting until an md array is in sync.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::stack::supervise::Gauge;

const LOOK: Duration = Duration::from_millis(100);
/// The array looks idle between its creation and the start of the resync.
const BEGIN_PATIENCE: Duration = Duration::from_secs(5);

/// Waits until the array at that node is in sync, or the gauge asks to stop.
///
/// # Errors
/// If it is not in sync and no resync is running: a member has failed.
pub(super) fn wait(node: &Path, gauge: &Gauge) -> Result<()> {
    let dir = Path::new("/sys/block").join(node.file_name().unwrap_or_default()).join("md");
    wait_in(&dir, node, gauge, BEGIN_PATIENCE)
}

fn wait_in(dir: &Path, node: &Path, gauge: &Gauge, patience: Duration) -> Result<()> {
    let text = |name: &str| fs::read_to_string(dir.join(name)).ok().map(|text| text.trim().to_owned());
    // If the kernel starts arrays read-only (start_ro), the resync waits for the first write.
    if text("array_state").as_deref() == Some("read-auto") {
        let file = dir.join("array_state");
        fs::write(&file, "active").map_err(|error| Error::os("cannot write", &file, error))?;
    }
    let mut idle_since = None;
    while !gauge.stopped() {
        match state(text) {
            State::InSync => return Ok(()),
            State::Working(progress) => {
                idle_since = None;
                if let Some((done_bytes, all_bytes)) = progress {
                    gauge.set(done_bytes, all_bytes);
                }
            }
            State::Idle { missing } => {
                if idle_since.get_or_insert_with(Instant::now).elapsed() > patience {
                    let what = format!("{} is not in sync, and no resync is running", node.shown());
                    let why = format!("{missing} of its members are missing or have failed");
                    return Err(Error::failed(format!("{what}: {why}"))
                        .hint(format!("see `mdadm --detail {}`", node.shown())));
                }
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

enum State {
    InSync,
    /// Bytes done and in total, if the kernel reports them.
    Working(Option<(u64, u64)>),
    Idle {
        missing: u64,
    },
}

fn state(text: impl Fn(&str) -> Option<String>) -> State {
    // A level without redundancy has nothing to sync.
    let Some(action) = text("sync_action") else { return State::InSync };
    if action != "idle" {
        return State::Working(text("sync_completed").and_then(|line| progress(&line)));
    }
    let missing = text("degraded").and_then(|count| count.parse().ok()).unwrap_or(0);
    let never_synced = text("resync_start").is_some_and(|from| from != "none");
    if missing > 0 || never_synced { State::Idle { missing } } else { State::InSync }
}

/// Bytes of `1024 / 4096`, in sectors of 512.
fn progress(line: &str) -> Option<(u64, u64)> {
    let (done, all) = line.split_once('/')?;
    Some((done.trim().parse::<u64>().ok()? * 512, all.trim().parse::<u64>().ok()? * 512))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    fn state_of(files: &[(&str, &str)]) -> State {
        let dir = array(files);
        state(|name| fs::read_to_string(dir.path().join(name)).ok().map(|text| text.trim().to_owned()))
    }

    #[test]
    fn an_array_is_in_sync_when_it_is_idle_and_complete() {
        assert!(matches!(state_of(&[]), State::InSync));
        let idle = [("sync_action", "idle\n"), ("degraded", "0\n"), ("resync_start", "none\n")];
        assert!(matches!(state_of(&idle), State::InSync));
        let before = [("sync_action", "idle\n"), ("degraded", "0\n"), ("resync_start", "0\n")];
        assert!(matches!(state_of(&before), State::Idle { missing: 0 }));
        let working = [("sync_action", "resync\n"), ("sync_completed", "1024 / 4096\n")];
        assert!(matches!(state_of(&working), State::Working(Some((524_288, 2_097_152)))));
        let uncounted = [("sync_action", "resync\n"), ("sync_completed", "delayed\n")];
        assert!(matches!(state_of(&uncounted), State::Working(None)));
    }

    #[test]
    fn an_array_that_lost_a_member_is_not_waited_for() {
        let dir = array(&[("sync_action", "idle\n"), ("degraded", "1\n")]);
        let node = Path::new("/dev/md7");
        let error = wait_in(dir.path(), node, &Gauge::default(), Duration::ZERO).unwrap_err();
        assert!(error.what.contains("/dev/md7 is not in sync") && error.what.contains("1 of its"), "{error}");
    }

    #[test]
    fn an_array_started_read_only_is_activated() {
        let dir = array(&[("array_state", "read-auto\n")]);
        wait_in(dir.path(), Path::new("/dev/md7"), &Gauge::default(), Duration::ZERO).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("array_state")).unwrap(), "active");
    }
}
