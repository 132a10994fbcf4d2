//! Attributes of drives' queues and of md arrays that knobs set, watched for changes.
//!
//! Reading one may block: while somebody changes a queue's scheduler, the kernel holds a lock of that queue until
//! its I/O has drained, which on a drive that hangs takes until its commands time out. The window then ends late.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::drive::queue::{OF_QUEUES, in_force};

/// The attributes of an md array, by the names of their files.
pub const OF_ARRAYS: [&str; 4] =
    ["group_thread_cnt", "stripe_cache_size", "sync_speed_max", "sync_speed_min"];

/// Reads attributes repeatedly.
#[derive(Debug, Default)]
pub struct AttributeWatch(Vec<Known>);

/// An attribute as it was at the last look.
#[derive(Debug)]
struct Known {
    file: PathBuf,
    device: String,
    knob: String,
    value: String,
}

/// An attribute that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeChange {
    /// The kernel's name of the drive or the array.
    pub device: String,
    /// The knob that turns it (`queue.scheduler`).
    pub knob: String,
    /// Its value at the previous look, and at this one.
    pub values: [String; 2],
}

impl AttributeWatch {
    /// Starts watching these drives and arrays, by the kernel's names, as they are now; under a root (`/`).
    pub fn open(root: &Path, drives: &[&str], arrays: &[&str]) -> Self {
        let mut watch = Self::default();
        for (devices, folder, attributes) in
            [(drives, "queue", OF_QUEUES.as_slice()), (arrays, "md", OF_ARRAYS.as_slice())]
        {
            for device in devices {
                let at = root.join("sys/block").join(device).join(folder);
                for attribute in attributes {
                    let file = at.join(attribute);
                    // Most devices lack some.
                    if let Some(value) = read(&file) {
                        let knob = format!("{folder}.{attribute}");
                        watch.0.push(Known { file, device: (*device).to_owned(), knob, value });
                    }
                }
            }
        }
        watch
    }

    /// What has changed since the last look. Devices that are gone are left out.
    pub fn changes(&mut self) -> Vec<AttributeChange> {
        let mut changes = Vec::new();
        for known in &mut self.0 {
            let Some(value) = read(&known.file).filter(|value| *value != known.value) else { continue };
            let before = std::mem::replace(&mut known.value, value.clone());
            let Known { device, knob, .. } = known;
            let (device, knob) = (device.clone(), knob.clone());
            changes.push(AttributeChange { device, knob, values: [before, value] });
        }
        changes
    }
}

fn read(file: &Path) -> Option<String> {
    // A scheduler that was loaded meanwhile is another choice, but is not in force.
    fs::read_to_string(file).ok().map(|text| in_force(text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_changes_is_reported_once_from_what_to_what() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join("sys/block").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("nvme0n1/queue/scheduler", "[none] mq-deadline\n");
        write("nvme0n1/queue/nr_requests", "1023\n");
        write("nvme0n1/queue/zoned", "none\n");
        write("md0/md/sync_speed_min", "1000 (system)\n");
        let mut watch = AttributeWatch::open(dir.path(), &["nvme0n1", "gone"], &["md0", "8d12"]);
        assert_eq!(watch.changes(), []);
        write("nvme0n1/queue/scheduler", "[none] mq-deadline bfq\n");
        write("nvme0n1/queue/zoned", "host-managed\n");
        assert_eq!(watch.changes(), [], "a choice more, and what no knob turns");
        write("nvme0n1/queue/scheduler", "none mq-deadline [bfq]\n");
        write("md0/md/sync_speed_min", "5000 (local)\n");
        let change = |device: &str, knob: &str, values: [&str; 2]| AttributeChange {
            device: device.to_owned(),
            knob: knob.to_owned(),
            values: values.map(str::to_owned),
        };
        let found = watch.changes();
        assert_eq!(
            found,
            [
                change("nvme0n1", "queue.scheduler", ["none", "bfq"]),
                change("md0", "md.sync_speed_min", ["1000 (system)", "5000 (local)"]),
            ]
        );
        fs::remove_dir_all(dir.path().join("sys/block/nvme0n1")).unwrap();
        assert_eq!(watch.changes(), []);
    }
}
