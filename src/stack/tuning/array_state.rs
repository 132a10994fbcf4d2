//! Failing a member of the stack's md array, and replacing it, while the load runs.
//!
//! Only a stack that this process has built has one: the operator named its drives, with their serials, to be
//! destroyed. The array's own undo removes what is left of it, whichever members it has. The journal records
//! that a member was failed on purpose: for `status`, and for a session continuing with the stack.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::host::has_spare;
use crate::printable::Shown as _;
use crate::settings::ArrayState;
use crate::stack::devices::{self, BlockDevice, Drive, same_id};
use crate::stack::journal::{Journal, Undo};
use crate::stack::plan::{Plan, Step};
use crate::stack::runner::{MDADM, Runner};
use crate::units::KIB;

/// How long md may take to release a failed member.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// The array, and the member that fails.
#[derive(Debug)]
pub struct FailingArray {
    path: PathBuf,
    uuid: String,
    member: BlockDevice,
    state: ArrayState,
    /// The journal entry for the member's failure, until the array is whole again.
    entry: Option<u64>,
    /// Whether the member was taken out and wiped, and not yet added again.
    wiped: bool,
    runner: Runner,
}

impl FailingArray {
    /// A stack's array with its last member, in the state in which an earlier session left it; none if the
    /// plan makes no array.
    pub fn of(plan: &Plan, journal: &Journal, runner: &Runner) -> Option<Self> {
        let mut array = plan.steps.iter().find_map(|step| {
            let Step::CreateArray { path, uuid, members, .. } = step else { return None };
            Some(Self {
                path: path.clone(),
                uuid: uuid.clone(),
                member: members.last()?.clone(),
                state: ArrayState::Healthy,
                entry: None,
                wiped: false,
                runner: runner.clone(),
            })
        })?;
        let failed = |undo: Option<&Undo>| matches!(undo, Some(Undo::ReplaceMember { .. }));
        array.entry = journal.record().entries.iter().rev().find(|e| failed(e.to_undo())).map(|e| e.number);
        Some(array)
    }

    /// The drive of the member, whose content a turn destroys; none if it is a file's loop device.
    pub fn drive(&self) -> Option<&Drive> {
        match &self.member {
            BlockDevice::Drive(drive) | BlockDevice::Partition { drive, .. } => Some(drive),
            BlockDevice::Loop { .. } | BlockDevice::Array { .. } | BlockDevice::Layer { .. } => None,
        }
    }

    /// Whether reaching that state means failing a working member.
    pub fn would_fail(&self, wanted: ArrayState) -> bool {
        self.state == ArrayState::Healthy && wanted != ArrayState::Healthy
    }

    /// The commands that bring a healthy array to that state.
    pub fn commands(&self, wanted: ArrayState) -> Vec<String> {
        let (array, member) = (self.path.shown(), self.member.shown());
        let manage = |act: &str| format!("mdadm --manage {array} {act} {member}");
        match wanted {
            ArrayState::Healthy => Vec::new(),
            ArrayState::Degraded => vec![manage("--fail")],
            ArrayState::Rebuilding => vec![
                manage("--fail"),
                manage("--remove"),
                format!("mdadm --zero-superblock {member}"),
                manage("--add"),
            ],
        }
    }

