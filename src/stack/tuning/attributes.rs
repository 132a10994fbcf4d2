//! Attributes of drives' queues and of the stack's md array: changed live, each with its old value recorded in
//! the journal first, and restored.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, describe};
use crate::host::Facts;
use crate::printable::Shown as _;
use crate::stack::devices::{self, BlockDevice, Drive};
use crate::stack::journal::{Journal, Undo};
use crate::stack::plan::{LiveValues, Plan, SCHEDULER, Step, Wanted};
use crate::stack::runner::Runner;

/// Attributes that the kernel resets when the scheduler changes.
const WITH_SCHEDULER: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

/// The owner of attributes.
#[derive(Debug, Clone)]
enum Subject {
    /// A drive, with those of its queue.
    Drive(Drive),
    /// The stack's md array.
    Array { path: PathBuf, uuid: String },
}

/// The attributes that stacktune has changed.
#[derive(Debug)]
pub(super) struct Attributes {
    subjects: Vec<Subject>,
    /// In the order in which they were changed.
    made: Vec<Made>,
}

/// One that stacktune has changed.
#[derive(Debug, Clone)]
struct Made {
    subject: usize,
    attribute: &'static str,
    /// Its value before stacktune first changed it.
    old: String,
    new: String,
    /// See [`Undo::RestoreQueue`].
    beside: Vec<(String, String)>,
    /// Its entry in the journal.
    entry: u64,
}

/// The drives to whose queues a built stack's settings apply: those that it is built on, or its loop devices.
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

/// The stack's md array, by the node and UUID that the plan chose.
pub fn array_of(plan: &Plan) -> Option<(PathBuf, String)> {
    plan.steps.iter().find_map(|step| match step {
        Step::CreateArray { path, uuid, .. } => Some((path.clone(), uuid.clone())),
        _ => None,
    })
}

impl Subject {
    /// The folder of its attributes, looked up now, since another device may have taken its place.
    fn dir(&self) -> Result<PathBuf> {
        match self {
            Self::Drive(drive) => Ok(queue_dir(&drive.find()?.name)),
            Self::Array { path, uuid } => array_dir(uuid)?
                .ok_or_else(|| Error::failed(format!("the array {} is not running", path.shown()))),
        }
    }

    fn wanted<'a>(&self, values: &'a LiveValues) -> &'a [Wanted] {
        match self {
            Self::Drive(_) => &values.queue,
            Self::Array { .. } => &values.array,
        }
    }

    fn undo(&self, attribute: &str, (old, new): (&str, &str), beside: &[(String, String)]) -> Undo {
        let (attribute, old, new) = (attribute.to_owned(), old.to_owned(), new.to_owned());
        match self.clone() {
            Self::Drive(drive) => Undo::RestoreQueue { drive, attribute, old, new, beside: beside.to_vec() },
            Self::Array { path, uuid } => Undo::RestoreArray { path, uuid, attribute, old, new },
        }
    }

    fn restore(&self, attribute: &str, values: (&str, &str), beside: &[(String, String)]) -> Result<()> {
        match self {
            Self::Drive(drive) => restore(drive, attribute, values, beside),
            Self::Array { uuid, .. } => restore_array(uuid, attribute, values),
        }
    }
}

impl Attributes {
    pub(super) fn new(drives: Vec<Drive>) -> Self {
        Self { subjects: drives.into_iter().map(Subject::Drive).collect(), made: Vec::new() }
    }

    pub(super) fn add_array(&mut self, array: Option<(PathBuf, String)>) {
        self.subjects.extend(array.map(|(path, uuid)| Subject::Array { path, uuid }));
    }

    /// Whether anything is changed.
    pub(super) fn is_changed(&self) -> bool {
        !self.made.is_empty()
    }

    pub(super) fn drives(&self) -> Vec<Drive> {
        let drive = |subject: &Subject| match subject {
            Subject::Drive(drive) => Some(drive.clone()),
            Subject::Array { .. } => None,
        };
        self.subjects.iter().filter_map(drive).collect()
    }

