//! Flags: why a figure may not be the storage's own.
//!
//! Each kind has one row: its text, which is the same on the screen and in files, what it applies to, and
//! whether it forbids a verdict on storage. The table in `assets/help/flags.md` is generated from the rows.

use serde::{Deserialize, Serialize};

/// A reason why a figure is untrustworthy or partial.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flag {
    /// The short text, the same in files and on the screen (`cache 97%`, `settling`).
    pub text: String,
    /// What it means for these figures, in a sentence.
    pub why: String,
    /// Whether it forbids a verdict on storage.
    pub forbids_verdict: bool,
}

/// The kinds of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagKind {
    /// Reads came from the page cache.
    Cache,
    /// The page cache can hold the data.
    DataFitsMemory,
    /// `RocksDB`'s block cache can hold the data.
    DataFitsCache,
    /// Direct I/O goes through the page cache.
    QuietlyBuffered,
    /// No storage is touched.
    NoStorage,
    /// The devices are simulated.
    Simulated,
    /// The drives are emulated.
    Emulated,
    /// Reads of pages that were never written.
    Unfilled,
    /// A worker is the limit.
    WorkerBound,
    /// The windows trend.
    Drifting,
    /// I/O of an earlier setting was in flight.
    Draining,
    /// The class was stopped.
    Stopped,
    /// The class's workers failed.
    Failed,
    /// Commands did not complete in time.
    TimedOut,
    /// I/Os were unfinished long after the run's end.
    Unfinished,
    /// Commits are not flushed.
    NotDurable,
    /// The load has just begun, or a knob has just turned.
    Settling,
    /// A knob turned.
    Turned,
    /// The load was paused.
    Paused,
    /// The window ended late.
    Late,
    /// The hypervisor took CPU time.
    Steal,
    /// Others used the processor.
    Others,
    /// Others used the processor, and left none of it idle.
    ProcessorsFull,
    /// Others used the drives.
    OthersIo,
    /// A program's client could do no more.
    ClientBound,
    /// A program used up the processors.
    CpuBound,
    /// Memory of a program is swapped out.
    Swapped,
    /// A program ended by itself before its time.
    EndedEarly,
    /// The block layer's count differs from the workers'.
    BlockLayerDiffers,
    /// Others may use the target.
    Mounted,
    /// A drive throttled.
    Throttled,
    /// A drive is warm enough to throttle.
    Hot,
    /// A drive is gone.
    Lost,
    /// An array works without a member.
    Degraded,
    /// An array works without a member, as it was set to.
    DegradedAsSet,
    /// An array is rebuilt, as it was set to.
    RebuildingAsSet,
    /// An array has lost too many members.
    ArrayFailed,
    /// An array does its own I/O.
    Resync,
    /// Others changed an attribute that a knob sets.
    OthersChanged,
    /// Puts fail for lack of space.
    DiskFull,
    /// The drives are being traced.
    Traced,
    /// `RocksDB`'s block cache can hold much of the data.
    BlockCache,
    /// `RocksDB` held writes back.
    WritesStopped,
    /// Knobs turned during the run.
    MixedSettings,
    /// Figures of a recording contradict each other.
    Inconsistent,
    /// A turn was not measured for long enough.
    TooShort,
    /// The next turn came before a verdict.
    Overtaken,
    /// Several turns are judged as one.
    Together,
    /// A turn went back to the value before one that could not be judged yet.
    BackBefore,
    /// The line covers all turns of a duel.
    OfDuel,
    /// I/Os failed.
    Errors,
    /// A turn made commits less durable.
    LessDurable,
    /// After a turn, the stack survives less.
    Survives,
}

/// What a flag applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A class in a window.
    Class,
    /// All classes of a window.
    Window,
    /// A whole run only.
    Run,
    /// A turn of a knob, as a line of the ledger shows it.
    Turn,
}

