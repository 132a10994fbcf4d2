//! Every knob's definition: key, help, what it accepts, when it can't be chosen.

use std::time::Duration;

use super::kv;
use super::polling::POLLING;
use super::spec::{Named, PLAIN, names};
use super::stack::{BACKGROUND, QUEUE, STACK};
use super::value::{Kind, NONE, Value};
use super::{Ground, Scope, Spec};
use crate::class::Class;
use crate::host::{Feature, kernel_version};
use crate::settings::interface::{Interface, Path};
use crate::settings::values::{PAGE_SIZE_BYTES_MAX, PAGE_SIZE_BYTES_MIN};
use crate::settings::{
    Arrival, Buffering, Completion, Cpus, Offsets, QueueSettings, Settings, SimDevice, Sync,
};
use crate::units::{GIB, MIB, format_size};

/// Prefix, class and knobs of each of the profile's tables.
pub(super) const SECTIONS: &[(&str, Option<Class>, &[Spec])] = &[
    ("target", None, TARGET),
    ("stack", None, STACK),
    ("load", None, kv::LOAD),
    ("kv", None, kv::PAIRS),
    ("rocksdb", None, kv::ROCKSDB),
    ("io", None, IO),
    ("io", None, POLLING),
    ("scan", Some(Class::Scan), CLASS),
    ("scan", Some(Class::Scan), RANDOM),
    ("scan", Some(Class::Scan), kv::SCAN),
    ("point", Some(Class::Point), CLASS),
    ("point", Some(Class::Point), RANDOM),
    ("point", Some(Class::Point), kv::POINT),
    ("wal", Some(Class::Wal), CLASS),
    ("wal", Some(Class::Wal), WAL),
    ("wal", Some(Class::Wal), kv::WAL),
    ("background", Some(Class::Background), CLASS),
    ("background", Some(Class::Background), RANDOM),
    ("background", Some(Class::Background), BACKGROUND),
    ("background", Some(Class::Background), kv::BACKGROUND),
    ("queue", None, QUEUE),
    ("run", None, RUN),
    ("sim", None, SIM),
];

const POWERS_TO_1024: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const RATES: &[u64] = &[
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    150_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];
/// From a SATA drive to the newest NVMe drives.
const DRIVE_RATES: &[u64] = &[
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    3_000_000_000,
    5_000_000_000,
    7_000_000_000,
    10_000_000_000,
    14_000_000_000,
];
const PAGE_SIZES: &[u64] = &[
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
];
const PAGE_SIZE: Kind = Kind::Size {
    min: PAGE_SIZE_BYTES_MIN,
    max: PAGE_SIZE_BYTES_MAX,
    multiple: PAGE_SIZE_BYTES_MIN,
    power_of_two: true,
    optional: false,
    steps: PAGE_SIZES,
};
const INTERFACES: Kind = Kind::Choice(&names::<Interface, { Interface::COUNT }>());
const BUFFERINGS: Kind = Kind::Choice(&names::<Buffering, 3>());

const TARGET: &[Spec] = &[
    Spec {
        key: "files.dir",
        help: "The folder of the files, made by stacktune and used by nothing else. `~/.cache` is the user's cache folder: $XDG_CACHE_HOME where that is set.",
        kind: Kind::Text,
        scope: Scope::Rebuild,
        inactive: |s, _| on_devices(s),
        unavailable: |v, s, _, _| {
            let nowhere = s.target.devices.is_empty() && *v == Value::Text(String::new());
            nowhere.then(|| "it names no folder".into())
        },
        ..at!(Text, |s, c| s.target.dir)
    },
    Spec {
        key: "files.count",
        help: "How many data files; pages are interleaved over them.",
        kind: Kind::Int { min: 1, max: 64, steps: &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64] },
        scope: Scope::Rebuild,
        inactive: |s, _| on_devices(s),
        ..at!(Int, |s, c| s.target.count)
    },
    Spec {
        key: "files.size",
        help: "Bytes of each data file; a WAL file of a quarter of their sum comes on top.",
        kind: Kind::Size {
            min: 16 * MIB,
            max: 16 << 40,
            multiple: MIB,
            power_of_two: false,
            optional: false,
            steps: &[64 * MIB, 256 * MIB, GIB, 4 * GIB, 16 * GIB, 64 * GIB, 100 * GIB, 256 * GIB],
        },
        scope: Scope::Rebuild,
        inactive: |s, _| on_devices(s),
        ..at!(some Size, |s, c| s.target.size_bytes)
    },
    Spec {
        key: "devices",
        help: "Block devices to run on, by their names under /dev/disk/by-id; what is on them is destroyed.",
        kind: Kind::List,
        scope: Scope::Rebuild,
        set: |s, _, value| {
            if let Value::List(devices) = value
                && devices != s.target.devices
            {
                // The recorded serials belong to the devices that were named before.
                s.target.serials.clear();
                s.target.devices = devices;
            }
        },
        ..at!(List, |s, c| s.target.devices)
    },
    Spec {
        key: "serials",
        help: "The serial numbers that the devices must have, in the same order.",
        kind: Kind::List,
        scope: Scope::Rebuild,
        inactive: |s, _| s.target.devices.is_empty().then_some("the target is files"),
        unavailable: |_, s, _, _| s.target.serials_mismatch(),
        ..at!(List, |s, c| s.target.serials)
    },
];

