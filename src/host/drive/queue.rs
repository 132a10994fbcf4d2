//! The block layer's queue of a device.

use std::collections::BTreeMap;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::Serialize;

use crate::host::root::Root;

/// The attributes that knobs set, by the names of the files below `queue/`: the scheduler, and settings.
pub const OF_QUEUES: [&str; 6] =
    ["scheduler", "nr_requests", "wbt_lat_usec", "read_ahead_kb", "nomerges", "rq_affinity"];

/// The block layer's queue of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// The available I/O schedulers.
    pub schedulers: Vec<String>,
    /// Schedulers that the kernel would load on request.
    pub loadable_schedulers: Vec<String>,
    /// The settings that it has, by their names below `queue/`, with their current values.
    pub settings: BTreeMap<String, String>,
    /// Why its settings can't be changed, if they can't.
    pub fixed: Option<String>,
    /// Hardware queues, if reported.
    pub hardware_queues: Option<u64>,
    /// Whether completions can be polled for.
    pub polling: Option<bool>,
}

pub(in crate::host) fn read(root: &Root, dir: &str) -> Queue {
    let text = |path: &str| root.text(&format!("{dir}/queue/{path}"));
    let schedulers = text("scheduler").unwrap_or_default();
    let settings = OF_QUEUES[1..].iter().filter_map(|name| Some(((*name).to_owned(), text(name)?)));
    let queues = root.names(&format!("{dir}/mq")).len() as u64;
    let schedulers: Vec<String> =
        schedulers.split_whitespace().map(|name| name.trim_matches(['[', ']']).into()).collect();
    // A device without queues passes requests on: it schedules none.
    let mut loadable = if queues > 0 { loadable(root) } else { Vec::new() };
    loadable.retain(|name| !schedulers.contains(name));
    Queue {
        schedulers,
        loadable_schedulers: loadable,
        settings: settings.collect(),
        fixed: fixed(root, dir),
        hardware_queues: (queues > 0).then_some(queues),
        polling: text("io_poll").map(|polls| polls == "1"),
    }
}

/// The schedulers among the running kernel's modules: `bfq.ko.xz`, `kyber-iosched.ko`.
fn loadable(root: &Root) -> Vec<String> {
    let release = root.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let modules = root.names(&format!("lib/modules/{release}/kernel/block"));
    let names = modules.iter().filter_map(|module| {
        let (name, _) = module.split_once(".ko")?;
        let name = name.strip_suffix("-iosched").unwrap_or(name);
        ["mq-deadline", "kyber", "bfq"].contains(&name).then(|| name.to_owned())
    });
    names.collect()
}

/// Why its settings can't be changed.
fn fixed(root: &Root, dir: &str) -> Option<String> {
    let path = root.at(&format!("{dir}/queue/nomerges"));
    match accessat(CWD, &path, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => None,
        Err(rustix::io::Errno::NOENT) => Some("it has no queue of requests".to_owned()),
        Err(rustix::io::Errno::ROFS) => Some("/sys is mounted read-only, as in a container".to_owned()),
        Err(_) => Some("changing a queue setting requires root".to_owned()),
    }
}

/// The name in brackets of `none [mq-deadline]`.
pub(in crate::host) fn in_force(line: &str) -> String {
    let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(line, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_force_stands_in_brackets() {
        assert_eq!(in_force("[none] mq-deadline kyber"), "none");
        assert_eq!(in_force("none [mq-deadline]"), "mq-deadline");
        assert_eq!(in_force("none"), "none");
    }
}
