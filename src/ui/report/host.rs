//! The facts about the host as text.

use std::fmt::Write as _;

use super::cells::WIDTH;
use crate::host::{
    Array, Controller, Device, Facts, Feature, Health, LbaFormat, LbaFormats, MountPoint, OtherLoad,
    Platform, Program, Spdk, Temperature, Throttled, ToolFound,
};
use crate::printable::Shown as _;
use crate::ui::text::paragraph;
use crate::units::{approx_decimal, approx_size, approx_span};

/// The column in which values begin.
const INDENT: usize = 15;

/// The facts in lines of at most 80 columns, unless a single word is longer.
pub fn describe(facts: &Facts, others: Option<&OtherLoad>) -> String {
    let mut out = String::new();
    row(&mut out, "host", &facts.hostname);
    row(&mut out, "system", &format!("{}, Linux {}", facts.distribution, facts.kernel));
    row(&mut out, "machine", facts.virtualization.as_deref().map_or("hardware", |_| "virtual machine"));
    if let Some(kind) = &facts.virtualization {
        row(&mut out, "hypervisor", kind);
    }
    cpu(&mut out, facts);
    if let Some(others) = others {
        row(&mut out, "other programs", &other_load(others, facts.cpu.online.len()));
    }
    row(&mut out, "memory", &approx_size(facts.memory_bytes));
    let memlock = facts
        .memlock_bytes
        .map_or_else(|| "not limited".to_owned(), |bytes| format!("at most {}", approx_size(bytes)));
    row(&mut out, "locked memory", &memlock);
    for (name, feature) in [
        ("io_uring", &facts.io_uring),
        ("libaio", &facts.libaio),
        ("uncached I/O", &facts.dontcache),
        ("cycle counter", &facts.perf),
    ] {
        let text = match feature {
            Feature::Present => "yes".to_owned(),
            Feature::Missing(reason) => format!("no: {reason}"),
        };
        row(&mut out, name, &text);
    }
    platform(&mut out, facts);
    tools(&mut out, &facts.storage.tools);
    devices(&mut out, &facts.devices);
    facts.storage.controllers.iter().for_each(|one| controller(&mut out, one, &facts.devices));
    facts.storage.arrays.iter().for_each(|one| array(&mut out, one));
    mounts(&mut out, &facts.storage.mounts);
    out
}

/// More names than this do not help.
const PROGRAMS_SHOWN: usize = 4;

/// `1.3 of 2 CPUs busy: rustc 98% (process 812), ld 21% (process 901)`.
fn other_load(load: &OtherLoad, online: usize) -> String {
    let named = |program: &Program| {
        format!("{} {:.0}% (process {})", program.name, 100.0 * program.cpus, program.pid)
    };
    let names: Vec<String> = load.programs.iter().take(PROGRAMS_SHOWN).map(named).collect();
    let colon = if names.is_empty() { "" } else { ": " };
    format!("{:.1} of {online} CPUs busy{colon}{}", load.cpus, names.join(", "))
}

fn platform(out: &mut String, facts: &Facts) {
    let platform = &facts.platform;
    if let Some(operations) = platform.io_uring_operations {
        row(out, "operations", &format!("{operations} supported by io_uring"));
    }
    let cgroups = match (facts.cgroup_memory.version, &facts.cgroup_memory.limit) {
        (Some(version), Feature::Present) => format!("yes, by cgroups of {version}"),
        (_, Feature::Missing(reason)) => format!("no: {reason}"),
        (None, Feature::Present) => "yes".to_owned(),
    };
    row(out, "cache limit", &cgroups);
    if platform.unprivileged {
        row(out, "stacks", "can't be built: root is required");
    }
    if !platform.lacking_drivers.is_empty() {
        row(out, "not in kernel", &platform.lacking_drivers.join(", "));
    }
    let vfio = platform.vfio.reason().map_or("yes".to_owned(), |reason| format!("no: {reason}"));
    row(out, "VFIO", &vfio);
    let iommu = match platform.iommu_groups {
        0 if platform.unsafe_noiommu == Feature::Present => {
            "not in use; VFIO's unsafe mode without one is allowed (io.unsafe_noiommu)".to_owned()
        }
        0 => "not in use".to_owned(),
        groups => format!("{groups} groups"),
    };
    row(out, "IOMMU", &iommu);
    let latency = platform.cpu_latency.reason().map_or("yes".to_owned(), |reason| format!("no: {reason}"));
    row(out, "CPU latency", &latency);
    let pages = &platform.hugepages;
    let text = match pages.total {
        0 => "none set aside".to_owned(),
        total => format!("{total} of {}, {} free", approx_size(pages.size_bytes), pages.free),
    };
    row(out, "huge pages", &text);
    row(out, "SPDK", &spdk(platform));
    if let Some(queues) = facts.storage.nvme_poll_queues {
        let text = match queues {
            0 => "none (the nvme module's parameter poll_queues)".to_owned(),
            queues => queues.to_string(),
        };
        row(out, "poll queues", &text);
    }
}

