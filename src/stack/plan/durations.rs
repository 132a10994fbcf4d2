//! How long the steps of a stack took last time, on the same drives or in the same folder.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::model::{Exposed, Plan};
use super::step::Step;
use crate::json;
use crate::settings::{Bitmap, Named};
use crate::stack::devices::BlockDevice;
use crate::stack::state::StateFolder;

const FILE: &str = "durations.json";
/// How many stacks are remembered: the most recently built.
const STACKS_MAX: usize = 64;

/// A stack that was built: on which drives or folder, by which steps, and how long each took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stack {
    /// The drives with their sizes, or the folder of the files.
    on: String,
    /// The steps without the parts that vary from build to build, the fill last.
    steps: Vec<String>,
    /// Seconds of each; none if it was not completed.
    seconds: Vec<Option<f64>>,
}

/// How long the steps of a plan took, if the same steps were done before in the same way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastTimes {
    /// Each of them, and the fill last, parallel to [`Plan::lines`]; none for folders, which take no time and
    /// may already exist.
    pub each: Vec<Option<Duration>>,
    /// Their sum, if every one is known.
    pub all: Option<Duration>,
}

/// How long a plan's steps took last time.
pub fn last_times(state_dir: &Path, plan: &Plan) -> LastTimes {
    let (on, lines) = (built_on(plan), signatures(plan));
    let steps: Vec<&String> = lines.iter().flatten().collect();
    let stacks = StateFolder::open(state_dir).ok().flatten().map_or_else(Vec::new, |folder| read(&folder));
    // How long a step takes depends on everything done before it.
    let seconds = |at: usize| {
        let alike = stacks.iter().rev().filter(|stack| stack.on == on);
        let same = |stack: &&Stack| {
            stack.steps.len() > at && stack.steps[..=at].iter().eq(steps[..=at].iter().copied())
        };
        alike.filter(same).find_map(|stack| stack.seconds[at])
    };
    let times: Vec<Option<Duration>> =
        (0..steps.len()).map(|at| seconds(at).and_then(|s| Duration::try_from_secs_f64(s).ok())).collect();
    let mut known = times.iter().copied();
    let each = lines.iter().map(|step| step.as_ref().and_then(|_| known.next().flatten()));
    LastTimes { each: each.collect(), all: times.iter().copied().sum() }
}

/// Remembers how long a plan's steps took. A failure to write it is ignored.
pub(crate) fn keep(state_dir: &Path, plan: &Plan, times: &[Option<Duration>]) {
    let on = built_on(plan);
    let times = times.iter().copied().chain(std::iter::repeat(None));
    let timed = signatures(plan).into_iter().zip(times).filter_map(|(step, time)| Some((step?, time)));
    let (steps, mut seconds): (Vec<String>, Vec<Option<f64>>) =
        timed.map(|(step, time)| (step, time.map(|time| time.as_secs_f64()))).unzip();
    let Ok(folder) = StateFolder::make(state_dir) else { return };
    let mut stacks = read(&folder);
    let known = stacks.iter().position(|stack| stack.on == on && stack.steps == steps);
    // If a step was cut short this time, its earlier time still counts.
    if let Some(known) = known.map(|at| stacks.remove(at)) {
        seconds.iter_mut().zip(known.seconds).for_each(|(new, old)| *new = new.or(old));
    }
    stacks.push(Stack { on, steps, seconds });
    let surplus = stacks.len().saturating_sub(STACKS_MAX);
    stacks.drain(..surplus);
    let _ = json::line(&stacks).map(|bytes| folder.write(FILE, &bytes));
}

fn read(folder: &StateFolder) -> Vec<Stack> {
    let bytes = folder.read(FILE).ok().flatten().unwrap_or_default();
    let stacks: Vec<Stack> = json::read(&bytes).unwrap_or_default();
    stacks.into_iter().filter(|stack| stack.seconds.len() == stack.steps.len()).collect()
}