fn on_devices(settings: &Settings) -> Option<&'static str> {
    (!settings.target.devices.is_empty()).then_some("the target is devices")
}

const IO: &[Spec] = &[
    Spec {
        key: "interface",
        help: "The way of I/O into the kernel: the default of all classes.",
        paper: Some(
            "Asynchronous I/O lets one thread keep 128 requests in flight; 128 threads of pread cost ten cycles a byte (4.3).",
        ),
        kind: INTERFACES,
        unavailable: interface_unavailable,
        ..at!(named Interface, |s, c| s.io.interface)
    },
    Spec {
        key: "buffering",
        help: "The page cache, past it, or through it and out again: the default of all classes.",
        paper: Some(
            "Past the page cache the whole load costs 1.01 cycles a byte instead of 7.61 (4.3, Table 2).",
        ),
        kind: BUFFERINGS,
        inactive: |s, _| {
            s.leaves_kernel().then_some("the kernel's page cache is not there without the kernel")
        },
        unavailable: buffering_unavailable,
        ..at!(named Buffering, |s, c| s.io.buffering)
    },
    Spec {
        key: "page_size",
        help: "Bytes of a page: the default of all classes.",
        paper: Some(
            "64 KiB pages read nearly the full bandwidth at the least CPU, but with 57% more latency than 16 KiB (4.5, Figure 3).",
        ),
        kind: PAGE_SIZE,
        unavailable: page_size_unavailable,
        ..at!(some Size, |s, c| s.io.page_size_bytes)
    },
    Spec {
        key: "registered_buffers",
        help: "Register the buffers with the ring once, instead of mapping them for every I/O.",
        kind: Kind::Bool,
        inactive: |s, _| no_ring(s),
        unavailable: memlock_unavailable,
        ..at!(Bool, |s, c| s.io.registered_buffers)
    },
    Spec {
        key: "registered_files",
        help: "Register the files with the ring once, instead of looking them up for every I/O.",
        kind: Kind::Bool,
        inactive: |s, _| no_ring(s),
        ..at!(Bool, |s, c| s.io.registered_files)
    },
];

/// Whether any class uses rings.
fn has_ring(settings: &Settings) -> bool {
    Class::ALL.iter().any(|&class| settings.interface_of(class).has_rings())
}

pub(super) fn no_ring(settings: &Settings) -> Option<&'static str> {
    (!has_ring(settings)).then_some("no class uses io_uring")
}

