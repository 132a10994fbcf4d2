//! Folders that look like a host's /sys and /proc.

use std::fs;
use std::path::PathBuf;

use stacktune::testing::host::Facts;
use tempfile::TempDir;

/// A host's files below a folder of their own.
pub struct Host(TempDir);
impl Host {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn at(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        fs::write(self.at(path), text).unwrap();
        self
    }

    pub fn link(&self, path: &str, target: &str) -> &Self {
        std::os::unix::fs::symlink(target, self.at(path)).unwrap();
        self
    }

    pub fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.0.path().join(path)).unwrap();
        self
    }

    pub fn facts(&self) -> Facts {
        Facts::read(self.0.path())
    }

    /// A block device in sysfs with 512-byte sectors.
    pub fn block(&self, name: &str, number: &str, gib: u64) -> &Self {
        let dir = format!("sys/block/{name}");
        self.file(&format!("{dir}/dev"), format!("{number}\n"))
            .file(&format!("{dir}/size"), format!("{}\n", gib << 21))
            .file(&format!("{dir}/ro"), "0\n")
            .file(&format!("{dir}/queue/logical_block_size"), "512\n")
            .file(&format!("{dir}/queue/rotational"), "0\n")
            .file(&format!("{dir}/queue/write_cache"), "write through\n")
            .file(&format!("{dir}/queue/scheduler"), "[none] mq-deadline\n")
    }

    pub fn nvme(&self, index: u32) -> &Self {
        let dir = format!("sys/block/nvme{index}n1");
        self.block(&format!("nvme{index}n1"), &format!("259:{}", index * 8), 3576)
            .file(&format!("{dir}/nsid"), "1\n")
            .file(&format!("{dir}/device/model"), "KIOXIA KCMY1RUG3T84                     \n")
            .file(&format!("{dir}/device/serial"), format!("9FD0A00{index}       \n"))
            .file(&format!("{dir}/device/firmware_rev"), "1UET7104\n")
            .file(&format!("{dir}/device/numa_node"), format!("{}\n", index / 2));
        for link in [
            "nvme-KIOXIA_KCMY1RUG3T84_9FD0A00#",
            "nvme-KIOXIA_KCMY1RUG3T84_9FD0A00#_1",
            "nvme-eui.8ce38ee20#",
        ] {
            let link = link.replace('#', &index.to_string());
            self.link(&format!("dev/disk/by-id/{link}"), &format!("../../nvme{index}n1"));
        }
        self
    }

    pub fn partition(&self, device: &str, part: u32, number: &str) -> &Self {
        let dir = format!("sys/block/{device}/{device}p{part}");
        self.file(&format!("{dir}/partition"), format!("{part}\n"))
            .file(&format!("{dir}/dev"), format!("{number}\n"))
            .file(&format!("{dir}/size"), "2097152\n")
    }

    /// Builds `holder` on `member`, whose folder in sysfs is `dir`.
    pub fn built(&self, holder: &str, dir: &str, member: &str) -> &Self {
        self.folder(&format!("sys/block/{dir}/holders/{holder}"));
        self.folder(&format!("sys/block/{holder}/slaves/{member}"))
    }
}

