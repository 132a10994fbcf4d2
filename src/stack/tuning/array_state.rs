//! A member of the stack's md array fails, and is replaced, while the load runs.
//!
//! Only a stack that this process has built has one: its drives were named, with their serials, for everything on
//! them to be destroyed. The array's own undo removes what is left of it, whichever members it has.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::printable::Shown as _;
use crate::settings::ArrayState;
use crate::stack::devices::{self, BlockDevice, same_id};
use crate::stack::journal::Journal;
use crate::stack::plan::{Plan, Step};
use crate::stack::runner::{MDADM, Runner};

/// How long md may take to let go of a member that has failed.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// The array, and the member that fails.
#[derive(Debug)]
pub struct FailingArray {
    array: BlockDevice,
    uuid: String,
    member: BlockDevice,
    state: ArrayState,
    runner: Runner,
}

impl FailingArray {
    /// That of a plan, with its last member; none where it makes no array.
    pub fn of(plan: &Plan) -> Option<Self> {
        plan.steps.iter().find_map(|step| {
            let Step::CreateArray { path, uuid, members, .. } = step else { return None };
            Some(Self {
                array: BlockDevice::Array { path: path.clone(), uuid: uuid.clone() },
                uuid: uuid.clone(),
                member: members.last()?.clone(),
                state: ArrayState::Healthy,
                runner: Runner::default(),
            })
        })
    }

    /// Brings it to that state.
    ///
    /// # Errors
    /// Input where that takes another turn first, or time; refused where the array has lost a member by itself.
    pub fn bring_to(&mut self, journal: &mut Journal, wanted: ArrayState) -> Result<()> {
        let outcome = match (self.state, wanted) {
            (ArrayState::Healthy, ArrayState::Healthy)
            | (ArrayState::Degraded, ArrayState::Degraded)
            | (ArrayState::Rebuilding, ArrayState::Rebuilding) => Ok(()),
            (ArrayState::Healthy | ArrayState::Rebuilding, ArrayState::Degraded) => self.fail(journal),
            (ArrayState::Healthy, ArrayState::Rebuilding) => {
                self.fail(journal)?;
                self.state = ArrayState::Degraded;
                self.replace(journal)
            }
            (ArrayState::Degraded, ArrayState::Rebuilding) => self.replace(journal),
            (ArrayState::Rebuilding, ArrayState::Healthy) => self.refuse_unfinished(),
            (ArrayState::Degraded, ArrayState::Healthy) => {
                Err(Error::input("a member has failed: the array is healthy again once it is rebuilt")
                    .hint("turn md.array to rebuilding first"))
            }
        };
        outcome?;
        self.state = wanted;
        Ok(())
    }

    fn nodes(&self) -> Result<(PathBuf, PathBuf)> {
        Ok((self.array.resolve(&self.runner)?, self.member.resolve(&self.runner)?))
    }

    fn fail(&self, journal: &mut Journal) -> Result<()> {
        let (array, member) = self.nodes()?;
        let others = self.state == ArrayState::Healthy && missing(&array) > 0;
        if others {
            let what = format!("{} has lost a member by itself, so none is failed", array.shown());
            return Err(Error::refused(what));
        }
        self.manage(journal, &array, "--fail", &member)
    }

    fn replace(&self, journal: &mut Journal) -> Result<()> {
        let (array, member) = self.nodes()?;
        patiently(|| self.manage(journal, &array, "--remove", &member))?;
        // Between the two nobody holds it: what is on it must still be this array's.
        let found = devices::member_uuid(&self.runner, &member)?;
        if !found.is_some_and(|found| same_id(&found, &self.uuid)) {
            let what = format!("{} is no longer a member of {}", member.shown(), array.shown());
            return Err(Error::refused(what).hint("another program has written to it"));
        }
        let command = format!("mdadm --zero-superblock {}", member.shown());
        let arguments = ["--zero-superblock".as_ref(), member.as_os_str()];
        // With its superblock, md would only bring it up to date.
        journal.act(&command, None, || self.runner.run_well(MDADM, &arguments).map(drop))?;
        self.manage(journal, &array, "--add", &member)
    }

    fn manage(&self, journal: &mut Journal, array: &Path, act: &str, member: &Path) -> Result<()> {
        let command = format!("mdadm --manage {} {act} {}", array.shown(), member.shown());
        let arguments = ["--manage".as_ref(), array.as_os_str(), act.as_ref(), member.as_os_str()];
        journal.act(&command, None, || self.runner.run_well(MDADM, &arguments).map(drop))
    }

    fn refuse_unfinished(&self) -> Result<()> {
        let array = self.array.resolve(&self.runner)?;
        if missing(&array) == 0 {
            return Ok(());
        }
        let done = text(&array, "sync_completed").unwrap_or_default();
        let what = format!("{} is still being rebuilt ({done} sectors)", array.shown());
        Err(Error::input(what).hint("wait, or let it go faster: md.sync_speed_min, md.sync_speed_max"))
    }
}

/// Tries for a while.
fn patiently(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    let ends = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(_) if Instant::now() < ends => std::thread::sleep(LOOK),
            outcome => return outcome,
        }
    }
}

/// Members that an array misses, one that is being rebuilt included.
fn missing(array: &Path) -> u64 {
    text(array, "degraded").and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn text(array: &Path, file: &str) -> Option<String> {
    let dir = Path::new("/sys/block").join(array.file_name()?).join("md");
    Some(std::fs::read_to_string(dir.join(file)).ok()?.trim().to_owned())
}
