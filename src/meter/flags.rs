//! Can this be believed? What makes a figure untrustworthy, in words.
//!
//! Each flag has a short text, the same on the screen and in files, and a sentence that says what it
//! means. Most forbid a verdict on storage: under them a figure tells of something else.

use super::drives::DriveFigures;
use super::engine::EngineFigures;
use super::window::{ClassFigures, Flag, State};
use super::words;
use crate::class::Class;
use crate::host::{Lost, TargetFacts, Upkeep};
use crate::settings::interface::Interface;
use crate::settings::profile::settings::Buffering;

/// From this share on the page cache or the hypervisor has a part in the figures; below, it is lost
/// in what windows differ by anyway.
const SHARE: f64 = 0.02;
/// From this share of a CPU on a worker itself is the limit.
const WORKER_BOUND: f64 = 0.95;
/// The text of a window in the settling time after a turn.
pub const SETTLING: &str = "settling";
/// The text of a class whose busiest worker has no time left.
pub const WORKER_IS_BOUND: &str = "worker-bound";
/// The text of a class whose windows trend.
pub const DRIFTING: &str = "drifting";
/// The text of a window that ended long after its time.
pub const LATE: &str = "late";
/// The kind of flag of a run that the block layer counted otherwise.
pub const BLOCK_DIFFERS: &str = "block layer differs";

/// The text of a window in which an array worked without a member.
pub const DEGRADED: &str = "degraded";
/// The text of a window in which an array copied, checked or rebuilt by itself.
pub const RESYNC: &str = "resync";
/// The text of a window in which puts found no room.
pub const FULL: &str = "disk full";
/// The text of a window in which an array could not go on.
pub const ARRAY_FAILED: &str = "array failed";

/// The text of a class of which commands did not come back in time.
pub const TIMED_OUT: &str = "timed out";

/// What a class was set to in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassContext {
    /// What it was doing at the end of the window.
    pub state: State,
    /// I/O of a former setting was on its way when the window began, even if it has drained since.
    pub drained: bool,
    /// The interface in force.
    pub interface: Interface,
    /// The buffering in force.
    pub buffering: Buffering,
    /// Its rate, where it has one.
    pub rate_bytes_per_s: Option<u64>,
    /// Bytes of the I/Os that it may have under way at once.
    pub in_flight_bytes_max: u64,
}

/// What the meters must know about a window beside the counts.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowContext<'a> {
    /// The window's end on the run's clock.
    pub now_ns: u64,
    /// By how much that came after the time that was set for it; 0 where it was early.
    pub late_ns: u64,
    /// What a window is to last.
    pub window_ns: u64,
    /// See [`super::window::Window::setting`].
    pub setting: u64,
    /// See [`super::window::Window::turned`].
    pub turned: bool,
    /// See [`super::window::Window::warmup`].
    pub warmup: bool,
    /// See [`super::window::Window::paused`].
    pub paused: bool,
    /// The classes, by [`Class::index`].
    pub classes: [ClassContext; 4],
    /// Whether the WAL's commits survive a crash (its sync is not `none`).
    pub wal_durable: bool,
    /// Bytes of the data that scan, point and background share.
    pub data_bytes: u64,
    /// Memory that the page cache can have: the host's, or the budget that it was given.
    pub memory_bytes: u64,
    /// The opened target; none of simulated runs.
    pub target: Option<&'a TargetFacts>,
    /// Pages are read that were never written (read-only on a target without our fill).
    pub unfilled: bool,
    /// See [`super::window::Window::written_bytes_total`].
    pub written_bytes_total: u64,
    /// Bytes of all that the load keeps: data and WAL, or keys and values, each counted once.
    pub data_set_bytes: u64,
    /// Whether a storage engine stands between the classes and the target.
    pub pairs: bool,
    /// What that engine did since it was opened, where it told.
    pub engine: Option<EngineFigures>,
    /// Bytes of its own cache of blocks.
    pub block_cache_bytes: u64,
    /// Its puts find no room.
    pub full: bool,
}

