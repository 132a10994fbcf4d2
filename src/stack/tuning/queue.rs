//! The block layer's queue settings of drives: changed live, each with its old value recorded in the journal
//! first, and restored.

use std::fs;
use std::path::PathBuf;

use crate::error::{Error, Result, describe};
use crate::host::Facts;
use crate::printable::Shown as _;
use crate::stack::devices::{BlockDevice, Drive};
use crate::stack::journal::{Journal, Undo};
use crate::stack::plan::{Plan, QueueValues, SCHEDULER, Step};
use crate::stack::runner::Runner;

/// What the kernel resets when the scheduler changes.
const WITH_SCHEDULER: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

/// The settings of some drives that stacktune has changed.
#[derive(Debug)]
pub(super) struct Queues {
    drives: Vec<Drive>,
    /// In the order in which they were changed.
    made: Vec<Made>,
}

/// A setting that stacktune has changed.
#[derive(Debug, Clone)]
struct Made {
    drive: usize,
    attribute: &'static str,
    /// Its value before the first turn.
    old: String,
    new: String,
    /// See [`Undo::RestoreQueue`].
    beside: Vec<(String, String)>,
    /// Its entry in the journal.
    entry: u64,
}

/// The drives whose queues a built stack's settings apply to: those that it is built on, or its loop devices.
pub fn drives_of(plan: &Plan, runner: &Runner) -> Result<Vec<Drive>> {
    let drives = plan.drives();
    if !drives.is_empty() {
        return Ok(drives);
    }
    let loops = plan.steps.iter().filter_map(|step| match step {
        Step::AttachLoop { file } => Some(BlockDevice::Loop { file: file.clone() }),
        _ => None,
    });
    let devices = Facts::read_devices();
    let drive =
        |place: BlockDevice| {
            let node = place.resolve(runner)?;
            devices.iter().find(|device| device.path == node).map(Drive::of).ok_or_else(|| {
                Error::failed(format!("{} is not among the host's block devices", node.shown()))
            })
        };
    loops.map(drive).collect()
}

impl Queues {
    pub(super) fn new(drives: Vec<Drive>) -> Self {
        Self { drives, made: Vec::new() }
    }

    /// Whether anything is changed.
    pub(super) fn is_changed(&self) -> bool {
        !self.made.is_empty()
    }

    pub(super) fn drives(&self) -> &[Drive] {
        &self.drives
    }

    /// Whether these values would write anything.
    pub(super) fn would_change(&self, wanted: &QueueValues) -> bool {
        !self.drives.is_empty() && (self.is_changed() || *wanted != QueueValues::default())
    }

    /// Applies these values to the drives; `None` restores the old value.
    ///
    /// # Errors
    /// If the kernel refuses a value: some may then be applied and others not.
    pub(super) fn apply(&mut self, journal: &mut Journal, wanted: &QueueValues) -> Result<()> {
        for drive in 0..self.drives.len() {
            let scheduler = self.at(drive, SCHEDULER).map(|at| &self.made[at].new);
            if scheduler != wanted.scheduler() {
                for attribute in WITH_SCHEDULER.into_iter().rev() {
                    self.put_back(journal, drive, attribute)?;
                }
            }
            for (attribute, value) in &wanted.0 {
                match value {
                    Some(value) => self.set(journal, drive, attribute, value)?,
                    None => self.put_back(journal, drive, attribute)?,
                }
            }
        }
        Ok(())
    }

    /// Restores everything; returns the first error, after trying all.
    pub(super) fn restore(&mut self, journal: &mut Journal) -> Result<()> {
        let mut outcome = Ok(());
        for Made { drive, attribute, .. } in self.made.clone().into_iter().rev() {
            outcome = outcome.and(self.put_back(journal, drive, attribute));
        }
        outcome
    }

    fn at(&self, drive: usize, attribute: &str) -> Option<usize> {
        self.made.iter().position(|made| made.drive == drive && made.attribute == attribute)
    }

