//! Stacks over the tests' own files, and checks for what they leave.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use stacktune::testing::settings::{Filesystem, Raid};
use stacktune::testing::stack::build::BuildContext;
use stacktune::testing::stack::devices::BlockDevice;
use stacktune::testing::stack::guard::{Consent, OwnData};
use stacktune::testing::stack::id::StackId;
use stacktune::testing::stack::plan::{
    Confirmed, Exposed, Plan, PowerCutReason, Properties, Resilience, Step,
};
use stacktune::testing::stack::runner::Runner;
use tempfile::TempDir;

/// Owner of no data: nothing on a drive is stacktune's.
pub struct Nobodys;

impl OwnData for Nobodys {
    fn header(&self, _head: &[u8]) -> bool {
        false
    }

    fn page(&self, _device: &File, _offset: u64, _page: &[u8]) -> bool {
        false
    }
}

/// A state folder and a target's folder, on a real disk.
pub struct Ground {
    dir: TempDir,
}

impl Ground {
    pub fn new() -> Self {
        let ground = Self { dir: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        fs::create_dir(ground.target()).unwrap();
        ground
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The first stack creates it.
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state/stacktune")
    }

    pub fn target(&self) -> PathBuf {
        self.dir.path().join("target")
    }

    pub fn site(&self) -> BuildContext<'static> {
        self.site_with(Runner::default())
    }

    pub fn site_with(&self, runner: Runner) -> BuildContext<'static> {
        BuildContext { state_dir: self.state(), profile: "mine".into(), runner, own_data: &Nobodys }
    }

    /// Loop devices over files, with a file system.
    pub fn plan(&self, id: &str, filesystem: Filesystem, raid: Raid) -> Plan {
        plan(self.path(), id, filesystem, raid)
    }

    /// Fails if a stack of that id left anything on this host.
    #[track_caller]
    pub fn assert_nothing_left(&self, id: &str) {
        let left: Vec<String> = traces(id);
        assert!(left.is_empty(), "left over: {left:#?}");
        let journal = self.state().join("journal");
        let names = |dir: &Path| -> BTreeSet<_> {
            fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().file_name()).collect()
        };
        assert!(names(&journal).is_empty(), "{:?}", names(&journal));
        assert!(names(&self.target()).is_empty(), "{:?}", names(&self.target()));
        assert!(names(&self.state().join("mnt")).is_empty(), "{:?}", names(&self.state().join("mnt")));
    }
}

/// Mounts and loop devices whose description contains the id.
pub fn traces(id: &str) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let loops = Command::new("losetup").arg("--list").output().unwrap().stdout;
    let loops = String::from_utf8(loops).unwrap();
    mounts.lines().chain(loops.lines()).filter(|line| line.contains(id)).map(str::to_owned).collect()
}

/// A plan below a ground's folder, like [`Ground::plan`], but usable by another process.
pub fn plan(ground: &Path, id: &str, filesystem: Filesystem, raid: Raid) -> Plan {
    let folder = ground.join("target").join(format!("stacktune-{id}"));
    let mount = ground.join("state/stacktune/mnt").join(id);
    let members = if raid == Raid::None { 1 } else { 2 };
    let size_mib = match filesystem {
        Filesystem::Xfs => 320,
        Filesystem::Btrfs => 128,
        _ => 32,
    };
    let mut steps = vec![Step::MakeFolder { dir: folder.clone() }];
    let files: Vec<PathBuf> = (0..members).map(|index| folder.join(format!("member-{index}"))).collect();
    for file in &files {
        steps.push(Step::MakeFile { file: file.clone(), bytes: size_mib << 20 });
        steps.push(Step::AttachLoop { file: file.clone() });
    }
    let devices: Vec<BlockDevice> =
        files.iter().map(|file| BlockDevice::Loop { file: file.clone() }).collect();
    let uuid = StackId(id.into()).uuid(4, 0);
    steps.push(Step::MakeFilesystem {
        filesystem,
        raid,
        devices: devices.clone(),
        uuid: uuid.clone(),
        options: Vec::new(),
    });
    steps.push(Step::MakeFolder { dir: mount.clone() });
    steps.push(Step::Mount {
        filesystem,
        device: devices[0].clone(),
        dir: mount.clone(),
        options: "noatime".into(),
        uuid,
    });
    of_steps(id, steps, Exposed::Files { dir: mount, data_bytes: 1 << 20, wal_bytes: 1 << 20 })
}

/// A plan of these steps that destroys nothing.
pub fn of_steps(id: &str, steps: Vec<Step>, exposed: Exposed) -> Plan {
    let properties = Properties {
        resilience: Resilience { power_cut: PowerCutReason::LoopDevices, drives_lost: 0, fewer: None },
        usable_bytes: 0,
        at_most: false,
        price: None,
        price_missing: None,
    };
    Plan {
        id: StackId(id.into()),
        steps,
        destroys: Vec::new(),
        exposed,
        log: None,
        properties,
        writes_bytes: 0,
        fit: None,
    }
}

/// A plan that needs nobody's consent.
pub fn confirmed(plan: Plan) -> Confirmed {
    plan.confirm(&Consent::default()).unwrap()
}

/// A random stack's id.
pub fn new_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}