/// The knobs that every class has.
const CLASS: &[Spec] = &[
    Spec {
        key: "enabled",
        help: "Whether the class runs.",
        kind: Kind::Bool,
        unavailable: |v, _, class, ground| {
            let refused =
                class.writes() && *v == Value::Bool(true) && ground.target.is_some_and(|t| t.read_only);
            refused.then(|| "the target was opened read-only".into())
        },
        ..at!(Bool, |s, c| s.classes[c.index()].enabled)
    },
    Spec {
        key: "depth",
        help: "Outstanding I/Os of each thread.",
        paper: Some(
            "At depth 128 the array scans 6.8 GB/s; each further request waits longer (3.2, Figure 2).",
        ),
        kind: Kind::Int { min: 1, max: 1024, steps: POWERS_TO_1024 },
        ..at!(Int, |s, c| s.classes[c.index()].depth)
    },
    Spec {
        key: "batch",
        help: "I/Os handed to the kernel together: that many where slots are free, or what is due at a rate.",
        paper: Some("The paper's scan submits 32 at a time (3.2)."),
        kind: Kind::Int { min: 1, max: 1024, steps: POWERS_TO_1024 },
        inactive: |s, c| {
            let per_io = s.interface_of(c).capabilities().thread_per_io;
            per_io.then_some("each thread hands over one I/O at a time")
        },
        ..at!(Int, |s, c| s.classes[c.index()].batch)
    },
    Spec {
        key: "threads",
        help: "Threads of the class (with sync, each outstanding I/O has one besides).",
        paper: Some(
            "With four scan threads instead of one the direct scan rises from 4.5 to 6.5 GB/s (A.2, Table 8).",
        ),
        kind: Kind::Int { min: 1, max: 256, steps: &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256] },
        ..at!(Int, |s, c| s.classes[c.index()].threads)
    },
    Spec {
        key: "cpus",
        help: "The CPUs that its threads run on: any, a NUMA node, or a list.",
        kind: Kind::Cpus,
        unavailable: cpus_unavailable,
        ..at!(Cpus, |s, c| s.classes[c.index()].cpus)
    },
    Spec {
        key: "rate",
        help: "Bytes a second of the class, divided over its threads; none is as fast as it goes.",
        paper: Some("The WAL and the background writer want 250 MB/s each (3.2, Table 3)."),
        kind: Kind::Rate { steps: RATES },
        ..at!(Rate, |s, c| s.classes[c.index()].rate_bytes_per_s)
    },
    Spec {
        key: "arrival",
        help: "How the intended starts of a rated class are spaced.",
        kind: Kind::Choice(&names::<Arrival, 2>()),
        inactive: |s, c| s.classes[c.index()].rate_bytes_per_s.is_none().then_some("the class has no rate"),
        ..at!(named Arrival, |s, c| s.classes[c.index()].arrival)
    },
    Spec {
        key: "page_size",
        help: "Bytes of a page of this class.",
        kind: PAGE_SIZE,
        inherits: true,
        get: |s, c| s.classes[c.index()].page_size_bytes.map_or(Value::Inherit, |own| Value::Size(Some(own))),
        set: |s, c, value| {
            s.classes[c.index()].page_size_bytes = match value {
                Value::Size(own) => own,
                _ => None,
            };
        },
        unavailable: page_size_unavailable,
        ..PLAIN
    },
    Spec {
        key: "buffering",
        help: "The cache that this class's I/O goes through.",
        kind: BUFFERINGS,
        inactive: |s, c| {
            let outside = s.interface_of(c).leaves_kernel();
            outside.then_some("the kernel's page cache is not there without the kernel")
        },
        unavailable: buffering_unavailable,
        ..at!(own Buffering, |s, c| s.classes[c.index()].buffering)
    },
    Spec {
        key: "interface",
        help: "The way of this class's I/O into the kernel.",
        kind: INTERFACES,
        unavailable: interface_unavailable,
        ..at!(own Interface, |s, c| s.classes[c.index()].interface)
    },
];

/// The knobs of the classes whose offsets are drawn.
const RANDOM: &[Spec] = &[
    Spec {
        key: "offsets",
        help: "How offsets are drawn: every page equally, hot pages scattered, or runs.",
        paper: Some(
            "Flash reads random pages nearly as fast as sequential ones, so scans need no locality (4.5).",
        ),
        kind: Kind::Choice(&names::<Offsets, 3>()),
        ..at!(named Offsets, |s, c| s.classes[c.index()].offsets)
    },
    Spec {
        key: "zipf_theta",
        help: "Zipf's exponent: 0 is uniform, above 1 a handful of pages takes most accesses.",
        kind: Kind::Float {
            min: 0.0,
            max: 4.0,
            steps: &[0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.1, 1.2, 1.5, 2.0],
        },
        inactive: |s, c| (s.classes[c.index()].offsets != Offsets::Zipf).then_some("offsets are not zipf"),
        ..at!(Float, |s, c| s.classes[c.index()].zipf_theta)
    },
    Spec {
        key: "jump_share",
        help: "The share of accesses that jump: 1 is random, 0 sequential.",
        kind: Kind::Float { min: 0.0, max: 1.0, steps: &[0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0] },
        inactive: |s, c| (s.classes[c.index()].offsets != Offsets::Runs).then_some("offsets are not runs"),
        ..at!(Float, |s, c| s.classes[c.index()].jump_share)
    },
];

