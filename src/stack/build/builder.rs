//! Runs the steps of a plan in order. Right before each step acts, the guard checks once more and the step's
//! undo is written durably to the journal.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::context::BuildContext;
use super::made::{Made, PRIVATE};
use super::precondition::{self, PreconditionProgress};
use super::resync;
use crate::error::{Error, Result};
use crate::host::{Device, Facts, LbaFormat, Usage, mounted_at};
use crate::printable::Shown as _;
use crate::stack::devices::{BlockDevice, Drive};
use crate::stack::guard::{self, Claim};
use crate::stack::handover;
use crate::stack::journal::{Journal, Undo};
use crate::stack::plan::{Arg, CommandLine, Plan, Step};
use crate::stack::runner::{LOSETUP, Runner, failure, quoted};
use crate::stack::supervise::{Advance, Gauge, Watch, attended};

/// How long another program may have a device open before that counts as a use. `losetup --find` opens every
/// device it tries, including one that an earlier step just attached.
const PASSING_USE: Duration = Duration::from_secs(2);

/// Runs the steps of a plan.
pub(super) struct Builder<'a> {
    pub(super) plan: &'a Plan,
    pub(super) site: &'a BuildContext<'a>,
    pub(super) drives: Vec<Drive>,
    /// How far preconditioning has got on each drive.
    pub(super) progress: Vec<PreconditionProgress>,
    /// Folders and files made so far.
    pub(super) made: Made,
    /// Size in bytes of the last command layer's device; 0 before there is one.
    pub(super) layer_bytes: AtomicU64,
}

