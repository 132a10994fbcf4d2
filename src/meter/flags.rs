//! Can this be believed? What makes a figure untrustworthy, in words.
//!
//! The kinds of flags and their texts are in [`super::flag`]; this module decides when a window has one, and
//! writes the sentence that explains it, which recordings keep as `why`.

use super::beside::others_io::OthersIo;
use super::context::WindowContext;
use super::devices::drives::DriveFigures;
use super::flag::{Flag, FlagKind, percent};
use super::window::{ClassFigures, ClassState, CpuFigures, ProgramFigures, Window};
use crate::class::Class;
use crate::host::{AttributeChange, Lost, Throttling, Upkeep};
use crate::settings::{ArrayState, Buffering};
use crate::short_list;
use crate::units::{approx_size, format_latency, mb_per_s, three_digits};

/// From this share on, the page cache or the hypervisor affects the figures; below it, the effect is lost in
/// the usual variation between windows.
const SHARE: f64 = 0.02;
/// A worker that uses at least this share of a CPU is itself the limit.
const WORKER_BOUND: f64 = 0.95;
/// The same for a program's client: one thread's share of a CPU, or all its threads' share of all CPUs.
const CLIENT_BOUND: f64 = 0.9;
/// If a program uses at least this share of all CPUs, they are its limit.
const CPU_BOUND: f64 = 0.95;

/// Reads served without storage I/O.
pub(super) fn cache(share: f64) -> Option<Flag> {
    (share > SHARE).then(|| {
        let why = format!(
            "{} of the bytes read came from the page cache, without storage I/O: the figures are a mix of memory and storage.",
            percent(share)
        );
        FlagKind::Cache.with_share(share, why)
    })
}

/// Whether over a twentieth of a worker's polls come back empty. A polling worker is always busy, and is the
/// limit only if nearly all of its polls find something.
fn has_empty_polls(figures: &ClassFigures) -> bool {
    figures.polls.is_some_and(|polls| polls.empty_polls as f64 > polls.polls as f64 * (1.0 - WORKER_BOUND))
}

/// Flags time that the hypervisor took.
pub(super) fn steal(share: f64) -> Option<Flag> {
    (share > SHARE).then(|| {
        let why = format!(
            "The hypervisor took {} of the CPU time: the CPU, not the storage, may have been slow.",
            percent(share)
        );
        FlagKind::Steal.with_share(share, why)
    })
}

/// A window's flags for what others used of the processor, and for their leaving none of it idle. Whether
/// these mark the run too depends on how many windows have them.
pub(super) fn of_others(cpu: &CpuFigures) -> impl Iterator<Item = Flag> {
    let full = cpu.full_by_others().then(|| {
        let why = format!(
            "{} of the CPU time was in use, partly by other programs: the load may have waited for a processor.",
            percent(cpu.busy)
        );
        FlagKind::ProcessorsFull.flag(why)
    });
    others(cpu).into_iter().chain(full)
}

/// A window's flags for who used the processor and, for a program, for what it ran on.
pub(super) fn of_processor(context: &WindowContext, cpu: &CpuFigures, duration_ns: u64) -> Vec<Flag> {
    let of_program = context
        .program
        .iter()
        .flat_map(|program| of_program(cpu, program, duration_ns).into_iter().chain(emulated(context)));
    of_others(cpu).chain(of_program).chain(ended_early(context)).collect()
}

fn ended_early(context: &WindowContext) -> Option<Flag> {
    let why = "The program ended by itself before its time (--for, and the warm-up): the run was measured until then.";
    context.ended_early.then(|| FlagKind::EndedEarly.flag(why))
}