/// A server: the system on the first drive, md on the second and third, LVM on top; the fourth is free.
pub fn server() -> Host {
    let host = Host::new();
    for index in 0..4 {
        host.nvme(index);
    }
    host.partition("nvme0n1", 1, "259:1").partition("nvme0n1", 2, "259:2").partition("nvme0n1", 3, "259:3");
    host.block("md0", "9:0", 3500).file("sys/block/md0/md/level", "raid1\n");
    host.built("md0", "nvme1n1", "nvme1n1").built("md0", "nvme2n1", "nvme2n1");
    host.block("dm-0", "252:0", 100)
        .file("sys/block/dm-0/dm/name", "vg0-data\n")
        .file("sys/block/dm-0/dm/uuid", "LVM-AbCd\n")
        .built("dm-0", "md0", "md0")
        .link("dev/mapper/vg0-data", "../dm-0");
    host.file(
        "proc/self/mountinfo",
        "22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n\
         23 22 259:1 / /boot/efi rw shared:2 - vfat /dev/nvme0n1p1 rw\n\
         24 22 252:0 / /srv/my\\040data rw - xfs /dev/mapper/vg0-data rw\n\
         25 22 0:5 / /proc rw - proc proc rw\n",
    );
    host.file("proc/swaps", "Filename Type Size Used Priority\n/dev/nvme0n1p3 partition 8388604 0 -2\n");
    host.file("proc/sys/kernel/hostname", "db7\n")
        .file("proc/sys/kernel/osrelease", "6.12.38+deb13-amd64\n")
        .file("etc/os-release", "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n")
        .file("proc/meminfo", "MemTotal:       263856128 kB\nMemFree: 1 kB\n")
        .file(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: AMD EPYC 9354 32-Core Processor\nflags\t\t: fpu vme\n\n",
        )
        .file("sys/class/dmi/id/sys_vendor", "Google-like vendor name\n")
        .file("sys/devices/system/cpu/online", "0-63\n")
        .file("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n")
        .file("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Enhanced IBRS\n")
        .file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
        .file("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
        .file("sys/devices/system/node/node0/cpulist", "0-31\n")
        .file("sys/devices/system/node/node1/cpulist", "32-63\n");
    host
}

impl Host {
    /// A drive's PCI function and its controller, as Linux 5.12 and newer show them.
    pub fn controller(&self, index: u32, link: (&str, u32), max: (&str, u32), celsius: f64) -> &Self {
        let function = format!("sys/devices/pci0000:00/0000:0{index}:00.0");
        let dir = format!("{function}/nvme/nvme{index}");
        self.file(&format!("{function}/current_link_speed"), format!("{}\n", link.0))
            .file(&format!("{function}/current_link_width"), format!("{}\n", link.1))
            .file(&format!("{function}/max_link_speed"), format!("{}\n", max.0))
            .file(&format!("{function}/max_link_width"), format!("{}\n", max.1))
            .file(&format!("{dir}/model"), "Samsung SSD 990 PRO 2TB                 \n")
            .file(&format!("{dir}/serial"), format!("S7DN00{index}\n"))
            .file(&format!("{dir}/firmware_rev"), "4B2QJXD7\n")
            .file(&format!("{dir}/transport"), "pcie\n")
            .file(&format!("{dir}/address"), format!("0000:0{index}:00.0\n"))
            .file(&format!("{dir}/state"), "live\n")
            .file(&format!("{dir}/numa_node"), "-1\n")
            .file(&format!("{dir}/hwmon2/temp1_input"), format!("{}\n", celsius * 1000.0))
            .file(&format!("{dir}/hwmon2/temp1_max"), "81850\n")
            .file(&format!("{dir}/hwmon2/temp1_crit"), "84850\n")
            .link(&format!("{dir}/device"), &format!("../../../0000:0{index}:00.0"))
            .link(&format!("sys/class/nvme/nvme{index}"), &format!("../../../{dir}"));
        let block = format!("nvme{index}n1");
        self.block(&block, &format!("259:{index}"), 1863)
            .link(&format!("sys/block/{block}/device"), &format!("../../../{dir}"))
            .file(&format!("sys/block/{block}/queue/physical_block_size"), "4096\n")
            .file(&format!("sys/block/{block}/queue/nomerges"), "0\n")
            .file(&format!("sys/block/{block}/queue/nr_requests"), "1023\n")
            .file(&format!("sys/block/{block}/queue/io_poll"), "1\n");
        for queue in 0..8 {
            self.folder(&format!("sys/block/{block}/mq/{queue}"));
        }
        self
    }
}

/// A workstation: two consumer drives, one of them hot and in a slow slot, and a SATA disk.
pub fn workstation() -> Host {
    let host = Host::new();
    host.controller(1, ("16.0 GT/s PCIe", 4), ("16.0 GT/s PCIe", 4), 41.85).controller(
        2,
        ("8.0 GT/s PCIe", 2),
        ("16.0 GT/s PCIe", 4),
        82.0,
    );
    host.block("sda", "8:0", 100)
        .file("sys/block/sda/queue/rotational", "1\n")
        .file("sys/block/sda/device/model", "WDC WD40\n")
        .file("sys/block/sda/device/hwmon/hwmon4/temp1_input", "30000\n");
    host.file("sys/module/nvme/parameters/poll_queues", "2\n")
        .file("proc/sys/kernel/hostname", "desk\n")
        .file("proc/sys/kernel/osrelease", "6.17.2-arch1\n")
        .file("lib/modules/6.17.2-arch1/kernel/block/bfq.ko.zst", "")
        .file("lib/modules/6.17.2-arch1/kernel/block/kyber-iosched.ko.zst", "")
        .file("lib/modules/6.17.2-arch1/kernel/block/t10-pi.ko.zst", "")
        .file(
            "proc/meminfo",
            "MemTotal: 32768 kB\nHugePages_Total: 16\nHugePages_Free: 4\nHugepagesize: 2048 kB\n",
        )
        .file("dev/vfio/vfio", "")
        .folder("sys/kernel/iommu_groups/0")
        .folder("sys/kernel/iommu_groups/1")
        .file("usr/bin/nvme", "")
        .file("usr/bin/mdadm", "");
    host
}

/// The facts as read by a build without SPDK, whatever this one has.
pub fn without_spdk(mut facts: Facts) -> Facts {
    facts.platform.spdk = stacktune::testing::host::Spdk::default();
    facts
}

/// A storage server in trouble: a RAID 5 rebuilding onto a spare, an NVMe subsystem with two paths, and no
/// permission to make cgroups.
pub fn degraded() -> Host {
    let host = Host::new();
    for name in ["sdb", "sdc", "sdd"] {
        host.block(name, &format!("8:{}", u32::from(name.as_bytes()[2]) * 16), 100);
        host.built("md127", name, name);
    }
    host.block("md127", "9:127", 200);
    let md = "sys/block/md127/md";
    host.file(&format!("{md}/level"), "raid5\n")
        .file(&format!("{md}/array_state"), "clean\n")
        .file(&format!("{md}/degraded"), "1\n")
        .file(&format!("{md}/sync_action"), "recover\n")
        .file(&format!("{md}/sync_completed"), "512 / 2048\n")
        .file(&format!("{md}/chunk_size"), "524288\n")
        .file(&format!("{md}/dev-sdb/state"), "in_sync\n")
        .file(&format!("{md}/dev-sdc/state"), "in_sync\n")
        .file(&format!("{md}/dev-sdd/state"), "spare\n");
    // A stopped array whose node is left.
    host.folder("sys/block/md0").file("sys/block/md0/md/array_state", "clear\n");
    host.block("nvme0n1", "259:0", 10)
        .file("sys/block/nvme0n1/device/nvme1/hwmon5/temp1_input", "55000\n")
        .file("sys/block/nvme0n1/device/subsysnqn", "nqn.x\n");
    host.file(
        "proc/self/mountinfo",
        "22 1 9:127 / /srv rw,noatime shared:1 - xfs /dev/md127 rw,inode64\n\
         24 22 0:22 / /proc rw - proc proc rw\n\
         25 22 0:44 / /data rw - btrfs /dev/nvme0n1 rw,space_cache=v2\n\
         30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    host.file("proc/self/cgroup", "0::/user.slice/a.scope\n")
        .file("sys/fs/cgroup/cgroup.type", "domain\n")
        .file("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
        .file("sys/fs/cgroup/user.slice/cgroup.type", "domain\n")
        .file("sys/fs/cgroup/user.slice/a.scope/cgroup.type", "domain\n");
    host
}