/// What follows a flag's text, with an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adds {
    Nothing,
    /// A share in percent.
    Share(&'static str),
    /// A name or a number.
    Words(&'static str),
    /// A number of cores.
    Cores(&'static str),
}

/// All about a kind of flag.
#[derive(Debug)]
pub struct FlagSpec {
    kind: FlagKind,
    /// Its text, without what may follow it.
    pub text: &'static str,
    adds: Adds,
    /// What it applies to.
    pub scope: Scope,
    /// Whether it forbids a verdict on storage.
    pub forbids_verdict: bool,
    /// Whether it forbids a verdict on cycles and cores alone.
    pub forbids_cycles: bool,
    /// Whether one window marks the whole run; other kinds need a tenth of the windows.
    pub marks_run: bool,
    /// What it means, as the help shows it.
    pub meaning: &'static str,
}

/// A flag that forbids a verdict.
const fn forbids(kind: FlagKind, scope: Scope, text: &'static str, meaning: &'static str) -> FlagSpec {
    FlagSpec {
        kind,
        text,
        adds: Adds::Nothing,
        scope,
        forbids_verdict: true,
        forbids_cycles: false,
        marks_run: false,
        meaning,
    }
}

/// A flag that describes the figures but allows a verdict.
const fn notes(kind: FlagKind, scope: Scope, text: &'static str, meaning: &'static str) -> FlagSpec {
    FlagSpec { forbids_verdict: false, ..forbids(kind, scope, text, meaning) }
}

impl FlagSpec {
    const fn adds(self, adds: Adds) -> Self {
        Self { adds, ..self }
    }

    const fn forbids_cycles(self) -> Self {
        Self { forbids_cycles: true, ..self }
    }

    const fn marks_run(self) -> Self {
        Self { marks_run: true, ..self }
    }

    /// The text with an example of what follows.
    #[cfg(test)]
    pub fn example(&self) -> String {
        match self.adds {
            Adds::Nothing => self.text.to_owned(),
            Adds::Share(example) | Adds::Words(example) | Adds::Cores(example) => {
                format!("{} {example}", self.text)
            }
        }
    }
}

/// The rows, in the order of the kinds.
const SPECS: &[FlagSpec] = &{
    use FlagKind as K;
    use Scope::{Class, Run, Turn, Window};
    [
        forbids(K::Cache, Class, "cache", "that share of the bytes read came from the page cache, without storage I/O")
            .adds(Adds::Share("97%")),
        forbids(K::DataFitsMemory, Class, "data fits memory", "I/O goes through the page cache, which can hold all of the data (within `run.cache_limit`, where that is set)"),
        forbids(K::DataFitsCache, Class, "data fits cache", "the data is smaller than RocksDB's own block cache"),
        forbids(K::QuietlyBuffered, Class, "quietly buffered", "the file system sends direct I/O through the page cache"),
        forbids(K::NoStorage, Class, "no storage", "the interface is `null`: no storage is touched"),
        notes(K::Simulated, Class, "simulated", "the interface is `sim`: the devices are simulated, and a verdict is about them"),
        notes(K::Emulated, Class, "emulated", "a hypervisor emulates the drives, as in the practice array: a verdict is about the emulation, not about drives (a program's windows and run have the flag, too)"),
        forbids(K::Unfilled, Class, "unfilled", "read-only run on pages that were never written"),
        forbids(K::WorkerBound, Class, "worker-bound", "a worker, or a thread of the kernel that serves one, ran, or was ready to run and waited for a CPU, for over 95% of the time: it, and not the drive, may be the limit"),
        forbids(K::Drifting, Class, "drifting", "the last six to ten windows drift in one direction, by over 5%"),
        forbids(K::Draining, Class, "draining", "I/O begun under the old setting was still under way"),
        forbids(K::Stopped, Class, "stopped", "the class was stopped, by errors or because nothing more may be written"),
        forbids(K::Failed, Class, "failed", "a worker of the class panicked or could not start, or its interface broke: it does not run")
            .marks_run(),
        forbids(K::TimedOut, Class, "timed out", "commands to a drive did not complete in time, and were aborted or ended by a reset")
            .marks_run(),
        forbids(K::Unfinished, Class, "unfinished", "I/Os begun before the run's end had not ended `run.drain` after it: they count with their age, and took longer")
            .marks_run(),
        notes(K::NotDurable, Class, "not durable", "commits are acknowledged before they reach the drive"),
        forbids(K::Settling, Window, "settling", "less than 2 s or two windows after the start, a turn or a pause"),
        forbids(K::Turned, Window, "turned", "a knob was turned in the window, or old I/O was still draining: it does not belong to a single setting"),
        forbids(K::Paused, Window, "paused", "the load was paused in the window, or in some of the run's windows"),
        forbids(K::Late, Window, "late", "the window ended late by more than half its length: the load, or something else, took all processors"),
        forbids(K::Steal, Window, "steal", "the hypervisor took that share of the CPU time away (more than 2%, over at least half a second)")
            .adds(Adds::Share("5%")),
        notes(K::Others, Window, "others", "other programs used that many cores (over a tenth of a core and of the busy time), which the whole system's cycles include")
            .adds(Adds::Cores("1.8 cores"))
            .forbids_cycles(),
        forbids(K::ProcessorsFull, Window, "processors full", "all processors were busy (over 90% of their time), and other programs used enough of them to be flagged: the load waited for a processor. A duel goes on, since both of its values wait alike"),
        forbids(K::OthersIo, Window, "others on", "other programs read and wrote at least that much on a drive below the target (over 1 MB/s and a twentieth of what the drive moves): the load may have waited for it")
            .adds(Adds::Words("nvme0n1: 35 MB/s")),
        notes(K::ClientBound, Window, "client-bound", "a program's client (`command.run` beside a server) used over 90% of all processors, or one of its threads ran for over 90% of the time: the load generator, and neither server nor storage, may be the limit"),
        notes(K::CpuBound, Window, "cpu-bound", "a program ran while over 95% of the processors' time was in use: the CPU, not the storage, is the limit"),
        notes(K::Swapped, Window, "swapped", "memory of a program was swapped out: it also waits for the swap device, which may not be one of the target's"),
        notes(K::EndedEarly, Window, "ended early", "a program ended by itself, more than a second before its time: the run was measured until then").marks_run(),
        forbids(K::BlockLayerDiffers, Window, "block layer differs", "the kernel's count of bytes differs from stacktune's by that share")
            .adds(Adds::Share("7%")),
        forbids(K::Mounted, Window, "mounted", "read-only run on a drive that others may use at the same time"),
        forbids(K::Throttled, Window, "throttled", "a drive throttled because of its temperature, by its own counters"),
        forbids(K::Hot, Window, "hot", "a drive was at or above its warning temperature, where it may start to throttle; inferred"),
        forbids(K::Lost, Window, "lost", "that drive is gone").adds(Adds::Words("nvme1n1")).marks_run(),
        forbids(K::Degraded, Window, "degraded", "an array below the target works without a member").marks_run(),
        notes(K::DegradedAsSet, Window, "degraded as set", "the stack's md array works without a member because md.array asks for that").marks_run(),
        notes(K::RebuildingAsSet, Window, "rebuilding as set", "the stack's md array is rebuilt because md.array asks for that").marks_run(),
        forbids(K::ArrayFailed, Window, "array failed", "an array has lost too many members: the classes are stopped, and a recording ends with what was measured")
            .marks_run(),
        forbids(K::Resync, Window, "resync", "an array below the target copies, checks, rebuilds or balances on its own (the kernel does not report a scrub of Btrfs)")
            .marks_run(),
        forbids(K::OthersChanged, Window, "others changed", "somebody else changed an attribute (one that a knob turns) of a drive below the target or of its md array (in a window in which the run itself turns a knob of `queue` or `md`, all changes of that group count as its own): figures from before and after can't be compared")
            .adds(Adds::Words("queue.scheduler"))
            .marks_run(),
        forbids(K::DiskFull, Window, "disk full", "puts waited because the file system has no room left").marks_run(),
        notes(K::Traced, Window, "traced", "the drives below the target were traced meanwhile, which costs some CPU time for each I/O").marks_run(),
        notes(K::BlockCache, Window, "block cache", "RocksDB's block cache can hold more than half of the data: many gets reach no drive"),
        notes(K::WritesStopped, Window, "writes stopped", "RocksDB held all writes back: its flushes and compactions are behind"),
        forbids(K::MixedSettings, Run, "mixed settings", "knobs were turned during the run"),
        forbids(K::Inconsistent, Run, "inconsistent", "figures of the recording contradict each other: it was damaged, or changed after the run"),
        forbids(K::TooShort, Turn, "too short", "fewer than three windows on one side of the turn"),
        forbids(K::Overtaken, Turn, "overtaken by turn", "the next turn came before this one could be judged")
            .adds(Adds::Words("4")),
        notes(K::Together, Turn, "turns", "turns that came too quickly to be judged one by one are judged as one")
            .adds(Adds::Words("3–5 together")),
        forbids(K::BackBefore, Turn, "back before turn", "the knob is back at the value that it had before that turn, which could not be judged yet: the setting is the same on both sides")
            .adds(Adds::Words("3")),
        notes(K::OfDuel, Turn, "duel of", "a duel turned the knob back and forth that many times; its verdict, with each pair, is in `duel.json` if it ended during the recording")
            .adds(Adds::Words("14 turns")),
        notes(K::Errors, Turn, "errors", "I/Os of that class failed"),
        notes(K::LessDurable, Turn, "less durable", "the turn made commits less durable: it is never called a gain"),
        notes(K::Survives, Turn, "survives", "after the turn the stack survives fewer failures: it is never called a gain")
            .adds(Adds::Words("the loss of drives: 2 → 1")),
    ]
};

/// All rows.
#[cfg(test)]
pub fn specs() -> &'static [FlagSpec] {
    SPECS
}

impl FlagKind {
    /// Its row of the table of flags.
    pub fn spec(self) -> &'static FlagSpec {
        &SPECS[self as usize]
    }

    /// The kind of flag that has this text; none if no kind does, as with files of another version.
    pub fn of(text: &str) -> Option<Self> {
        let matches = |spec: &&FlagSpec| match (spec.adds, text.strip_prefix(spec.text)) {
            (_, None) => false,
            (Adds::Nothing, Some(rest)) => rest.is_empty(),
            (Adds::Share(_), Some(rest)) => rest.starts_with(' ') && rest.ends_with('%'),
            (Adds::Words(_), Some(rest)) => rest.starts_with(' '),
            (Adds::Cores(_), Some(rest)) => rest.starts_with(' ') && rest.ends_with(CORES),
        };
        SPECS.iter().find(matches).map(|spec| spec.kind)
    }

    /// Its short text, without what follows it, such as a share.
    pub fn text(self) -> &'static str {
        self.spec().text
    }

    /// Its text with what follows.
    pub fn text_with(self, words: impl std::fmt::Display) -> String {
        format!("{} {words}", self.text())
    }

    /// A flag of this kind, and why.
    pub fn flag(self, why: impl Into<String>) -> Flag {
        self.flag_of(self.text().to_owned(), why)
    }

    /// A flag with a share, 0 to 1, and why.
    pub fn with_share(self, share: f64, why: impl Into<String>) -> Flag {
        self.flag_of(self.text_with(percent(share)), why)
    }

    /// A flag about the named thing, and why.
    pub fn named(self, name: &str, why: impl Into<String>) -> Flag {
        self.flag_of(self.text_with(name), why)
    }

    /// A flag with a number of cores, and why.
    pub fn with_cores(self, cores: f64, why: impl Into<String>) -> Flag {
        self.flag_of(self.text_with(format_args!("{cores:.1}{CORES}")), why)
    }

    /// A flag with a rate on the named drive, in MB/s, and why.
    pub fn with_rate(self, drive: &str, mb_per_s: &str, why: impl Into<String>) -> Flag {
        self.flag_of(self.text_with(format_args!("{drive}: {mb_per_s}{RATE}")), why)
    }

    fn flag_of(self, text: String, why: impl Into<String>) -> Flag {
        Flag { text, why: why.into(), forbids_verdict: self.spec().forbids_verdict }
    }
}

