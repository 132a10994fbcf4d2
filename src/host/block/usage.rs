//! What uses a block device: mounts, swap, devices built on it, exports, programs that write to it.

use std::collections::{BTreeMap, BTreeSet};

use super::exports;
use super::loops::Backing;
use super::resolver::Resolver;
use crate::host::Usage;
use crate::host::mounts::{self, unescape};
use crate::host::nodes::{BlockNode, udev_properties};
use crate::host::root::Root;

/// Mount points that make a drive the system's own.
const SYSTEM_MOUNTS: [&str; 8] = ["/", "/boot", "/boot/efi", "/efi", "/etc", "/usr", "/var", "/nix"];

/// Block devices, what is built on what, and how each is used.
#[derive(Debug, Default)]
pub(in crate::host) struct Graph {
    /// How a node itself is used.
    direct: BTreeMap<String, Vec<Usage>>,
    /// The devices built on a node.
    holders: BTreeMap<String, BTreeSet<String>>,
    /// The nodes that a device is built on.
    members: BTreeMap<String, BTreeSet<String>>,
    /// The partitions of a device.
    partitions: BTreeMap<String, Vec<String>>,
    /// The device that a partition is on.
    whole: BTreeMap<String, String>,
    /// A readable name for a device built on others.
    labels: BTreeMap<String, String>,
}

impl Graph {
    pub(in crate::host) fn read(root: &Root, nodes: &[BlockNode]) -> Self {
        let mut graph = Self::default();
        for node in nodes {
            if let Some(whole) = &node.whole {
                graph.partitions.entry(whole.clone()).or_default().push(node.name.clone());
                graph.whole.insert(node.name.clone(), whole.clone());
            }
            for holder in root.names(&format!("{}/holders", node.dir)) {
                graph.build(&holder, &node.name);
            }
            for member in root.names(&format!("{}/slaves", node.dir)) {
                graph.build(&node.name, &member);
            }
            graph.labels.insert(node.name.clone(), label(root, node));
            if let Some(member) = signature_in_udev(root, node) {
                graph.add(&node.name, Usage::Member(member));
            }
        }
        let resolver = Resolver { root, nodes, loops: Backing::read(root, nodes) };
        graph.read_loops(&resolver);
        graph.read_mounts(&resolver);
        graph.read_btrfs(&resolver);
        graph.read_hidden_mounts(&resolver);
        graph.read_swaps(&resolver);
        graph.read_boot_drive(&resolver);
        for (name, usage) in exports::read(&resolver) {
            graph.add(&name, usage);
        }
        graph
    }

    fn add(&mut self, name: &str, usage: Usage) {
        let list = self.direct.entry(name.to_owned()).or_default();
        if !list.contains(&usage) {
            list.push(usage);
        }
    }

    fn build(&mut self, holder: &str, member: &str) {
        self.holders.entry(member.to_owned()).or_default().insert(holder.to_owned());
        self.members.entry(holder.to_owned()).or_default().insert(member.to_owned());
    }

    /// A loop device on a block device is built on it; two on the same file overwrite each other's data.
    fn read_loops(&mut self, resolver: &Resolver) {
        for (name, backing) in &resolver.loops {
            if let Some(member) = resolver.node_of(backing) {
                self.build(name, &member);
                continue;
            }
            let others = resolver.loops.iter().filter(|(other, at)| other != name && at.is_same(backing));
            for (other, at) in others {
                let file = &at.path;
                self.add(name, Usage::Claimed(format!("{other} is another loop device on {file}")));
            }
        }
    }

    /// A file system that is mounted in another namespace, or was lazily unmounted while in use, is not
    /// listed; a loop device on one of its files reveals it.
    fn read_hidden_mounts(&mut self, resolver: &Resolver) {
        for (name, backing) in &resolver.loops {
            let on = backing.file_system().and_then(|number| resolver.by_number(&number));
            let Some(device) = on.filter(|device| !self.direct.contains_key(device)) else { continue };
            let text = format!("{name} is a loop device on a file of its file system, {}", backing.path);
            self.add(&device, Usage::Claimed(text));
        }
    }