impl Builder<'_> {
    /// Returns how long each step took.
    pub(super) fn run(&self, journal: &mut Journal, watch: Watch) -> Result<Vec<Option<Duration>>> {
        let steps = self.plan.steps.len();
        let mut times = Vec::new();
        // A wiped drive is held until a tool needs it, which may be hours later, so that no other program can
        // write to it in between.
        let mut held: Vec<Claim> = Vec::new();
        for (number, step) in self.plan.steps.iter().enumerate() {
            let command = step.words();
            let advance = Advance { step: number, steps, command, undoing: false, bytes: None, left_s: None };
            let stopped = || Error::interrupted(format!("stopped before step {} of {steps}", number + 1));
            if !watch(&advance) {
                return Err(stopped());
            }
            let at_step = |error: Error| {
                let what = format!("step {} of {steps}: {}", number + 1, error.what);
                Error { what, ..error }
            };
            let drives = step.drives();
            held.retain(|claim| !drives.iter().any(|drive| drive.number == claim.device().number));
            self.refuse(step).map_err(at_step)?;
            let command = advance.command.clone();
            let began = Instant::now();
            let act = || {
                let (outcome, stop) = attended(&mut *watch, advance, |gauge| self.perform(step, gauge));
                outcome.map(|()| stop)
            };
            if journal.act(&command, self.undo_of(step), act).map_err(at_step)? {
                return Err(Error::interrupted(format!("stopped in step {} of {steps}", number + 1)));
            }
            times.push((!self.goes_on(step)).then(|| began.elapsed()));
            if matches!(step, Step::Blank { .. } | Step::Trim { .. } | Step::Precondition { .. }) {
                for drive in drives {
                    let claim = drive.find().and_then(|device| guard::claim_again(&device, drive.size_bytes));
                    held.push(claim.map_err(at_step)?);
                }
            }
        }
        Ok(times)
    }

    /// For a folder above the stack's own, the undo also names the folder it is made for, which may not exist yet.
    fn undo_of(&self, step: &Step) -> Option<Undo> {
        let Step::MakeFolder { dir } = step else { return step.undo() };
        let mut within = self.plan.steps.iter().filter_map(|step| match step {
            Step::MakeFolder { dir: inner } if inner != dir && inner.starts_with(dir) => Some(inner.clone()),
            _ => None,
        });
        Some(Undo::RemoveFolder { dir: dir.clone(), above: within.next_back() })
    }

    /// Whether an earlier build already did part of the step: the rest takes less time than the whole step.
    fn goes_on(&self, step: &Step) -> bool {
        let Step::Precondition { device: BlockDevice::Drive(drive), .. } = step else { return false };
        let at = self.drives.iter().position(|known| known == drive);
        at.is_some_and(|at| self.progress[at] != PreconditionProgress::default())
    }

    /// The guard's check right before a step acts.
    fn refuse(&self, step: &Step) -> Result<()> {
        match step {
            Step::Blank { drive } | Step::SetIommu { drive, .. } | Step::Format { drive, .. } => {
                as_shown(self.plan, drive, self.site)
            }
            Step::Partition { drive, .. } => self.refuse_used(&BlockDevice::Drive(drive.clone())),
            Step::Trim { device, .. } | Step::Precondition { device, .. } | Step::Clear { device } => {
                self.refuse_used(device)
            }
            Step::CreateArray { members: devices, .. } | Step::MakeFilesystem { devices, .. } => {
                devices.iter().try_for_each(|device| self.refuse_used(device))
            }
            Step::Mount { device, dir, .. } => {
                self.refuse_used(device)?;
                refuse_mount_point(dir)
            }
            // What already exists was not made by this stack, so its undo must not remove it.
            Step::MakeFolder { dir: path } | Step::MakeFile { file: path, .. } => {
                match path.symlink_metadata() {
                    Ok(_) => Err(Error::refused(format!("{} already exists", path.shown()))),
                    Err(_) => Ok(()),
                }
            }
            Step::RaiseLayer { layer, number } => self.refuse_layer(layer, *number),
            Step::AttachLoop { .. } | Step::AwaitResync { .. } | Step::HoldLayer { .. } => Ok(()),
        }
    }

    /// Refuses a device that is not the planned one, or that has come into use.
    pub(super) fn refuse_used(&self, planned: &BlockDevice) -> Result<()> {
        if let BlockDevice::Drive(drive) | BlockDevice::Partition { drive, .. } = planned
            && !self.drives.contains(drive)
        {
            let what = format!("the plan did not include destroying {}", drive.describe());
            return Err(Error::refused(what));
        }
        let until = Instant::now() + PASSING_USE;
        loop {
            let (node, uses) = self.uses_of(planned)?;
            let passing = !uses.is_empty() && uses.iter().all(|one| matches!(one, Usage::Claimed(_)));
            if !passing || Instant::now() >= until {
                guard::refuse_used(&node, &uses)?;
                return guard::refuse_claimed(&node);
            }
            std::thread::sleep(PASSING_USE / 20);
        }
    }

    /// A planned device's node, and what uses it now.
    fn uses_of(&self, planned: &BlockDevice) -> Result<(PathBuf, Vec<Usage>)> {
        let (node, mut device) = if let BlockDevice::Drive(drive) = planned {
            (drive.path.clone(), drive.find()?)
        } else {
            let node = self.node(planned)?;
            let device = whole(&node)?;
            (node, device)
        };
        // An array's members carry its superblock, and a device below a layer may carry one of the layer's.
        if matches!(planned, BlockDevice::Array { .. } | BlockDevice::Layer { .. }) {
            device.usage.retain(|usage| !matches!(usage, Usage::Member(_)));
        }
        Ok((node, device.usage))
    }

    fn perform(&self, step: &Step, gauge: &Gauge) -> Result<()> {
        match step {
            Step::MakeFolder { dir } => self.made.folder(dir),
            Step::MakeFile { file, bytes } => self.made.file(file, *bytes),
            Step::Blank { drive } => {
                let claim = guard::claim_again(&drive.find()?, drive.size_bytes)?;
                claim.blank(&self.site.runner)
            }
            Step::Format { drive, namespace, new, .. } => format_drive(drive, *namespace, *new),
            Step::SetIommu { drive, address, group, new, .. } => {
                handover::set_type(drive, address, group, new)
            }
            Step::AwaitResync { array } => resync::wait(&self.node(array)?, gauge),
            Step::Precondition { device, bytes, random_bytes } => {
                self.precondition(device, (*bytes, *random_bytes), gauge)
            }
            Step::Clear { device } => guard::claim_built(&self.node(device)?)?.clear_start(),
            Step::Mount { dir, .. } => self.mount(step, dir),
            Step::Trim { device, .. } => {
                refuse_untrimmable(&self.node(device)?)?;
                self.run_commands(step)
            }
            Step::AttachLoop { file } => self.attach(step, file),
            Step::RaiseLayer { layer, number } => self.raise_layer(layer, *number),
            Step::HoldLayer { layer } => self.hold_layer(layer),
            _ => self.run_commands(step),
        }
    }

    fn run_commands(&self, step: &Step) -> Result<()> {
        let word = |arg: &Arg| match arg {
            Arg::Text(text) => Ok(PathBuf::from(text)),
            Arg::Device(device) => self.node(device),
        };
        step.commands().iter().try_for_each(|command| command.run(&self.site.runner, word).map(drop))
    }

    /// Attaches a loop device to the very file that was made.
    fn attach(&self, step: &Step, file: &Path) -> Result<()> {
        let runner = &self.site.runner;
        let held = self.made.path_of(file)?;
        let word = |arg: &Arg| match arg {
            Arg::Text(text) if Path::new(text) == file => Ok(held.clone()),
            Arg::Text(text) => Ok(PathBuf::from(text)),
            Arg::Device(device) => self.node(device),
        };
        // Name the file as it was shown to the operator.
        let named = |error: Error| {
            let what = error.what.replace(&*held.to_string_lossy(), &quoted(file.as_os_str()));
            Error { what, ..error }
        };
        for command in step.commands() {
            let attached = command.run(runner, word).map_err(named)?;
            let node = Path::new(attached.trim());
            if let Err(error) = self.made.refuse_other(file, node, runner) {
                runner.run_well(LOSETUP, &["--detach".as_ref(), node.as_os_str()])?;
                return Err(error);
            }
        }
        self.node(&BlockDevice::Loop { file: file.to_owned() }).map(drop)
    }

    /// A device's current node; a loop device's only if it is attached to the file that was made.
    pub(super) fn node(&self, device: &BlockDevice) -> Result<PathBuf> {
        let node = device.resolve(&self.site.runner)?;
        if let BlockDevice::Loop { file } = device {
            self.made.refuse_other(file, &node, &self.site.runner)?;
        }
        Ok(node)
    }

    /// Mounts where only root can reach: a new file system is readable by everyone.
    fn mount(&self, step: &Step, dir: &Path) -> Result<()> {
        let above = dir.parent().unwrap_or(dir);
        // Earlier versions left it to the umask.
        fs::set_permissions(above, Permissions::from_mode(PRIVATE))
            .map_err(|error| Error::os("cannot restrict access to", above, error))?;
        self.run_commands(step)
    }

    fn precondition(&self, device: &BlockDevice, bytes: (u64, u64), gauge: &Gauge) -> Result<()> {
        let claim = self.claim(device)?;
        let drive = match device {
            BlockDevice::Drive(drive) => self.drives.iter().position(|known| known == drive),
            _ => None,
        };
        let begun = drive.map_or_else(PreconditionProgress::default, |index| self.progress[index]);
        let progress = precondition::run(&claim, bytes, begun, gauge)?;
        // The count of bytes written must not change when the device is closed.
        drop(claim);
        if let Some(index) = drive {
            precondition::keep(&self.site.state_dir, &self.drives[index], progress);
        }
        Ok(())
    }

    fn claim(&self, planned: &BlockDevice) -> Result<Claim> {
        let device = whole(&self.node(planned)?)?;
        guard::claim_again(&device, 0)
    }
}

