//! Bytes that the classes read and wrote, compared with the block layer's counts below them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::bed::{Bed, Onlooker, with};
use super::checks::{Check, CheckOutcome, CheckVerdict};
use super::programs::{self, words};
use crate::error::Result;
use crate::host::{LevelDevice, TargetFacts};
use crate::runs::record::Summary;
use crate::units::approx_size;

const CHECKS: [Check; 2] = [Check::BytesRead, Check::BytesWritten];
/// The unit of the counters, whatever the device's sectors are.
const SECTOR_BYTES: u64 = 512;
/// Others' use of the device can only add to its counts, so of several runs the closest one counts.
const RUNS: usize = 3;
/// File systems that write data in place, and little else.
const IN_PLACE: [&str; 3] = ["block device", "ext4", "XFS"];
/// Each class's rate: high enough that all other reads and writes are negligible.
const RATE: &str = "50MB/s";

/// Bytes read and written.
type Both = [f64; 2];

/// Both checks.
pub(super) fn check(bed: &mut Bed) -> Result<Vec<CheckOutcome>> {
    let devices = bed.levels()?.top;
    if devices.is_empty() {
        return Ok(CheckOutcome::none(&CHECKS, "no block device is known below these files"));
    }
    if let Some(why) = bed.not_direct() {
        return Ok(CheckOutcome::none(&CHECKS, why));
    }
    let reader = Reader::of(devices, bed.interrupts);
    let settings = with(
        &bed.settings,
        &[
            ("scan.enabled", "true"),
            ("scan.depth", "8"),
            ("scan.batch", "1"),
            ("scan.rate", RATE),
            ("background.enabled", "true"),
            ("background.rate", RATE),
        ],
    )?;
    let time = bed.amounts.bytes;
    let mut best: Option<Vec<CheckOutcome>> = None;
    for _ in 0..RUNS {
        let others = reader.others(time / 2);
        let mut around = Around { reader: &reader, before: None, after: None };
        let ran = bed.run(&settings, time, &mut around)?;
        let Some(theirs) = around.bytes() else {
            return Ok(CheckOutcome::none(&CHECKS, "the block layer counts nothing here"));
        };
        let ours = counted(&ran.summary);
        let outcomes = (0..CHECKS.len()).map(|n| {
            let outcome = CheckOutcome::of(CHECKS[n], reader.name(), ours[n], theirs[n]);
            judged(outcome, others.map(|others| others[n] * 2.0), bed.target.as_ref())
        });
        let outcomes: Vec<CheckOutcome> = outcomes.collect();
        best = Some(match best {
            Some(known) => CheckOutcome::closest(known, outcomes),
            None => outcomes,
        });
        if best.iter().flatten().all(|outcome| outcome.verdict == CheckVerdict::Pass) {
            break;
        }
    }
    Ok(best.unwrap_or_default())
}

/// A failure does not count if others use the device as well, or the file system relocates data by itself.
fn judged(outcome: CheckOutcome, others_bytes: Option<f64>, target: Option<&TargetFacts>) -> CheckOutcome {
    let (true, Some(theirs), Some((_, most))) = (outcome.is_failure(), outcome.theirs, outcome.allowed)
    else {
        return outcome;
    };
    let medium = target.map_or("block device", |target| &target.medium);
    let is_more = outcome.difference.is_some_and(|difference| difference < 0.0);
    let others = others_bytes.filter(|bytes| is_more && *bytes > theirs * most);
    let why = if outcome.check == Check::BytesWritten && !IN_PLACE.contains(&medium) {
        format!("{medium} does not write pages in place")
    } else if let Some(bytes) = others {
        format!("others use the device as well: about {} in that time", approx_size(bytes as u64))
    } else {
        return outcome;
    };
    CheckOutcome { verdict: CheckVerdict::NotCheckable, why: Some(why), ..outcome }
}

/// All bytes of a run, including those still in flight at its end.
fn counted(summary: &Summary) -> Both {
    let classes = &summary.classes;
    let of = |bytes: u64, drained: u64| (bytes + drained) as f64;
    let [scan, background] = [&classes.scan, &classes.background]
        .map(|class| of(class.bytes, class.drained.map_or(0, |drained| drained.bytes)));
    [scan, background]
}

/// Reads the block layer's counts.
struct Reader<'a> {
    devices: Vec<LevelDevice>,
    vmstat: Option<PathBuf>,
    interrupts: &'a dyn Fn() -> usize,
}

impl<'a> Reader<'a> {
    fn of(devices: Vec<LevelDevice>, interrupts: &'a dyn Fn() -> usize) -> Self {
        let vmstat = programs::find("vmstat");
        let reader = Self { devices, vmstat, interrupts };
        // It lists whole devices, not partitions.
        let is_listed = reader.read().is_some();
        if is_listed { reader } else { Self { vmstat: None, ..reader } }
    }