impl WindowContext<'_> {
    /// Whether the class's I/O goes through the page cache, by its setting or quietly.
    pub fn through_cache(&self, class: Class) -> bool {
        // What of a get comes from storage is the storage engine's matter: it reads whole blocks.
        if self.pairs {
            return false;
        }
        let context = &self.classes[class.index()];
        let cacheable = context.interface.is_cacheable();
        cacheable && (context.buffering != Buffering::Direct || self.quietly_buffered().is_some())
    }

    /// Whether every class that runs reaches the device past the page cache, so that the block
    /// layer's count must be that of the engine.
    pub fn all_direct(&self) -> bool {
        let direct = |class: Class| {
            let context = &self.classes[class.index()];
            let counted = context.interface.through_block_layer();
            context.state == State::Off || (counted && !self.through_cache(class))
        };
        !self.pairs && Class::ALL.into_iter().all(direct)
    }

    /// Whether the block layer sees all that is written.
    pub fn through_block_layer(&self) -> bool {
        let mut writers = Class::ALL.into_iter().filter(|class| class.writes());
        !writers.any(|class| {
            let context = &self.classes[class.index()];
            context.state != State::Off && !context.interface.through_block_layer()
        })
    }

    fn quietly_buffered(&self) -> Option<&str> {
        self.target.and_then(|target| target.quietly_buffered.as_deref())
    }
}

/// A flag under which a figure does not tell of storage.
fn forbids(text: impl Into<String>, why: impl Into<String>) -> Flag {
    Flag { text: text.into(), why: why.into(), forbids_verdict: true }
}

/// A flag that tells what the figures are of, and leaves the verdict.
fn notes(text: &str, why: &str) -> Flag {
    Flag { text: text.into(), why: why.into(), forbids_verdict: false }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// What the text of a flag is without its percentage: two with the same kind tell the same.
pub fn kind(text: &str) -> &str {
    match text.rsplit_once(' ') {
        Some((kind, figure)) if figure.ends_with('%') => kind,
        _ => text,
    }
}

/// Reads served without storage I/O.
pub(super) fn cache(share: f64) -> Option<Flag> {
    (share > SHARE).then(|| {
        let why = format!(
            "{} of the bytes read came from the page cache, without storage I/O: the figures are a mix of memory and storage.",
            percent(share)
        );
        forbids(format!("cache {}", percent(share)), why)
    })
}

/// Whether a worker polls and has time to look for what is not there: one that polls is always busy, and
/// is the limit only where all but a few of its looks find something.
fn looks_in_vain(figures: &ClassFigures) -> bool {
    figures.polls.is_some_and(|polls| polls.empty_polls as f64 > polls.polls as f64 * (1.0 - WORKER_BOUND))
}

/// Time that the hypervisor took.
pub(super) fn steal(share: f64) -> Option<Flag> {
    (share > SHARE).then(|| {
        let why = format!(
            "The hypervisor took {} of the CPU time: what was slow may have been the processor.",
            percent(share)
        );
        forbids(format!("steal {}", percent(share)), why)
    })
}

/// The block layer counted otherwise than the engine, by that share of the engine's bytes.
pub(super) fn block_differs(share: f64) -> Option<Flag> {
    (share > SHARE).then(|| {
        let why = format!(
            "The block layer's count of bytes since the totals began differs from the engine's by {}: something else uses the devices, or the I/O is not what it seems.",
            percent(share)
        );
        forbids(format!("{BLOCK_DIFFERS} {}", percent(share)), why)
    })
}

/// What a drive's flag begins with that is no longer there.
const LOST: &str = "lost ";

/// Whether a flag of one window is one of its whole run.
pub fn is_of_the_run(text: &str) -> bool {
    text.starts_with(LOST) || [DEGRADED, RESYNC, ARRAY_FAILED, TIMED_OUT, FULL].contains(&text)
}

/// What the drives below the members did: slowed themselves down, became so warm that they may, or went.
pub(super) fn of_drives(drives: &DriveFigures) -> Vec<Flag> {
    let mut flags = Vec::new();
    if !drives.throttled.is_empty() {
        let why = format!(
            "By their own counts these drives slowed themselves down for their temperature: {}.",
            drives.throttled.join(", ")
        );
        flags.push(forbids("throttled", why));
    }
    if !drives.hot.is_empty() {
        let why = format!(
            "At or above the temperature from which on they may slow themselves down: {}. What was slow may have been that; whether they did is inferred, not told.",
            drives.hot.join(", ")
        );
        flags.push(forbids("hot", why));
    }
    flags.extend(drives.lost.iter().map(|(name, serial)| {
        let serial = serial.as_ref().map_or("no serial known".into(), |serial| format!("serial {serial}"));
        let why = format!("The drive {name} ({serial}) is no longer there: it was pulled, or it died.");
        forbids(format!("{LOST}{name}"), why)
    }));
    flags
}

/// An array that has lost members.
pub(super) fn lost(lost: &Lost) -> Flag {
    let array = &lost.array;
    let members = match (lost.members.as_slice(), lost.missing) {
        ([], 0) => "a member, of which the kernel does not say which".to_owned(),
        ([], missing) => format!("{missing} of its members, of which the kernel does not say which"),
        (members, _) => members.join(", "),
    };
    if lost.failed {
        let why = format!("The {array} has lost {members}, and can't go on without.");
        return forbids(ARRAY_FAILED, why);
    }
    let why = format!(
        "The {array} is degraded: it goes on without {members}, and the figures are not those of the whole array."
    );
    forbids(DEGRADED, why)
}

/// Arrays that do something by themselves.
pub(super) fn upkeep(arrays: &[Upkeep]) -> Option<Flag> {
    let list: Vec<_> = arrays.iter().map(|one| format!("{} ({})", one.array, one.action)).collect();
    (!list.is_empty()).then(|| {
        let why = format!(
            "Beside the load an array works by itself: {}. It takes of the drives' time, and the block layer counts its bytes with the load's.",
            list.join(", ")
        );
        forbids(RESYNC, why)
    })
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
        State::Off => return flags,
        State::Stopped(why) => flags.push(forbids("stopped", format!("The class does not run: {why}."))),
        State::Draining | State::Running | State::Paused => {}
    }
    if of.drained || of.state == State::Draining {
        flags.push(forbids(
            "draining",
            "I/O of a former setting was on its way in this window: the figures belong to no one setting.",
        ));
    }
    if of.interface.touches_storage() {
        flags.extend(of_storage(class, context));
    } else if of.interface.is_simulated() {
        flags.push(notes("simulated", "The devices are simulated, on a clock of their own."));
    } else {
        flags.push(forbids("no storage", "The null interface completes at once: no storage is touched."));
    }
    flags.extend(figures.incidents.map(|incidents| {
        let why = format!(
            "Of this class's commands to drives {}: the figures contain the waiting.",
            words::incidents(incidents)
        );
        forbids(TIMED_OUT, why)
    }));
    flags.extend(figures.cache_share.and_then(cache));
    if let Some(busiest) =
        figures.busiest_worker.filter(|share| *share > WORKER_BOUND && !looks_in_vain(figures))
    {
        let why = format!(
            "A worker is busy {} of its time: it, and not storage, may be the limit. More threads or larger batches may help.",
            percent(busiest)
        );
        flags.push(forbids(WORKER_IS_BOUND, why));
    }
    if drifting {
        flags.push(forbids(
            DRIFTING,
            "The last windows go one way, by over 5%: the load is not steady, and a change may come from that.",
        ));
    }
    if of.interface.touches_storage() && context.target.is_some_and(|target| target.emulated.is_some()) {
        flags.push(notes("emulated", "The drives are emulated: the figures say nothing of real ones."));
    }
    if class == Class::Wal && !context.wal_durable {
        flags.push(notes(
            "not durable",
            "Commits are not flushed (sync = none): they stand for a log in persistent memory, and a crash loses them here.",
        ));
    }
    flags
}

