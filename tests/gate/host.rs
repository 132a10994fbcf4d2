//! The facts of other hosts, read from files made after theirs.

use std::fs;
use std::path::{Path, PathBuf};

use stacktune::testing::host::{Device, Facts, Usage};
use stacktune::testing::stack::guard::{self, OwnData};
use stacktune::testing::ui::report::host::describe;
use tempfile::TempDir;

/// The files of a host under a folder of their own.
struct Host(TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        fs::write(self.at(path), text).unwrap();
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        std::os::unix::fs::symlink(target, self.at(path)).unwrap();
        self
    }

    fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.0.path().join(path)).unwrap();
        self
    }

    fn facts(&self) -> Facts {
        Facts::read(self.0.path())
    }

    /// A block device in sysfs of 512-byte sectors.
    fn block(&self, name: &str, number: &str, gib: u64) -> &Self {
        let dir = format!("sys/block/{name}");
        self.file(&format!("{dir}/dev"), format!("{number}\n"))
            .file(&format!("{dir}/size"), format!("{}\n", gib << 21))
            .file(&format!("{dir}/ro"), "0\n")
            .file(&format!("{dir}/queue/logical_block_size"), "512\n")
            .file(&format!("{dir}/queue/rotational"), "0\n")
            .file(&format!("{dir}/queue/write_cache"), "write through\n")
            .file(&format!("{dir}/queue/scheduler"), "[none] mq-deadline\n")
    }

    fn nvme(&self, index: u32) -> &Self {
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

    fn partition(&self, device: &str, part: u32, number: &str) -> &Self {
        let dir = format!("sys/block/{device}/{device}p{part}");
        self.file(&format!("{dir}/partition"), format!("{part}\n"))
            .file(&format!("{dir}/dev"), format!("{number}\n"))
            .file(&format!("{dir}/size"), "2097152\n")
    }

    /// `holder` is built on `member`, of which the folder in sysfs is `dir`.
    fn built(&self, holder: &str, dir: &str, member: &str) -> &Self {
        self.folder(&format!("sys/block/{dir}/holders/{holder}"));
        self.folder(&format!("sys/block/{holder}/slaves/{member}"))
    }
}

/// A server: the system on the first drive, md on the second and third, LVM on that; the fourth free.
fn server() -> Host {
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

fn device<'a>(facts: &'a Facts, name: &str) -> &'a Device {
    facts.devices.iter().find(|device| device.name == name).unwrap()
}

fn uses(device: &Device) -> Vec<String> {
    device.usage.iter().map(ToString::to_string).collect()
}

struct Nothing;

impl OwnData for Nothing {
    fn header(&self, _: &[u8]) -> bool {
        false
    }

    fn page(&self, _: &fs::File, _: u64, _: &[u8]) -> bool {
        false
    }
}

/// The guard refuses the device by the facts alone, before it opens anything.
#[track_caller]
fn refused(facts: &Facts, name: &str, why: &str) {
    let error = guard::examine(name, facts, 0, &Nothing).unwrap_err();
    assert_eq!(error.exit_status(), 3, "{error}");
    assert!(error.what.contains(why), "{error}");
}

#[test]
fn a_servers_facts_are_read() {
    let facts = server().facts();
    assert_eq!((facts.hostname.as_str(), facts.kernel.as_str()), ("db7", "6.12.38+deb13-amd64"));
    assert_eq!(facts.distribution, "Debian GNU/Linux 13 (trixie)");
    assert_eq!(facts.memory_bytes, 263_856_128 * 1024);
    assert_eq!(facts.virtualization, None, "without the processor's flag it is hardware");
    assert_eq!(facts.cpu.model, "AMD EPYC 9354 32-Core Processor");
    assert_eq!(facts.cpu.online.len(), 64);
    assert_eq!((facts.cpu.nodes.len(), facts.cpu.nodes[1].cpus[0]), (2, 32));
    assert_eq!(facts.cpu.governor.as_deref(), Some("performance"));
    assert_eq!(facts.cpu.mitigations["spectre_v2"], "Mitigation: Enhanced IBRS");
    assert!(facts.dontcache.reason().unwrap().contains("6.14"));
    let drive = device(&facts, "nvme3n1");
    assert_eq!(drive.model.as_deref(), Some("KIOXIA KCMY1RUG3T84"));
    assert_eq!(drive.serial.as_deref(), Some("9FD0A003"));
    assert_eq!(drive.firmware.as_deref(), Some("1UET7104"));
    assert_eq!(drive.size_bytes, 3576 << 30);
    assert_eq!(drive.numa_node, Some(1));
    assert_eq!(drive.volatile_write_cache, Some(false));
    assert_eq!(drive.scheduler.as_deref(), Some("none"));
    assert_eq!(drive.by_id[0], Path::new("/dev/disk/by-id/nvme-KIOXIA_KCMY1RUG3T84_9FD0A003_1"));
    assert_eq!(drive.by_id.len(), 3);
}

