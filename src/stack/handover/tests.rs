//! The hand-over on a fake sysfs.

use std::fs;
use std::os::unix::fs::symlink;

use super::bus::PciBus;
use super::examine::{Noiommu, UserspaceDrive};
use super::hand_over::{bind_step, last_first};
use crate::error::Error;
use crate::host::Device;
use crate::settings::testing::capable_host;
use crate::stack::devices::Drive;

const ADDRESS: &str = "0000:01:00.0";

/// A sysfs with one drive, in a group by itself.
struct Host {
    _dir: tempfile::TempDir,
    bus: PciBus,
}

fn host() -> Host {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_owned();
    let device = root.join("bus/pci/devices").join(ADDRESS);
    let group = root.join("kernel/iommu_groups/7");
    for folder in [&device, &group.join("devices").join(ADDRESS), &root.join("class/nvme/nvme0")] {
        fs::create_dir_all(folder).unwrap();
    }
    for driver in ["nvme", "vfio-pci"] {
        fs::create_dir_all(root.join("bus/pci/drivers").join(driver)).unwrap();
    }
    fs::create_dir_all(root.join("block/nvme0n1")).unwrap();
    fs::write(root.join("block/nvme0n1/nsid"), "3\n").unwrap();
    fs::write(device.join("class"), "0x010802\n").unwrap();
    fs::write(device.join("driver_override"), "(null)\n").unwrap();
    symlink(root.join("bus/pci/drivers/nvme"), device.join("driver")).unwrap();
    symlink(&group, device.join("iommu_group")).unwrap();
    symlink(&device, root.join("class/nvme/nvme0/device")).unwrap();
    Host { _dir: dir, bus: PciBus { root } }
}

fn drive() -> Device {
    let (name, path, number) = ("nvme0n1".into(), "/dev/nvme0n1".into(), "259:0".into());
    let (serial, controller, size_bytes) = (Some("S1".into()), Some("nvme0".into()), 1 << 30);
    let (by_id, partitions, model) = (Vec::new(), Vec::new(), None);
    let other = capable_host().devices.remove(0);
    Device { name, path, number, by_id, model, serial, size_bytes, controller, partitions, ..other }
}

fn refusal(host: &Host, devices: &[Device]) -> Error {
    host.bus.examine(&drive(), &[], devices, Noiommu::Refused).unwrap_err()
}

#[test]
fn a_drive_is_found_on_the_bus() {
    let host = host();
    let given = host.bus.examine(&drive(), &[&drive()], &[drive()], Noiommu::Refused).unwrap();
    assert_eq!((given.address.as_str(), given.namespace, given.no_iommu), (ADDRESS, 3, false));
}

#[test]
fn another_namespace_in_use_keeps_the_drive_with_the_kernel() {
    let usage = vec![crate::host::Usage::Mounted("/data".into())];
    let beside = Device { name: "nvme0n2".into(), usage, ..drive() };
    let error = refusal(&host(), &[drive(), beside]);
    assert!(error.exit_status() == 3 && error.what.contains("/data"), "{error}");
}

#[test]
fn a_group_with_others_and_no_group_at_all_are_refused() {
    let shared = host();
    let members = shared.bus.root.join("kernel/iommu_groups/7/devices");
    for (address, class) in [("0000:00:01.0", "0x060400"), ("0000:02:00.0", "0x020000")] {
        fs::create_dir_all(members.join(address)).unwrap();
        let device = shared.bus.device(address);
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("class"), class).unwrap();
    }
    let error = refusal(&shared, &[]);
    assert!(error.what.contains("IOMMU group with 0000:02:00.0"), "{error}");
    assert!(!error.what.contains("0000:00:01.0"), "a bridge does not count: {error}");
    let alone = host();
    fs::remove_file(alone.bus.device(ADDRESS).join("iommu_group")).unwrap();
    let error = refusal(&alone, &[]);
    assert!(error.exit_status() == 3 && error.what.contains("no IOMMU"), "{error}");
    let accepted = alone.bus.examine(&drive(), &[], &[], Noiommu::Accepted).unwrap();
    assert!(accepted.no_iommu && bind_step(ADDRESS, &[accepted]).contains("with no IOMMU"));
    // Even if VFIO's unsafe mode is accepted, a drive that shares its group with others stays.
    let error = shared.bus.examine(&drive(), &[], &[], Noiommu::Accepted).unwrap_err();
    assert!(error.what.contains("IOMMU group with 0000:02:00.0"), "{error}");
}