    fn name(&self) -> &'static str {
        if self.vmstat.is_some() { "vmstat -d" } else { "sysfs, read by stacktune" }
    }

    fn read(&self) -> Option<Both> {
        let listed = match &self.vmstat {
            Some(vmstat) => {
                Some(programs::run(vmstat, &words(["-d"]), Duration::ZERO, self.interrupts).ok()?.out)
            }
            None => None,
        };
        let of = |device: &LevelDevice| match &listed {
            Some(text) => in_vmstat(text, &device.name),
            None => in_stat(&fs::read_to_string(&device.stat).ok()?),
        };
        let sectors = self.devices.iter().map(of).collect::<Option<Vec<_>>>()?;
        let bytes = |of: fn(&(u64, u64)) -> u64| (sectors.iter().map(of).sum::<u64>() * SECTOR_BYTES) as f64;
        Some([bytes(|sectors| sectors.0), bytes(|sectors| sectors.1)])
    }

    /// How much others read and write in that time.
    fn others(&self, time: Duration) -> Option<Both> {
        let before = self.read()?;
        std::thread::sleep(time);
        let after = self.read()?;
        Some([after[0] - before[0], after[1] - before[1]])
    }
}

/// Sectors read and written of a device in the table of `vmstat -d`.
fn in_vmstat(text: &str, name: &str) -> Option<(u64, u64)> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.first() == Some(&name)).find_map(|row| {
        let number = |at: usize| row.get(at)?.parse().ok();
        Some((number(3)?, number(7)?))
    })
}

/// The same from a `stat` file in sysfs.
fn in_stat(text: &str) -> Option<(u64, u64)> {
    let row: Vec<_> = text.split_whitespace().collect();
    let number = |at: usize| row.get(at)?.parse().ok();
    Some((number(2)?, number(6)?))
}

/// The counts at both ends of the load.
struct Around<'a> {
    reader: &'a Reader<'a>,
    before: Option<Both>,
    after: Option<Both>,
}

impl Around<'_> {
    /// The difference between them; none if nothing was counted.
    fn bytes(&self) -> Option<Both> {
        let (before, after) = (self.before?, self.after?);
        let bytes = [after[0] - before[0], after[1] - before[1]];
        // Counting may be switched off (`queue/iostats`).
        (bytes[0] + bytes[1] > 0.0).then_some(bytes)
    }
}

impl Onlooker for Around<'_> {
    fn before(&mut self) {
        self.before = self.reader.read();
    }

    fn after(&mut self) {
        self.after = self.reader.read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_files;

    const VMSTAT: &str = "\
disk- ------------reads------------ ------------writes----------- -----IO------
       total merged sectors      ms  total merged sectors      ms    cur    sec
loop0 3880635    524 157998120 10944048 964404 6251441 190202202 1662565      0    697
vda    12      1    96      4     7      2    40       9      0      1
";

    #[test]
    fn sectors_are_found_by_the_devices_name() {
        assert_eq!(in_vmstat(VMSTAT, "vda"), Some((96, 40)));
        assert_eq!(in_vmstat(VMSTAT, "loop0"), Some((157_998_120, 190_202_202)));
        assert_eq!(in_vmstat(VMSTAT, "vda1"), None);
        assert_eq!(in_vmstat("vda 1 2", "vda"), None);
        assert_eq!(in_stat("   12  1  96  4  7  2  40 9 0 1 1\n"), Some((96, 40)));
        assert_eq!(in_stat("12 1"), None);
    }

    fn outcome(check: Check, ours: f64, theirs: f64, others: f64, medium: &str) -> CheckVerdict {
        let target = capable_files(medium);
        judged(CheckOutcome::of(check, "vmstat -d", ours, theirs), Some(others), Some(&target)).verdict
    }

    #[test]
    fn a_difference_fails_unless_somebody_else_moves_bytes() {
        let read = |ours, theirs, others| outcome(Check::BytesRead, ours, theirs, others, "ext4");
        assert_eq!(read(1e9, 1.009e9, 0.0), CheckVerdict::Pass);
        assert_eq!(read(1e9, 1.02e9, 0.0), CheckVerdict::Fail);
        assert_eq!(read(1e9, 1.02e9, 5e7), CheckVerdict::NotCheckable);
        assert_eq!(read(1.02e9, 1e9, 5e7), CheckVerdict::Fail, "others take nothing away");
        let written = |medium| outcome(Check::BytesWritten, 1e9, 1.1e9, 0.0, medium);
        assert_eq!((written("ext4"), written("Btrfs")), (CheckVerdict::Fail, CheckVerdict::NotCheckable));
    }
}
