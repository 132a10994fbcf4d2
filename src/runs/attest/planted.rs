//! Lost writes: in a separate file of the checks, pages are put back to their content before the last write,
//! and verification must find each of them, and nothing else.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bed::{Bed, with};
use super::checks::{Check, CheckOutcome, CheckVerdict};
use crate::error::{Error, Result};
use crate::load::volume::{Extent, VerifyReport};
use crate::runs::session::compare_with_map;
use crate::settings::Settings;
use crate::units::MIB;

const CHECK: Check = Check::LostWrites;
const FILE_BYTES: u64 = 32 * MIB;
const PAGE_BYTES: usize = 16 << 10;
/// Most pages are written during each run, but only a few times each. A slow drive gets further runs.
const RATE: &str = "100MB/s";
const TIME: Duration = Duration::from_millis(500);
const RUNS_MAX: usize = 12;

/// The check.
pub(super) fn check(bed: &mut Bed) -> Result<CheckOutcome> {
    let settings = bed.apart("planted", FILE_BYTES)?;
    let settings = with(
        &settings,
        &[
            ("io.page_size", "16KiB"),
            // Works however the file system reads and writes.
            ("io.buffering", if bed.not_direct().is_some() { "cached" } else { "direct" }),
            ("background.enabled", "true"),
            ("background.rate", RATE),
        ],
    )?;
    bed.run(&settings, TIME, &mut ())?;
    let data = bed.volume(&settings)?.data;
    let Some(extent) = data.extents.first() else {
        return Ok(CheckOutcome::not_checkable(CHECK, "the file has no data"));
    };
    let (before, each) = (content(extent)?, bed.amounts.planted);
    let (mut after, mut places) = (Vec::new(), Vec::new());
    for _ in 0..RUNS_MAX {
        bed.run(&settings, TIME, &mut ())?;
        after = content(extent)?;
        places = written(&before, &after, extent.offset_bytes as usize);
        if places.len() >= 4 * each {
            break;
        }
    }
    if places.len() < 4 * each {
        return Ok(CheckOutcome::not_checkable(CHECK, "too few pages were written"));
    }
    let sound = read_back(bed, &settings)?;
    let planted = plant(extent, &before, &after, &places, each)?;
    let found = read_back(bed, &settings)?;
    Ok(judged(planted, &sound, &found))
}

fn content(extent: &Extent) -> Result<Vec<u8>> {
    fs::read(&extent.path).map_err(|error| Error::os("cannot read", &extent.path, error))
}

/// Reads everything back, comparing it with the write map.
fn read_back(bed: &mut Bed, settings: &Settings) -> Result<VerifyReport> {
    let mut volume = bed.volume(settings)?;
    compare_with_map(&mut volume)?;
    let (stop, interrupts) = (AtomicBool::new(false), bed.interrupts);
    volume.verify(&mut |_| stop.store(interrupts() > 0, Ordering::Relaxed), &stop)
}

/// Offsets at which whole pages differ.
fn written(before: &[u8], after: &[u8], first: usize) -> Vec<usize> {
    let last = before.len().min(after.len());
    let pages = (first..last).step_by(PAGE_BYTES).filter(|at| at + PAGE_BYTES <= last);
    let differs = |at: &usize| before[*at..at + PAGE_BYTES] != after[*at..at + PAGE_BYTES];
    pages.filter(differs).collect()
}

/// Pages that were planted, by kind: fully reverted, half reverted, and replaced with pages from elsewhere.
type Planted = [u64; 3];

/// Plants that many of each kind.
fn plant(extent: &Extent, before: &[u8], after: &[u8], places: &[usize], each: usize) -> Result<Planted> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(&extent.path);
    let cannot = |error: std::io::Error| Error::os("cannot write", &extent.path, error);
    let file: File = file.map_err(cannot)?;
    let spread = places.len() / (3 * each);
    let mut planted = [0; 3];
    for (n, at) in places.iter().step_by(spread).take(3 * each).enumerate() {
        let half = PAGE_BYTES / 2 * (n % 2);
        let (content, place) = match n % 3 {
            0 => (&before[*at..at + PAGE_BYTES], *at),
            1 => (&before[at + half..at + half + PAGE_BYTES / 2], at + half),
            _ => {
                let other = places[(n * spread + 1) % places.len()];
                (&after[other..other + PAGE_BYTES], *at)
            }
        };
        file.write_all_at(content, place as u64).map_err(cannot)?;
        planted[n % 3] += 1;
    }
    file.sync_all().map_err(cannot)?;
    Ok(planted)
}