/// Flags that follow from the settings and the target of a class on real storage.
fn of_storage(class: Class, context: &WindowContext) -> Vec<Flag> {
    let mut flags = Vec::new();
    let quietly = context.quietly_buffered();
    let buffering = context.classes[class.index()].buffering;
    if let (Buffering::Direct, Some(why)) = (buffering, quietly) {
        flags.push(forbids(
            "quietly buffered",
            format!("Direct I/O goes through the page cache here: {why}."),
        ));
    }
    let stays_cached =
        buffering == Buffering::Cached || (buffering == Buffering::Direct && quietly.is_some());
    // The log is written once and not read back.
    if class != Class::Wal && stays_cached && context.data_bytes < context.memory_bytes {
        flags.push(forbids(
            "data fits memory",
            "The data is smaller than the memory that the page cache can have, and may come to lie in it.",
        ));
    }
    if !class.writes() && context.data_bytes <= context.block_cache_bytes {
        flags.push(forbids(
            "data fits cache",
            "The data is smaller than RocksDB's own cache of blocks, and may come to lie in it.",
        ));
    }
    if context.unfilled && !class.writes() {
        flags.push(forbids(
            "unfilled",
            "The target was never filled: blocks that were never written may be answered without touching the medium.",
        ));
    }
    flags
}