fn tools(out: &mut String, tools: &[ToolFound]) {
    let (found, missing): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| tool.path.is_some());
    let named = |tool: &&ToolFound| match &tool.version {
        Some(version) => format!("{} {version}", tool.name),
        None => tool.name.clone(),
    };
    let list = |tools: &[&ToolFound], named: &dyn Fn(&&ToolFound) -> String| {
        let names: Vec<String> = tools.iter().map(named).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    row(out, "tools", &list(&found, &named));
    if !missing.is_empty() {
        let text = list(&missing, &|tool| format!("{} (in {})", tool.name, tool.package));
        row(out, "not installed", &text);
    }
}

fn temperature(out: &mut String, temperature: Option<&Temperature>) {
    let Some(Temperature { now_c, warning_c, critical_c }) = temperature else { return };
    let mut text = format!("{now_c:.0} °C");
    for (limit, name) in [(warning_c, "warning"), (critical_c, "critical")] {
        if let Some(limit) = limit {
            let _ = write!(text, ", {name} from {limit:.0} °C");
        }
    }
    row(out, "  temperature", &text);
}

fn health(out: &mut String, health: &Health) {
    let mut parts = vec![
        format!("{}% of endurance used", health.used_percent),
        format!("spare {}%", health.spare_percent),
        format!("{} written", approx_decimal(health.written_bytes)),
    ];
    parts.extend(health.endurance_bytes.map(|bytes| format!("rated for {}", approx_decimal(bytes))));
    parts.extend(health.warnings.iter().map(|warning| format!("warning: {warning}")));
    row(out, "  health", &parts.join(", "));
    let text = match health.throttled {
        Some(Throttled { transitions: [light, heavy], seconds: [light_s, heavy_s] }) => format!(
            "throttled {} times so far, for {}",
            u64::from(light) + u64::from(heavy),
            approx_span(f64::from(light_s) + f64::from(heavy_s))
        ),
        None => "not counted by the drive".to_owned(),
    };
    row(out, "  throttling", &text);
}

fn controller(out: &mut String, controller: &Controller, devices: &[Device]) {
    out.push('\n');
    let parts = [&controller.model, &controller.transport, &controller.address, &controller.state];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    row(out, &controller.name, &parts.join(", "));
    if let Some(link) = &controller.link {
        row(out, "  link", &link.to_string());
    }
    if let Some(kind) = &controller.iommu {
        let mode = match kind.as_str() {
            "DMA" => "strict",
            "DMA-FQ" => "lazy",
            "identity" => "passthrough",
            other => other,
        };
        row(out, "  IOMMU", &format!("{mode} ({kind})"));
    }
    temperature(out, controller.temperature.as_ref());
    let own = devices.iter().filter(|device| device.controller.as_ref() == Some(&controller.name));
    let own: Vec<&str> = own.map(|device| device.name.as_str()).collect();
    if !own.is_empty() {
        row(out, "  devices", &own.join(", "));
    }
}

