//! The knobs of `[target]`: where the data is.

use super::spec::{PLAIN, Scope, Spec, always};
use super::value::{Kind, Value};
use crate::settings::values::Settings;
use crate::units::{GIB, MIB};

pub(super) const TARGET: &[Spec] = &[
    Spec {
        key: "files.dir",
        help: "Folder of the data files, created by stacktune and used by nothing else. `~/.cache` is the user's cache folder: $XDG_CACHE_HOME if set.",
        kind: Kind::Text("a path"),
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| on_devices(s),
        unavailable: |v, s, _, _| {
            let nowhere = s.target.devices.is_empty() && *v == Value::Text(String::new());
            nowhere.then(|| "it does not name a folder".into())
        },
        ..at!(Text, |s, c| s.target.dir)
    },
    Spec {
        key: "files.count",
        help: "Number of data files; pages are interleaved over them.",
        kind: Kind::Int { min: 1, max: 64, steps: &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64] },
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| on_devices(s),
        ..at!(Int, |s, c| s.target.count)
    },
    Spec {
        key: "files.size",
        help: "Size of each data file; a WAL file of a quarter of their total is added.",
        kind: Kind::Size {
            min: 16 * MIB,
            max: 16 << 40,
            multiple: MIB,
            power_of_two: false,
            optional: false,
            steps: &[64 * MIB, 256 * MIB, GIB, 4 * GIB, 16 * GIB, 64 * GIB, 100 * GIB, 256 * GIB],
        },
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| on_devices(s),
        ..at!(some Size, |s, c| s.target.size_bytes)
    },
    Spec {
        key: "devices",
        help: "Block devices to run on, by their names under /dev/disk/by-id; what is on them is destroyed.",
        kind: Kind::List("a list of devices"),
        scope: Scope::Rebuild,
        of_target: always,
        set: |s, _, value| {
            if let Value::List(devices) = value
                && devices != s.target.devices
            {
                // The recorded serials belong to the earlier devices.
                s.target.serials.clear();
                s.target.devices = devices;
            }
        },
        ..at!(List, |s, c| s.target.devices)
    },
    Spec {
        key: "serials",
        help: "The serial numbers that the devices must have, in the same order.",
        kind: Kind::List("a list of serial numbers"),
        scope: Scope::Rebuild,
        of_target: always,
        inactive: |s, _| s.target.devices.is_empty().then_some("the target is files"),
        unavailable: |_, s, _, _| s.target.serials_mismatch(),
        ..at!(List, |s, c| s.target.serials)
    },
];

fn on_devices(settings: &Settings) -> Option<&'static str> {
    (!settings.target.devices.is_empty()).then_some("the target is devices")
}
