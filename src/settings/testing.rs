//! Shared by the tests of profiles.

use std::path::PathBuf;

use crate::host::{CgroupMemory, CgroupVersion, Cpu, Device, Facts, Feature, Node, TargetFacts};

/// A host that can do everything, with two drives.
pub(crate) fn capable_host() -> Facts {
    Facts {
        hostname: "db1".into(),
        distribution: "Debian 13".into(),
        kernel: "6.18.0".into(),
        cpu: Cpu {
            model: "a fast one".into(),
            online: (0..8).collect(),
            nodes: vec![Node { id: 0, cpus: (0..8).collect() }],
            governor: None,
            mitigations: [].into(),
            clocksource: Some("tsc".into()),
        },
        memory_bytes: 64 << 30,
        virtualization: None,
        memlock_bytes: None,
        io_uring: Feature::Present,
        libaio: Feature::Present,
        dontcache: Feature::Present,
        perf: Feature::Present,
        cgroup_memory: CgroupMemory { version: Some(CgroupVersion::V2), limit: Feature::Present },
        platform: crate::host::Platform {
            vfio: Feature::Present,
            iommu_groups: 20,
            ..crate::host::Platform::default()
        },
        storage: crate::host::Storage::default(),
        devices: vec![drive(0, Some("S4EWNX0R")), drive(1, None)],
    }
}

/// Files on this file system, which can do everything.
pub(crate) fn capable_files(filesystem: &str) -> TargetFacts {
    TargetFacts {
        devices: false,
        medium: filesystem.into(),
        direct: Feature::Present,
        direct_align_bytes: 4096,
        uncached: Feature::Present,
        polled: Feature::Present,
        nvme_commands: Feature::Present,
        quietly_buffered: None,
        emulated: None,
        read_only: false,
        mounted: None,
    }
}

fn drive(number: u32, serial: Option<&str>) -> Device {
    let name = format!("nvme{number}n1");
    Device {
        number: format!("259:{number}"),
        members: Vec::new(),
        path: PathBuf::from(format!("/dev/{name}")),
        by_id: vec![
            PathBuf::from(format!("/dev/disk/by-id/nvme-drive-{number}")),
            PathBuf::from(format!("/dev/disk/by-id/nvme-eui.{number}")),
        ],
        model: Some("drive".into()),
        serial: serial.map(String::from),
        firmware: None,
        size_bytes: 1 << 40,
        logical_block_bytes: 512,
        physical_block_bytes: 512,
        volatile_write_cache: Some(true),
        rotational: false,
        read_only: false,
        numa_node: Some(0),
        scheduler: Some("none".into()),
        queue: crate::host::Queue::default(),
        controller: None,
        link: None,
        temperature: None,
        health: None,
        lba_formats: None,
        partitions: vec![format!("{name}p1")],
        usage: Vec::new(),
        name,
    }
}