#[test]
fn every_use_of_a_servers_drives_is_found() {
    let facts = server().facts();
    assert_eq!(
        uses(device(&facts, "nvme0n1")),
        [
            "the system's own drive: holds /boot/efi (nvme0n1p1)",
            "mounted at /boot/efi (nvme0n1p1)",
            "the system's own drive: holds / (nvme0n1p2)",
            "mounted at / (nvme0n1p2)",
            "swapped on: /dev/nvme0n1p3",
        ]
    );
    // Through md and LVM, down to both drives.
    for name in ["nvme1n1", "nvme2n1"] {
        let expected =
            ["part of md0 (raid1)", "part of dm-0 (vg0-data, LVM)", "mounted at /srv/my data (dm-0)"];
        assert_eq!(uses(device(&facts, name)), expected);
    }
    assert!(device(&facts, "nvme3n1").usage.is_empty());
    refused(&facts, "nvme0n1", "the system's own drive");
    refused(&facts, "/dev/disk/by-id/nvme-eui.8ce38ee201", "part of md0 (raid1)");
    refused(&facts, "/dev/md0", "dm-0");
    refused(&facts, "dm-0", "mounted at /srv/my data");
}

#[test]
fn an_idle_array_is_no_drive() {
    let host = Host::new();
    host.nvme(0).block("md0", "9:0", 3500).built("md0", "nvme0n1", "nvme0n1");
    let facts = host.facts();
    assert_eq!(device(&facts, "md0").members, ["nvme0n1"]);
    refused(&facts, "md0", "is built on nvme0n1");
    refused(&facts, "nvme0n1", "part of md0");
}

#[test]
fn a_signature_that_udev_knows_makes_a_member() {
    let host = Host::new();
    host.nvme(0).nvme(1).partition("nvme1n1", 1, "259:9");
    host.file("run/udev/data/b259:0", "S:disk/by-id/x\nE:ID_FS_TYPE=LVM2_member\nE:ID_FS_USAGE=raid\n")
        .file("run/udev/data/b259:9", "E:ID_FS_TYPE=zfs_member\nE:ID_FS_USAGE=filesystem\n");
    let facts = host.facts();
    refused(&facts, "nvme0n1", "a member of LVM");
    refused(&facts, "nvme1n1", "a member of ZFS (nvme1n1p1) by its signature");
}

#[test]
fn a_drive_that_another_host_reserved_is_refused() {
    let mut facts = server().facts();
    let drive = facts.devices.iter_mut().find(|device| device.name == "nvme3n1").unwrap();
    drive.usage.push(Usage::Reserved("write exclusive, 2 registered".to_owned()));
    refused(&facts, "nvme3n1", "NVMe-reserved: write exclusive");
}

#[test]
fn every_device_of_a_btrfs_is_mounted() {
    let host = Host::new();
    host.nvme(0).nvme(1).nvme(2);
    let devices = "sys/fs/btrfs/0b1c-uuid/devices";
    host.folder(&format!("{devices}/nvme0n1")).folder(&format!("{devices}/nvme1n1"));
    // Btrfs shows a number of its own in the list of mounts, and one of its devices.
    host.file("proc/self/mountinfo", "40 22 0:44 / /srv rw - btrfs /dev/nvme0n1 rw\n");
    let facts = host.facts();
    for name in ["nvme0n1", "nvme1n1"] {
        assert_eq!(uses(device(&facts, name)), ["mounted at /srv"]);
    }
    assert!(device(&facts, "nvme2n1").usage.is_empty());
}