/// Judges the reports of verification before and after planting.
fn judged(planted: Planted, sound: &VerifyReport, found: &VerifyReport) -> CheckOutcome {
    let all = |report: &VerifyReport| report.kinds().iter().map(|(_, faults)| faults.pages).sum::<u64>();
    if !found.complete || !found.write_map.compared || !sound.write_map.compared {
        return CheckOutcome::not_checkable(CHECK, "there is no write map to compare with");
    }
    let kinds = [found.lost.pages, found.torn.pages, found.misplaced.pages];
    let (ours, theirs) = (kinds.iter().sum::<u64>(), planted.iter().sum::<u64>());
    let outcome = CheckOutcome::of(CHECK, "planted", ours as f64, theirs as f64);
    let fails = |why: &str| CheckOutcome { verdict: CheckVerdict::Fail, ..outcome.clone() }.because(why);
    if all(sound) > 0 {
        fails("faults were reported before any was planted")
    } else if kinds != planted {
        fails("a kind of fault was found more often or less often than it was planted")
    } else if all(found) != theirs {
        fails("faults were reported that were not planted")
    } else {
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lost: u64, torn: u64, misplaced: u64) -> VerifyReport {
        let mut report = VerifyReport { complete: true, sectors_ok: 1000, ..VerifyReport::default() };
        report.lost.pages = lost;
        report.torn.pages = torn;
        report.misplaced.pages = misplaced;
        report
    }

    #[test]
    fn exactly_what_was_planted_must_be_found() {
        let of = |found: &VerifyReport| judged([20; 3], &report(0, 0, 0), found).verdict;
        assert_eq!(of(&report(20, 20, 20)), CheckVerdict::Pass);
        assert_eq!(of(&report(19, 20, 20)), CheckVerdict::Fail);
        assert_eq!(of(&report(21, 19, 20)), CheckVerdict::Fail, "the same number of others");
        assert_eq!(of(&report(0, 0, 0)), CheckVerdict::Fail);
        let mut more = report(20, 20, 20);
        more.foreign.pages = 1;
        assert_eq!(of(&more), CheckVerdict::Fail);
        let before = judged([20; 3], &report(1, 0, 0), &report(20, 20, 20));
        assert!(before.is_failure() && before.why.unwrap().contains("before any"));
        let mut mapless = report(20, 20, 20);
        mapless.write_map.compared = false;
        assert_eq!(of(&mapless), CheckVerdict::NotCheckable);
    }

    #[test]
    fn pages_that_differ_are_found_and_faults_planted_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data-0");
        let before = vec![1; 20 * PAGE_BYTES];
        let mut after = vec![2; 20 * PAGE_BYTES];
        after[3 * PAGE_BYTES..4 * PAGE_BYTES].fill(1);
        let places = written(&before, &after, PAGE_BYTES);
        assert_eq!(places.len(), 18);
        let extent =
            Extent { path: path.clone(), identity: None, member: 0, offset_bytes: PAGE_BYTES as u64 };
        assert!(plant(&extent, &before, &after, &places, 2).is_err() && !path.exists());
        fs::write(&path, &after).unwrap();
        assert_eq!(plant(&extent, &before, &after, &places, 2).unwrap(), [2, 2, 2]);
        let now = fs::read(&path).unwrap();
        let changed = now.chunks(PAGE_BYTES).zip(after.chunks(PAGE_BYTES)).filter(|(now, was)| now != was);
        // The pages from elsewhere hold the same bytes here.
        assert_eq!((changed.count(), now.len()), (4, after.len()));
    }
}