/// What the plan builds on.
fn built_on(plan: &Plan) -> String {
    let drives: Vec<String> = plan
        .drives()
        .iter()
        .map(|drive| format!("{}:{}", drive.serial.as_ref().unwrap_or(&drive.name), drive.size_bytes))
        .collect();
    let folder = plan.steps.iter().find_map(|step| match step {
        // The file is in the stack's folder, which is a new one each time.
        Step::MakeFile { file, .. } => file.parent()?.parent(),
        _ => None,
    });
    folder.map_or_else(|| drives.join(","), |folder| folder.display().to_string())
}

/// Each step, and the fill, without ids and anything that depends on them; none for folders.
fn signatures(plan: &Plan) -> Vec<Option<String>> {
    let fill = match &plan.exposed {
        Exposed::Files { .. } if plan.fit.is_some() => "fill what the layers leave".to_owned(),
        Exposed::Files { data_bytes, wal_bytes, .. } => format!("fill {data_bytes} {wal_bytes}"),
        Exposed::Devices(devices) => format!("fill {}", all(devices)),
    };
    let scatters = |step: &Step| matches!(step, Step::Precondition { random_bytes: 0, .. });
    let fill = if plan.steps.iter().any(scatters) { format!("{fill} and random pages") } else { fill };
    // In a profile's commands, the id is part of whatever the profile names after it.
    let signature = |step| signature(step).map(|text| text.replace(&plan.id.0, "ID"));
    plan.steps.iter().map(signature).chain([Some(fill)]).collect()
}

fn signature(step: &Step) -> Option<String> {
    Some(match step {
        Step::MakeFolder { .. } => return None,
        Step::MakeFile { bytes, .. } => format!("file {bytes}"),
        Step::AttachLoop { file } => {
            format!("attach {}", identity(&BlockDevice::Loop { file: file.clone() }))
        }
        Step::Blank { drive } => format!("wipe {}", identity(&BlockDevice::Drive(drive.clone()))),
        Step::Format { drive, new, .. } => {
            format!("format {} {}", new.block_bytes, identity(&BlockDevice::Drive(drive.clone())))
        }
        Step::SetIommu { drive, new, .. } => {
            format!("iommu {new} {}", identity(&BlockDevice::Drive(drive.clone())))
        }
        Step::Trim { device: at, from_bytes } => format!("trim {} {from_bytes}", identity(at)),
        Step::Precondition { device: at, bytes, random_bytes } => {
            format!("precondition {} {bytes} {random_bytes}", identity(at))
        }
        Step::Partition { drive, bytes, .. } => {
            format!("partition {} {bytes}", identity(&BlockDevice::Drive(drive.clone())))
        }
        Step::CreateArray { raid, chunk_bytes, assume_clean, bitmap, members, .. } => {
            // Written as earlier versions wrote it.
            let bitmap = if *bitmap == Bitmap::None { String::new() } else { format!(" {}", bitmap.name()) };
            format!("create {} {chunk_bytes:?} {assume_clean}{bitmap} {}", raid.name(), all(members))
        }
        Step::AwaitResync { .. } => "resync".into(),
        Step::RaiseLayer { layer, number } => format!("layer {}", layer.up[*number]),
        Step::HoldLayer { layer } => format!("hold layer {}", layer.name),
        Step::Clear { device } => format!("clear {}", identity(device)),
        Step::MakeFilesystem { filesystem, raid, devices, options, .. } => {
            format!("mkfs {} {} {} {}", filesystem.name(), raid.name(), options.join(" "), all(devices))
        }
        Step::Mount { filesystem, options, .. } => format!("mount {} {options}", filesystem.name()),
    })
}

fn all(devices: &[BlockDevice]) -> String {
    devices.iter().map(identity).collect::<Vec<_>>().join(",")
}

