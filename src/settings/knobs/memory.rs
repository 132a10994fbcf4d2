//! Memory that settings need, compared with what the host allows.

use super::spec::{Conditions, missing};
use super::value::Value;
use crate::class::Class;
use crate::host::kernel_version;
use crate::settings::interface::Interface;
use crate::settings::values::Settings;
use crate::units::format_size;

/// Bytes of the buffers of the enabled classes on the selected interfaces.
fn buffers_bytes(s: &Settings, on: impl Fn(Interface) -> bool) -> u64 {
    let classes = Class::ALL.iter().filter(|&&class| s.classes[class.index()].enabled);
    let buffers = classes.filter(|&&class| on(s.interface_of(class))).map(|&class| {
        let own = &s.classes[class.index()];
        own.threads * own.depth * s.page_size_bytes_of(class)
    });
    buffers.sum()
}

pub(super) fn cache_limit_unavailable(
    value: &Value,
    s: &Settings,
    _: Class,
    conditions: Conditions,
) -> Option<String> {
    let Value::Size(Some(limit)) = value else { return None };
    // Beyond half the limit, the kernel would kill the process rather than drop cached pages.
    let buffers = buffers_bytes(s, |_| true);
    missing(&conditions.facts.cgroup_memory.limit).or_else(|| {
        (buffers > limit / 2).then(|| format!("the buffers alone need {} of it", format_size(buffers)))
    })
}

/// Bytes of locked memory that the kernel charges for rings, if all enabled classes had them: up to Linux
/// 5.11, and from 6.14 on, it charges them like registered buffers.
fn rings_bytes(s: &Settings, conditions: Conditions) -> u64 {
    const PAGE: u64 = 4096;
    let counted =
        kernel_version(&conditions.facts.kernel).is_some_and(|of| !((5, 12)..(6, 14)).contains(&of));
    let classes = Class::ALL.iter().filter(|class| counted && s.classes[class.index()].enabled);
    let rings = classes.map(|class| {
        let own = &s.classes[class.index()];
        // The WAL needs one more entry for the flush of each file.
        let flushes = if *class == Class::Wal { s.target.devices.len().max(1) as u64 } else { 0 };
        let entries = (own.depth + flushes).next_power_of_two();
        // A head, two completions and a number for each entry; the entries themselves.
        let ring = [320 + entries * (2 * 16 + 4), entries * 64];
        own.threads * ring.iter().map(|bytes| bytes.next_multiple_of(PAGE)).sum::<u64>()
    });
    rings.sum()
}

pub(super) fn rings_unavailable(s: &Settings, conditions: Conditions) -> Option<String> {
    let limit = conditions.facts.memlock_bytes?;
    let rings = rings_bytes(s, conditions);
    (rings > limit).then(|| {
        format!(
            "its rings need {}, but RLIMIT_MEMLOCK is {}: raise it (ulimit -l)",
            format_size(rings),
            format_size(limit)
        )
    })
}

pub(super) fn memlock_unavailable(
    value: &Value,
    s: &Settings,
    _: Class,
    conditions: Conditions,
) -> Option<String> {
    let limit = conditions.facts.memlock_bytes?;
    if *value != Value::Bool(true) {
        return None;
    }
    let buffers = buffers_bytes(s, Interface::has_rings);
    let locked = if buffers > 0 { buffers + rings_bytes(s, conditions) } else { 0 };
    (locked > limit).then(|| {
        format!(
            "buffers and rings need {}, but RLIMIT_MEMLOCK is {}: raise it (ulimit -l) or turn this off",
            format_size(locked),
            format_size(limit)
        )
    })
}