    fn set(
        &mut self,
        journal: &mut Journal,
        drive: usize,
        attribute: &'static str,
        value: &str,
    ) -> Result<()> {
        let before = self.at(drive, attribute).map(|at| self.made[at].clone());
        // Right before writing, as another drive may have taken its place.
        let name = self.drives[drive].find()?.name;
        let now = read(&name, attribute)?;
        if now == value {
            return Ok(());
        }
        let (old, beside) = match &before {
            Some(made) => (made.old.clone(), made.beside.clone()),
            None if attribute == SCHEDULER => (now.clone(), beside(&name)),
            None => (now.clone(), Vec::new()),
        };
        let entry = journal.record().entries.len() as u64;
        let undo = Undo::RestoreQueue {
            drive: self.drives[drive].clone(),
            attribute: attribute.to_owned(),
            old: old.clone(),
            new: value.to_owned(),
            beside: beside.clone(),
        };
        let command = format!("echo {value} > {}", file(&name, attribute).shown());
        if let Err(error) = journal.act(&command, Some(undo), || write_exactly(&name, attribute, value, &now))
        {
            // It may have been written without being recorded: if it can't be restored now, it remains to be undone.
            let is_back =
                || read(&name, attribute).map_or(true, |is| is == now || in_force(&is) == in_force(&old));
            if restore(&self.drives[drive], attribute, (&old, value), &beside).is_ok() && is_back() {
                journal.undone(entry);
            }
            return Err(error);
        }
        let made = Made { drive, attribute, old, new: value.to_owned(), beside, entry };
        match (self.at(drive, attribute), before) {
            (Some(at), Some(before)) => {
                // The later entry has the first value too.
                journal.undone(before.entry);
                self.made[at] = made;
            }
            _ => self.made.push(made),
        }
        Ok(())
    }

    fn put_back(&mut self, journal: &mut Journal, drive: usize, attribute: &str) -> Result<()> {
        let Some(at) = self.at(drive, attribute) else { return Ok(()) };
        let Made { old, new, beside, entry, .. } = &self.made[at];
        restore(&self.drives[drive], attribute, (old, new), beside)?;
        journal.undone(*entry);
        self.made.remove(at);
        Ok(())
    }
}

/// What must be restored along with the scheduler.
fn beside(name: &str) -> Vec<(String, String)> {
    let value = |attribute: &&str| Some(((*attribute).to_owned(), read(name, attribute).ok()?));
    WITH_SCHEDULER.iter().filter_map(value).collect()
}

/// Restores a setting from `new` to `old`, and then what changes along with it; does nothing if it was
/// changed by others since, or the drive is gone.
pub(crate) fn restore(
    drive: &Drive,
    attribute: &str,
    (old, new): (&str, &str),
    beside: &[(String, String)],
) -> Result<()> {
    let mut names = std::iter::once(attribute).chain(beside.iter().map(|(attribute, _)| attribute.as_str()));
    if let Some(foreign) = names.find(|name| !QueueValues::has(name)) {
        return Err(Error::refused(format!("`{foreign}` is not a queue setting that stacktune changes")));
    }
    // A drive that is gone took its settings along; a replacement has its own.
    let Some(device) = drive.candidates(true).pop() else { return Ok(()) };
    if read(&device.name, attribute)? != in_force(new) || in_force(old) == in_force(new) {
        return Ok(());
    }
    write(&device.name, attribute, in_force(old))?;
    for (attribute, old) in beside {
        if read(&device.name, attribute).is_ok_and(|now| now != *old) {
            write(&device.name, attribute, old)?;
        }
    }
    Ok(())
}

/// Writes a value and checks that it reads back unchanged: the kernel adjusts some, and one that can't be
/// recognized as stacktune's would not be restored after a crash.
fn write_exactly(name: &str, attribute: &str, value: &str, before: &str) -> Result<()> {
    write(name, attribute, value)?;
    let now = read(name, attribute)?;
    if now == value {
        return Ok(());
    }
    write(name, attribute, before)?;
    Err(Error::input(format!("the kernel turns {value} into {now} for queue/{attribute} of {name}"))
        .hint(format!("set {now} if that is what you want")))
}

fn file(name: &str, attribute: &str) -> PathBuf {
    PathBuf::from(format!("/sys/block/{name}/queue/{attribute}"))
}

fn read(name: &str, attribute: &str) -> Result<String> {
    let file = file(name, attribute);
    let text = fs::read_to_string(&file).map_err(|error| Error::os("cannot read", &file, error))?;
    Ok(in_force(&text).to_owned())
}

fn write(name: &str, attribute: &str, value: &str) -> Result<()> {
    let file = file(name, attribute);
    fs::write(&file, value).map_err(|error| {
        Error::failed(format!("cannot write {value} to {}: {}", file.shown(), describe(&error)))
    })
}

/// The value of a queue attribute: the bracketed one of several choices, or all of it.
pub(crate) fn in_force(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(name, _)| name).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_stacktune_changes_are_restored() {
        let drive = Drive {
            name: "nvme9n9".into(),
            path: "/dev/nvme9n9".into(),
            number: "259:99".into(),
            model: None,
            serial: Some("none".into()),
            size_bytes: 1 << 30,
        };
        let beside = |name: &str| vec![(name.to_owned(), "1".to_owned())];
        for (attribute, other) in [("zoned", "nr_requests"), ("scheduler", "../uevent"), ("", "nomerges")] {
            let error = restore(&drive, attribute, ("0", "1"), &beside(other)).unwrap_err();
            assert_eq!(error.exit_status(), 3, "{attribute} {other}");
        }
        restore(&drive, "scheduler", ("none", "kyber"), &beside("wbt_lat_usec")).unwrap();
    }
}
