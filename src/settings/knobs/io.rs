//! The knobs of `[io]`: interface, page cache and page size: the defaults of all classes.

use super::memory::{memlock_unavailable, rings_unavailable};
use super::spec::{Conditions, Named, PLAIN, Scope, Spec, missing, names};
use super::value::{Kind, Value};
use crate::class::Class;
use crate::host::Feature;
use crate::settings::interface::{Interface, Path};
use crate::settings::values::{
    Buffering, Completion, PAGE_SIZE_BYTES_MAX, PAGE_SIZE_BYTES_MIN, Prio, QueueSettings, Settings,
};
use crate::units::format_size;

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

pub(super) const PAGE_SIZE: Kind = Kind::Size {
    min: PAGE_SIZE_BYTES_MIN,
    max: PAGE_SIZE_BYTES_MAX,
    multiple: PAGE_SIZE_BYTES_MIN,
    power_of_two: true,
    optional: false,
    steps: PAGE_SIZES,
};

pub(super) const INTERFACES: Kind = Kind::Choice(&names::<Interface, { Interface::COUNT }>());

pub(super) const BUFFERINGS: Kind = Kind::Choice(&names::<Buffering, 3>());

pub(super) const PRIOS: Kind = Kind::Choice(&names::<Prio, 5>());

pub(super) const IO: &[Spec] = &[
    Spec {
        key: "interface",
        help: "Default I/O interface for all classes.",
        paper: Some(
            "Asynchronous I/O lets one thread keep 128 requests in flight; 128 threads of pread cost ten cycles per byte (Haas et al. 2020, 4.3).",
        ),
        kind: INTERFACES,
        widened: drives_change_hands,
        unavailable: interface_unavailable,
        ..at!(named Interface, |s, c| s.io.interface)
    },
    Spec {
        key: "buffering",
        help: "Default caching for all classes: page cache, O_DIRECT, or buffered with drop-behind.",
        paper: Some(
            "With direct I/O the whole load costs 1.01 cycles per byte instead of 7.61 (Haas et al. 2020, 4.3, Table 2).",
        ),
        kind: BUFFERINGS,
        inactive: |s, _| s.leaves_kernel().then_some("drives outside the kernel have no page cache"),
        unavailable: buffering_unavailable,
        ..at!(named Buffering, |s, c| s.io.buffering)
    },
    Spec {
        key: "page_size",
        help: "Default page size for all classes.",
        paper: Some(
            "64 KiB pages reach nearly full bandwidth with the least CPU, but with 57% more latency than 16 KiB (Haas et al. 2020, 4.5, Figure 3).",
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
    Spec {
        key: "prio",
        help: "Default priority of the I/Os of all classes, where the drives' scheduler acts on it: mq-deadline on realtime, \
               best effort (low, high and none alike) and idle, bfq on the levels too. Buffered writes reach the drive \
               without it.",
        kind: PRIOS,
        inactive: |s, _| {
            let why = |class: Class| s.no_prio(class);
            if Class::ALL.into_iter().all(|class| why(class).is_some()) { why(Class::Scan) } else { None }
        },
        unavailable: prio_unavailable,
        ..at!(named Prio, |s, c| s.io.prio)
    },
];

/// What a turn requires if it makes drives leave the kernel, return to it, or change their driver.
pub(super) fn drives_change_hands(old: &Settings, new: &Settings) -> Scope {
    let outside = |of: &Settings| {
        Class::ALL.map(|class| Some(of.interface_of(class)).filter(|interface| interface.leaves_kernel()))
    };
    if outside(old) == outside(new) { Scope::Live } else { Scope::Rebuild }
}

/// Whether any class uses rings.
fn has_ring(settings: &Settings) -> bool {
    Class::ALL.iter().any(|&class| settings.interface_of(class).has_rings())
}

pub(super) fn no_ring(settings: &Settings) -> Option<&'static str> {
    (!has_ring(settings)).then_some("no class uses io_uring")
}

pub(super) fn interface_unavailable(
    value: &Value,
    s: &Settings,
    class: Class,
    conditions: Conditions,
) -> Option<String> {
    let Value::Choice(name) = value else { return None };
    let interface = Interface::named(name)?;
    if let Some(why) = interface.missing_on(conditions.facts) {
        return Some(why.to_owned());
    }
    let unavailable = match interface.capabilities().path {
        Path::BlockLayer | Path::Nowhere => None,
        Path::NvmeDriver => nvme_driver_unavailable(s, class, conditions),
        Path::UserspaceDriver => userspace_unavailable(interface, s, conditions),
        Path::Simulation => simulation_unavailable(s),
    };
    unavailable.or_else(|| interface.has_rings().then(|| rings_unavailable(s, conditions))?)
}

fn simulation_unavailable(s: &Settings) -> Option<String> {
    let real = Class::ALL.iter().find(|&&class| !s.interface_of(class).is_simulated())?;
    Some(format!("simulated devices use a virtual clock, but {real} would run in real time"))
}

fn nvme_driver_unavailable(s: &Settings, class: Class, conditions: Conditions) -> Option<String> {
    if s.buffering_of(class) != Buffering::Direct {
        return Some("NVMe commands bypass the page cache: choose buffering = direct first".into());
    }
    if s.stack.is_built() || s.target.devices.is_empty() {
        return Some("NVMe commands go to whole drives, not to files or to something built on drives".into());
    }
    missing(&conditions.target?.nvme_commands)
}

/// Why the drives can't leave the kernel.
fn userspace_unavailable(by: Interface, s: &Settings, conditions: Conditions) -> Option<String> {
    if s.target.devices.is_empty() {
        return Some("it drives whole NVMe drives, but the target is files".into());
    }
    if s.stack.is_built() {
        return Some("it drives whole drives, but a stack on them needs the kernel".into());
    }
    if s.wal.target.is_some() {
        return Some("the drives leave the kernel, but wal.target would stay in it".into());
    }
    if s.queue != QueueSettings::default() {
        return Some("the drives leave the kernel, so its settings queue.* would have no effect".into());
    }
    let acceptable = by.capabilities().unsafe_noiommu;
    if conditions.facts.platform.iommu_groups == 0 && !(acceptable && s.io.unsafe_noiommu) {
        let what = "no IOMMU is in use to confine the drives' memory accesses";
        let or = if acceptable { ", or accept VFIO's unsafe mode: io.unsafe_noiommu" } else { "" };
        return Some(format!(
            "{what}: enable one in the firmware and the kernel (on Intel: intel_iommu=on){or}"
        ));
    }
    let stays = Class::ALL.iter().find(|&&class| s.interface_of(class) != by)?;
    Some(format!("the drives leave the kernel, so {stays} would have no drives"))
}

pub(super) fn buffering_unavailable(
    value: &Value,
    s: &Settings,
    class: Class,
    conditions: Conditions,
) -> Option<String> {
    let Value::Choice(name) = value else { return None };
    let buffering = Buffering::named(name)?;
    let interface = s.interface_of(class);
    if buffering != Buffering::Direct && interface.capabilities().path == Path::NvmeDriver {
        return Some("NVMe commands bypass the page cache".into());
    }
    if buffering != Buffering::Direct && interface.has_rings() && s.io.completion == Completion::Iopoll {
        return Some("only direct I/O can be polled: choose io.completion = interrupt first".into());
    }
    match buffering {
        Buffering::Cached => None,
        Buffering::Direct => missing(&conditions.target?.direct),
        Buffering::Uncached => {
            missing(&conditions.facts.dontcache).or_else(|| missing(&conditions.target?.uncached))
        }
    }
}

pub(super) fn page_size_unavailable(
    value: &Value,
    s: &Settings,
    class: Class,
    conditions: Conditions,
) -> Option<String> {
    let Value::Size(Some(bytes)) = value else { return None };
    let target = conditions.target?;
    let direct = s.buffering_of(class) == Buffering::Direct && target.direct == Feature::Present;
    (direct && !bytes.is_multiple_of(target.direct_align_bytes)).then(|| {
        format!("direct I/O on this target takes multiples of {}", format_size(target.direct_align_bytes))
    })
}

/// The schedulers that act on priorities.
const ACTS_ON_PRIO: [&str; 2] = ["mq-deadline", "bfq"];

pub(super) fn prio_unavailable(
    value: &Value,
    s: &Settings,
    class: Class,
    conditions: Conditions,
) -> Option<String> {
    if *value == Value::Choice(Prio::None.name()) || s.no_prio(class).is_some() {
        return None;
    }
    if *value == Value::Choice(Prio::Realtime.name()) && conditions.facts.platform.unprivileged {
        return Some("it requires root (start stacktune with sudo)".into());
    }
    let ignores = |name: &str| !ACTS_ON_PRIO.contains(&name);
    let reason = |what: &str, scheduler: &str| {
        format!("{what} {scheduler} ignores priorities: choose queue.scheduler = mq-deadline or bfq first")
    };
    if let Some(scheduler) = &s.queue.scheduler {
        return ignores(scheduler).then(|| reason("the scheduler", scheduler));
    }
    let devices = s.target.devices.iter().filter_map(|name| conditions.facts.find(name).ok());
    let ignoring =
        devices.map(|device| (device.name.as_str(), device.scheduler.as_deref().unwrap_or("none")));
    let loops = s.target.devices.is_empty().then_some(("a new loop device", "none"));
    let (name, scheduler) = ignoring.chain(loops).find(|(_, scheduler)| ignores(scheduler))?;
    Some(reason(&format!("{name}'s scheduler"), scheduler))
}
