//! The arrays below the members, md's and Btrfs's own, checked with each window: sysfs answers at once,
//! whatever the drives do.

use std::path::Path;

use super::member::Member;
use crate::host::{ArrayWatch, Lost, Upkeep};

/// Watches the arrays that the members lie on.
#[derive(Debug, Default)]
pub struct ArrayProbe(Vec<ArrayWatch>);

impl ArrayProbe {
    /// Begins to watch the arrays below the members, under a root (`/`), as they are now.
    pub fn open(root: &Path, members: &[Member]) -> Self {
        let below = |member: &Member| match (&member.path, member.device) {
            (_, Some(number)) => ArrayWatch::below(root, number),
            (Some(path), None) => ArrayWatch::below_path(path),
            (None, None) => Vec::new(),
        };
        let mut arrays: Vec<ArrayWatch> = members.iter().flat_map(below).collect();
        arrays.sort_by(|one, other| one.name().cmp(other.name()));
        arrays.dedup_by(|one, other| one.name() == other.name());
        Self(arrays)
    }

    /// What the arrays do by themselves beside the load.
    pub fn upkeep(&self) -> Vec<Upkeep> {
        self.0.iter().filter_map(ArrayWatch::upkeep).collect()
    }

    /// What the arrays have lost since; empty where all their members work.
    pub fn window(&self) -> Vec<Lost> {
        self.0.iter().filter_map(ArrayWatch::look).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::context::WindowContext;
    use crate::meter::flags::tests::context;
    use crate::meter::{Meters, Probes};
    use crate::units::SECOND_NS;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn one_window_degraded_or_in_resync_marks_the_whole_run_and_names_the_drive() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join("sys").join(path);
        for dir in ["dev/block", "block/md9/md/dev-nvme0n1", "class/block", "block/nvme0n1/device"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        symlink("../../block/md9", at("dev/block/9:9")).unwrap();
        symlink("../../block/nvme0n1", at("class/block/nvme0n1")).unwrap();
        fs::write(at("block/nvme0n1/device/serial"), "S1\n").unwrap();
        fs::write(at("block/md9/md/array_state"), "active\n").unwrap();
        let state = |text: &str| fs::write(at("block/md9/md/dev-nvme0n1/state"), text).unwrap();
        state("in_sync\n");
        // Twice the same array: data and WAL.
        let member = Member { name: "md9".into(), device: Some((9, 9)), path: None };
        let members = vec![member.clone(), member];
        let arrays = ArrayProbe::open(root.path(), &members);
        let mut meters = Meters::new(0, members, Probes { arrays, ..Probes::none() });
        for at_s in 1..=30 {
            state(if at_s == 2 { "faulty\n" } else { "in_sync\n" });
            fs::write(at("block/md9/md/sync_action"), if at_s == 3 { "recover\n" } else { "idle\n" })
                .unwrap();
            let window = meters.window(&WindowContext { now_ns: at_s * SECOND_NS, ..context() });
            let degraded: Vec<_> = window.flags.iter().filter(|flag| flag.text == "degraded").collect();
            assert_eq!(degraded.len(), usize::from(at_s == 2));
            assert_eq!(window.flags.iter().any(|flag| flag.text == "resync"), at_s == 3);
        }
        let totals = meters.totals();
        let flag = totals.flags.iter().find(|flag| flag.text == "degraded").unwrap();
        assert!(flag.why.contains("md9") && flag.why.contains("nvme0n1 (serial S1)"), "{flag:?}");
        let flag = totals.flags.iter().find(|flag| flag.text == "resync").unwrap();
        assert!(flag.forbids_verdict && flag.why.contains("md array md9 (recover)"), "{flag:?}");
    }
}
