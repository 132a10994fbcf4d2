//! Block devices, from sysfs and udev's links.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::usage;
use crate::host::Device;
use crate::host::drive::pcie;
use crate::host::drive::queue::{self, in_force};
use crate::host::drive::temperature;
use crate::host::nodes::{BlockNode, nodes, udev_properties};
use crate::host::root::{Root, last_part};
use crate::short_list;

/// All devices that hold data: devices of size 0 (empty loop devices, card readers) are left out.
pub(in crate::host) fn read(root: &Root) -> Vec<Device> {
    let nodes = nodes(root);
    let graph = usage::Graph::read(root, &nodes);
    let by_id = by_id_links(root);
    let whole = nodes.iter().filter(|node| node.whole.is_none());
    let devices = whole.filter_map(|node| device(root, node, &nodes, &graph, &by_id));
    devices.collect()
}

fn device(
    root: &Root,
    node: &BlockNode,
    nodes: &[BlockNode],
    graph: &usage::Graph,
    by_id: &BTreeMap<String, Vec<PathBuf>>,
) -> Option<Device> {
    let dir = &node.dir;
    let text = |path: &str| root.text(&format!("{dir}/{path}"));
    let number = |path: &str| root.number(&format!("{dir}/{path}"));
    // sysfs gives sizes in units of 512 bytes, whatever the sector size.
    let size_bytes = number("size")?.saturating_mul(512);
    if size_bytes == 0 {
        return None;
    }
    let udev = udev_properties(root, &node.number);
    let serial = serial(root, dir).or_else(|| udev.get("ID_SERIAL_SHORT").cloned());
    let partitions = nodes.iter().filter(|part| part.whole.as_deref() == Some(&node.name));
    let mut links = by_id.get(&node.name).cloned().unwrap_or_default();
    let namespace = number("nsid");
    short_list::sort_by_key(&mut links, |link| rank(link, serial.as_deref(), namespace));
    Some(Device {
        name: node.name.clone(),
        path: PathBuf::from(format!("/dev/{}", node.name.replace('!', "/"))),
        number: node.number.clone(),
        by_id: links,
        model: model(root, dir),
        serial,
        firmware: text("device/firmware_rev").or_else(|| text("device/rev")),
        size_bytes,
        logical_block_bytes: number("queue/logical_block_size").unwrap_or(512),
        physical_block_bytes: number("queue/physical_block_size").unwrap_or(512),
        volatile_write_cache: match text("queue/write_cache").as_deref() {
            Some("write back") => Some(true),
            Some("write through") => Some(false),
            _ => None,
        },
        rotational: number("queue/rotational") == Some(1),
        read_only: number("ro") == Some(1),
        // A node of -1 means unknown, and does not parse as a number here.
        numa_node: ["device/numa_node", "device/device/numa_node"]
            .iter()
            .find_map(|path| text(path)?.parse().ok()),
        scheduler: text("queue/scheduler").map(|line| in_force(&line)),
        queue: queue::read(root, dir),
        controller: controller(root, dir),
        // For NVMe, the device is the controller, whose own device is the PCI function.
        link: ["device/device", "device"].iter().find_map(|path| pcie::link(root, &format!("{dir}/{path}"))),
        temperature: temperature::read(root, dir),
        health: None,
        lba_formats: None,
        partitions: partitions.map(|part| part.name.clone()).collect(),
        members: graph.members(&node.name),
        usage: graph.usage(&node.name),
    })
}