const WAL: &[Spec] = &[
    Spec {
        key: "sync",
        help: "How a commit is made durable; none stands for a persistent-memory log and is not durable.",
        paper: Some(
            "Without fdatasync the WAL reaches its 250 MB/s instead of 6, and the scan gains 44% (4.2, Table 2).",
        ),
        kind: Kind::Choice(&names::<Sync, 3>()),
        unavailable: |v, s, _, _| {
            (s.is_keyed() && *v == Value::Choice("dsync"))
                .then(|| "RocksDB syncs its log by fdatasync, or not at all".into())
        },
        ..at!(named Sync, |s, c| s.wal.sync)
    },
    Spec {
        key: "sync_every",
        help: "One flush for this many writes of a worker; each is committed when the flush ends.",
        paper: Some(
            "On consumer drives rarer flushes give the scan its throughput back; enterprise drives do not mind (A.1, Figure 6).",
        ),
        kind: Kind::Int { min: 1, max: 1024, steps: POWERS_TO_1024 },
        inactive: |s, _| {
            (s.wal.sync != Sync::Fdatasync).then_some("only fdatasync flushes apart from the writes")
        },
        ..at!(Int, |s, c| s.wal.sync_every)
    },
    Spec {
        key: "target",
        help: "A file or device of the WAL's own; none is the region reserved for it on the target.",
        kind: Kind::Text,
        scope: Scope::Rebuild,
        get: |s, _| Value::Text(s.wal.target.clone().unwrap_or_default()),
        set: |s, _, value| {
            if let Value::Text(text) = value {
                let target = (!text.is_empty() && text != NONE).then_some(text);
                if target != s.wal.target {
                    // The recorded serial belongs to the device that was named before.
                    s.wal.serial = None;
                    s.wal.target = target;
                }
            }
        },
        ..PLAIN
    },
    Spec {
        key: "serial",
        help: "The serial number that the WAL's own device must have.",
        kind: Kind::Text,
        scope: Scope::Rebuild,
        inactive: |s, _| s.wal.target.is_none().then_some("the WAL has no device of its own"),
        get: |s, _| Value::Text(s.wal.serial.clone().unwrap_or_default()),
        set: |s, _, value| {
            if let Value::Text(text) = value {
                s.wal.serial = (!text.is_empty() && text != NONE).then_some(text);
            }
        },
        ..PLAIN
    },
];

const RUN: &[Spec] = &[
    Spec {
        key: "max_writes",
        help: "Writing stops after so many bytes: drives wear, and the disk is somebody's.",
        kind: Kind::Size {
            min: MIB,
            max: 1 << 50,
            multiple: 1,
            power_of_two: false,
            optional: true,
            steps: &[GIB, 5 * GIB, 20 * GIB, 100 * GIB, 500 * GIB, 1 << 40, 10 << 40],
        },
        ..at!(Size, |s, c| s.run.max_writes_bytes)
    },
    Spec {
        key: "cache_limit",
        help: "The page cache's budget: memory of a cgroup that stacktune puts itself into; none is all there is.",
        paper: Some("The paper gives the page cache 10 GB of 500 GB of data (3.2)."),
        kind: Kind::Size {
            min: 64 * MIB,
            max: 1 << 50,
            multiple: 1,
            power_of_two: false,
            optional: true,
            steps: &[256 * MIB, GIB, 2 * GIB, 4 * GIB, 10 * GIB, 20 * GIB, 50 * GIB, 100 * GIB],
        },
        unavailable: cache_limit_unavailable,
        ..at!(Size, |s, c| s.run.cache_limit_bytes)
    },
    Spec {
        key: "window",
        help: "The length of a window: the figures on the screen are of the last whole one.",
        kind: Kind::Time {
            min: Duration::from_millis(100),
            max: Duration::from_secs(10),
            steps: &[
                Duration::from_millis(100),
                Duration::from_millis(200),
                Duration::from_millis(500),
                Duration::from_secs(1),
                Duration::from_secs(2),
                Duration::from_secs(5),
                Duration::from_secs(10),
            ],
        },
        ..at!(Time, |s, c| s.run.window)
    },
    Spec {
        key: "drives",
        help: "The drives of an array: how many cores it needs is told at the cycles per byte measured.",
        paper: Some("§4.3: 8 drives at 3 GB/s and 10 cycles a byte take 85 cores of 2.8 GHz."),
        kind: Kind::Int { min: 1, max: 1024, steps: &[1, 2, 4, 8, 12, 16, 24, 32, 48, 64] },
        only_reckons: true,
        ..at!(Int, |s, c| s.run.drives)
    },
    Spec {
        key: "drive_rate",
        help: "What each drive of that array moves; none: the cores needed are not told.",
        kind: Kind::Rate { steps: DRIVE_RATES },
        only_reckons: true,
        ..at!(Rate, |s, c| s.run.drive_rate_bytes_per_s)
    },
    Spec {
        key: "seed",
        help: "Seeds offsets and arrivals, so that a run can be repeated.",
        kind: Kind::Int { min: 0, max: i64::MAX as u64, steps: &[] },
        scope: Scope::Rebuild,
        ..at!(Int, |s, c| s.run.seed)
    },
];

