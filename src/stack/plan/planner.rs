//! From a stack's specification and the drives' content to a plan, or to the reason why there is none.

use std::path::{Path, PathBuf};

use super::endurance::endurance;
use super::fit::Fit;
use super::layers::{Layers, MEMBER_BYTES_MIN, StackPlace, files_dir, log_dir};
use super::lba_format::format_steps;
use super::model::{Destroyed, Plan};
use super::resilience::{Properties, properties};
use super::spec::StackSpec;
use super::step::Step;
use super::trial::refuse_mkfs_options;
use crate::error::{Error, Result};
use crate::host::{Device, Facts, Trusting, kernel_version, refuse_exchangeable};
use crate::printable::Shown as _;
use crate::settings::paths::expand_home;
use crate::settings::{Bitmap, DriveState};
use crate::stack::devices::Drive;
use crate::stack::guard::{self, Claim, OwnData};
use crate::stack::handover::{self, IommuGroup};
use crate::stack::id::StackId;
use crate::stack::runner::{BLKID, MDADM, Runner, UMOUNT, WIPEFS};
use crate::threads;
use crate::units::{approx_size, floor_mib};

/// What a plan is based on.
pub struct PlanContext<'a> {
    /// The host.
    pub facts: &'a Facts,
    /// Where stacktune keeps journals and mount points.
    pub state_dir: &'a Path,
    /// Recognizes stacktune's own data on a drive.
    pub own_data: &'a dyn OwnData,
    /// The current stack, if it is torn down first: nothing else uses its drives, so they are not examined,
    /// and the space of its files will be free.
    pub standing: Option<&'a Plan>,
    /// Drives that this process itself holds, and releases before anything is built.
    pub held: &'a [Claim],
}

/// Plans a stack. Looks at drives and files, but writes nothing. The same id gives the same plan on the same host.
///
/// # Errors
/// Refused (3) if the guard refuses a drive, or if a tool or a permission is missing; input (2) if the stack
/// can't be built as specified.
pub fn plan(spec: &StackSpec, context: &PlanContext, id: StackId) -> Result<Plan> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::refused(
            "building a stack requires root: it attaches devices and mounts file systems",
        )
        .hint("start stacktune with sudo, or set stack.* to none"));
    }
    let mut destroys = destroyed(spec, context)?;
    let missing = if destroys.is_empty() { missing_folders(spec, context, &id)? } else { Vec::new() };
    if destroys.is_empty() {
        // Others could swap the files that are formatted.
        refuse_exchangeable(&files_dir(spec, &id)?, Trusting::Root)?;
    }
    let place = StackPlace { id: &id, state_dir: context.state_dir, missing: &missing };
    let mut layers = Layers::of(spec, &destroys, &place)?;
    // First, while the drives hold nothing of the stack; undone last.
    let formats = format_steps(spec, context.facts, context.standing)?;
    layers.steps.splice(0..0, iommu_steps(spec, context)?.into_iter().chain(formats));
    if destroys.is_empty() && context.standing.is_none() {
        refuse_full(spec)?;
    }
    let runner = Runner::default();
    require_tools(&layers.steps, &runner)?;
    refuse_old_mdadm(&layers.steps, &runner)?;
    refuse_mkfs_options(spec, &layers, context.facts, &runner)?;
    for (destroyed, writes_bytes) in destroys.iter_mut().zip(&layers.writes_bytes) {
        destroyed.writes_bytes = *writes_bytes;
    }
    let fit = Fit::of(spec);
    let log = log_dir(spec, &id)?;
    let properties = properties(spec, context.facts, layers.usable_bytes).without(spec.lost_as_set());
    Ok(Plan {
        properties: Properties { at_most: fit.is_some(), ..properties },
        fit,
        id,
        destroys,
        steps: layers.steps,
        exposed: layers.exposed,
        log,
        writes_bytes: layers.writes_bytes.iter().sum(),
    })
}

/// Refuses if a tool that the guard, the steps or their undo run is missing.
fn require_tools(steps: &[Step], runner: &Runner) -> Result<()> {
    let mounts = steps.iter().any(|step| matches!(step, Step::Mount { .. }));
    let own = [BLKID, WIPEFS].into_iter().chain(mounts.then_some(UMOUNT));
    let tools = own.chain(steps.iter().flat_map(Step::commands).map(|command| command.tool));
    tools.into_iter().try_for_each(|tool| runner.find(tool).map(drop))?;
    let of_layers = steps.iter().flat_map(|step| match step {
        Step::RaiseLayer { layer, number: 0 } => [layer.up.as_slice(), &layer.made.down].concat(),
        _ => Vec::new(),
    });
    of_layers.into_iter().try_for_each(|command| runner.find_named(&command.program).map(drop))
}

/// Gives the drives' IOMMU groups the requested type, if they have another.
fn iommu_steps(spec: &StackSpec, context: &PlanContext) -> Result<Vec<Step>> {
    let Some(new) = spec.layers.iommu.kernel_type() else { return Ok(Vec::new()) };
    let mut steps: Vec<Step> = Vec::new();
    for device in context.facts.find_all(&spec.target.devices)? {
        let IommuGroup { address, group, kind } = handover::group_of(device)?;
        let is_same =
            |step: &&Step| matches!(step, Step::SetIommu { address: other, .. } if *other == address);
        if steps.iter().any(|step| is_same(&step)) {
            continue;
        }
        // The current stack is taken down first, and its type with it.
        let standing = context.standing.iter().flat_map(|plan| &plan.steps).find(is_same);
        let old = match standing {
            Some(Step::SetIommu { old, .. }) => old.clone(),
            _ => kind,
        };
        if old != new {
            steps.push(Step::SetIommu { drive: Drive::of(device), address, group, old, new: new.to_owned() });
        }
    }
    Ok(steps)
}