#[test]
fn exports_and_writers_are_found() {
    let host = Host::new();
    for index in 0..8 {
        host.nvme(index);
    }
    host.file("sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1/device_path", "/dev/nvme0n1\n");
    host.file(
        "sys/kernel/config/target/core/iblock_0/disk1/udev_path",
        "/dev/disk/by-id/nvme-eui.8ce38ee201\n",
    );
    host.file(
        "sys/kernel/config/target/core/iblock_1/disk2/info",
        "Status: ACTIVATED\n iBlock device: nvme2n1  UDEV PATH:\n",
    );
    for (process, command, target, flags) in [
        ("100", "qemu-nbd", "/dev/nvme3n1", "0100000"),
        ("101", "qemu-system-x86", "/dev/nvme4n1", "0100002"),
        ("102", "smartd", "/dev/nvme5n1", "0100000"),
    ] {
        host.link(&format!("proc/{process}/fd/7"), target)
            .file(&format!("proc/{process}/fdinfo/7"), format!("pos:\t0\nflags:\t{flags}\n"))
            .file(&format!("proc/{process}/comm"), format!("{command}\n"));
    }
    // Their descriptors of it are closed.
    host.link("proc/103/fd/9", "anon_inode:[io_uring]")
        .file("proc/103/fdinfo/9", "flags:\t02000002\nUserFiles:\t2\n    0: /tmp/x\n    1: /dev/nvme6n1\nUserBufs:\t0\n")
        .file("proc/103/comm", "database\n")
        .file(
            "proc/104/maps",
            "7f00-7f01 r--s 00000000 00:05 320 /dev/nvme5n1\n7f02-7f03 rw-s 00000000 00:05 321   /dev/nvme7n1\n",
        )
        .file("proc/104/comm", "editor\n");
    let facts = host.facts();
    let expected = [
        "exported by nvmet, subsystem nqn.x",
        "exported by LIO target, iblock_0/disk1",
        "exported by LIO target, iblock_1/disk2",
        "exported by qemu-nbd, process 100",
        "process 101, qemu-system-x86, has it open for writing",
    ];
    let hidden = [
        (6, "process 103, database, has it registered with io_uring"),
        (7, "process 104, editor, has mapped it for writing"),
    ];
    for (index, expected) in expected.into_iter().enumerate().chain(hidden) {
        let name = format!("nvme{index}n1");
        assert_eq!(uses(device(&facts, &name)), [expected]);
        refused(&facts, &name, expected);
    }
    assert!(device(&facts, "nvme5n1").usage.is_empty(), "reading it is no use of it");
}

#[test]
fn in_a_container_the_boot_drive_is_found_by_the_kernels_command_line() {
    let host = Host::new();
    host.nvme(0).partition("nvme0n1", 2, "259:2");
    host.link("dev/disk/by-uuid/6f1e", "../../nvme0n1p2");
    host.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=6f1e ro quiet\n");
    host.file("proc/self/mountinfo", "1 0 0:50 / / rw - overlay overlay rw\n");
    refused(&host.facts(), "nvme0n1", "the system's own drive: holds / (nvme0n1p2)");
}

#[test]
fn a_container_without_anything_has_facts_too() {
    let facts = Host::new().facts();
    assert!(facts.devices.is_empty());
    assert_eq!((facts.memory_bytes, facts.virtualization.as_deref()), (0, None));
    let text = describe(&facts, None);
    assert!(text.contains("none found"), "{text}");
    let error = facts.find("/dev/no-such-device").unwrap_err();
    assert_eq!(error.exit_status(), 2);
}

