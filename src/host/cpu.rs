//! The processor, and what kind of machine it belongs to. Read by hand, as sysinfo can't read from another root
//! folder and knows neither nodes nor hypervisors.

use std::collections::BTreeMap;

use super::root::{Root, cpu_list};
use super::{Cpu, Node};
use crate::short_list;

pub(super) fn read(root: &Root) -> Cpu {
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    let mut online = cpu_list(&root.text("sys/devices/system/cpu/online").unwrap_or_default());
    if online.is_empty() {
        online = cpuinfo_values(&cpuinfo, "processor").filter_map(|text| text.parse().ok()).collect();
    }
    let model = ["model name", "Model", "cpu", "uarch"]
        .iter()
        .find_map(|key| cpuinfo_values(&cpuinfo, key).next())
        .unwrap_or("unknown");
    Cpu {
        model: model.to_owned(),
        governor: governor(root, &online),
        online,
        nodes: nodes(root),
        mitigations: mitigations(root),
        clocksource: root.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }
}

/// The values of a key in `/proc/cpuinfo`, one per processor.
fn cpuinfo_values<'a>(cpuinfo: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    cpuinfo.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim()).filter(|value| !value.is_empty())
    })
}

/// The governors in force; more than one where CPUs differ.
fn governor(root: &Root, online: &[u32]) -> Option<String> {
    let mut governors: Vec<String> = online
        .iter()
        .filter_map(|cpu| root.text(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")))
        .collect();
    governors.sort();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(", "))
}

fn nodes(root: &Root) -> Vec<Node> {
    let folder = "sys/devices/system/node";
    let mut nodes: Vec<Node> = root
        .names(folder)
        .iter()
        .filter_map(|name| {
            let id = name.strip_prefix("node")?.parse().ok()?;
            let cpus = cpu_list(&root.text(&format!("{folder}/{name}/cpulist")).unwrap_or_default());
            Some(Node { id, cpus })
        })
        .collect();
    short_list::sort_by_key(&mut nodes, |node| node.id);
    nodes
}

fn mitigations(root: &Root) -> BTreeMap<String, String> {
    let folder = "sys/devices/system/cpu/vulnerabilities";
    let names = root.names(folder).into_iter();
    names.filter_map(|name| Some((name.clone(), root.text(&format!("{folder}/{name}"))?))).collect()
}

/// Names in the DMI tables that identify hypervisors.
const HYPERVISORS: [(&str, &str); 12] = [
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("microsoft corporation", "Hyper-V"),
    ("amazon ec2", "Amazon EC2"),
    ("google", "Google Compute Engine"),
    ("xen", "Xen"),
    ("parallels", "Parallels"),
    ("bhyve", "bhyve"),
    ("apple virtualization", "Apple Virtualization"),
    ("kvm", "KVM"),
    ("qemu", "QEMU"),
];

/// The kind of virtual machine; none on hardware.
pub(super) fn virtualization(root: &Root) -> Option<String> {
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    let x86 = cpuinfo_values(&cpuinfo, "flags").next();
    // Drives and boards of real machines carry such vendors' names too: on x86 the flag decides.
    if x86.is_some_and(|flags| !flags.split_whitespace().any(|flag| flag == "hypervisor")) {
        return None;
    }
    let dmi: String = ["sys_vendor", "product_name", "board_vendor", "bios_vendor"]
        .iter()
        .filter_map(|name| root.text(&format!("sys/class/dmi/id/{name}")))
        .collect::<Vec<_>>()
        .join("\n")
        .to_lowercase();
    if let Some((_, name)) = HYPERVISORS.iter().find(|(sign, _)| dmi.contains(sign)) {
        // Only x86 has the flag: elsewhere, the name of an EC2 machine says whether it is bare metal.
        return (x86.is_some() || !dmi.contains(".metal")).then(|| (*name).to_owned());
    }
    root.text("sys/hypervisor/type")
        .or_else(|| root.text("proc/device-tree/hypervisor/compatible"))
        .or_else(|| x86.map(|_| "unidentified hypervisor".to_owned()))
}