/// A program's flags for a window: its client could do no more, or the program used up the processors.
fn of_program(cpu: &CpuFigures, program: &ProgramFigures, duration_ns: u64) -> Vec<Flag> {
    let share = |ns: Option<u64>| ns.map_or(0.0, |ns| ns as f64 / duration_ns.max(1) as f64);
    let mut flags = Vec::new();
    // Without a server, all of the program is measured.
    if program.server_cpu_ns.is_some() {
        let (all, thread) =
            (share(program.run_cpu_ns) / f64::from(cpu.cpus.max(1)), share(program.run_thread_ns));
        let busy = match (all > CLIENT_BOUND, thread > CLIENT_BOUND) {
            (true, _) => Some(format!("used {} of all processors", percent(all))),
            (false, true) => Some(format!("has a thread that ran for {} of the time", percent(thread))),
            (false, false) => None,
        };
        flags.extend(busy.map(|busy| {
            let why = format!(
                "The program's client {busy}: it, and neither its server nor the storage, may be the limit. More threads, or clients on another host, may help."
            );
            FlagKind::ClientBound.flag(why)
        }));
    }
    if cpu.busy > CPU_BOUND && !cpu.full_by_others() {
        let why = format!(
            "{} of the CPU time was in use, and little of it by others: the CPU, not the storage, is the program's limit.",
            percent(cpu.busy)
        );
        flags.push(FlagKind::CpuBound.flag(why));
    }
    flags.extend(program.swapped_bytes.filter(|bytes| *bytes > 0).map(|bytes| {
        let why = format!(
            "{} of the program's memory was swapped out: it waits for the swap device, too, whose I/O is not the target's. A cap on its memory (--mem) forbids swapping.",
            approx_size(bytes)
        );
        FlagKind::Swapped.flag(why)
    }));
    flags
}

/// Flags what others used of the processor, if it matters.
pub(super) fn others(cpu: &CpuFigures) -> Option<Flag> {
    let cores = cpu.others_that_matter()?;
    let unattributed = cpu
        .unattributed_cores
        .filter(|cores| *cores > 0.0)
        .map_or_else(String::new, |cores| format!(" (no process here accounts for {cores:.1} of them)"));
    let why = format!(
        "Other programs used {cores:.1} of the {:.1} busy cores{unattributed}: the whole system's cycles and cores are not the load's, and the CPU, not the storage, may have been slow.",
        cpu.cores_used()
    );
    Some(FlagKind::Others.with_cores(cores, why))
}

/// Flags what others did on the drives over that time, if it matters.
pub(super) fn others_io(drives: &[OthersIo], seconds: f64) -> Option<Flag> {
    let mut drives: Vec<_> = drives.iter().filter(|of| of.matters(seconds)).collect();
    short_list::sort_by_key(&mut drives, |of| std::cmp::Reverse(of.moved_bytes()));
    let rate = |bytes: u64| three_digits(mb_per_s(bytes, (seconds * 1e9) as u64));
    let each = drives.iter().map(|of| {
        let [read, written] = of.rates(seconds).map(|rate| {
            rate.map_or_else(|| "unknown".to_owned(), |rate| format!("{} MB/s", three_digits(rate)))
        });
        format!("{} (reads {read}, writes {written}, of {} MB/s in all)", of.drive, rate(of.bytes))
    });
    let why = format!(
        "Other programs used the same drives: at least {}. The load may have waited for them.",
        each.collect::<Vec<_>>().join(", ")
    );
    drives.first().map(|of| FlagKind::OthersIo.with_rate(&of.drive, &rate(of.moved_bytes()), why))
}

/// The block layer's count differs from the workers' by that share of theirs.
pub(super) fn block_differs(share: f64) -> Option<Flag> {
    (share > SHARE).then(|| {
        let why = format!(
            "The block layer's count of bytes since the totals began differs from the load's by {}: something else uses the devices, or the I/O is not what it seems.",
            percent(share)
        );
        FlagKind::BlockLayerDiffers.with_share(share, why)
    })
}

/// Flags what happened to the drives below the members: they throttled, became hot, or were lost.
pub(super) fn of_drives(drives: &DriveFigures) -> Vec<Flag> {
    let mut flags = Vec::new();
    if !drives.throttled.is_empty() {
        let why = format!(
            "By their own counts, these drives throttled because of their temperature: {}.",
            drives.throttled.join(", ")
        );
        flags.push(FlagKind::Throttled.flag(why));
    }
    if !drives.hot.is_empty() {
        let why = format!(
            "At or above their warning temperature, where they may start to throttle: {}. This is inferred, not reported.",
            drives.hot.join(", ")
        );
        flags.push(FlagKind::Hot.flag(why));
    }
    flags.extend(drives.lost.iter().map(|(name, serial)| {
        let serial = serial.as_ref().map_or("serial unknown".into(), |serial| format!("serial {serial}"));
        let why = format!("The drive {name} ({serial}) is gone: it was pulled, or it failed.");
        FlagKind::Lost.named(name, why)
    }));
    flags
}

