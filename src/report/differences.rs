//! In what the hosts and the settings of recordings differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::record::Recording;
use crate::units::approx_size;

/// Something that is not the same in all recordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What: a fact about the host, or a setting's key.
    pub what: String,
    /// Its value in each recording; none where the recording does not say.
    pub values: Vec<Option<String>>,
}

/// All differences: the hosts first, then the settings.
pub fn differences(recordings: &[Recording]) -> Vec<Difference> {
    let hosts: Vec<_> = recordings.iter().map(host).collect();
    let settings: Vec<_> = recordings.iter().map(settings).collect();
    let order = hosts.iter().flatten().map(|(what, _)| *what).fold(Vec::new(), |mut order, what| {
        if !order.contains(&what) {
            order.push(what);
        }
        order
    });
    let keys: BTreeSet<_> = settings.iter().flat_map(BTreeMap::keys).cloned().collect();
    let of_hosts = order.into_iter().map(|what| Difference {
        what: what.to_owned(),
        values: hosts.iter().map(|host| find(host, what)).collect(),
    });
    let of_settings = keys.into_iter().map(|key| Difference {
        values: settings.iter().map(|settings| settings.get(&key).cloned()).collect(),
        what: key,
    });
    of_hosts.chain(of_settings).filter(|d| d.values.iter().any(|value| *value != d.values[0])).collect()
}

fn find(host: &[(&str, Option<String>)], what: &str) -> Option<String> {
    host.iter().find(|(name, _)| *name == what).and_then(|(_, value)| value.clone())
}

/// What of a host bears on the figures.
fn host(recording: &Recording) -> Vec<(&'static str, Option<String>)> {
    let at = |path: &str| recording.host.pointer(path).filter(|value| !value.is_null());
    let text = |path: &str| at(path).and_then(Value::as_str).map(String::from);
    let mitigations = at("/cpu/mitigations").and_then(Value::as_object).map(|all| {
        let all = all.iter().map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or("?")));
        all.collect::<Vec<_>>().join("; ")
    });
    let window_ns = recording.windows.iter().map(|window| window.duration_ns).max();
    vec![
        ("stacktune", Some(recording.summary.stacktune.clone())),
        ("host", text("/hostname")),
        ("distribution", text("/distribution")),
        ("kernel", text("/kernel")),
        ("virtualization", text("/virtualization")),
        ("CPU", text("/cpu/model")),
        ("CPUs online", at("/cpu/online").and_then(Value::as_array).map(|cpus| cpus.len().to_string())),
        ("governor", text("/cpu/governor")),
        ("mitigations", mitigations),
        ("clock source", text("/cpu/clocksource")),
        ("memory", at("/memory_bytes").and_then(Value::as_u64).map(approx_size)),
        ("drives", at("/devices").and_then(Value::as_array).map(|drives| drives_text(drives))),
        ("medium", text("/target/medium")),
        // Windows are never exactly as long as asked for.
        ("window", window_ns.map(|ns| format!("{:.1}s", ns as f64 / 1e9))),
    ]
}

fn drives_text(drives: &[Value]) -> String {
    let drive = |drive: &Value| {
        let parts = ["name", "model", "firmware"].map(|key| drive[key].as_str());
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    drives.iter().map(drive).collect::<Vec<_>>().join("; ")
}

/// The profile's keys and values, but for its name and description.
fn settings(recording: &Recording) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    if let Ok(table) = recording.profile_toml.parse::<toml::Table>() {
        flatten("", &table, &mut out);
    }
    out.remove("name");
    out.remove("about");
    out
}

fn flatten(prefix: &str, table: &toml::Table, out: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        match value {
            toml::Value::Table(table) => flatten(&format!("{prefix}{key}."), table, out),
            toml::Value::String(text) => {
                out.insert(format!("{prefix}{key}"), text.clone());
            }
            other => {
                out.insert(format!("{prefix}{key}"), other.to_string());
            }
        }
    }
}

/// Whether commits of this recording were not made durable.
pub fn is_not_durable(recording: &Recording) -> bool {
    settings(recording).get("wal.sync").is_some_and(|sync| sync == "none")
}
