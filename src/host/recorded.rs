//! Facts of another day or host, as a recording has them: only what is shown, and nothing that could be acted on.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::{Cpu, Facts, TargetFacts};
use super::feature::Feature;
use super::storage::Storage;
use super::system::cgroup::CgroupMemory;
use super::system::platform::Platform;

fn not_read() -> Feature {
    Feature::Missing("a recording is shown, and this host was not examined".to_owned())
}

fn text(of: &Value, key: &str) -> Option<String> {
    of[key].as_str().map(str::to_owned)
}

impl Facts {
    /// The name, system, processor and memory in a `host.json` of any version; everything else counts as missing.
    pub fn recorded(host: &Value) -> Self {
        let own = |key: &str| text(host, key).unwrap_or_default();
        let online = host["cpu"]["online"].as_array().into_iter().flatten();
        Self {
            hostname: own("hostname"),
            distribution: own("distribution"),
            kernel: own("kernel"),
            cpu: Cpu {
                model: text(&host["cpu"], "model").unwrap_or_default(),
                online: online.filter_map(|cpu| u32::try_from(cpu.as_u64()?).ok()).collect(),
                nodes: Vec::new(),
                governor: text(&host["cpu"], "governor"),
                mitigations: BTreeMap::new(),
                clocksource: text(&host["cpu"], "clocksource"),
            },
            memory_bytes: host["memory_bytes"].as_u64().unwrap_or(0),
            virtualization: text(host, "virtualization"),
            memlock_bytes: None,
            io_uring: not_read(),
            libaio: not_read(),
            dontcache: not_read(),
            perf: not_read(),
            cgroup_memory: CgroupMemory { version: None, limit: not_read() },
            platform: Platform::default(),
            storage: Storage::default(),
            devices: Vec::new(),
        }
    }
}

impl TargetFacts {
    /// What kind of target a `host.json` of any version names; none if it names none.
    pub fn recorded(host: &Value) -> Option<Self> {
        let target = &host["target"];
        Some(Self {
            devices: target["devices"].as_bool()?,
            medium: text(target, "medium")?,
            direct: not_read(),
            direct_align_bytes: target["direct_align_bytes"].as_u64().unwrap_or(0),
            uncached: not_read(),
            polled: not_read(),
            nvme_commands: not_read(),
            quietly_buffered: text(target, "quietly_buffered"),
            emulated: text(target, "emulated"),
            read_only: true,
            mounted: text(target, "mounted"),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_shown_is_read_back_and_nothing_else_is_there() {
        let host = json!({
            "hostname": "db-7", "kernel": "6.12.0", "memory_bytes": 4096,
            "cpu": { "model": "A processor", "online": [0, 1, 2] },
            "target": { "devices": false, "medium": "xfs", "emulated": "QEMU NVMe Ctrl" },
        });
        let facts = Facts::recorded(&host);
        assert_eq!((&*facts.hostname, &*facts.cpu.model, facts.cpu.online.len()), ("db-7", "A processor", 3));
        assert_eq!((facts.memory_bytes, &*facts.distribution), (4096, ""));
        assert!(facts.io_uring.reason().is_some());
        let target = TargetFacts::recorded(&host).unwrap();
        assert_eq!((&*target.medium, target.emulated.as_deref()), ("xfs", Some("QEMU NVMe Ctrl")));
        assert!(target.read_only && target.direct.reason().is_some());
        for other in [json!(null), json!([]), json!({ "target": null, "cpu": 3, "hostname": {} })] {
            assert_eq!(Facts::recorded(&other).hostname, "");
            assert_eq!(TargetFacts::recorded(&other), None);
        }
    }
}