/// Flags arrays that have lost members, and those that do their own I/O; the latter come with the state that
/// was asked for at the time.
pub(super) fn of_arrays(losses: &[Lost], doing: &[(Upkeep, ArrayState)], as_set: ArrayState) -> Vec<Flag> {
    losses.iter().map(|of| lost(of, doing, as_set)).chain(upkeep(doing)).collect()
}

/// An array that has lost members by itself, or as it was set to. Once it is rebuilt, any loss is a real one.
fn lost(lost: &Lost, doing: &[(Upkeep, ArrayState)], as_set: ArrayState) -> Flag {
    let array = &lost.array;
    let members = match (lost.members.as_slice(), lost.missing) {
        ([], 0) => "a member, and the kernel does not report which".to_owned(),
        ([], missing) => format!("{missing} of its members, and the kernel does not report which"),
        (members, _) => members.join(", "),
    };
    if lost.failed {
        let why = format!("The {array} has lost {members}, and has failed.");
        return FlagKind::ArrayFailed.flag(why);
    }
    let is_set = match as_set {
        ArrayState::Healthy => false,
        ArrayState::Degraded => true,
        ArrayState::Rebuilding => doing.iter().any(is_rebuilt_as_set),
    };
    if is_set && lost.missing.max(lost.members.len() as u64) <= 1 {
        let why = format!("The {array} works without {members}, as set by md.array.");
        return FlagKind::DegradedAsSet.flag(why);
    }
    let why = format!(
        "The {array} is degraded: it works without {members}, so the figures are not those of the whole array."
    );
    FlagKind::Degraded.flag(why)
}

fn is_rebuilt_as_set((one, as_set): &(Upkeep, ArrayState)) -> bool {
    *as_set == ArrayState::Rebuilding && one.action == "recover"
}

/// Flags arrays that do their own I/O, or are being rebuilt as they were set to.
fn upkeep(arrays: &[(Upkeep, ArrayState)]) -> Option<Flag> {
    let list: Vec<_> = arrays.iter().map(|(one, _)| format!("{} ({})", one.array, one.action)).collect();
    (!list.is_empty()).then(|| {
        if arrays.iter().all(is_rebuilt_as_set) {
            let why = format!("An array is being rebuilt, as set by md.array: {}.", list.join(", "));
            return FlagKind::RebuildingAsSet.flag(why);
        }
        let why = format!(
            "An array does its own I/O: {}. That takes time on the drives, and the block layer counts its bytes with the load's.",
            list.join(", ")
        );
        FlagKind::Resync.flag(why)
    })
}

/// Flags attributes set by knobs that others changed: each knob once, with its devices.
pub(super) fn of_attributes(changes: &[AttributeChange]) -> Vec<Flag> {
    let mut flags = Vec::new();
    for (at, AttributeChange { knob, .. }) in changes.iter().enumerate() {
        if changes[..at].iter().any(|before| before.knob == *knob) {
            continue;
        }
        let of_knob = changes.iter().filter(|change| change.knob == *knob);
        let devices = of_knob.map(|AttributeChange { device, values: [from, to], .. }| {
            format!("{device} from {from} to {to}")
        });
        let devices = devices.collect::<Vec<_>>().join(", ");
        let why = format!(
            "Somebody else changed {knob}: {devices}. Figures from before and after can't be compared."
        );
        flags.push(FlagKind::OthersChanged.named(knob, why));
    }
    flags
}

/// I/Os that were unfinished when the run was left, and the age of the oldest in nanoseconds.
pub(super) fn unfinished((count, oldest_ns): (u64, u64)) -> Flag {
    let (ios, they) =
        if count == 1 { ("I/O", "It counts with its") } else { ("I/Os", "They count with their") };
    let why = format!(
        "{count} {ios} had not ended long after the run's end, the oldest after {}. {they} age, which is the least that the storage took.",
        format_latency(oldest_ns)
    );
    FlagKind::Unfinished.flag(why)
}

