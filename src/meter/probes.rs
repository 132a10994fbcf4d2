//! What the meters read besides the sources: each probe counts since its last reading.

use std::path::{Path, PathBuf};

use super::beside::others::OthersProbe;
use super::beside::others_io::OthersIo;
use super::beside::others_io_probe::OthersIoProbe;
use super::context::Tuned;
use super::devices::arrays::ArrayProbe;
use super::devices::block::BlockProbe;
use super::devices::by_model::ByModel;
use super::devices::drives::DriveProbe;
use super::devices::layers::LayerProbe;
use super::devices::member::Member;
use super::processors::cpu::CpuProbe;
use super::processors::tasks::TaskProbe;
use crate::host::{AttributeChange, AttributeWatch, Levels};

/// Everything that is read besides the sources.
pub struct Probes {
    /// The processor's time and cycles, of the whole system.
    pub cpu: CpuProbe,
    /// This process's threads.
    pub tasks: TaskProbe,
    /// All other processes.
    pub others: OthersProbe,
    /// Their I/O on the drives.
    pub others_io: OthersIoProbe,
    /// The members' devices.
    pub block: BlockProbe,
    /// The drives below the members.
    pub drives: DriveProbe,
    /// Bytes written to the devices below the members, and the space used on their file system.
    pub layers: LayerProbe,
    /// Modelled drives.
    pub by_model: ByModel,
    /// The arrays below the members.
    pub arrays: ArrayProbe,
    /// The attributes of queues and arrays that knobs turn.
    pub attributes: AttributeWatch,
}

impl Probes {
    /// For this system and process, starting now, on these devices; `own` says whether only the target
    /// uses the file system.
    pub fn system(members: &[Member], levels: &Levels, own: bool, now_ns: u64) -> Self {
        let root = Path::new("/");
        let arrays = ArrayProbe::open(root, members);
        let drives: Vec<_> = levels.drives.iter().map(|drive| drive.name.as_str()).collect();
        let attributes = AttributeWatch::open(root, &drives, &arrays.md_names());
        let devices: Vec<_> = members.iter().map(|member| member.device).collect();
        Self {
            cpu: CpuProbe::open(),
            tasks: TaskProbe::open(now_ns),
            others: OthersProbe::open(now_ns),
            others_io: OthersIoProbe::open(root, levels, members, own),
            block: BlockProbe::open(root, &devices),
            drives: DriveProbe::open(root, members),
            by_model: ByModel::default(),
            layers: LayerProbe::open(levels, members, own),
            arrays,
            attributes,
        }
    }

    /// The same without what others do on the drives, where that can't be told apart from the load.
    #[must_use]
    pub fn without_others_io(self) -> Self {
        Self { others_io: OthersIoProbe::default(), ..self }
    }

    /// The same, counting what is in these cgroups as the load.
    #[must_use]
    pub fn with_program(mut self, groups: &[PathBuf]) -> Self {
        self.others.add_groups(groups);
        self
    }

    /// Reads nothing, as simulated runs must repeat exactly.
    pub fn none() -> Self {
        Self {
            cpu: CpuProbe::none(),
            tasks: TaskProbe::none(),
            others: OthersProbe::none(),
            others_io: OthersIoProbe::default(),
            block: BlockProbe::default(),
            drives: DriveProbe::default(),
            by_model: ByModel::default(),
            layers: LayerProbe::default(),
            arrays: ArrayProbe::default(),
            attributes: AttributeWatch::default(),
        }
    }

    /// Changes to attributes set by knobs since the last call, except those that the run itself may have made.
    pub(super) fn changed_by_others(&mut self, tuned: Tuned) -> Vec<AttributeChange> {
        let mut changes = self.attributes.changes();
        changes.retain(|change| !tuned.may_have_set(&change.knob));
        changes
    }

    /// What others did on the drives since the last call; to be called after [`OthersProbe::window`], which
    /// reads what they wrote. `counted` says whether the block layer sees all of the load's I/O.
    pub(super) fn io_of_others(&mut self, now_ns: u64, counted: bool) -> Vec<OthersIo> {
        let written = self.others.written();
        self.others_io.window(now_ns, counted, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_of_the_runs_own_hides_changes_of_its_group_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join("sys/block").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let set = |value: &str| {
            write("nvme0n1/queue/nr_requests", value);
            write("md0/md/stripe_cache_size", value);
        };
        set("1");
        let attributes = AttributeWatch::open(dir.path(), &["nvme0n1"], &["md0"]);
        let mut probes = Probes { attributes, ..Probes::none() };
        let (queue, md) = ("queue.nr_requests", "md.stripe_cache_size");
        for (at, [queues, of_md], left) in [
            (2, [false, false], vec![queue, md]),
            (3, [true, false], vec![md]),
            (4, [false, true], vec![queue]),
            (5, [true, true], vec![]),
        ] {
            set(&at.to_string());
            let changes = probes.changed_by_others(Tuned { queues, md: of_md });
            assert_eq!(changes.iter().map(|change| change.knob.as_str()).collect::<Vec<_>>(), left);
        }
    }
}