/// The `NVMe` controller of a device. With multipath, the device is a subsystem with one or more of them.
fn controller(root: &Root, dir: &str) -> Option<String> {
    let is_controller = |name: &String| {
        let digits = name.strip_prefix("nvme").unwrap_or_default();
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    let linked = root.link(&format!("{dir}/device")).as_deref().and_then(last_part);
    linked
        .filter(is_controller)
        .or_else(|| root.names(&format!("{dir}/device")).into_iter().find(is_controller))
}

fn model(root: &Root, dir: &str) -> Option<String> {
    // A loop device is known by its file.
    if let Some(file) = root.text(&format!("{dir}/loop/backing_file")) {
        return Some(file);
    }
    let model =
        ["device/model", "device/name"].iter().find_map(|path| root.text(&format!("{dir}/{path}")))?;
    // SATA drives have "ATA" in place of the vendor.
    match root.text(&format!("{dir}/device/vendor")) {
        Some(vendor) if vendor != "ATA" && !vendor.starts_with("0x") && !model.starts_with(&vendor) => {
            Some(format!("{vendor} {model}"))
        }
        _ => Some(model),
    }
}

fn serial(root: &Root, dir: &str) -> Option<String> {
    let text = |path: &str| root.text(&format!("{dir}/{path}"));
    // NVMe and MMC have it below the device, virtio beside the queue, SCSI on a page of vital product data.
    text("device/serial")
        .or_else(|| text("serial"))
        .or_else(|| vpd_serial(&root.bytes(&format!("{dir}/device/vpd_pg80"))?))
        .or_else(|| text("device/wwid"))
}

/// The serial on SCSI's page 0x80: the last two of the four header bytes are its length.
fn vpd_serial(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = String::from_utf8_lossy(page.get(4..4 + length)?);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// Kernel name to names under `/dev/disk/by-id`.
fn by_id_links(root: &Root) -> BTreeMap<String, Vec<PathBuf>> {
    let mut links: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for name in root.names("dev/disk/by-id") {
        let target = root.link(&format!("dev/disk/by-id/{name}"));
        if let Some(kernel_name) = target.as_deref().and_then(last_part) {
            links.entry(kernel_name).or_default().push(PathBuf::from("/dev/disk/by-id").join(name));
        }
    }
    links
}

/// Names with model and serial come first, bare world-wide numbers last.
///
/// Namespaces of one controller share the name without a namespace suffix, so a name with one is better.
fn rank(link: &std::path::Path, serial: Option<&str>, namespace: Option<u64>) -> (u8, PathBuf) {
    let name = last_part(link).unwrap_or_default();
    let has_serial = serial.is_some_and(|serial| name.contains(&serial.replace(' ', "_")));
    let has_namespace = namespace.is_some_and(|id| name.ends_with(&format!("_{id}")));
    let bare = ["wwn-", "nvme-eui.", "nvme-uuid.", "nvme-nvme.", "scsi-3", "dm-uuid-", "md-uuid-", "lvm-pv-"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    let rank = match (has_serial, has_namespace, bare) {
        (true, true, false) => 0,
        (true, false, false) => 1,
        (false, _, false) => 2,
        (_, _, true) => 3,
    };
    (rank, link.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_serial_of_a_scsi_drive_stands_after_its_header() {
        assert_eq!(vpd_serial(b"\0\x80\0\x08  ZL2ABC").as_deref(), Some("ZL2ABC"));
        assert_eq!(vpd_serial(b"\0\x80\0\x20ZL2ABC"), None);
        assert_eq!(vpd_serial(b"\0"), None);
    }

    #[test]
    fn the_name_with_serial_and_namespace_comes_first() {
        let name = |text: &str| PathBuf::from("/dev/disk/by-id").join(text);
        let mut links = [name("nvme-eui.0025"), name("nvme-X_S1"), name("nvme-X_S1_1"), name("other")];
        links.sort_by_key(|link| rank(link, Some("S1"), Some(1)));
        assert_eq!(links, [name("nvme-X_S1_1"), name("nvme-X_S1"), name("other"), name("nvme-eui.0025")]);
    }

    #[test]
    fn missing_folders_give_no_devices() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(&Root::new(dir.path())).is_empty());
        assert!(read(&Root::new(Path::new("/nonexistent"))).is_empty());
    }
}
