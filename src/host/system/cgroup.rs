//! Where this process can get a memory cgroup of its own.

use std::path::{Path, PathBuf};

use procfs_core::{ProcessCGroup, ProcessCGroups};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::Serialize;

use crate::host::Feature;
use crate::host::mounts::{self, Mount};
use crate::host::root::Root;
use crate::printable::Shown as _;

/// Which kind of control groups has the memory controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// A separate hierarchy.
    V1,
    /// The unified hierarchy.
    V2,
}

impl CgroupVersion {
    /// The file that holds the limit.
    pub fn limit(self) -> &'static str {
        match self {
            Self::V1 => "memory.limit_in_bytes",
            Self::V2 => "memory.max",
        }
    }
}

/// The processes in a cgroup, without those in cgroups below it.
pub fn processes_in(dir: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|pid| pid.parse().ok()).collect()
}

/// Control of memory by cgroups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CgroupMemory {
    /// Which kind has it; none if the kernel has none.
    pub version: Option<CgroupVersion>,
    /// Whether this process can put itself into its own memory cgroup.
    pub limit: Feature,
}

/// A place to create a memory cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupPlace {
    /// The kind.
    pub version: CgroupVersion,
    /// The cgroup that this process is in.
    pub own: PathBuf,
    /// The cgroup below which another can be created.
    pub parent: PathBuf,
    /// Whether the memory controller must be enabled there first.
    pub switch_on: bool,
}

pub(in crate::host) fn read(root: &Root) -> CgroupMemory {
    match find(root) {
        Ok(place) => CgroupMemory { version: Some(place.version), limit: Feature::Present },
        Err((version, why)) => CgroupMemory { version, limit: Feature::Missing(why) },
    }
}

/// Where this process can make a memory cgroup for itself, on the host under `root`; otherwise what is
/// missing, as a sentence without a full stop.
pub fn cgroup_place(root: &Path) -> Result<CgroupPlace, String> {
    find(&Root::new(root)).map_err(|(_, why)| why)
}

/// The unified hierarchy's cgroup below which this process can make another, without any controller; otherwise what is
/// missing, as a sentence without a full stop.
pub fn unified_place(root: &Path) -> Result<PathBuf, String> {
    let root = Root::new(root);
    let (_, v2) = hierarchies(&root);
    let v2 = v2.ok_or_else(|| "the unified cgroup file system is not mounted".to_owned())?;
    may_write(&root, &v2.own)?;
    Ok(v2.own)
}

/// A mounted hierarchy.
struct Hierarchy {
    version: CgroupVersion,
    /// Where it is mounted.
    mount: String,
    /// This process's cgroup in it.
    own: PathBuf,
}

type Missing = (Option<CgroupVersion>, String);

fn find(root: &Root) -> Result<CgroupPlace, Missing> {
    let (v1, v2) = hierarchies(root);
    // Only one of the two hierarchies has the controller.
    if let Some(v1) = v1 {
        return below(root, &v1).map_err(|why| (Some(CgroupVersion::V1), why));
    }
    let has_memory = |v2: &Hierarchy| is_listed(root, Path::new(&v2.mount), "cgroup.controllers");
    match v2 {
        Some(v2) if has_memory(&v2) => {
            beside_or_below(root, &v2).map_err(|why| (Some(CgroupVersion::V2), why))
        }
        Some(v2) => Err((None, format!("the cgroups at {} have no memory controller", v2.mount))),
        None => Err((None, "no cgroup file system is mounted".to_owned())),
    }
}

/// The hierarchies that may have the memory controller: of v1, and the unified one.
fn hierarchies(root: &Root) -> (Option<Hierarchy>, Option<Hierarchy>) {
    let (mut v1, mut v2) = (None, None);
    for Mount { kind, options, top, point, .. } in mounts::own(root) {
        let version = match kind.as_str() {
            "cgroup" if options.iter().any(|option| option == "memory") => CgroupVersion::V1,
            "cgroup2" => CgroupVersion::V2,
            _ => continue,
        };
        let Some(own) = own_cgroup(root, version) else { continue };
        let inside = Path::new(&own).strip_prefix(&top).unwrap_or(Path::new(""));
        let own = Path::new(&point).join(inside);
        let hierarchy = Hierarchy { version, mount: point, own };
        *(if version == CgroupVersion::V1 { &mut v1 } else { &mut v2 }) = Some(hierarchy);
    }
    (v1, v2)
}

/// This process's cgroup as reported by the kernel: `4:memory:/a` of v1, `0::/a` of the unified one.
fn own_cgroup(root: &Root, version: CgroupVersion) -> Option<String> {
    let mut groups = root.proc::<ProcessCGroups>("proc/self/cgroup")?.into_iter();
    let is_it = |group: &ProcessCGroup| match version {
        CgroupVersion::V1 => group.controllers.iter().any(|name| name == "memory"),
        CgroupVersion::V2 => group.hierarchy == 0,
    };
    groups.find(is_it).map(|group| group.pathname)
}

/// In v1, any cgroup may have both processes and child cgroups.
fn below(root: &Root, v1: &Hierarchy) -> Result<CgroupPlace, String> {
    let (own, version) = (v1.own.clone(), v1.version);
    if !root.has(&own.to_string_lossy()) {
        return Err(format!("this process's cgroup {} is not visible here", own.shown()));
    }
    may_write(root, &own)?;
    Ok(CgroupPlace { version, parent: own.clone(), own, switch_on: false })
}

