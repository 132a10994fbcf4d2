//! The facts as text to read.

use std::fmt::Write as _;

use super::{Device, Facts, Feature, Usage};
use crate::units::approx_size;

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Where values begin.
const INDENT: usize = 15;

/// The facts in lines of at most 80 columns, unless a single word is longer.
pub fn describe(facts: &Facts) -> String {
    let mut out = String::new();
    row(&mut out, "host", &facts.hostname);
    row(&mut out, "system", &format!("{}, Linux {}", facts.distribution, facts.kernel));
    row(&mut out, "machine", facts.virtualization.as_deref().map_or("hardware", |_| "virtual machine"));
    if let Some(kind) = &facts.virtualization {
        row(&mut out, "hypervisor", kind);
    }
    cpu(&mut out, facts);
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
    devices(&mut out, &facts.devices);
    out
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
        row(out, "devices", "none to be seen");
    }
    for device in devices {
        out.push('\n');
        let cache = match device.volatile_write_cache {
            Some(true) => ", volatile write cache",
            Some(false) => ", no volatile write cache",
            None => "",
        };
        let kind = if device.rotational { ", rotational" } else { "" };
        let text = format!(
            "{}, sectors of {} B{cache}{kind}",
            approx_size(device.size_bytes),
            device.logical_block_bytes
        );
        row(out, &device.path.display().to_string(), &text);
        let named = [("model", &device.model), ("serial", &device.serial), ("firmware", &device.firmware)];
        for (name, value) in named {
            if let Some(value) = value {
                row(out, &format!("  {name}"), value);
            }
        }
        if let Some(link) = device.by_id.first() {
            row(out, "  named", &link.display().to_string());
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

/// More uses than this of one device (a container host's mounts) are only counted.
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

/// A name and its value, the value folded at spaces.
fn row(out: &mut String, name: &str, value: &str) {
    let mut line = format!("{name:<INDENT$}");
    if name.chars().count() >= INDENT {
        line.push(' ');
    }
    let mut begun = false;
    for word in value.split(' ') {
        if begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(INDENT);
            begun = false;
        }
        if begun {
            line.push(' ');
        }
        line.push_str(word);
        begun = true;
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Usage::System(at) => write!(f, "the system's own drive: holds {at}"),
            Usage::Mounted(at) => write!(f, "mounted at {at}"),
            Usage::Swap(path) => write!(f, "swapped on: {path}"),
            Usage::Holder(name) => write!(f, "part of {name}"),
            Usage::Member(of) => write!(f, "a member of {of} by its signature"),
            Usage::Exported(by) => write!(f, "exported by {by}"),
            Usage::Reserved(how) => write!(f, "NVMe-reserved: {how}"),
            Usage::Claimed(by) => write!(f, "{by}"),
        }
    }
}
