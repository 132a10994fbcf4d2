//! Facts of other hosts, read from files modelled on theirs.

use std::fs;
use std::path::Path;

use crate::fake_hosts::{Host, degraded, server, without_spdk, workstation};
use stacktune::testing::host::{Device, Facts, Usage};
use stacktune::testing::stack::guard::{self, OwnData};
use stacktune::testing::ui::report::host::describe;

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

/// The guard refuses the device based on the facts alone, before opening anything.
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

/// The layers between a device and its drives are not a use of it; another device on the same drives is.
#[test]
fn a_device_on_layers_is_not_in_use_by_them() {
    let host = Host::new();
    host.nvme(0).block("dm-0", "252:0", 100).block("dm-1", "252:1", 100);
    host.built("dm-0", "nvme0n1", "nvme0n1").built("dm-1", "dm-0", "dm-0");
    assert_eq!(device(&host.facts(), "dm-1").usage, []);
    refused(&host.facts(), "dm-0", "dm-1");
    refused(&host.facts(), "nvme0n1", "part of dm-0");
    host.block("dm-2", "252:2", 100).built("dm-2", "nvme0n1", "nvme0n1");
    refused(&host.facts(), "dm-1", "dm-2");
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
    // Btrfs lists a device number of its own in mountinfo, and only one of its devices.
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
    // These processes have closed their descriptors for the device.
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
    // Each part in its own order: the mount's options, then the file system's.
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