/// In the unified hierarchy, only the root may have both: another is made beside this process's own, or beside
/// its nearest ancestor that the controller reaches.
fn beside_or_below(root: &Root, v2: &Hierarchy) -> Result<CgroupPlace, String> {
    let (own, version) = (v2.own.clone(), v2.version);
    let place = |parent: &Path, switch_on| CgroupPlace {
        version,
        own: own.clone(),
        parent: parent.into(),
        switch_on,
    };
    let mut why = None;
    for dir in own.ancestors().take_while(|dir| dir.starts_with(&v2.mount)) {
        let is_root = !root.has(&dir.join("cgroup.type").to_string_lossy());
        let reaches = is_listed(root, dir, "cgroup.subtree_control");
        if !is_root && (dir == own || !reaches) {
            continue;
        }
        match may_write(root, dir) {
            Ok(()) => return Ok(place(dir, !reaches)),
            Err(reason) => why = why.or(Some(reason)),
        }
    }
    Err(why.unwrap_or_else(|| {
        let own = own.shown();
        format!(
            "the memory controller is not delegated to {own}; \
             `systemd-run --scope -p Delegate=yes stacktune …` starts stacktune in a cgroup that has one"
        )
    }))
}

fn is_listed(root: &Root, dir: &Path, file: &str) -> bool {
    let text = root.text(&dir.join(file).to_string_lossy()).unwrap_or_default();
    text.split_whitespace().any(|name| name == "memory")
}

fn may_write(root: &Root, dir: &Path) -> Result<(), String> {
    let path = root.at(&dir.to_string_lossy());
    accessat(CWD, &path, Access::WRITE_OK, AtFlags::EACCESS).map_err(|error| match error {
        rustix::io::Errno::ROFS => format!("{} is mounted read-only, as in a container", dir.shown()),
        _ => format!("making a cgroup in {} requires root, or its delegation to this user", dir.shown()),
    })
}

impl std::fmt::Display for CgroupVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V1 => "version 1",
            Self::V2 => "version 2",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::faked as host;

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_v1_cgroup_is_made_below_our_own() {
        let mounts = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let (_dir, root) = host(&[
            ("proc/self/mountinfo", mounts),
            ("proc/self/cgroup", "4:memory:/a/b\n0::/\n"),
            ("sys/fs/cgroup/memory/a/b/cgroup.procs", ""),
        ]);
        let place = find(&root).unwrap();
        assert_eq!(place.version, CgroupVersion::V1);
        assert_eq!(place.parent, Path::new("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(place.own, place.parent);
    }

    #[test]
    fn in_a_container_the_mount_shows_a_part_of_the_hierarchy() {
        let mounts = "35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let (_dir, root) = host(&[
            ("proc/self/mountinfo", mounts),
            ("proc/self/cgroup", "4:memory:/docker/x\n"),
            ("sys/fs/cgroup/memory/cgroup.procs", ""),
        ]);
        assert_eq!(find(&root).unwrap().own, Path::new("/sys/fs/cgroup/memory"));
    }

    #[test]
    fn a_v2_cgroup_is_made_beside_our_own() {
        let scope = "sys/fs/cgroup/user.slice/one.scope";
        let (_dir, root) = host(&[
            ("proc/self/mountinfo", V2),
            ("proc/self/cgroup", "0::/user.slice/one.scope\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n"),
            ("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n"),
            ("sys/fs/cgroup/user.slice/cgroup.type", "domain\n"),
            ("sys/fs/cgroup/user.slice/cgroup.subtree_control", "memory pids\n"),
            (&format!("{scope}/cgroup.type"), "domain\n"),
            (&format!("{scope}/cgroup.subtree_control"), ""),
        ]);
        let place = find(&root).unwrap();
        assert_eq!(place.parent, Path::new("/sys/fs/cgroup/user.slice"));
        assert!(!place.switch_on);
    }

    #[test]
    fn at_the_root_of_v2_the_controller_is_enabled_if_necessary() {
        let (_dir, root) = host(&[
            ("proc/self/mountinfo", V2),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n"),
            ("sys/fs/cgroup/cgroup.subtree_control", ""),
        ]);
        let place = find(&root).unwrap();
        assert_eq!((place.parent.as_path(), place.switch_on), (Path::new("/sys/fs/cgroup"), true));
    }

    #[test]
    fn what_is_missing_is_reported() {
        let (_dir, root) = host(&[]);
        let none = read(&root);
        assert_eq!(none.version, None);
        assert_eq!(none.limit.reason(), Some("no cgroup file system is mounted"));
        let (_dir, root) = host(&[
            ("proc/self/mountinfo", V2),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu io\n"),
        ]);
        assert!(read(&root).limit.reason().unwrap().contains("have no memory controller"));
        let (_dir, root) = host(&[
            ("proc/self/mountinfo", V2),
            ("proc/self/cgroup", "0::/x\n"),
            ("sys/fs/cgroup/cgroup.type", "domain\n"),
            ("sys/fs/cgroup/cgroup.controllers", "memory\n"),
            ("sys/fs/cgroup/x/cgroup.type", "domain\n"),
        ]);
        assert!(read(&root).limit.reason().unwrap().contains("Delegate=yes"));
    }
}