fn identity(device: &BlockDevice) -> String {
    match device {
        BlockDevice::Drive(drive) => drive.serial.as_ref().unwrap_or(&drive.name).clone(),
        BlockDevice::Partition { drive, .. } => {
            format!("part of {}", drive.serial.as_ref().unwrap_or(&drive.name))
        }
        BlockDevice::Loop { file } => file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        BlockDevice::Array { .. } => "array".into(),
        BlockDevice::Layer { .. } => "layer".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Filesystem, Raid};
    use crate::stack::devices::Drive;
    use crate::stack::id::StackId;
    use crate::stack::plan::{Destroyed, Endurance, PowerCutReason, Properties, Resilience};

    fn plan(id: &str, serial: &str, filesystem: Filesystem) -> Plan {
        let drive = Drive {
            name: "nvme0n1".into(),
            path: "/dev/nvme0n1".into(),
            number: "259:0".into(),
            model: None,
            serial: Some(serial.into()),
            size_bytes: 1 << 30,
        };
        let devices = vec![BlockDevice::Drive(drive.clone())];
        Plan {
            id: StackId(id.into()),
            steps: vec![
                Step::Blank { drive: drive.clone() },
                Step::MakeFilesystem {
                    filesystem,
                    raid: Raid::None,
                    devices,
                    uuid: id.into(),
                    options: Vec::new(),
                },
                Step::MakeFolder { dir: format!("/s/{id}").into() },
            ],
            destroys: vec![Destroyed {
                drive,
                content: Vec::new(),
                writes_bytes: 1,
                endurance: Endurance::default(),
            }],
            exposed: Exposed::Files { dir: format!("/s/{id}").into(), data_bytes: 5, wal_bytes: 1 },
            log: None,
            properties: Properties {
                resilience: Resilience {
                    power_cut: PowerCutReason::LoopDevices,
                    drives_lost: 0,
                    fewer: None,
                },
                usable_bytes: 1,
                at_most: false,
                price: None,
                price_missing: None,
            },
            writes_bytes: 1,
            fit: None,
        }
    }

    #[test]
    fn a_steps_time_counts_after_the_same_steps_on_the_same_drives() {
        let dir = tempfile::tempdir().unwrap();
        let seconds = |times: &[u64]| times.iter().map(|s| Some(Duration::from_secs(*s))).collect::<Vec<_>>();
        let last = |plan: &Plan| last_times(dir.path(), plan);
        let first = plan("a1", "S1", Filesystem::Xfs);
        assert_eq!(last(&first), LastTimes { each: vec![None; 4], all: None });
        keep(dir.path(), &first, &seconds(&[1, 2, 3]));
        let mut again = plan("b2", "S1", Filesystem::Xfs);
        assert_eq!(
            last(&again).each,
            [seconds(&[1, 2]), vec![None; 2]].concat(),
            "the fill is not yet known"
        );
        assert_eq!(last(&again).all, None);
        keep(dir.path(), &again, &seconds(&[1, 2, 3, 40]));
        let all = Some(Duration::from_secs(43));
        let each = [seconds(&[1, 2]), vec![None], seconds(&[40])].concat();
        assert_eq!(last(&first), LastTimes { each, all });
        keep(dir.path(), &again, &seconds(&[1, 2, 3]));
        assert_eq!(last(&first).all, all, "the fill was stopped this time: the earlier time still counts");
        again.steps.insert(0, Step::MakeFolder { dir: "/t".into() });
        assert_eq!(last(&again).all, all, "a folder that has to be made this time");
        assert_eq!(last(&plan("c3", "S2", Filesystem::Xfs)).each, [None; 4], "another drive");
        let other = plan("d4", "S1", Filesystem::Ext4);
        assert_eq!(last(&other).each, [seconds(&[1]), vec![None; 3]].concat(), "another file system");
        std::fs::write(dir.path().join(FILE), "torn").unwrap();
        assert_eq!(last(&first).each, [None; 4]);
    }

    #[test]
    fn only_the_last_stacks_are_remembered() {
        let dir = tempfile::tempdir().unwrap();
        for serial in 0..=STACKS_MAX {
            keep(dir.path(), &plan("a", &serial.to_string(), Filesystem::Xfs), &[Some(Duration::ZERO)]);
        }
        assert_eq!(read(&StateFolder::open(dir.path()).unwrap().unwrap()).len(), STACKS_MAX);
        assert_eq!(last_times(dir.path(), &plan("a", "0", Filesystem::Xfs)).each[0], None, "the oldest went");
    }
}