fn array(out: &mut String, array: &Array) {
    out.push('\n');
    let chunk = array.chunk_bytes.map(|bytes| format!("chunks of {}", approx_size(bytes)));
    let parts = [array.level.clone(), array.state.clone(), chunk];
    row(out, &array.name, &parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    let members = array.members.iter().map(|member| format!("{} ({})", member.name, member.state));
    row(out, "  members", &members.collect::<Vec<_>>().join(", "));
    if array.degraded > 0 {
        row(out, "  degraded", &format!("{} missing", array.degraded));
    }
    if let Some(action) = array.sync_action.as_deref().filter(|action| *action != "idle") {
        let share = array.sync_sectors.filter(|(_, all)| *all > 0);
        let share = share.map(|(done, all)| format!(", {:.0}%", 100.0 * done as f64 / all as f64));
        row(out, "  doing", &format!("{action}{}", share.unwrap_or_default()));
    }
}

/// Beyond this number (on container hosts) mounts are only counted.
const MOUNTS_SHOWN: usize = 16;

fn mounts(out: &mut String, mounts: &[MountPoint]) {
    if !mounts.is_empty() {
        out.push('\n');
    }
    for (at, mount) in mounts.iter().take(MOUNTS_SHOWN).enumerate() {
        let text = format!("{} on {}, {}", mount.source, mount.dir, mount.filesystem);
        row(out, if at == 0 { "mounts" } else { "" }, &text);
    }
    if mounts.len() > MOUNTS_SHOWN {
        row(out, "", &format!("and {} more", mounts.len() - MOUNTS_SHOWN));
    }
}

fn cpu(out: &mut String, facts: &Facts) {
    let cpu = &facts.cpu;
    let nodes = match cpu.nodes.len() {
        0 | 1 => String::new(),
        nodes => format!(" on {nodes} NUMA nodes"),
    };
    row(out, "processor", &format!("{}, {} CPUs online{nodes}", cpu.model, cpu.online.len()));
    if let Some(governor) = &cpu.governor {
        row(out, "governor", governor);
    }
    if let Some(clock) = &cpu.clocksource {
        row(out, "clock source", clock);
    }
    let active: Vec<&str> = cpu
        .mitigations
        .iter()
        .filter(|(_, state)| state.starts_with("Mitigation"))
        .map(|(name, _)| name.as_str())
        .collect();
    let text = if active.is_empty() { "none in force".to_owned() } else { active.join(", ") };
    row(out, "mitigations", &text);
}

fn devices(out: &mut String, devices: &[Device]) {
    if devices.is_empty() {
        row(out, "devices", "none found");
    }
    for device in devices {
        out.push('\n');
        let cache = match device.volatile_write_cache {
            Some(true) => ", volatile write cache",
            Some(false) => ", no volatile write cache",
            None => "",
        };
        // The queue of a virtual disk or a file can't say what is behind it: the kernel calls most rotational.
        let is_named = |begins: &str| device.path.to_string_lossy().starts_with(begins);
        let is_loop = is_named("/dev/loop");
        let kind = match () {
            () if is_loop => ", loop device",
            () if is_named("/dev/vd") || is_named("/dev/xvd") => ", virtual",
            () if device.rotational => ", rotational",
            () => "",
        };
        let physical = match device.physical_block_bytes {
            bytes if bytes > device.logical_block_bytes => format!(" ({} physical)", approx_size(bytes)),
            _ => String::new(),
        };
        let text = format!(
            "{}, sectors of {} B{physical}{cache}{kind}",
            approx_size(device.size_bytes),
            device.logical_block_bytes
        );
        row(out, &device.path.shown(), &text);
        let model = if is_loop { "lies in" } else { "model" };
        let named = [(model, &device.model), ("serial", &device.serial), ("firmware", &device.firmware)];
        for (name, value) in named {
            if let Some(value) = value {
                row(out, &format!("  {name}"), value);
            }
        }
        if let Some(link) = device.by_id.first() {
            row(out, "  named", &link.shown());
        }
        queue(out, device);
        if let Some(link) = &device.link {
            row(out, "  link", &link.to_string());
        }
        if let Some(formats) = &device.lba_formats {
            row(out, "  LBA formats", &lba_formats(formats));
        }
        temperature(out, device.temperature.as_ref());
        if let Some(reported) = &device.health {
            health(out, reported);
        }
        if device.read_only {
            row(out, "  state", "read-only");
        }
        if !device.members.is_empty() {
            row(out, "  built on", &device.members.join(", "));
        }
        uses(out, device);
    }
}

/// `512 B (in use), 4096 B`: those without metadata, which `stack.lba_size` can give it.
fn lba_formats(formats: &LbaFormats) -> String {
    let plain = formats.formats.iter().filter(|format| format.metadata_bytes == 0);
    let text = |format: &LbaFormat| {
        let in_use = if format.index == formats.current { " (in use)" } else { "" };
        format!("{} B{in_use}", format.block_bytes)
    };
    let list = plain.map(text).collect::<Vec<_>>().join(", ");
    if formats.can_format { list } else { format!("{list}; its controller formats nothing") }
}

fn queue(out: &mut String, device: &Device) {
    let queues = device.queue.hardware_queues.map(|queues| match queues {
        1 => "1 hardware queue".to_owned(),
        queues => format!("{queues} hardware queues"),
    });
    let polling = device.queue.polling.filter(|polls| *polls).map(|_| "supports polling".into());
    let node = device.numa_node.map(|node| format!("NUMA node {node}"));
    let scheduler = device.scheduler.as_ref().map(|name| format!("scheduler {name}"));
    let parts: Vec<String> = [scheduler, queues, polling, node].into_iter().flatten().collect();
    if !parts.is_empty() {
        row(out, "  queue", &parts.join(", "));
    }
}

/// Beyond this number (a container host's mounts) the uses of a device are only counted.
const USES_SHOWN: usize = 8;

fn uses(out: &mut String, device: &Device) {
    if device.usage.is_empty() {
        row(out, "  used by", "free");
    }
    for (at, usage) in device.usage.iter().take(USES_SHOWN).enumerate() {
        row(out, if at == 0 { "  used by" } else { "" }, &usage.to_string());
    }
    if device.usage.len() > USES_SHOWN {
        row(out, "", &format!("and {} more", device.usage.len() - USES_SHOWN));
    }
}

/// A name and its value; the value's further lines are indented below the first.
fn row(out: &mut String, name: &str, value: &str) {
    let name = format!("{name:<0$} ", INDENT - 1);
    let value = paragraph(value, WIDTH.saturating_sub(name.chars().count()), "");
    for (at, line) in value.split('\n').enumerate() {
        let before = if at == 0 { name.clone() } else { " ".repeat(INDENT) };
        let _ = writeln!(out, "{}", format!("{before}{line}").trim_end());
    }
}

/// The SPDK that this program was built with, and what is missing to use it.
fn spdk(platform: &Platform) -> String {
    let Spdk { built, usable } = &platform.spdk;
    let Some(built) = built else {
        return format!("no: {}", usable.reason().unwrap_or(crate::host::system::spdk::HOW_TO_GET));
    };
    let missing: Vec<&str> = [usable, &platform.vfio].into_iter().filter_map(Feature::reason).collect();
    match missing.as_slice() {
        [] => format!("yes: {built}"),
        missing => format!("{built}; not usable yet: {}", missing.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spdk_is_reported_with_its_version_or_with_how_to_get_it() {
        let mut platform = Platform::default();
        assert!(spdk(&platform).contains("--features spdk"));
        platform.spdk =
            Spdk { built: Some("SPDK v24.01, DPDK 23.11.0".to_owned()), usable: Feature::Present };
        let words = spdk(&platform);
        assert!(
            words.starts_with("SPDK v24.01, DPDK 23.11.0; not usable yet: ")
                && words.contains("not looked for")
        );
        platform.vfio = Feature::Present;
        assert_eq!(spdk(&platform), "yes: SPDK v24.01, DPDK 23.11.0");
    }
}