#[test]
fn other_drives_have_their_names_in_other_places() {
    let host = Host::new();
    host.block("sda", "8:0", 100)
        .file("sys/block/sda/device/vendor", "SEAGATE \n")
        .file("sys/block/sda/device/model", "ST4000NM0035\n")
        .file("sys/block/sda/device/rev", "TN05\n")
        .file("sys/block/sda/device/vpd_pg80", b"\0\x80\0\x08ZC1234AB")
        .file("sys/block/sda/ro", "1\n");
    host.block("vda", "254:0", 10)
        .file("sys/block/vda/serial", "rootdisk\n")
        .file("sys/block/vda/device/vendor", "0x1af4\n");
    host.block("loop0", "7:0", 1).file("sys/block/loop0/loop/backing_file", "/srv/image\n");
    host.block("loop1", "7:1", 0);
    host.block("nvme0c0n1", "259:9", 1).file("sys/block/nvme0c0n1/hidden", "1\n");
    let facts = host.facts();
    let names: Vec<&str> = facts.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["loop0", "sda", "vda"], "neither the empty nor the hidden one");
    let disk = device(&facts, "sda");
    assert_eq!(disk.model.as_deref(), Some("SEAGATE ST4000NM0035"));
    assert_eq!(disk.serial.as_deref(), Some("ZC1234AB"));
    assert_eq!(disk.firmware.as_deref(), Some("TN05"));
    refused(&facts, "sda", "read-only");
    assert_eq!(device(&facts, "vda").serial.as_deref(), Some("rootdisk"));
    assert_eq!(device(&facts, "loop0").model.as_deref(), Some("/srv/image"));
}

#[test]
fn what_writes_to_a_loop_devices_file_uses_the_device_whatever_the_files_name() {
    let host = Host::new();
    for (index, name) in ["a", "link-to-a", "b", "c"].iter().enumerate() {
        host.block(&format!("loop{index}"), &format!("7:{index}"), 1)
            .file(&format!("sys/block/loop{index}/loop/backing_file"), format!("/srv/{name}\n"));
    }
    host.file("srv/a", "").file("srv/b", "").file("srv/c", "");
    fs::hard_link(host.at("srv/a"), host.at("srv/link-to-a")).unwrap();
    fs::hard_link(host.at("srv/b"), host.at("srv/swap")).unwrap();
    fs::hard_link(host.at("srv/c"), host.at("srv/export")).unwrap();
    host.file("proc/swaps", "Filename Type Size Used Priority\n/srv/swap file 1024 0 -2\n");
    host.file("sys/kernel/config/nvmet/subsystems/x/namespaces/1/device_path", "/srv/export\n");
    let facts = host.facts();
    refused(&facts, "loop0", "loop0 is in use: loop1 is another loop device on /srv/link-to-a");
    refused(&facts, "loop1", "loop1 is in use: loop0 is another loop device on /srv/a");
    refused(&facts, "loop2", "swapped on: /srv/swap");
    refused(&facts, "loop3", "exported by nvmet");
}

#[test]
fn a_virtual_machine_is_identified() {
    let host = Host::new();
    host.file("proc/cpuinfo", "flags : fpu hypervisor\n");
    assert_eq!(host.facts().virtualization.as_deref(), Some("unidentified hypervisor"));
    host.file("sys/class/dmi/id/sys_vendor", "QEMU\n");
    assert_eq!(host.facts().virtualization.as_deref(), Some("QEMU"));
}

#[test]
fn one_device_under_two_names_is_refused() {
    let facts = server().facts();
    let link = "/dev/disk/by-id/nvme-eui.8ce38ee203".to_owned();
    assert!(facts.same_device("nvme3n1", &link).unwrap());
    assert!(facts.same_device("/dev/nvme0n1p2", "nvme0n1").unwrap(), "a partition means its device");
    assert!(!facts.same_device("nvme3n1", "nvme2n1").unwrap());
    let names = ["/dev/nvme3n1".to_owned(), "nvme2n1".to_owned(), link];
    let error = facts.find_all(&names).unwrap_err();
    assert_eq!(error.exit_status(), 2);
    assert!(error.what.contains("/dev/nvme3n1 and /dev/disk/by-id/nvme-eui.8ce38ee203"), "{error}");
    assert_eq!(facts.find_all(&names[..2]).unwrap().len(), 2);
}

#[test]
fn another_serial_than_the_profiles_is_refused() {
    let facts = server().facts();
    let devices = [device(&facts, "nvme2n1"), device(&facts, "nvme3n1")];
    let serials = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    for fine in [&[][..], &["9FD0A002"], &["", "9FD0A003"], &["9FD0A002", "9FD0A003"]] {
        guard::check_serials(&devices, &serials(fine)).unwrap();
    }
    let error = guard::check_serials(&devices, &serials(&["9FD0A003", "9FD0A002"])).unwrap_err();
    assert_eq!(error.exit_status(), 3);
    assert!(error.what.contains("`9FD0A002`, but the profile has `9FD0A003`"), "{error}");
}