/// What makes the figures of a class in a window untrustworthy. A class that is off has none.
pub(super) fn of_class(
    class: Class,
    context: &WindowContext,
    figures: &ClassFigures,
    drifting: bool,
) -> Vec<Flag> {
    let of = &context.classes[class.index()];
    let mut flags = Vec::new();
    match &of.state {
        ClassState::Off => return flags,
        ClassState::Stopped(why) => {
            flags.push(FlagKind::Stopped.flag(format!("The class is not running: {why}.")));
        }
        ClassState::Failed(why) => {
            flags.push(FlagKind::Failed.flag(format!("The class has failed: {why}.")));
        }
        ClassState::Draining | ClassState::Running | ClassState::Paused => {}
    }
    if of.drained || of.state == ClassState::Draining {
        let why = "I/O of an earlier setting was under way in this window: the figures do not belong to a single setting.";
        flags.push(FlagKind::Draining.flag(why));
    }
    if of.interface.touches_storage() {
        flags.extend(of_storage(class, context));
    } else if of.interface.is_simulated() {
        flags.push(FlagKind::Simulated.flag("The devices are simulated, on a virtual clock."));
    } else {
        flags.push(FlagKind::NoStorage.flag("The null interface completes at once: no storage is touched."));
    }
    flags.extend(of_figures(figures));
    if drifting {
        let why = "The last windows drift in one direction, by over 5%: the load is not steady, and a change may come from that.";
        flags.push(FlagKind::Drifting.flag(why));
    }
    flags.extend(emulated(context).filter(|_| of.interface.touches_storage()));
    if class == Class::Wal && !context.wal_durable {
        let why = "Commits are not flushed (sync = none): this models a log in persistent memory, but here a crash loses them.";
        flags.push(FlagKind::NotDurable.flag(why));
    }
    flags
}

fn emulated(context: &WindowContext) -> Option<Flag> {
    let emulated = context.target.is_some_and(|target| target.emulated.is_some());
    emulated
        .then(|| FlagKind::Emulated.flag("The drives are emulated: the figures say nothing about real ones."))
}

/// Flags that follow from what the class measured.
fn of_figures(figures: &ClassFigures) -> Vec<Flag> {
    let mut flags = Vec::new();
    flags.extend(figures.incidents.map(|incidents| {
        let why =
            format!("Of this class's commands to drives, {incidents}: the figures include the waiting.");
        FlagKind::TimedOut.flag(why)
    }));
    flags.extend(figures.cache_share.and_then(cache));
    let busiest = figures.busiest_worker.filter(|share| *share > WORKER_BOUND && !has_empty_polls(figures));
    flags.extend(busiest.map(|share| {
        let why = format!(
            "A worker, or a thread of the kernel that serves one, is busy {} of its time: it, and not storage, may be the limit. More threads or larger batches may help.",
            percent(share)
        );
        FlagKind::WorkerBound.flag(why)
    }));
    flags
}

/// The kinds of flags that a class's own figures raise, whatever else was known when they were measured.
pub fn implied_of_class(figures: &ClassFigures) -> Vec<FlagKind> {
    let mut kinds = match figures.state {
        ClassState::Off => return Vec::new(),
        ClassState::Stopped(_) => vec![FlagKind::Stopped],
        ClassState::Failed(_) => vec![FlagKind::Failed],
        ClassState::Draining => vec![FlagKind::Draining],
        ClassState::Running | ClassState::Paused => Vec::new(),
    };
    kinds.extend(of_figures(figures).iter().filter_map(|flag| FlagKind::of(&flag.text)));
    kinds.extend(figures.drained.filter(|drained| drained.unfinished > 0).map(|_| FlagKind::Unfinished));
    kinds
}

/// The kinds of flags that a window's own figures raise.
pub fn implied_of_window(window: &Window) -> Vec<FlagKind> {
    let throttling = |how| window.members.iter().any(|member| member.throttling == Some(how));
    let stopped = window.engine.as_ref().is_some_and(|engine| engine.stopped);
    // Except `processors full`, which earlier builds did not raise.
    let raised = [
        (window.paused, FlagKind::Paused),
        (window.turned, FlagKind::Turned),
        (throttling(Throttling::Yes), FlagKind::Throttled),
        (throttling(Throttling::Hot), FlagKind::Hot),
        (stopped, FlagKind::WritesStopped),
        (others(&window.cpu).is_some(), FlagKind::Others),
        (others_io(&window.others_io, window.duration_ns as f64 / 1e9).is_some(), FlagKind::OthersIo),
    ];
    raised.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect()
}