#[test]
fn anything_but_an_nvme_drive_of_the_kernel_is_refused() {
    let other = host();
    fs::write(other.bus.device(ADDRESS).join("class"), "0x010601\n").unwrap();
    assert!(refusal(&other, &[]).what.contains("not an NVMe drive on PCI Express"));
    let taken = host();
    fs::remove_file(taken.bus.device(ADDRESS).join("driver")).unwrap();
    assert!(refusal(&taken, &[]).what.contains("bound to no driver"));
}

#[test]
fn drives_are_given_back_in_the_order_of_their_names() {
    let given = |name: &str, address: &str| {
        let drive = Drive { name: name.into(), ..Drive::of(&drive()) };
        UserspaceDrive { drive, address: address.into(), namespace: 1, by_id: Vec::new(), no_iommu: false }
    };
    let all = [given("nvme2n1", "c"), given("nvme10n1", "d"), given("nvme0n1", "a"), given("nvme0n2", "a")];
    assert_eq!(last_first(&all), ["d", "c", "a"]);
}

#[test]
fn functions_that_stacktune_did_not_bind_are_left_alone() {
    let host = host();
    host.bus.give_back(ADDRESS).unwrap();
    host.bus.give_back("0000:09:00.0").unwrap();
    let untouched = fs::read_to_string(host.bus.device(ADDRESS).join("driver_override")).unwrap();
    assert_eq!(untouched, "(null)\n");
    assert_eq!(host.bus.give_back("../../x").unwrap_err().exit_status(), 3);
}

#[test]
fn a_drive_alone_in_its_iommu_group_has_a_type_and_one_that_shares_it_is_refused() {
    let host = host();
    let groups = host.bus.root.join("kernel/iommu_groups/7");
    fs::write(groups.join("type"), "DMA-FQ\n").unwrap();
    let found = host.bus.group_of(&drive(), &[drive()]).unwrap();
    assert_eq!((found.address.as_str(), found.group.as_str(), found.kind.as_str()), (ADDRESS, "7", "DMA-FQ"));
    fs::create_dir(groups.join("devices/0000:02:00.0")).unwrap();
    let error = host.bus.group_of(&drive(), &[drive()]).unwrap_err();
    assert_eq!(error.exit_status(), 3);
    assert!(error.what.contains("shares its IOMMU group with 0000:02:00.0"), "{error}");
}

#[test]
fn a_drive_that_moved_or_whose_controller_is_in_use_by_now_keeps_its_type() {
    let host = host();
    fs::write(host.bus.root.join("kernel/iommu_groups/7/type"), "DMA-FQ\n").unwrap();
    let refuse =
        |devices: &[Device], address, group| host.bus.refuse_other((&drive(), devices), address, group);
    refuse(&[drive()], ADDRESS, "7").unwrap();
    for (address, group) in [(ADDRESS, "8"), ("0000:09:00.0", "7")] {
        let error = refuse(&[drive()], address, group).unwrap_err();
        assert!(error.exit_status() == 3 && error.what.contains("now in another IOMMU group"), "{error}");
    }
    let usage = vec![crate::host::Usage::Mounted("/data".into())];
    let beside = Device { name: "nvme0n2".into(), usage, ..drive() };
    let error = refuse(&[drive(), beside], ADDRESS, "7").unwrap_err();
    assert!(error.exit_status() == 3 && error.what.contains("/data"), "{error}");
}

#[test]
fn a_type_is_restored_only_where_it_is_still_ours() {
    let host = host();
    let kind = host.bus.root.join("kernel/iommu_groups/7/type");
    fs::write(&kind, "DMA\n").unwrap();
    let restore = |group: &str, types| host.bus.restore_type(ADDRESS, group, types, &[]);
    // The type or the group has changed: somebody else has set it since.
    restore("7", ("DMA-FQ", "identity")).unwrap();
    restore("8", ("DMA-FQ", "DMA")).unwrap();
    assert_eq!(fs::read_to_string(&kind).unwrap(), "DMA\n");
    for types in [("auto", "DMA"), ("DMA", "../x")] {
        assert_eq!(restore("7", types).unwrap_err().exit_status(), 3);
    }
    let mut used = drive();
    used.usage = vec![crate::host::Usage::Mounted("/srv".into())];
    let error = host.bus.restore_type(ADDRESS, "7", ("DMA-FQ", "DMA"), &[used]).unwrap_err();
    assert_eq!(error.exit_status(), 3);
}