    fn read_mounts(&mut self, resolver: &Resolver) {
        for mount in mounts::all(resolver.root) {
            for name in resolver.mounted(&mount) {
                if SYSTEM_MOUNTS.contains(&mount.point.as_str()) {
                    self.add(&name, Usage::System(mount.point.clone()));
                }
                self.add(&name, Usage::Mounted(mount.point.clone()));
            }
        }
    }

    /// A mounted Btrfs names one of its devices as the source; the others are in sysfs.
    fn read_btrfs(&mut self, resolver: &Resolver) {
        for id in resolver.root.names("sys/fs/btrfs") {
            let devices = resolver.root.names(&format!("sys/fs/btrfs/{id}/devices"));
            let known = |usage: &Usage| matches!(usage, Usage::Mounted(_) | Usage::System(_));
            let mut uses: Vec<Usage> = devices
                .iter()
                .flat_map(|name| self.direct.get(name).into_iter().flatten())
                .filter(|usage| known(usage))
                .cloned()
                .collect();
            if uses.is_empty() {
                uses.push(Usage::Mounted(format!("Btrfs {id}")));
            }
            for name in &devices {
                for usage in &uses {
                    self.add(name, usage.clone());
                }
            }
        }
    }

    /// Parsed by hand: procfs-core does not cover swap areas.
    fn read_swaps(&mut self, resolver: &Resolver) {
        let swaps = resolver.root.text("proc/swaps").unwrap_or_default();
        for line in swaps.lines().skip(1) {
            let Some(path) = line.split_whitespace().next().map(unescape) else { continue };
            for name in resolver.behind(&path) {
                self.add(&name, Usage::Swap(path.clone()));
            }
        }
    }

    /// In a container the machine's root is not mounted, but the kernel's command line names it.
    fn read_boot_drive(&mut self, resolver: &Resolver) {
        let line = resolver.root.text("proc/cmdline").unwrap_or_default();
        let Some(root) = line.split_whitespace().find_map(|word| word.strip_prefix("root=")) else { return };
        let folders = [
            ("UUID=", "by-uuid"),
            ("PARTUUID=", "by-partuuid"),
            ("LABEL=", "by-label"),
            ("PARTLABEL=", "by-partlabel"),
        ];
        let link = folders.iter().find_map(|(key, folder)| {
            root.strip_prefix(key).map(|value| format!("/dev/disk/{folder}/{}", value.trim_matches('"')))
        });
        if let Some(name) = resolver.node(&link.unwrap_or_else(|| root.to_owned())) {
            self.add(&name, Usage::System("/".to_owned()));
        }
    }

    /// The nodes that a device is built on.
    pub(in crate::host) fn members(&self, name: &str) -> Vec<String> {
        self.members.get(name).into_iter().flatten().cloned().collect()
    }

    /// Everything that uses a device: itself, its partitions, everything built on them, and whatever else
    /// uses the nodes that it is built on.
    pub(in crate::host) fn usage(&self, name: &str) -> Vec<Usage> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        // What lies between a device and its drives is part of it, not a use by others.
        let own = self.all_below(name);
        self.upwards(name, (name, &own), &mut seen, &mut found);
        for member in &own {
            if !seen.contains(*member) {
                // A member may be a partition of a device that is also used whole.
                let whole = self.whole.get(*member).and_then(|whole| self.direct.get(whole));
                found.extend(whole.into_iter().flatten().map(|usage| through(usage, &self.whole[*member])));
                self.upwards(member, (name, &own), &mut seen, &mut found);
            }
        }
        let mut unique = Vec::new();
        for usage in found {
            if !unique.contains(&usage) {
                unique.push(usage);
            }
        }
        unique
    }

    /// Everything that a device is built on, from the top down.
    fn all_below(&self, name: &str) -> Vec<&str> {
        let mut below: Vec<&str> = Vec::new();
        let mut next: Vec<&str> =
            self.members.get(name).into_iter().flatten().map(String::as_str).rev().collect();
        while let Some(member) = next.pop() {
            if !below.contains(&member) {
                below.push(member);
                next.extend(self.members.get(member).into_iter().flatten().map(String::as_str));
            }
        }
        below
    }

    fn upwards(
        &self,
        name: &str,
        (start, own): (&str, &[&str]),
        seen: &mut BTreeSet<String>,
        found: &mut Vec<Usage>,
    ) {
        if !seen.insert(name.to_owned()) {
            return;
        }
        for usage in self.direct.get(name).into_iter().flatten() {
            found.push(if name == start { usage.clone() } else { through(usage, name) });
        }
        for holder in self.holders.get(name).into_iter().flatten() {
            if holder == start || own.contains(&holder.as_str()) {
                continue;
            }
            let label = self.labels.get(holder).unwrap_or(holder);
            let usage = Usage::Holder(label.clone());
            found.push(if name == start { usage } else { through(&usage, name) });
            self.upwards(holder, (start, own), seen, found);
        }
        for partition in self.partitions.get(name).into_iter().flatten() {
            self.upwards(partition, (start, own), seen, found);
        }
    }
}