/// Flags that follow from the settings and the target of a class on real storage.
fn of_storage(class: Class, context: &WindowContext) -> Vec<Flag> {
    let mut flags = Vec::new();
    let quietly = context.quietly_buffered();
    let buffering = context.classes[class.index()].buffering;
    if let (Buffering::Direct, Some(why)) = (buffering, quietly) {
        let why = format!("Direct I/O goes through the page cache here: {why}.");
        flags.push(FlagKind::QuietlyBuffered.flag(why));
    }
    let stays_cached =
        buffering == Buffering::Cached || (buffering == Buffering::Direct && quietly.is_some());
    // The log is written once and not read back.
    if class != Class::Wal && stays_cached && context.data_bytes < context.memory_bytes {
        let why = "The data is smaller than the memory available to the page cache: in time, all of it may be cached.";
        flags.push(FlagKind::DataFitsMemory.flag(why));
    }
    if !class.writes() && context.data_bytes <= context.block_cache_bytes {
        let why = "The data is smaller than RocksDB's own block cache: in time, all of it may be cached.";
        flags.push(FlagKind::DataFitsCache.flag(why));
    }
    if context.unfilled && !class.writes() {
        let why = "The target was never filled: reads of blocks that were never written may be answered without touching the medium.";
        flags.push(FlagKind::Unfilled.flag(why));
    }
    flags
}

/// What makes a whole window untrustworthy, including steal if it is known well enough.
pub(super) fn of_window(
    context: &WindowContext,
    stolen: Option<f64>,
    settling: bool,
    block_difference: Option<f64>,
) -> Vec<Flag> {
    let mut flags = Vec::new();
    if context.paused {
        flags.push(FlagKind::Paused.flag("The run was paused in this window."));
    }
    if context.turned {
        let why = "A knob was turned in this window, or old I/O was still draining: it does not belong to a single setting.";
        flags.push(FlagKind::Turned.flag(why));
    } else if settling {
        let why = "The load began or a knob turned less than 2 s or two windows ago: caches, queues and devices are still adapting.";
        flags.push(FlagKind::Settling.flag(why));
    }
    // Smaller delays are usual on a busy processor.
    if context.late_ns > context.window_ns / 2 {
        let why = format!(
            "The window ended {:.1} s late, for lack of a processor: its figures are right for the time that it took, but the CPU, not the storage, may have been slow.",
            context.late_ns as f64 / 1e9
        );
        flags.push(FlagKind::Late.flag(why));
    }
    if context.traced {
        let why = "The drives were traced in this window, or in a part of it: that costs some CPU time for each I/O.";
        flags.push(FlagKind::Traced.flag(why));
    }
    flags.extend(of_engine(context));
    flags.extend(stolen.and_then(steal));
    flags.extend(block_difference.and_then(block_differs));
    if let Some(uses) = context.target.and_then(|target| target.mounted.as_deref()) {
        let why = format!("The target is in use ({uses}): others may read and write it at the same time.");
        flags.push(FlagKind::Mounted.flag(why));
    }
    flags
}

/// Flags how a storage engine between the classes and the target affects their figures.
fn of_engine(context: &WindowContext) -> Vec<Flag> {
    let mut flags = Vec::new();
    if context.full {
        let why = "Puts were slow because they waited: the file system has no room left.";
        flags.push(FlagKind::DiskFull.flag(why));
    }
    if context.pairs && context.block_cache_bytes > 0 && context.data_bytes < 2 * context.block_cache_bytes {
        let why = "RocksDB's own block cache can hold more than half of the data: many gets reach no drive.";
        flags.push(FlagKind::BlockCache.flag(why));
    }
    if context.engine.as_ref().is_some_and(|engine| engine.stopped) {
        let why =
            "RocksDB held all writes back at the end of this window: its flushes and compactions are behind.";
        flags.push(FlagKind::WritesStopped.flag(why));
    }
    flags
}

#[cfg(test)]
#[path = "flags_tests.rs"]
pub(super) mod tests;