/// Formats a drive. Its size must not change, since all later steps were planned for it.
fn format_drive(drive: &Drive, namespace: u32, format: LbaFormat) -> Result<()> {
    guard::claim_again(&drive.find()?, drive.size_bytes)?.format(namespace, format)?;
    drive.find().map(drop).map_err(|error| {
        let what = format!("in its new LBA format, {}", error.what);
        Error::input(what)
            .hint("a drive whose size changes with its format is not supported: set stack.lba_size to keep")
    })
}

/// The device with this node or, for a partition's node, the device it is on.
fn whole(node: &Path) -> Result<Device> {
    let name = node.file_name().unwrap_or_default().to_string_lossy();
    let is = |device: &Device| device.path == node || device.partitions.iter().any(|part| *part == name);
    Facts::read_devices()
        .into_iter()
        .find(is)
        .ok_or_else(|| Error::refused(format!("{} is no longer there", node.shown())))
}

fn refuse_mount_point(dir: &Path) -> Result<()> {
    let cannot = |error| Error::os("cannot examine", dir, error);
    let found = dir.symlink_metadata().map_err(cannot)?;
    let empty = found.is_dir() && fs::read_dir(dir).map_err(cannot)?.next().is_none();
    if !empty || !mounted_at(dir).map_err(cannot)?.is_empty() {
        return Err(Error::refused(format!("{} is not the empty folder that was made", dir.shown())));
    }
    Ok(())
}

fn refuse_untrimmable(node: &Path) -> Result<()> {
    let device = whole(node)?;
    let file = PathBuf::from(format!("/sys/block/{}/queue/discard_max_bytes", device.name));
    let text = fs::read_to_string(&file).map_err(|error| Error::os("cannot read", &file, error))?;
    if text.trim() != "0" {
        return Ok(());
    }
    Err(Error::input(format!("{} does not support discard: its discard_max_bytes is 0", node.shown()))
        .hint("set stack.state to \"as-is\" or \"preconditioned\""))
}

impl CommandLine {
    /// Runs it, substituting each word with `word`; returns its output.
    fn run(&self, runner: &Runner, word: impl Fn(&Arg) -> Result<PathBuf>) -> Result<String> {
        let args: Vec<PathBuf> = self.args.iter().map(word).collect::<Result<_>>()?;
        let args: Vec<&OsStr> = args.iter().map(|arg| arg.as_os_str()).collect();
        let answer = runner.run_fed(self.tool, &args, &self.input)?;
        if answer.status == 0 { Ok(answer.stdout) } else { Err(failure(self.tool, &args, &answer)) }
    }
}

/// Examines a drive in full: it must be the planned one, unused, and hold nothing that was not shown to the
/// operator. Finding less than was shown is fine: a search stops after a few seconds.
pub(super) fn as_shown(plan: &Plan, drive: &Drive, site: &BuildContext) -> Result<()> {
    let Some(shown) = plan.destroys.iter().find(|destroyed| destroyed.drive == *drive) else {
        return Err(Error::refused(format!("the plan did not include destroying {}", drive.describe())));
    };
    let found = guard::examine_device(&drive.find()?, drive.size_bytes, site.own_data)?;
    if found.content.iter().all(|content| shown.content.contains(content)) {
        return Ok(());
    }
    let now = if found.content.is_empty() { "nothing".to_owned() } else { found.content.join("; ") };
    let what = format!("{} was written to after the plan was shown: it now holds {now}", drive.describe());
    Err(Error::refused(what).hint("find out what wrote to it, then plan again"))
}