const SIM: &[Spec] = &[
    Spec {
        key: "device",
        help: "The simulated device of the sim interface.",
        kind: Kind::Choice(&names::<SimDevice, 3>()),
        scope: Scope::Rebuild,
        inactive: |s, _| (!s.is_simulated()).then_some("nothing is simulated"),
        ..at!(named SimDevice, |s, c| s.sim.device)
    },
    Spec {
        key: "seed",
        help: "Seeds its latencies and faults.",
        kind: Kind::Int { min: 0, max: i64::MAX as u64, steps: &[] },
        scope: Scope::Rebuild,
        inactive: |s, _| (!s.is_simulated()).then_some("nothing is simulated"),
        ..at!(Int, |s, c| s.sim.seed)
    },
];

pub(super) fn missing(feature: &Feature) -> Option<String> {
    feature.reason().map(str::to_owned)
}

fn interface_unavailable(value: &Value, s: &Settings, class: Class, ground: Ground) -> Option<String> {
    let Value::Choice(name) = value else { return None };
    let interface = Interface::named(name)?;
    if let Some(why) = interface.missing_on(ground.facts) {
        return Some(why.to_owned());
    }
    let unavailable = match interface.capabilities().path {
        Path::BlockLayer | Path::Nowhere => None,
        Path::NvmeDriver => nvme_driver_unavailable(s, class, ground),
        Path::UserspaceDriver => userspace_unavailable(interface, s, ground),
        Path::Simulation => simulation_unavailable(s),
    };
    unavailable.or_else(|| interface.has_rings().then(|| rings_unavailable(s, ground))?)
}

fn simulation_unavailable(s: &Settings) -> Option<String> {
    let real = Class::ALL.iter().find(|&&class| !s.interface_of(class).is_simulated())?;
    Some(format!("simulated devices have a clock of their own: {real} would run on the real one"))
}

fn nvme_driver_unavailable(s: &Settings, class: Class, ground: Ground) -> Option<String> {
    if s.buffering_of(class) != Buffering::Direct {
        return Some("NVMe commands bypass the page cache: choose buffering = direct first".into());
    }
    if s.stack.is_built() || s.target.devices.is_empty() {
        return Some(
            "NVMe commands go to drives themselves, not to files or to what is built on drives".into(),
        );
    }
    missing(&ground.target?.nvme_commands)
}

/// Why the drives can't leave the kernel.
fn userspace_unavailable(by: Interface, s: &Settings, ground: Ground) -> Option<String> {
    if s.target.devices.is_empty() {
        return Some("it drives whole NVMe drives, and the target is files".into());
    }
    if s.stack.is_built() {
        return Some("it drives the drives themselves, and a stack on them is the kernel's".into());
    }
    if s.wal.target.is_some() {
        return Some("the drives leave the kernel, and wal.target would stay with it".into());
    }
    if s.queue != QueueSettings::default() {
        return Some("queue.* are the kernel's, which does not have the drives then".into());
    }
    let acceptable = by.capabilities().unsafe_noiommu;
    if ground.facts.platform.iommu_groups == 0 && !(acceptable && s.io.unsafe_noiommu) {
        let what = "no IOMMU is in use to keep the drives from memory that is not theirs";
        let or = if acceptable { ", or accept VFIO's unsafe mode: io.unsafe_noiommu" } else { "" };
        return Some(format!("{what}: switch one on in the firmware and the kernel (intel_iommu=on){or}"));
    }
    let stays = Class::ALL.iter().find(|&&class| s.interface_of(class) != by)?;
    Some(format!("the drives leave the kernel: {stays} would find none"))
}

fn buffering_unavailable(value: &Value, s: &Settings, class: Class, ground: Ground) -> Option<String> {
    let Value::Choice(name) = value else { return None };
    let buffering = Buffering::named(name)?;
    let interface = s.interface_of(class);
    if buffering != Buffering::Direct && interface.capabilities().path == Path::NvmeDriver {
        return Some("NVMe commands bypass the page cache".into());
    }
    if buffering != Buffering::Direct && interface.has_rings() && s.io.completion == Completion::Iopoll {
        return Some("only direct I/O can be polled for: choose io.completion = interrupt first".into());
    }
    match buffering {
        Buffering::Cached => None,
        Buffering::Direct => missing(&ground.target?.direct),
        Buffering::Uncached => missing(&ground.facts.dontcache).or_else(|| missing(&ground.target?.uncached)),
    }
}