/// The same use, attributed to `name`: a part of the device, or something built on it.
fn through(usage: &Usage, name: &str) -> Usage {
    let with = |text: &str| if text.ends_with(')') { text.to_owned() } else { format!("{text} ({name})") };
    match usage {
        Usage::System(text) => Usage::System(with(text)),
        Usage::Mounted(text) => Usage::Mounted(with(text)),
        Usage::Swap(text) => Usage::Swap(text.clone()),
        Usage::Holder(text) => Usage::Holder(with(text)),
        Usage::Member(text) => Usage::Member(with(text)),
        Usage::Exported(text) => Usage::Exported(with(text)),
        Usage::Reserved(text) => Usage::Reserved(with(text)),
        Usage::Claimed(text) => Usage::Claimed(with(text)),
    }
}

/// `dm-0 (vg0-root, LVM)`, `md0 (raid1)`, or the bare name.
fn label(root: &Root, node: &BlockNode) -> String {
    let text = |path: &str| root.text(&format!("{}/{path}", node.dir));
    if let Some(level) = text("md/level") {
        return format!("{} ({level})", node.name);
    }
    let Some(name) = text("dm/name") else { return node.name.clone() };
    let kind = match text("dm/uuid").as_deref().and_then(|uuid| uuid.split_once('-')) {
        Some(("LVM", _)) => "LVM",
        Some(("CRYPT", _)) => "dm-crypt",
        Some(("mpath", _)) => "multipath",
        _ => "device-mapper",
    };
    format!("{} ({name}, {kind})", node.name)
}

/// What a device is a member of by its signature; none for signatures of file systems and the like.
///
/// `kind` and `usage` are libblkid's `TYPE` and `USAGE`.
pub(crate) fn member_of(kind: &str, usage: &str) -> Option<String> {
    match kind {
        "linux_raid_member" => Some("md".to_owned()),
        "LVM2_member" | "LVM1_member" => Some("LVM".to_owned()),
        "zfs_member" => Some("ZFS".to_owned()),
        "bcache" | "ceph_bluestore" | "drbd" | "DM_snapshot_cow" | "VMFS_volume_member" => {
            Some(kind.to_owned())
        }
        _ if usage == "raid" => Some(kind.to_owned()),
        _ => None,
    }
}

fn signature_in_udev(root: &Root, node: &BlockNode) -> Option<String> {
    let udev = udev_properties(root, &node.number);
    let usage = udev.get("ID_FS_USAGE").map_or("", String::as_str);
    member_of(udev.get("ID_FS_TYPE")?, usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_distinguished_from_file_systems() {
        assert_eq!(member_of("LVM2_member", "raid").as_deref(), Some("LVM"));
        assert_eq!(member_of("zfs_member", "filesystem").as_deref(), Some("ZFS"));
        assert_eq!(member_of("isw_raid_member", "raid").as_deref(), Some("isw_raid_member"));
        assert_eq!(member_of("ext4", "filesystem"), None);
        assert_eq!(member_of("crypto_LUKS", "crypto"), None);
    }
}