    /// Whether these values would write anything.
    pub(super) fn would_change(&self, wanted: &LiveValues) -> bool {
        !self.subjects.is_empty() && (self.is_changed() || *wanted != LiveValues::default())
    }

    /// Applies these values; `None` restores the old value.
    ///
    /// # Errors
    /// If the kernel refuses a value: some may then be applied and others not.
    pub(super) fn apply(&mut self, journal: &mut Journal, wanted: &LiveValues) -> Result<()> {
        for subject in 0..self.subjects.len() {
            let is_drive = matches!(self.subjects[subject], Subject::Drive(_));
            let scheduler = self.at(subject, SCHEDULER).map(|at| &self.made[at].new);
            if is_drive && scheduler != wanted.scheduler() {
                for attribute in WITH_SCHEDULER.into_iter().rev() {
                    self.put_back(journal, subject, attribute)?;
                }
            }
            for (attribute, value) in self.subjects[subject].wanted(wanted) {
                match value {
                    Some(value) => self.set(journal, subject, attribute, value)?,
                    None => self.put_back(journal, subject, attribute)?,
                }
            }
        }
        Ok(())
    }

    /// Restores everything; returns the first error, after trying all.
    pub(super) fn restore(&mut self, journal: &mut Journal) -> Result<()> {
        let mut outcome = Ok(());
        for Made { subject, attribute, .. } in self.made.clone().into_iter().rev() {
            outcome = outcome.and(self.put_back(journal, subject, attribute));
        }
        outcome
    }

    fn at(&self, subject: usize, attribute: &str) -> Option<usize> {
        self.made.iter().position(|made| made.subject == subject && made.attribute == attribute)
    }

    fn set(
        &mut self,
        journal: &mut Journal,
        subject: usize,
        attribute: &'static str,
        value: &str,
    ) -> Result<()> {
        let before = self.at(subject, attribute).map(|at| self.made[at].clone());
        let whose = &self.subjects[subject];
        // Looked up right before writing, since another drive may have taken its place.
        let dir = whose.dir()?;
        let now = read(&dir, attribute)?;
        if now == value {
            return Ok(());
        }
        let (old, beside) = match &before {
            Some(made) => (made.old.clone(), made.beside.clone()),
            None if attribute == SCHEDULER => (now.clone(), beside(&dir)),
            None => (now.clone(), Vec::new()),
        };
        let entry = journal.record().entries.len() as u64;
        let undo = whose.undo(attribute, (&old, value), &beside);
        let command = format!("echo {value} > {}", dir.join(attribute).shown());
        if let Err(error) = journal.act(&command, Some(undo), || write_exactly(&dir, attribute, value, &now))
        {
            // It may have been written without being recorded; if it can't be restored now, the undo stays open.
            let is_back =
                || read(&dir, attribute).map_or(true, |is| is == now || in_force(&is) == in_force(&old));
            if whose.restore(attribute, (&old, value), &beside).is_ok() && is_back() {
                journal.undone(entry);
            }
            return Err(error);
        }
        let made = Made { subject, attribute, old, new: value.to_owned(), beside, entry };
        match (self.at(subject, attribute), before) {
            (Some(at), Some(before)) => {
                // The later entry holds the first value too.
                journal.undone(before.entry);
                self.made[at] = made;
            }
            _ => self.made.push(made),
        }
        Ok(())
    }

    fn put_back(&mut self, journal: &mut Journal, subject: usize, attribute: &str) -> Result<()> {
        let Some(at) = self.at(subject, attribute) else { return Ok(()) };
        let Made { old, new, beside, entry, .. } = &self.made[at];
        self.subjects[subject].restore(attribute, (old, new), beside)?;
        journal.undone(*entry);
        self.made.remove(at);
        Ok(())
    }
}

/// The values that must be restored along with the scheduler.
fn beside(dir: &Path) -> Vec<(String, String)> {
    let value = |attribute: &&str| Some(((*attribute).to_owned(), read(dir, attribute).ok()?));
    WITH_SCHEDULER.iter().filter_map(value).collect()
}