fn page_size_unavailable(value: &Value, s: &Settings, class: Class, ground: Ground) -> Option<String> {
    let Value::Size(Some(bytes)) = value else { return None };
    let target = ground.target?;
    let direct = s.buffering_of(class) == Buffering::Direct && target.direct == Feature::Present;
    (direct && !bytes.is_multiple_of(target.direct_align_bytes)).then(|| {
        format!("direct I/O on this target takes multiples of {}", format_size(target.direct_align_bytes))
    })
}

/// Bytes of the buffers of the enabled classes that run on such an interface.
fn buffers_bytes(s: &Settings, on: impl Fn(Interface) -> bool) -> u64 {
    let classes = Class::ALL.iter().filter(|&&class| s.classes[class.index()].enabled);
    let buffers = classes.filter(|&&class| on(s.interface_of(class))).map(|&class| {
        let own = &s.classes[class.index()];
        own.threads * own.depth * s.page_size_bytes_of(class)
    });
    buffers.sum()
}

fn cache_limit_unavailable(value: &Value, s: &Settings, _: Class, ground: Ground) -> Option<String> {
    let Value::Size(Some(limit)) = value else { return None };
    // Beyond, the kernel would end the process rather than drop cached pages.
    let buffers = buffers_bytes(s, |_| true);
    missing(&ground.facts.cgroup_memory.limit).or_else(|| {
        (buffers > limit / 2).then(|| format!("the buffers alone take {} of it", format_size(buffers)))
    })
}

/// Bytes of locked memory that the kernel counts for the rings of the enabled classes, were all of them to
/// have some: up to Linux 5.11 and from 6.14 on it counts them like registered buffers.
fn rings_bytes(s: &Settings, ground: Ground) -> u64 {
    const PAGE: u64 = 4096;
    let counted = kernel_version(&ground.facts.kernel).is_some_and(|of| !((5, 12)..(6, 14)).contains(&of));
    let classes = Class::ALL.iter().filter(|class| counted && s.classes[class.index()].enabled);
    let rings = classes.map(|class| {
        let own = &s.classes[class.index()];
        // An entry of the WAL more for the flush of each file.
        let flushes = if *class == Class::Wal { s.target.devices.len().max(1) as u64 } else { 0 };
        let entries = (own.depth + flushes).next_power_of_two();
        // A head, two completions and a number for each entry; the entries themselves.
        let ring = [320 + entries * (2 * 16 + 4), entries * 64];
        own.threads * ring.iter().map(|bytes| bytes.next_multiple_of(PAGE)).sum::<u64>()
    });
    rings.sum()
}

fn rings_unavailable(s: &Settings, ground: Ground) -> Option<String> {
    let limit = ground.facts.memlock_bytes?;
    let rings = rings_bytes(s, ground);
    (rings > limit).then(|| {
        format!(
            "its rings take {} and RLIMIT_MEMLOCK is {}: raise it (ulimit -l)",
            format_size(rings),
            format_size(limit)
        )
    })
}

fn memlock_unavailable(value: &Value, s: &Settings, _: Class, ground: Ground) -> Option<String> {
    let limit = ground.facts.memlock_bytes?;
    if *value != Value::Bool(true) {
        return None;
    }
    let buffers = buffers_bytes(s, Interface::has_rings);
    let locked = if buffers > 0 { buffers + rings_bytes(s, ground) } else { 0 };
    (locked > limit).then(|| {
        format!(
            "buffers and rings take {} and RLIMIT_MEMLOCK is {}: raise it (ulimit -l) or turn this off",
            format_size(locked),
            format_size(limit)
        )
    })
}

pub(super) fn cpus_unavailable(value: &Value, _: &Settings, _: Class, ground: Ground) -> Option<String> {
    let cpu = &ground.facts.cpu;
    match value {
        Value::Cpus(Cpus::Node(id)) if !cpu.nodes.iter().any(|node| node.id == *id) => {
            Some(format!("this host has no NUMA node {id}"))
        }
        Value::Cpus(Cpus::List(list)) => {
            let absent = list.iter().find(|id| !cpu.online.contains(id))?;
            Some(format!("CPU {absent} is not online"))
        }
        _ => None,
    }
}