impl Flag {
    /// Whether it is of that kind.
    pub fn is(&self, kind: FlagKind) -> bool {
        FlagKind::of(&self.text) == Some(kind)
    }
}

/// Whether one window with that flag marks its whole run.
pub fn marks_run(flag: &Flag) -> bool {
    FlagKind::of(&flag.text).is_some_and(|kind| kind.spec().marks_run)
}

/// The kind of a turn's flag, with or without its class's name before it; none if unknown.
pub fn kind_of_turns(text: &str) -> Option<FlagKind> {
    let of_class = || text.split_once(' ').and_then(|(_, flag)| FlagKind::of(flag));
    FlagKind::of(text).or_else(of_class)
}

/// Whether a turn's flag forbids a verdict. Unknown flags do.
pub fn forbids_verdict(text: &str) -> bool {
    kind_of_turns(text).is_none_or(|kind| kind.spec().forbids_verdict)
}

/// A share in whole percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// A flag's text without its share, cores or rate: two with the same stem mean the same.
pub fn stem(text: &str) -> &str {
    let number = |text: &&str| text.parse::<f64>().is_ok();
    let parts = if let Some(text) = text.strip_suffix(CORES) {
        text.rsplit_once(' ').filter(|(_, cores)| number(cores))
    } else if let Some(text) = text.strip_suffix(RATE) {
        text.rsplit_once(": ").filter(|(_, rate)| number(rate))
    } else {
        text.rsplit_once(' ').filter(|(_, figure)| figure.ends_with('%'))
    };
    parts.map_or(text, |(stem, _)| stem)
}