/// What makes a whole window untrustworthy; with the steal, where it is known well enough.
pub(super) fn of_window(
    context: &WindowContext,
    stolen: Option<f64>,
    settling: bool,
    block_difference: Option<f64>,
) -> Vec<Flag> {
    let mut flags = Vec::new();
    if context.paused {
        flags.push(forbids("paused", "The run was paused in this window."));
    }
    if context.turned {
        flags.push(forbids(
            "turned",
            "A knob turned in this window, or old I/O still drained: it belongs to no one setting.",
        ));
    } else if settling {
        flags.push(forbids(
            SETTLING,
            "The load began or a knob turned less than 2 s or two windows ago: caches, queues and devices still adapt.",
        ));
    }
    // By less a busy processor delays it now and then.
    if context.late_ns > context.window_ns / 2 {
        flags.push(forbids(
            LATE,
            format!(
                "The window ended {:.1} s after its time, for want of a processor: its figures are right for the time that it took, but what was slow may have been the processor.",
                context.late_ns as f64 / 1e9
            ),
        ));
    }
    if context.full {
        flags.push(forbids(
            FULL,
            "Puts stood still, as the file system has no room left: what was slow was that.",
        ));
    }
    if context.pairs && context.block_cache_bytes > 0 && context.data_bytes < 2 * context.block_cache_bytes {
        flags.push(notes(
            "block cache",
            "RocksDB's own cache of blocks can hold more than half of the data: many gets reach no drive.",
        ));
    }
    if context.engine.as_ref().is_some_and(|engine| engine.stopped) {
        flags.push(notes(
            "writes stopped",
            "RocksDB held all writes at the end of this window: its flushes and merges are behind.",
        ));
    }
    flags.extend(stolen.and_then(steal));
    flags.extend(block_difference.and_then(block_differs));
    if let Some(uses) = context.target.and_then(|target| target.mounted.as_deref()) {
        flags.push(forbids(
            "mounted",
            format!("The target is in use ({uses}): others may read and write it at the same time."),
        ));
    }
    flags
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::host::Feature;

    /// A context in which nothing is to be flagged.
    pub fn context() -> WindowContext<'static> {
        let class = ClassContext {
            state: State::Running,
            drained: false,
            interface: Interface::IoUring,
            buffering: Buffering::Direct,
            rate_bytes_per_s: None,
            in_flight_bytes_max: 0,
        };
        WindowContext {
            late_ns: 0,
            window_ns: 1_000_000_000,
            now_ns: 0,
            setting: 0,
            turned: false,
            warmup: false,
            paused: false,
            classes: std::array::from_fn(|_| class.clone()),
            wal_durable: true,
            data_bytes: 4 << 30,
            memory_bytes: 1 << 30,
            target: None,
            unfilled: false,
            written_bytes_total: 0,
            data_set_bytes: 5 << 30,
            pairs: false,
            engine: None,
            block_cache_bytes: 0,
            full: false,
        }
    }

    fn texts(flags: &[Flag]) -> Vec<&str> {
        flags.iter().map(|flag| flag.text.as_str()).collect()
    }

    fn scan(context: &WindowContext) -> Vec<String> {
        let flags = of_class(Class::Scan, context, &ClassFigures::default(), false);
        assert!(flags.iter().all(|flag| flag.why.ends_with('.')), "{flags:?}");
        assert!(
            flags
                .iter()
                .all(|flag| flag.forbids_verdict != ["simulated", "emulated"].contains(&flag.text.as_str())),
            "{flags:?}"
        );
        flags.into_iter().map(|flag| flag.text).collect()
    }

    #[test]
    fn nothing_is_flagged_without_a_reason() {
        let context = context();
        for class in Class::ALL {
            assert_eq!(of_class(class, &context, &ClassFigures::default(), false), []);
        }
        assert_eq!(of_window(&context, Some(0.02), false, Some(0.02)), []);
    }

    #[test]
    fn what_a_class_measured_is_flagged() {
        let figures =
            ClassFigures { cache_share: Some(0.974), busiest_worker: Some(0.96), ..Default::default() };
        let flags = of_class(Class::Scan, &context(), &figures, true);
        assert_eq!(texts(&flags), ["cache 97%", "worker-bound", "drifting"]);
        let figures =
            ClassFigures { cache_share: Some(0.02), busiest_worker: Some(0.95), ..Default::default() };
        assert_eq!(of_class(Class::Scan, &context(), &figures, false), []);
    }

    #[test]
    fn settings_under_which_no_storage_is_measured_are_flagged() {
        let mut context = context();
        context.data_bytes = 1 << 29;
        assert_eq!(scan(&context), [""; 0], "direct I/O does not fill memory");
        context.classes[0].buffering = Buffering::Cached;
        assert_eq!(scan(&context), ["data fits memory"]);
        context.classes[0].buffering = Buffering::Uncached;
        assert_eq!(scan(&context), [""; 0]);
        context.unfilled = true;
        assert_eq!(scan(&context), ["unfilled"]);
        context.classes[0].interface = Interface::Sim;
        assert_eq!(scan(&context), ["simulated"]);
        context.classes[0].interface = Interface::Null;
        assert_eq!(scan(&context), ["no storage"]);
        context.classes[0].state = State::Off;
        assert_eq!(scan(&context), [""; 0]);
    }

    fn target() -> TargetFacts {
        TargetFacts {
            devices: false,
            medium: "btrfs".into(),
            direct: Feature::Present,
            direct_align_bytes: 4096,
            uncached: Feature::Present,
            polled: Feature::Present,
            nvme_commands: Feature::Present,
            quietly_buffered: None,
            emulated: None,
            read_only: false,
            mounted: None,
        }
    }

    #[test]
    fn direct_io_that_is_quietly_buffered_counts_as_cached() {
        let target = TargetFacts { quietly_buffered: Some("btrfs keeps checksums".into()), ..target() };
        let context = WindowContext { target: Some(&target), data_bytes: 1, ..context() };
        assert_eq!(scan(&context), ["quietly buffered", "data fits memory"]);
        assert!(context.through_cache(Class::Scan) && !context.all_direct());
    }

    #[test]
    fn emulated_drives_are_flagged_where_they_are_used() {
        let target = TargetFacts { emulated: Some("QEMU NVMe Ctrl".into()), ..target() };
        let mut emulated = WindowContext { target: Some(&target), ..context() };
        assert_eq!(scan(&emulated), ["emulated"]);
        emulated.classes[0].interface = Interface::Null;
        assert_eq!(scan(&emulated), ["no storage"]);
    }

    #[test]
    fn a_log_without_flushes_is_marked_but_may_be_judged() {
        let context = WindowContext { wal_durable: false, ..context() };
        let flags = of_class(Class::Wal, &context, &ClassFigures::default(), false);
        assert_eq!((texts(&flags), flags[0].forbids_verdict), (vec!["not durable"], false));
    }

    #[test]
    fn what_a_whole_window_is_flagged_for() {
        let flags = of_window(&context(), Some(0.051), true, Some(0.5));
        assert_eq!(texts(&flags), ["settling", "steal 5%", "block layer differs 50%"]);
        let turned = WindowContext { turned: true, paused: true, ..context() };
        assert_eq!(texts(&of_window(&turned, None, true, None)), ["paused", "turned"]);
        let mut draining = context();
        draining.classes[0].state = State::Draining;
        assert_eq!(scan(&draining), ["draining"]);
        draining.classes[0] =
            ClassContext { state: State::Running, drained: true, ..draining.classes[0].clone() };
        assert_eq!(scan(&draining), ["draining"], "it has drained since the window began");
    }

    #[test]
    fn a_window_that_ends_half_of_itself_too_late_is_flagged() {
        let late = |late_ns| WindowContext { late_ns, window_ns: 1_000_000_000, ..context() };
        assert_eq!(of_window(&late(500_000_000), None, false, None), []);
        let flags = of_window(&late(9_100_000_000), None, false, None);
        assert_eq!((texts(&flags), flags[0].forbids_verdict), (vec!["late"], true));
        assert!(flags[0].why.starts_with("The window ended 9.1 s after"), "{}", flags[0].why);
    }

    #[test]
    fn a_target_in_use_is_flagged_with_its_uses() {
        let target =
            TargetFacts { mounted: Some("mounted at /srv, swapped on: /dev/sdb2".into()), ..target() };
        let context = WindowContext { target: Some(&target), ..context() };
        let flags = of_window(&context, None, false, None);
        assert_eq!(texts(&flags), ["mounted"]);
        assert!(
            flags[0].why.starts_with("The target is in use (mounted at /srv, swapped"),
            "{}",
            flags[0].why
        );
    }

    #[test]
    fn a_kind_is_the_text_without_its_figure() {
        assert_eq!(kind("cache 97%"), "cache");
        assert_eq!(kind("block layer differs 3%"), "block layer differs");
        assert_eq!(kind("data fits memory"), "data fits memory");
    }
}