    /// Bytes that a rebuild writes to the member; 0 if the array is not running.
    pub fn member_bytes(&self) -> u64 {
        let node = self.array().resolve(&self.runner).ok();
        let kib = node.and_then(|array| text(&array, "component_size"));
        kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0).saturating_mul(KIB)
    }

    /// Brings it to the state in which a session begins: a rebuild starts over with the session.
    ///
    /// # Errors
    /// As [`Self::bring_to`].
    pub fn begin(&mut self, journal: &mut Journal, wanted: ArrayState) -> Result<()> {
        self.state = self.found()?;
        if self.state == ArrayState::Healthy {
            self.is_whole(journal);
        }
        if self.state == wanted && wanted == ArrayState::Rebuilding {
            self.fail(journal)?;
        }
        self.bring_to(journal, wanted)
    }

    /// Brings it to that state.
    ///
    /// # Errors
    /// Input if that takes another turn first, or time; refused if the array has lost a member by itself.
    pub fn bring_to(&mut self, journal: &mut Journal, wanted: ArrayState) -> Result<()> {
        match (self.state, wanted) {
            (ArrayState::Healthy, ArrayState::Healthy)
            | (ArrayState::Degraded, ArrayState::Degraded)
            | (ArrayState::Rebuilding, ArrayState::Rebuilding) => Ok(()),
            (ArrayState::Healthy | ArrayState::Rebuilding, ArrayState::Degraded) => self.fail(journal),
            (ArrayState::Healthy, ArrayState::Rebuilding) => {
                self.fail(journal)?;
                self.replace(journal)
            }
            (ArrayState::Degraded, ArrayState::Rebuilding) => self.replace(journal),
            (ArrayState::Rebuilding, ArrayState::Healthy) => {
                self.refuse_unfinished()?;
                self.is_whole(journal);
                Ok(())
            }
            (ArrayState::Degraded, ArrayState::Healthy) => {
                Err(Error::input("a member has failed: the array is healthy again once it is rebuilt")
                    .hint("turn md.array to rebuilding first"))
            }
        }
    }

    /// Replaces the member that was failed, for an array that stays when its process ends: md then rebuilds
    /// it by itself. Does nothing to an array that is whole or already rebuilding.
    ///
    /// # Errors
    /// If the member can't be replaced; the journal still says that it was failed.
    pub fn make_whole(&mut self, journal: &mut Journal) -> Result<()> {
        if self.entry.is_none() {
            return Ok(());
        }
        self.state = self.found()?;
        if self.state == ArrayState::Degraded {
            self.replace(journal)?;
        }
        self.is_whole(journal);
        Ok(())
    }

    /// Records that nothing remains to be done about the member.
    fn is_whole(&mut self, journal: &mut Journal) {
        self.state = ArrayState::Healthy;
        if let Some(entry) = self.entry.take() {
            journal.undone(entry);
        }
    }

    /// The array's state by the member that was failed on purpose. Without one it counts as healthy: members
    /// that it lost by itself do not matter here.
    fn found(&self) -> Result<ArrayState> {
        if self.entry.is_none() {
            return Ok(ArrayState::Healthy);
        }
        let (array, member) = self.nodes()?;
        Ok(match member_state(&array, &member) {
            Some(state) if state.contains("in_sync") => ArrayState::Healthy,
            Some(state) if !state.contains("faulty") => ArrayState::Rebuilding,
            _ => ArrayState::Degraded,
        })
    }

    fn array(&self) -> BlockDevice {
        BlockDevice::Array { path: self.path.clone(), uuid: self.uuid.clone() }
    }

    fn nodes(&self) -> Result<(PathBuf, PathBuf)> {
        Ok((self.array().resolve(&self.runner)?, self.member.resolve(&self.runner)?))
    }

    fn fail(&mut self, journal: &mut Journal) -> Result<()> {
        let (array, member) = self.nodes()?;
        if self.entry.is_none() && missing(&array) > 0 {
            let what =
                format!("{} has already lost a member, so stacktune does not fail another", array.shown());
            return Err(Error::refused(what));
        }
        let undo = Undo::ReplaceMember {
            path: self.path.clone(),
            uuid: self.uuid.clone(),
            member: self.member.clone(),
        };
        let entry = journal.record().entries.len() as u64;
        let known = self.entry.is_some();
        let failed = self.manage(journal, (!known).then_some(undo), &array, "--fail", &member);
        let is_out = member_state(&array, &member).is_none_or(|state| state.contains("faulty"));
        if !known && (failed.is_ok() || is_out) {
            self.entry = Some(entry);
        } else if !known {
            journal.undone(entry);
        }
        if failed.is_ok() || is_out {
            self.state = ArrayState::Degraded;
        }
        failed
    }

    fn replace(&mut self, journal: &mut Journal) -> Result<()> {
        let (array, member) = self.nodes()?;
        if member_state(&array, &member).is_some() {
            patiently(|| self.manage(journal, None, &array, "--remove", &member))?;
        }
        if !self.wiped {
            self.wipe(journal, &array, &member)?;
        }
        self.manage(journal, None, &array, "--add", &member)?;
        (self.wiped, self.state) = (false, ArrayState::Rebuilding);
        Ok(())
    }

    /// Blanks the member: if it kept its superblock, md would only bring it up to date.
    fn wipe(&mut self, journal: &mut Journal, array: &Path, member: &Path) -> Result<()> {
        // Nobody holds it now, so check that its content is still this array's.
        let found = devices::member_uuid(&self.runner, member)?;
        if !found.is_some_and(|found| same_id(&found, &self.uuid)) {
            let what = format!("{} is no longer a member of {}", member.shown(), array.shown());
            return Err(Error::refused(what).hint("another program has written to it"));
        }
        let command = format!("mdadm --zero-superblock {}", member.shown());
        let arguments = ["--zero-superblock".as_ref(), member.as_os_str()];
        journal.act(&command, None, || self.runner.run_well(MDADM, &arguments).map(drop))?;
        self.wiped = true;
        Ok(())
    }

    fn manage(
        &self,
        journal: &mut Journal,
        undo: Option<Undo>,
        array: &Path,
        act: &str,
        member: &Path,
    ) -> Result<()> {
        let command = format!("mdadm --manage {} {act} {}", array.shown(), member.shown());
        let arguments = ["--manage".as_ref(), array.as_os_str(), act.as_ref(), member.as_os_str()];
        journal.act(&command, undo, || self.runner.run_well(MDADM, &arguments).map(drop))
    }

    fn refuse_unfinished(&self) -> Result<()> {
        let array = self.array().resolve(&self.runner)?;
        if missing(&array) == 0 {
            return Ok(());
        }
        let done = text(&array, "sync_completed").unwrap_or_default();
        let what = format!("{} is still being rebuilt ({done} sectors)", array.shown());
        Err(Error::input(what).hint("wait, or let it go faster: md.sync_speed_min, md.sync_speed_max"))
    }
}

