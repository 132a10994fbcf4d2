//! Figures of a traced run that decide the claims of He et al. 2017, from its `contract.json`.

use crate::runs::record::{DriveKept, Recording};

/// How often the space must have been overwritten for lifetimes to be meaningful (He et al. 2017).
const WRITTEN_MIN: f64 = 50.0;

/// A figure of a traced run; `stacktune help contract` defines each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeptFigure {
    /// The median size of reads, in KiB.
    ReadKib,
    /// The same of writes.
    WriteKib,
    /// The median depth at reads.
    ReadDepth,
    /// The same at writes.
    WriteDepth,
    /// The upper hinge of the depth at reads: three quarters of reads have at most this depth.
    ReadDepthHigh,
    /// The same at writes.
    WriteDepthHigh,
    /// The share of time with no request in flight, in percent.
    Idle,
    /// Bytes written per flush, in MB.
    WrittenAFlush,
    /// The share of discards among all requests, in percent.
    Discards,
    /// Misses of a mapping cache that covers 1% of the space, in percent.
    Miss1,
    /// The same for 5%.
    Miss5,
    /// The same for 10%.
    Miss10,
    /// Unaligned bytes as a share of those of the application's files, in blocks of 128 KiB.
    UnalignedSmall,
    /// The same in blocks of 1 MiB.
    UnalignedLarge,
    /// The length of the zombie curve relative to the space, in one segment.
    Length,
    /// The same in segments of 128 MiB.
    LengthSegmented,
    /// The invalid share of blocks with some valid data, in percent, in one segment.
    Zombies,
    /// The 99th percentile of writes per page, over their median.
    P99ToP50,
    /// The most writes of a page, over the mean.
    MaxToMean,
    /// Gini's coefficient of writes per page.
    Gini,
    /// How often the space was overwritten.
    TimesWritten,
    /// The share of the first quarter of the space that was written at least once, in percent.
    FirstQuarter,
    /// The same of the last quarter.
    LastQuarter,
}

/// The precondition for judging a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Only that all issued requests are known.
    Nothing,
    /// Completion times as well.
    Completions,
    /// That the zombie curve of that part is stable.
    Stable(&'static str),
    /// That the space was overwritten often enough.
    Traffic,
}