/// Restores a drive's queue setting from `new` to `old`, and then the settings that changed along with it;
/// does nothing if others have changed it since, or the drive is gone.
pub(crate) fn restore(
    drive: &Drive,
    attribute: &str,
    values: (&str, &str),
    beside: &[(String, String)],
) -> Result<()> {
    let mut names = std::iter::once(attribute).chain(beside.iter().map(|(attribute, _)| attribute.as_str()));
    if let Some(foreign) = names.find(|name| !LiveValues::has_of_queue(name)) {
        return Err(Error::refused(format!("`{foreign}` is not a queue setting that stacktune changes")));
    }
    // A drive that is gone took its settings along; its replacement has its own.
    let Some(device) = drive.candidates(true).pop() else { return Ok(()) };
    restore_in(&queue_dir(&device.name), attribute, values, beside)
}

/// The same for a setting of the array with that UUID.
pub(crate) fn restore_array(uuid: &str, attribute: &str, values: (&str, &str)) -> Result<()> {
    if !LiveValues::has_of_array(attribute) {
        return Err(Error::refused(format!(
            "`{attribute}` is not a setting of arrays that stacktune changes"
        )));
    }
    array_dir(uuid)?.map_or(Ok(()), |dir| restore_in(&dir, attribute, values, &[]))
}

fn restore_in(
    dir: &Path,
    attribute: &str,
    (old, new): (&str, &str),
    beside: &[(String, String)],
) -> Result<()> {
    if read(dir, attribute)? != in_force(new) || in_force(old) == in_force(new) {
        return Ok(());
    }
    write(dir, attribute, in_force(old))?;
    for (attribute, old) in beside {
        if read(dir, attribute).is_ok_and(|now| now != *old) {
            write(dir, attribute, old)?;
        }
    }
    Ok(())
}

/// Writes a value and checks that it reads back unchanged: the kernel adjusts some, and a value that can't be
/// recognized as stacktune's would not be restored after a crash.
fn write_exactly(dir: &Path, attribute: &str, value: &str, before: &str) -> Result<()> {
    write(dir, attribute, value)?;
    let now = read(dir, attribute)?;
    if now == value {
        return Ok(());
    }
    write(dir, attribute, before)?;
    let file = dir.join(attribute);
    Err(Error::input(format!("the kernel turns {value} into {now} for {}", file.shown()))
        .hint(format!("set {now} if that is what you want")))
}

fn queue_dir(name: &str) -> PathBuf {
    Path::new("/sys/block").join(name).join("queue")
}

/// The folder of the settings of the array with that UUID; none if it is not running.
pub(crate) fn array_dir(uuid: &str) -> Result<Option<PathBuf>> {
    let node = devices::arrays(&Runner::default(), uuid)?.pop();
    Ok(node.map(|node| Path::new("/sys/block").join(node.file_name().unwrap_or_default()).join("md")))
}

fn read(dir: &Path, attribute: &str) -> Result<String> {
    let file = dir.join(attribute);
    let text = fs::read_to_string(&file).map_err(|error| Error::os("cannot read", &file, error))?;
    Ok(in_force(&text).to_owned())
}

fn write(dir: &Path, attribute: &str, value: &str) -> Result<()> {
    let file = dir.join(attribute);
    fs::write(&file, value).map_err(|error| {
        Error::failed(format!("cannot write {value} to {}: {}", file.shown(), describe(&error)))
    })
}

/// The value of an attribute: the bracketed one of several choices, or all of it; for an array's attribute
/// that follows the system-wide value (`1000 (system)`), the word in parentheses.
pub(crate) fn in_force(text: &str) -> &str {
    let text = text.trim();
    if let Some((value, whose)) = text.split_once(" (") {
        return if whose == "system)" { "system" } else { value };
    }
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
        let error = restore_array("no such", "sync_action", ("idle", "check")).unwrap_err();
        assert_eq!(error.exit_status(), 3);
    }

    #[test]
    fn a_speed_of_an_array_is_its_own_or_the_systems() {
        assert_eq!([in_force("1000 (system)\n"), in_force("5000 (local)\n")], ["system", "5000"]);
        assert_eq!([in_force("none [mq-deadline] bfq\n"), in_force("256\n")], ["mq-deadline", "256"]);
    }
}
