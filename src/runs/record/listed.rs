//! The recordings in a folder, listed by their summaries: their windows and logs are not read.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::names::{HOST, SUMMARY, WINDOWS};
use super::recording::{optional, read_summary};
use super::summary::Summary;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::printable;

/// The most recordings of a folder that are read: the newest ones.
const LISTED_MAX: usize = 2000;

/// A recording of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    /// Its folder.
    #[serde(serialize_with = "as_text")]
    pub dir: PathBuf,
    /// The folder's name.
    pub name: String,
    /// When it began, in seconds since 1970; null if it does not say.
    pub started_unix_s: Option<u64>,
    /// Its figures; null without a readable summary.
    pub figures: Option<ListedFigures>,
    /// Why there is no such summary, as a sentence; null if there is one.
    pub problem: Option<String>,
}

/// The figures of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedFigures {
    /// The profile's name.
    pub profile: String,
    /// Seconds in the counted windows.
    pub duration_s: f64,
    /// Decimal MB per second of all classes.
    pub mb_per_s: f64,
    /// Decimal MB per second of the scan.
    pub scan_mb_per_s: f64,
    /// 99th percentile of the point reads' service time in nanoseconds.
    pub point_p99_ns: Option<u64>,
    /// 99th percentile of the commits in nanoseconds.
    pub wal_p99_ns: Option<u64>,
    /// How many flags its classes and the run have.
    pub flags: usize,
    /// Why the run failed.
    pub failure: Option<String>,
}

/// A path in JSON, whatever its bytes.
fn as_text<S: Serializer>(path: &Path, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

impl ListedFigures {
    fn of(summary: Summary) -> Self {
        let p99 = |class| summary.class(class).service_ns.as_ref().and_then(|latency| latency.p99);
        let of_classes = Class::ALL.map(|class| summary.class(class).flags.len());
        Self {
            duration_s: summary.duration_s,
            mb_per_s: summary.total.mb_per_s,
            scan_mb_per_s: summary.class(Class::Scan).mb_per_s,
            point_p99_ns: p99(Class::Point),
            wal_p99_ns: p99(Class::Wal),
            flags: of_classes.iter().sum::<usize>() + summary.flags.len(),
            failure: summary.failure,
            profile: summary.profile,
        }
    }
}

/// The recordings in a folder, the newest first: 2000 at most. Empty if there is no such folder.
///
/// # Errors
/// If the folder can't be read.
pub fn list(folder: &Path) -> Result<Vec<Listed>> {
    newest(folder, LISTED_MAX)
}

fn newest(folder: &Path, count: usize) -> Result<Vec<Listed>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::os("cannot read", folder, error)),
    };
    // By when their windows were last written, which takes no reading.
    let written = |dir: PathBuf| {
        let windows = std::fs::symlink_metadata(dir.join(WINDOWS)).ok().filter(std::fs::Metadata::is_file)?;
        Some((Reverse(windows.modified().ok()), dir))
    };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut dirs: Vec<_> = folders.filter_map(|entry| written(entry.path())).collect();
    dirs.sort();
    dirs.truncate(count);
    let mut listed: Vec<_> = dirs.into_iter().map(|(_, dir)| Listed::of(dir)).collect();
    listed.sort_by_key(|one| (Reverse(one.started_unix_s), one.name.clone()));
    Ok(listed)
}

impl Listed {
    fn of(dir: PathBuf) -> Self {
        let host = optional(&dir.join(HOST)).ok().flatten();
        let (figures, problem) = match read_summary(&dir.join(SUMMARY)) {
            Ok(Some(summary)) => (Some(ListedFigures::of(summary)), None),
            Ok(None) => (None, Some("it is still being recorded, or was killed".to_owned())),
            Err(error) => (None, Some(error.what)),
        };
        Self {
            name: printable::path(dir.file_name().map_or(&*dir, Path::new)),
            started_unix_s: host.and_then(|host| host["started_unix_s"].as_u64()),
            figures,
            problem,
            dir,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, Like};
    use super::super::tests::written;
    use super::super::{Outcome, Recording};
    use super::*;

    #[test]
    fn recordings_are_listed_by_their_summaries_and_other_folders_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let windows = fixture::windows(Like::default());
        for name in ["b", "a", "broken", "killed"] {
            let writer = written(&at(name), &windows);
            if name != "killed" {
                writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
            }
        }
        std::fs::create_dir(at("other")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        std::fs::write(at("broken").join(SUMMARY), "{").unwrap();
        let older = std::fs::read_to_string(at("a").join(HOST)).unwrap();
        let mut host: serde_json::Value = serde_json::from_str(&older).unwrap();
        host["started_unix_s"] = 1_700_000_000.into();
        std::fs::write(at("a").join(HOST), host.to_string()).unwrap();

        let listed = list(dir.path()).unwrap();
        let names: Vec<_> = listed.iter().map(|one| &*one.name).collect();
        assert_eq!(names[3], "a", "the oldest is last: {names:?}");
        assert_eq!(names.len(), 4);
        let of = |name: &str| listed.iter().find(|one| one.name == name).unwrap();
        let summary = Recording::open(&at("b")).unwrap().summary;
        let figures = of("b").figures.as_ref().unwrap();
        assert_eq!((&*figures.profile, figures.duration_s), ("demo", summary.duration_s));
        assert_eq!(figures.wal_p99_ns, summary.class(Class::Wal).service_ns.as_ref().unwrap().p99);
        assert!(of("broken").problem.as_ref().unwrap().contains("damaged"));
        assert!(of("killed").problem.as_ref().unwrap().contains("killed") && of("killed").figures.is_none());
        assert_eq!(list(&at("nowhere")).unwrap(), []);
        // If there are more than are read, the last ones written are chosen.
        let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
        let killed = std::fs::File::options().append(true).open(at("killed").join(WINDOWS)).unwrap();
        killed.set_modified(hour_ago).unwrap();
        let few: Vec<_> = newest(dir.path(), 3).unwrap().into_iter().map(|one| one.name).collect();
        assert!(few.len() == 3 && !few.contains(&"killed".to_owned()), "{few:?}");
    }
}