/// Follows a number of cores in a flag's text.
const CORES: &str = " cores";
/// Follows a rate in a flag's text.
const RATE: &str = " MB/s";

/// Why cycles and cores are not judged, if one of these flags forbids just that: `others used 1.8 cores`.
pub fn used_by_others<'a>(mut flags: impl Iterator<Item = &'a str>) -> Option<String> {
    let flag = flags.find(|flag| FlagKind::of(flag).is_some_and(|kind| kind.spec().forbids_cycles))?;
    Some(flag.replacen(FlagKind::Others.text(), "others used", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_row_and_is_found_by_its_text() {
        for (at, spec) in SPECS.iter().enumerate() {
            assert_eq!(spec.kind as usize, at, "{}: the rows are in the order of the kinds", spec.text);
            assert_eq!(FlagKind::of(&spec.example()), Some(spec.kind));
            assert!(!spec.meaning.ends_with('.') && !spec.meaning.contains('|'), "{}", spec.text);
        }
        assert_eq!(FlagKind::of("of another version"), None);
        assert_eq!(FlagKind::of("cache"), None, "it always has a share");
    }

    #[test]
    fn a_stem_is_the_text_without_its_share() {
        assert_eq!(stem("cache 97%"), "cache");
        assert_eq!(stem("scan block layer differs 3%"), "scan block layer differs");
        assert_eq!(stem("data fits memory"), "data fits memory");
        assert_eq!(stem("others 1.8 cores"), "others");
        assert_eq!(stem("others on nvme0n1: 35.0 MB/s"), "others on nvme0n1");
        assert_eq!(stem("lost nvme1n1"), "lost nvme1n1", "each drive separately");
    }

    #[test]
    fn cycles_are_not_judged_beside_others() {
        let why = |flags: &[&str]| used_by_others(flags.iter().copied());
        assert_eq!(why(&["steal 5%", "others 1.8 cores"]).as_deref(), Some("others used 1.8 cores"));
        assert_eq!(why(&["steal 5%", "of another version"]), None);
    }

    #[test]
    fn files_have_flags_as_text() {
        let flag = FlagKind::Cache.with_share(0.974, "Why.");
        let json = serde_json::to_string(&flag).unwrap();
        assert_eq!(json, r#"{"text":"cache 97%","why":"Why.","forbids_verdict":true}"#);
        let read: Flag = serde_json::from_str(&json).unwrap();
        assert!(read.is(FlagKind::Cache) && !read.is(FlagKind::BlockCache));
        let old = r#"{"text":"of another version","why":"","forbids_verdict":false}"#;
        assert!(!serde_json::from_str::<Flag>(old).unwrap().forbids_verdict);
    }
}
