//! The arrays below the members, md's and Btrfs's own, checked in each window: sysfs answers at once,
//! whatever the drives are doing.

use std::path::Path;

use super::member::Member;
use crate::host::{ArrayWatch, Lost, Upkeep};
use crate::settings::ArrayState;

/// Watches the arrays that the members lie on.
#[derive(Debug, Default)]
pub struct ArrayProbe {
    arrays: Vec<ArrayWatch>,
    /// What they were doing on their own at the last look, when the current window began.
    doing: Vec<Upkeep>,
    /// The state that was asked for at that time; none before the first window's end.
    as_set: Option<ArrayState>,
}

impl ArrayProbe {
    /// Starts watching the arrays below the members, as they are now, under a root (`/`).
    pub fn open(root: &Path, members: &[Member]) -> Self {
        let below = |member: &Member| match (&member.path, member.device) {
            (_, Some(number)) => ArrayWatch::below(root, number),
            (Some(path), None) => ArrayWatch::below_path(path),
            (None, None) => Vec::new(),
        };
        let mut arrays: Vec<ArrayWatch> = members.iter().flat_map(below).collect();
        arrays.sort_by(|one, other| one.name().cmp(other.name()));
        arrays.dedup_by(|one, other| one.name() == other.name());
        Self { doing: upkeep(&arrays), arrays, as_set: None }
    }

    /// The kernel's names of the md arrays.
    pub fn md_names(&self) -> Vec<&str> {
        let is_md = |array: &&ArrayWatch| matches!(array, ArrayWatch::Md(_));
        self.arrays.iter().filter(is_md).map(ArrayWatch::name).collect()
    }

    /// What the arrays do on their own besides the load, at the end of the window or when it began: what ended
    /// in between took time from the load too. Each comes with the state asked for when it was first seen,
    /// because a turn to the next state ends what the previous one began; `as_set` is the state asked for now.
    pub fn upkeep(&mut self, as_set: ArrayState) -> Vec<(Upkeep, ArrayState)> {
        let now = upkeep(&self.arrays);
        let before = std::mem::replace(&mut self.doing, now.clone());
        let as_set_before = self.as_set.replace(as_set).unwrap_or(as_set);
        let mut doing: Vec<_> = before.into_iter().map(|one| (one, as_set_before)).collect();
        for one in now {
            if doing.iter().all(|(other, _)| *other != one) {
                doing.push((one, as_set));
            }
        }
        doing
    }

    /// What the arrays have lost since the watch began; empty if all their members work.
    pub fn window(&self) -> Vec<Lost> {
        self.arrays.iter().filter_map(ArrayWatch::look).collect()
    }
}

fn upkeep(arrays: &[ArrayWatch]) -> Vec<Upkeep> {
    arrays.iter().filter_map(ArrayWatch::upkeep).collect()
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

    /// A fake host with an array of one drive.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            for dir in ["dev/block", "block/md9/md/dev-nvme0n1", "class/block", "block/nvme0n1/device"] {
                fs::create_dir_all(host.at(dir)).unwrap();
            }
            symlink("../../block/md9", host.at("dev/block/9:9")).unwrap();
            symlink("../../block/nvme0n1", host.at("class/block/nvme0n1")).unwrap();
            fs::write(host.at("block/nvme0n1/device/serial"), "S1\n").unwrap();
            host.says("array_state", "active\n");
            host.says("dev-nvme0n1/state", "in_sync\n");
            host
        }

        fn at(&self, path: &str) -> std::path::PathBuf {
            self.0.path().join("sys").join(path)
        }

        fn says(&self, file: &str, text: &str) {
            fs::write(self.at("block/md9/md").join(file), text).unwrap();
        }

        fn recovers(&self, does: bool) {
            self.says("sync_action", if does { "recover\n" } else { "idle\n" });
            self.says("dev-nvme0n1/state", if does { "spare\n" } else { "in_sync\n" });
        }

        fn meters(&self) -> Meters {
            // The same array twice, for data and WAL.
            let member = Member { name: "md9".into(), device: Some((9, 9)), path: None };
            let members = vec![member.clone(), member];
            let arrays = ArrayProbe::open(self.0.path(), &members);
            Meters::new(0, members, Probes { arrays, ..Probes::none() })
        }
    }

    #[test]
    fn one_window_degraded_or_in_resync_marks_the_whole_run_and_names_the_drive() {
        let host = Host::new();
        let mut meters = host.meters();
        for at_s in 1..=30 {
            host.recovers(at_s == 3);
            if at_s == 2 {
                host.says("dev-nvme0n1/state", "faulty\n");
            }
            let window = meters.window(&WindowContext { now_ns: at_s * SECOND_NS, ..context() });
            let degraded: Vec<_> = window.flags.iter().filter(|flag| flag.text == "degraded").collect();
            assert_eq!(degraded.len(), usize::from(at_s == 2));
            let resync = window.flags.iter().any(|flag| flag.text == "resync");
            assert_eq!(resync, [3, 4].contains(&at_s), "{at_s}: it ended within the fourth");
        }
        let totals = meters.totals();
        let flag = totals.flags.iter().find(|flag| flag.text == "degraded").unwrap();
        assert!(flag.why.contains("md9") && flag.why.contains("nvme0n1 (serial S1)"), "{flag:?}");
        let flag = totals.flags.iter().find(|flag| flag.text == "resync").unwrap();
        assert!(flag.forbids_verdict && flag.why.contains("md array md9 (recover)"), "{flag:?}");
    }

    #[test]
    fn a_rebuild_that_ends_in_the_first_window_marks_it_and_the_run() {
        for (as_set, text) in [(ArrayState::Healthy, "resync"), (ArrayState::Rebuilding, "rebuilding as set")]
        {
            let host = Host::new();
            host.recovers(true);
            let mut meters = host.meters();
            host.recovers(false);
            let flagged = [1, 2, 3].map(|at_s| {
                let of = WindowContext { now_ns: at_s * SECOND_NS, array: as_set, ..context() };
                meters.window(&of).flags.iter().any(|flag| flag.text == text)
            });
            assert_eq!(flagged, [true, false, false], "{text}");
            assert!(meters.totals().flags.iter().any(|flag| flag.text == text), "{text}");
        }
    }

    #[test]
    fn a_rebuild_that_a_turn_to_degraded_ends_was_as_set_in_its_last_window() {
        let host = Host::new();
        host.recovers(true);
        let mut meters = host.meters();
        let mut flags = |at_s, array| {
            let of = WindowContext { now_ns: at_s * SECOND_NS, array, ..context() };
            let window = meters.window(&of);
            let of_arrays = ["resync", "rebuilding as set", "degraded", "degraded as set"];
            let flags = window.flags.iter().map(|flag| flag.text.clone());
            flags.filter(|text| of_arrays.contains(&text.as_str())).collect::<Vec<_>>()
        };
        assert_eq!(flags(1, ArrayState::Rebuilding), ["rebuilding as set"]);
        host.recovers(false);
        host.says("dev-nvme0n1/state", "faulty\n");
        assert_eq!(flags(2, ArrayState::Degraded), ["degraded as set", "rebuilding as set"]);
        assert_eq!(flags(3, ArrayState::Degraded), ["degraded as set"]);
        host.recovers(true);
        host.says("degraded", "1\n");
        assert_eq!(flags(4, ArrayState::Degraded), ["degraded as set", "resync"], "nobody asked for that");
    }
}