/// Retries for a while.
fn patiently(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    let ends = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(_) if Instant::now() < ends => std::thread::sleep(LOOK),
            outcome => return outcome,
        }
    }
}

/// The condition of an array that stacktune made, in words: its missing members, and a rebuild's progress;
/// none if it is whole or not running.
pub(crate) fn condition(array: &Path) -> Option<String> {
    let lost = Some(missing(array)).filter(|lost| *lost > 0)?;
    let is_idle = |action: &String| action == "idle" || action == "recover" && !has_spare(&md_folder(array));
    let action = text(array, "sync_action").filter(|action| !is_idle(action));
    Some(match action {
        Some(action) => {
            let done = text(array, "sync_completed").and_then(|line| share(&line)).unwrap_or_default();
            format!("degraded, and being rebuilt ({action}{done})")
        }
        None => format!("degraded: {lost} of its members missing"),
    })
}

/// `, 12%`, of `1024 / 8192`.
fn share(line: &str) -> Option<String> {
    let (done, all) = line.split_once('/')?;
    let (done, all): (f64, f64) = (done.trim().parse().ok()?, all.trim().parse().ok()?);
    (all > 0.0).then(|| format!(", {:.0}%", 100.0 * done / all))
}

/// Members that an array is missing, including one that is being rebuilt.
fn missing(array: &Path) -> u64 {
    text(array, "degraded").and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// What md reports about a member; none if the array does not have it.
fn member_state(array: &Path, member: &Path) -> Option<String> {
    text(array, &format!("dev-{}/state", member.file_name()?.to_str()?))
}

fn text(array: &Path, file: &str) -> Option<String> {
    Some(fs::read_to_string(md_folder(array).join(file)).ok()?.trim().to_owned())
}

/// An array's folder in sysfs.
fn md_folder(array: &Path) -> PathBuf {
    // A name below /dev/md is a link.
    let node = array.canonicalize().unwrap_or_else(|_| array.to_owned());
    Path::new("/sys/block").join(node.file_name().unwrap_or_default()).join("md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_share_where_the_kernel_counts_it() {
        assert_eq!(share("1024 / 8192").as_deref(), Some(", 12%"));
        assert_eq!([share("none"), share("0 / 0")], [None, None]);
    }
}
