//! Reading the facts.

use std::path::Path;

use super::block::{devices, reservation};
use super::root::Root;
use super::system::{cgroup, features, platform};
use super::{Device, Facts, cpu, storage};

impl Facts {
    /// Reads the facts about the host whose files are under `root`: `/` for this one.
    ///
    /// Whatever can't be read is left out. What only a system call can find (`io_uring`, libaio, the
    /// performance-monitoring unit, `NVMe` reservations and health) is only tried on this host.
    pub fn read(root: &Path) -> Self {
        let root = Root::new(root);
        let kernel = root.text("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
        let virtualization = cpu::virtualization(&root);
        let features = features::read(&root, &kernel, virtualization.as_deref());
        let mut devices = read_devices(&root);
        if root.is_running_host() {
            for device in &mut devices {
                (device.health, device.lba_formats) = (device.read_health(), device.read_lba_formats());
            }
        }
        Self {
            hostname: root
                .text("proc/sys/kernel/hostname")
                .or_else(|| root.text("etc/hostname"))
                .unwrap_or_else(|| "unknown".to_owned()),
            distribution: distribution(&root),
            kernel,
            cpu: cpu::read(&root),
            memory_bytes: root.meminfo("MemTotal").unwrap_or(0).saturating_mul(1024),
            virtualization,
            memlock_bytes: features.memlock_bytes,
            io_uring: features.io_uring,
            libaio: features.libaio,
            dontcache: features.dontcache,
            perf: features.perf,
            cgroup_memory: cgroup::read(&root),
            platform: platform::read(&root),
            storage: storage::read(&root),
            devices,
        }
    }

    /// Reads only the block devices of this host.
    pub fn read_devices() -> Vec<Device> {
        read_devices(&Root::new(Path::new("/")))
    }
}

fn read_devices(root: &Root) -> Vec<Device> {
    let mut devices = devices::read(root);
    if root.is_running_host() {
        for device in &mut devices {
            device.usage.extend(reservation::reservation(device));
        }
    }
    devices
}

fn distribution(root: &Root) -> String {
    let text = root.text("etc/os-release").or_else(|| root.text("usr/lib/os-release")).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or("unknown", |name| name.trim_matches('"')).to_owned()
}