/// Refuses a lockless bitmap if mdadm does not know it, before anything is destroyed.
fn refuse_old_mdadm(steps: &[Step], runner: &Runner) -> Result<()> {
    let lockless = |step: &Step| matches!(step, Step::CreateArray { bitmap: Bitmap::Lockless, .. });
    if !steps.iter().any(lockless) {
        return Ok(());
    }
    let answer = runner.run(MDADM, &["--version".as_ref()])?;
    let text = format!("{}{}", answer.stdout, answer.stderr);
    let version = text.split(['v', ' ', '\n']).find(|word| kernel_version(word).is_some());
    if version.and_then(kernel_version).is_some_and(|version| version >= (4, 5)) {
        return Ok(());
    }
    let found = version.map_or("an unknown version".to_owned(), |version| format!("version {version}"));
    let what = format!("mdadm makes lockless bitmaps from version 4.5 on, and this is {found}");
    Err(Error::input(what).hint("set stack.bitmap to internal or none"))
}

/// The missing folders above the stack's own, the topmost first; those that the current stack made go when it
/// is taken down, and count as missing.
fn missing_folders(spec: &StackSpec, context: &PlanContext, id: &StackId) -> Result<Vec<PathBuf>> {
    let own = files_dir(spec, id)?;
    let goes = |dir: &Path| {
        let steps = context.standing.iter().flat_map(|plan| &plan.steps);
        steps.into_iter().any(|step| matches!(step, Step::MakeFolder { dir: made } if made == dir))
    };
    let above = own.ancestors().skip(1).take_while(|dir| !dir.exists() || goes(dir));
    let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
    missing.reverse();
    Ok(missing)
}

/// The drives of the target with their content; empty if the target is files.
fn destroyed(spec: &StackSpec, context: &PlanContext) -> Result<Vec<Destroyed>> {
    let devices = context.facts.find_all(&spec.target.devices)?;
    let look = |(device, named): &(&Device, &String)| {
        let drive = Drive::of(device);
        let stands = context.standing.is_some_and(|plan| plan.drives().contains(&drive));
        let held = context.held.iter().find(|held| held.device().number == device.number);
        let content = match held {
            _ if stands => vec!["the current stack".to_owned()],
            Some(held) => {
                guard::examine_held(held, context.facts, MEMBER_BYTES_MIN, context.own_data)?.content
            }
            None => guard::examine(named, context.facts, MEMBER_BYTES_MIN, context.own_data)?.content,
        };
        Ok(Destroyed { drive, content, writes_bytes: 0, endurance: endurance(&spec.layers, device) })
    };
    devices.iter().try_for_each(|device| refuse_undiscardable(spec, device))?;
    devices.iter().try_for_each(|device| refuse_undividable(spec, device))?;
    let named: Vec<_> = devices.into_iter().zip(&spec.target.devices).collect();
    threads::each(&named, "examine a device", look).into_iter().collect()
}

/// Refuses a drive that needs discard but does not support it, before anything on it is destroyed.
fn refuse_undiscardable(spec: &StackSpec, device: &Device) -> Result<()> {
    let takes = match (spec.layers.state, spec.layers.use_percent) {
        (DriveState::Trimmed, _) => "stack.state = \"trimmed\"",
        (_, ..100) => "stack.use",
        _ => return Ok(()),
    };
    let file = format!("/sys/block/{}/queue/discard_max_bytes", device.name);
    if std::fs::read_to_string(file).is_ok_and(|text| text.trim() != "0") {
        return Ok(());
    }
    let what = format!("{} does not support discard, which {takes} requires", device.path.shown());
    Err(Error::input(what).hint("use the whole drive as it is, or precondition it"))
}

/// Refuses a loop device that the kernel does not scan for partitions: a partition on it would get no node.
fn refuse_undividable(spec: &StackSpec, device: &Device) -> Result<()> {
    let file = format!("/sys/block/{}/loop/partscan", device.name);
    let scans = std::fs::read_to_string(file).map_or(true, |text| text.trim() != "0");
    if spec.layers.use_percent >= 100 || scans {
        return Ok(());
    }
    let what = format!(
        "{} was attached without partition scanning, and stack.use needs a partition",
        device.path.shown()
    );
    Err(Error::input(what)
        .hint("attach it with `losetup --partscan`, or use all of it: stack.use = \"100%\""))
}

/// Refuses files that do not fit on the disk.
fn refuse_full(spec: &StackSpec) -> Result<()> {
    let dir = expand_home(&spec.target.dir)?;
    let there = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let free = rustix::fs::statvfs(there).map_err(|error| Error::os("cannot examine", there, error))?;
    let free_bytes = free.f_bavail.saturating_mul(free.f_frsize);
    let files_bytes = spec.target.count.saturating_mul(floor_mib(spec.target.size_bytes));
    // The file system's metadata takes room too.
    let bytes = files_bytes.saturating_add(files_bytes / 100);
    if bytes <= free_bytes {
        return Ok(());
    }
    let what = format!(
        "the files of the loop devices take {}, and {} has {} free",
        approx_size(bytes),
        there.shown(),
        approx_size(free_bytes)
    );
    Err(Error::input(what).hint("choose a smaller target.files.size or count, or another folder"))
}