/// A figure: its heading, its key, its place in a drive's part of the file, and the factor that it is multiplied by.
struct Row {
    heading: [&'static str; 2],
    key: &'static str,
    pointer: &'static str,
    times: f64,
    needs: Needs,
    /// Whether it is a count that depends on no clock: such figures are real on emulated drives, too.
    is_count: bool,
}

const KIB: f64 = 1.0 / 1024.0;
const PERCENT: f64 = 100.0;
const TIMES: &str = "/lifetime/times_written";

const fn counted(
    heading: [&'static str; 2],
    key: &'static str,
    pointer: &'static str,
    times: f64,
    needs: Needs,
) -> Row {
    Row { heading, key, pointer, times, needs, is_count: true }
}

/// A figure that depends on when requests came.
const fn timed(heading: [&'static str; 2], key: &'static str, pointer: &'static str, times: f64) -> Row {
    Row { heading, key, pointer, times, needs: Needs::Nothing, is_count: false }
}

/// A figure that also depends on when they were completed.
const fn of_depth(heading: [&'static str; 2], key: &'static str, pointer: &'static str, times: f64) -> Row {
    Row { heading, key, pointer, times, needs: Needs::Completions, is_count: false }
}

impl KeptFigure {
    fn row(self) -> Row {
        const ONE: Needs = Needs::Stable("/grouping/one_segment/is_stable");
        const SEGMENTED: Needs = Needs::Stable("/grouping/segmented/is_stable");
        const ALWAYS: Needs = Needs::Nothing;
        const REQUESTS: [&str; 6] = [
            "/request_scale/by_operation/read/bytes/median",
            "/request_scale/by_operation/write/bytes/median",
            "/request_scale/by_operation/read/depth/median",
            "/request_scale/by_operation/write/depth/median",
            "/request_scale/by_operation/read/depth/upper_hinge",
            "/request_scale/by_operation/write/depth/upper_hinge",
        ];
        let [read, write, read_depth, write_depth, read_high, write_high] = REQUESTS;
        match self {
            Self::ReadKib => timed(["read p50", "KiB"], "read_kib", read, KIB),
            Self::WriteKib => timed(["write p50", "KiB"], "write_kib", write, KIB),
            Self::ReadDepth => of_depth(["read p50", "depth"], "read_depth", read_depth, 1.0),
            Self::WriteDepth => of_depth(["write p50", "depth"], "write_depth", write_depth, 1.0),
            Self::ReadDepthHigh => of_depth(["read p75", "depth"], "read_depth_p75", read_high, 1.0),
            Self::WriteDepthHigh => of_depth(["write p75", "depth"], "write_depth_p75", write_high, 1.0),
            Self::Idle => of_depth(["idle", "%"], "idle_percent", "/request_scale/idle_share", PERCENT),
            Self::WrittenAFlush => {
                let pointer = "/request_scale/written_bytes_a_flush";
                timed(["a flush", "MB"], "written_mb_a_flush", pointer, 1e-6)
            }
            Self::Discards => {
                let pointer = "/request_scale/discard_ratio";
                counted(["discards", "%"], "discard_percent", pointer, PERCENT, ALWAYS)
            }
            Self::Miss1 => misses(["misses", "% at 1%"], "miss_percent_at_1", "/locality/0/ratio"),
            Self::Miss5 => misses(["misses", "% at 5%"], "miss_percent_at_5", "/locality/1/ratio"),
            Self::Miss10 => misses(["misses", "% at 10%"], "miss_percent_at_10", "/locality/2/ratio"),
            Self::UnalignedSmall => {
                counted(["unaligned", "128 KiB"], "unaligned_128_kib", "/alignment/0/ratio", 1.0, ALWAYS)
            }
            Self::UnalignedLarge => {
                counted(["unaligned", "1 MiB"], "unaligned_1_mib", "/alignment/1/ratio", 1.0, ALWAYS)
            }
            Self::Length => {
                counted(["length", "one seg"], "zombie_length", "/grouping/one_segment/length", 1.0, ONE)
            }
            Self::LengthSegmented => {
                let pointer = "/grouping/segmented/length";
                counted(["length", "segmented"], "zombie_length_segmented", pointer, 1.0, SEGMENTED)
            }
            Self::Zombies => {
                let pointer = "/grouping/one_segment/zombie_share";
                counted(["zombies", "%"], "zombie_percent", pointer, PERCENT, ONE)
            }
            Self::P99ToP50 => lifetime(["p99/p50", "writes"], "p99_to_p50", "/lifetime/p99_to_p50"),
            Self::MaxToMean => lifetime(["max/mean", "writes"], "max_to_mean", "/lifetime/max_to_mean"),
            Self::Gini => lifetime(["Gini", "writes"], "gini", "/lifetime/gini"),
            Self::FirstQuarter => {
                let pointer = "/lifetime/written_share_by_quarter/0";
                counted(["first 1/4", "% written"], "first_quarter_percent", pointer, PERCENT, ALWAYS)
            }
            Self::LastQuarter => {
                let pointer = "/lifetime/written_share_by_quarter/3";
                counted(["last 1/4", "% written"], "last_quarter_percent", pointer, PERCENT, ALWAYS)
            }
            Self::TimesWritten => counted(["written", "times"], "times_written", TIMES, 1.0, ALWAYS),
        }
    }

    /// Its heading in two lines: the subject, and its unit.
    pub fn heading(self) -> [&'static str; 2] {
        self.row().heading
    }

    /// Its key in JSON.
    pub fn key(self) -> &'static str {
        self.row().key
    }

    /// Whether it is a count that depends on no clock.
    pub fn is_count(self) -> bool {
        self.row().is_count
    }

    /// The figure of a run, in the unit of its heading; none if it is unknown.
    pub fn of_run(self, recording: &Recording) -> Option<f64> {
        let row = self.row();
        drive(recording).ok()?.number(row.pointer).map(|number| number * row.times)
    }

    /// Why it allows no verdict, in words.
    pub fn obstacle(self, recording: &Recording) -> Option<String> {
        let drive = match drive(recording) {
            Ok(drive) => drive,
            Err(why) => return Some(why),
        };
        match self.row().needs {
            Needs::Stable(pointer) if drive.is(pointer) != Some(true) => {
                Some("the zombie curve still moves: trace for longer (--for)".into())
            }
            Needs::Completions => {
                let lost = recording.contract.as_ref().map_or(0, |contract| contract.lost);
                (lost > 0).then(|| format!("completions are missing from its trace: {lost}"))
            }
            Needs::Traffic => {
                let times = drive.number(TIMES).unwrap_or(0.0);
                (times < WRITTEN_MIN).then(|| {
                    format!(
                        "the space was written {times:.1} times, not {WRITTEN_MIN}: trace for longer (--for)"
                    )
                })
            }
            _ => None,
        }
    }
}

fn misses(heading: [&'static str; 2], key: &'static str, pointer: &'static str) -> Row {
    counted(heading, key, pointer, PERCENT, Needs::Nothing)
}

fn lifetime(heading: [&'static str; 2], key: &'static str, pointer: &'static str) -> Row {
    counted(heading, key, pointer, 1.0, Needs::Traffic)
}

/// The drive of a run whose trace has all issued requests; else why there is none.
fn drive(recording: &Recording) -> Result<&DriveKept, String> {
    let contract = recording.contract.as_ref().ok_or("the run was not traced")?;
    if contract.lost > contract.lost_completions {
        return Err(format!("events are missing from its trace: {}", contract.lost));
    }
    if contract.is_cut {
        return Err("its trace ended before the run did".into());
    }
    match &contract.drives[..] {
        [drive] => drive.why.as_ref().map_or(Ok(drive), |why| Err(format!("{}: {why}", drive.name))),
        drives => Err(format!("its trace is of {} drives", drives.len())),
    }
}