#[test]
fn reading_from_a_used_device_reports_its_uses() {
    let facts = server().facts();
    let system = guard::examine_read_only("nvme0n1", &facts).unwrap();
    assert!(system.mounted && system.flags.contains(&"mounted at / (nvme0n1p2)".to_owned()));
    let free = guard::examine_read_only("nvme3n1", &facts).unwrap();
    assert!(!free.mounted && free.flags.is_empty());
}

impl Host {
    /// A drive's function on the bus and its controller, as Linux 5.12 and newer show them.
    fn controller(&self, index: u32, link: (&str, u32), max: (&str, u32), celsius: f64) -> &Self {
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

/// A workstation: two consumer drives, of which one sits in a slow slot and is hot, and a SATA disk.
fn workstation() -> Host {
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

#[test]
fn what_nvmet_may_serve_unseen_and_what_it_serves_as_a_whole_is_no_free_drive() {
    const TOP: &str = "sys/kernel/config/nvmet/subsystems";
    let used = |count: &str, configured: &dyn Fn(&Host)| {
        let host = workstation();
        host.file("sys/module/nvmet/refcnt", count);
        configured(&host);
        let facts = host.facts();
        ["nvme1n1", "nvme2n1"].map(|name| {
            let usage = &device(&facts, name).usage;
            usage.first().map(|usage| (usage.to_string().contains("perhaps"), usage.is_sure()))
        })
    };
    assert_eq!(used("0\n", &|_| ()), [None, None], "loaded, and nothing of it used");
    assert_eq!(used("2\n", &|_| ()), [Some((true, false)); 2]);
    let served = |path: &'static str, folder: &'static str| {
        move |host: &Host| {
            let folder = format!("{TOP}/exported/{folder}");
            host.folder(&folder).file(&format!("{folder}/device_path"), path);
            host.file(&format!("{folder}/enable"), "1\n");
        }
    };
    assert_eq!(used("2\n", &served("/dev/nvme1\n", "passthru")), [Some((false, true)), None]);
    assert_eq!(used("2\n", &served("/tmp/gone\n", "namespaces/1")), [Some((true, false)); 2]);
}

#[test]
fn a_drive_in_vfios_unsafe_mode_is_in_no_group_that_keeps_it_apart() {
    const MODE: &str = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
    let platform = |mode: &str| {
        let host = workstation();
        host.file(MODE, mode).file("sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
        std::fs::remove_dir(host.at("sys/kernel/iommu_groups/1")).unwrap();
        host.facts().platform
    };
    let allowed = platform("Y\n");
    assert_eq!(
        (allowed.iommu_groups, allowed.vfio.reason(), allowed.unsafe_noiommu.reason()),
        (0, None, None)
    );
    let not = platform("N\n");
    assert!(not.vfio.reason().unwrap().contains("no IOMMU"));
    assert!(not.unsafe_noiommu.reason().unwrap().contains(MODE));
}

#[test]
fn a_workstations_links_temperatures_and_queues_are_read() {
    let facts = workstation().facts();
    let (fast, slow) = (device(&facts, "nvme1n1"), device(&facts, "nvme2n1"));
    let link = fast.link.as_ref().unwrap();
    assert_eq!((link.speed_gt_per_s, link.width, link.is_reduced()), (16.0, 4, false));
    assert_eq!(link.bandwidth_bytes_per_s / 1_000_000, 7876);
    let link = slow.link.as_ref().unwrap();
    assert_eq!((link.bandwidth_bytes_per_s / 1_000_000, link.is_reduced()), (1969, true));
    assert!(link.to_string().contains("supports 16 GT/s × 4"), "{link}");
    let warm = slow.temperature.as_ref().unwrap();
    assert_eq!((warm.now_c, warm.warning_c, warm.critical_c), (82.0, Some(81.85), Some(84.85)));
    let disk = device(&facts, "sda");
    assert_eq!(disk.temperature.as_ref().map(|warm| (warm.now_c, warm.warning_c)), Some((30.0, None)));
    assert_eq!((&disk.link, &disk.controller), (&None, &None));
    assert_eq!((fast.controller.as_deref(), fast.physical_block_bytes), (Some("nvme1"), 4096));
    let queue = &fast.queue;
    assert_eq!((queue.hardware_queues, queue.polling, queue.schedulers.len()), (Some(8), Some(true), 2));
    assert_eq!(queue.loadable_schedulers, ["bfq", "kyber"]);
    assert_eq!(queue.settings["nr_requests"], "1023");
    assert!(disk.queue.loadable_schedulers.is_empty(), "it has no queues to schedule");

    let controllers: Vec<_> = facts.storage.controllers.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(controllers, ["nvme1", "nvme2"]);
    let first = &facts.storage.controllers[0];
    assert_eq!((first.address.as_deref(), first.numa_node), (Some("0000:01:00.0"), None));
    assert_eq!((&first.link, &first.temperature), (&fast.link, &fast.temperature));
    assert_eq!(facts.storage.nvme_poll_queues, Some(2));
    let pages = &facts.platform.hugepages;
    assert_eq!((pages.total, pages.free, pages.size_bytes), (16, 4, 2 << 20));
    assert_eq!((facts.platform.iommu_groups, facts.platform.vfio.reason()), (2, None));
    assert!(facts.platform.unsafe_noiommu.reason().unwrap().contains("VFIO is not loaded"));
    let tool = |name: &str| facts.storage.tools.iter().find(|tool| tool.name == name).unwrap();
    assert_eq!(tool("nvme").path.as_deref(), Some(Path::new("/usr/bin/nvme")));
    assert_eq!((&tool("mkfs.xfs").path, tool("mkfs.xfs").package.as_str()), (&None, "xfsprogs"));
    insta::assert_snapshot!(describe(&without_spdk(facts), None));
}

/// As of a program that was built without SPDK, however this one was.
fn without_spdk(mut facts: Facts) -> Facts {
    facts.platform.spdk = stacktune::testing::host::Spdk::default();
    facts
}

/// A storage server in trouble: a RAID 5 rebuilds onto a spare, an NVMe subsystem with two paths, and
/// cgroups of which this process may make none.
fn degraded() -> Host {
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
    // A stopped array that left its node.
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

#[test]
fn a_degraded_array_a_multipath_drive_and_mounts_are_read() {
    let facts = degraded().facts();
    let [array] = &facts.storage.arrays[..] else { panic!("{:?}", facts.storage.arrays) };
    assert_eq!((array.name.as_str(), array.level.as_deref()), ("md127", Some("raid5")));
    assert_eq!((array.degraded, array.sync_action.as_deref()), (1, Some("recover")));
    assert_eq!((array.sync_sectors, array.chunk_bytes), (Some((512, 2048)), Some(512 << 10)));
    let members: Vec<_> = array.members.iter().map(|one| (one.name.as_str(), one.state.as_str())).collect();
    assert_eq!(members, [("sdb", "in_sync"), ("sdc", "in_sync"), ("sdd", "spare")]);
    let drive = device(&facts, "nvme0n1");
    assert_eq!(drive.controller.as_deref(), Some("nvme1"), "a path of its subsystem");
    assert_eq!(drive.temperature.as_ref().map(|warm| warm.now_c), Some(55.0));
    let mounts: Vec<_> =
        facts.storage.mounts.iter().map(|one| (one.dir.as_str(), &*one.filesystem)).collect();
    assert_eq!(mounts, [("/srv", "xfs"), ("/data", "btrfs")]);
    // Each part in the order of its names: the mount's own, then the file system's.
    assert_eq!(facts.storage.mounts[0].options, "noatime,rw,inode64,rw");
    assert!(facts.cgroup_memory.limit.reason().unwrap().contains("not delegated"));
    assert!(facts.platform.vfio.reason().unwrap().contains("modprobe vfio-pci"));
    let text = describe(&facts, None);
    assert!(text.contains("recover, 25%") && text.contains("1 missing"), "{text}");
    let json = serde_json::to_value(&facts).unwrap();
    assert_eq!(json["arrays"][0]["degraded"], 1, "it is in `host --json`");
    assert_eq!(json["devices"][0]["queue"]["hardware_queues"], serde_json::Value::Null);
}

#[test]
fn the_description_fits_eighty_columns_and_names_what_is_free() {
    let mut facts = server().facts();
    facts.devices[0].usage.extend((0..9).map(|at| Usage::Mounted(format!("/mnt/{at}"))));
    let text = describe(&without_spdk(facts), None);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}
