//! A run as the session would tell it, with figures that never change, for the screen's tests.

use std::sync::Arc;
use std::time::Duration;

use crate::class::Class;
use crate::error::Error;
use crate::host::LevelDrive;
use crate::host::{Facts, Feature, TargetFacts};
use crate::meter::steady_state::Steadiness;
use crate::meter::totals::Totals;
use crate::meter::variability::Variability;
use crate::meter::window::{
    Change, ClassFigures, CpuFigures, Flag, Latency, LedgerLine, MemberFigures, State as ClassState,
    TotalFigures, Verdict, Window,
};
use crate::meter::written::Written;
use crate::runs::pitfalls::Circumstances;
use crate::runs::session::Event;
use crate::runs::session::message::{Advance, Phase, PlanShown, Progress, Status, Wanted};
use crate::settings::{Interface, Settings};
use crate::stack::plan::{DriveWear, Endurance, PowerCutReason, Properties, Rated, Resilience};
use crate::ui::tui::message::Msg;
use crate::ui::tui::state::State;
use crate::ui::tui::theme::Theme;
use crate::ui::tui::update::update;
use crate::units::{GIB, SECOND_NS};

/// A host of two CPUs whose kernel does not know `RWF_DONTCACHE`.
pub fn facts() -> Facts {
    Facts {
        hostname: "host".into(),
        distribution: "Debian GNU/Linux 13".into(),
        kernel: "6.12.0".into(),
        cpu: crate::host::Cpu {
            model: "A processor".into(),
            online: vec![0, 1],
            nodes: vec![crate::host::Node { id: 0, cpus: vec![0, 1] }],
            governor: None,
            mitigations: std::collections::BTreeMap::new(),
            clocksource: Some("tsc".into()),
        },
        memory_bytes: 8 * GIB,
        virtualization: None,
        memlock_bytes: None,
        io_uring: Feature::Present,
        libaio: Feature::Missing("this container forbids io_setup".into()),
        dontcache: Feature::Missing("kernel 6.12 has no RWF_DONTCACHE (6.14 does)".into()),
        perf: Feature::Missing("no performance-monitoring unit".into()),
        cgroup_memory: crate::host::CgroupMemory {
            version: None,
            limit: Feature::Missing("no cgroups".into()),
        },
        platform: crate::host::Platform::default(),
        storage: crate::host::Storage::default(),
        devices: Vec::new(),
    }
}

pub fn settings() -> Settings {
    let mut settings = Settings { name: "demo".into(), ..Settings::default() };
    settings.classes[Class::Wal.index()].rate_bytes_per_s = Some(25_000_000);
    settings.classes[Class::Background.index()].rate_bytes_per_s = Some(25_000_000);
    settings.run.max_writes_bytes = Some(20 * GIB);
    settings
}

pub fn status(phase: Phase) -> Status {
    let target = TargetFacts {
        devices: false,
        medium: "ext4".into(),
        direct: Feature::Present,
        direct_align_bytes: 4096,
        uncached: Feature::Present,
        polled: Feature::Present,
        nvme_commands: Feature::Present,
        quietly_buffered: None,
        emulated: None,
        read_only: false,
        mounted: None,
    };
    Status {
        settings: settings(),
        facts: Arc::new(facts()),
        target: (phase != Phase::Opening).then_some(target),
        phase,
        draining: Vec::new(),
        fallbacks: Vec::new(),
        notes: Vec::new(),
        written_bytes: 5 * GIB,
        recording: None,
        circumstances: Circumstances {
            drives: vec![LevelDrive {
                name: "nvme0n1".into(),
                model: Some("Consumer Drive 990".into()),
                size_bytes: 1000 * GIB,
                real: true,
            }],
            data_bytes: 4 * GIB,
            memory_bytes: 64 * GIB,
            state: "as-is".into(),
            use_percent: 100,
            files: true,
            ..Circumstances::default()
        },
        properties: None,
        standing: false,
    }
}

fn latency(p50: u64) -> Latency {
    Latency {
        count: 100_000,
        mean: Some(p50 as f64 * 1.1),
        p50: Some(p50),
        p90: Some(p50 * 3 / 2),
        p99: Some(p50 * 3),
        p999: Some(p50 * 8),
        p9999: Some(p50 * 15),
        max: Some(p50 * 20),
    }
}

/// A figure that swings a little with the window, the same in every run.
fn swing(base: f64, index: u64) -> f64 {
    const SWING: [f64; 8] = [1.0, 1.04, 0.97, 1.02, 0.93, 1.06, 0.99, 0.96];
    base * SWING[(index % 8) as usize]
}

/// The figures of a class in a window: what a consumer drive does.
fn class(class: Class, index: u64) -> ClassFigures {
    // From the turn at the 40th window on the scan is deeper.
    let scan = if index < 40 { 1850.0 } else { 2310.0 };
    let (mb, p50, target) = match class {
        Class::Scan => (swing(scan, index), 820_000.0, None),
        Class::Point => (swing(158.0, index * 3), 96_000.0, None),
        Class::Wal => (swing(6.2, index * 5), 2_400_000.0, Some(25.0)),
        Class::Background => (25.0, 41_000.0, Some(25.0)),
    };
    let p50 = swing(p50, index * 7) as u64;
    let bytes = (mb * 1e6) as u64;
    let rated = target.is_some();
    let wal = class == Class::Wal;
    ClassFigures {
        state: ClassState::Running,
        ios: bytes / 16384,
        bytes,
        mb_per_s: mb,
        iops: (bytes / 16384) as f64,
        intended: if rated { 1525 } else { 0 },
        missed: if wal { 1147 } else { 0 },
        target_mb_per_s: target,
        not_held: wal,
        latencies: crate::meter::window::Latencies {
            service_ns: Some(latency(p50)),
            response_ns: (rated && !wal).then(|| latency(p50 * 5 / 4)),
            write_ns: wal.then(|| latency(p50 / 20)),
            flush_ns: wal.then(|| latency(p50 * 19 / 20)),
        },
        busiest_worker: Some(0.4),
        ..ClassFigures::default()
    }
}

pub fn window(index: u64) -> Window {
    let classes = Class::ALL.map(|c| class(c, index));
    let bytes = classes.iter().map(|c| c.bytes).sum::<u64>();
    let quarter = bytes / 4;
    Window {
        index,
        start_ns: index * SECOND_NS,
        duration_ns: SECOND_NS,
        setting: u64::from(index >= 40),
        turned: index == 40,
        total: TotalFigures {
            bytes,
            mb_per_s: bytes as f64 / 1e6,
            cycles_per_byte: Some(1.37),
            cycles_per_op: Some(22_400.0),
        },
        cpu: cpu(),
        members: (0..4)
            .map(|i| MemberFigures {
                name: format!("data-{i}"),
                read_bytes: quarter + i * 1_000_000,
                written_bytes: 6_250_000,
                ..MemberFigures::default()
            })
            .collect(),
        written_bytes_total: 5 * GIB + index * 31_200_000,
        classes,
        ..Window::default()
    }
}

fn cpu() -> CpuFigures {
    CpuFigures {
        cpus: 2,
        user: 0.11,
        system: 0.43,
        interrupt: 0.05,
        steal: 0.002,
        busy: 0.592,
        own_cores: 1.06,
        overhead_cores: 0.012,
        cycles: 3.4e9,
        frequency_hz: Some(2.9e9),
        frequency_source: Some("/proc/cpuinfo".into()),
        ..CpuFigures::default()
    }
}

pub fn totals(windows: u64) -> Totals {
    let mut classes = Class::ALL.map(|c| class(c, windows));
    for class in &mut classes {
        class.bytes *= windows;
        class.ios *= windows;
    }
    Totals {
        engine: None,
        duration_s: windows as f64,
        windows,
        classes,
        total: TotalFigures {
            bytes: 1,
            mb_per_s: 2400.0,
            cycles_per_byte: Some(1.41),
            cycles_per_op: Some(23_100.0),
        },
        cpu: cpu(),
        members: {
            let mut members = window(windows).members;
            for member in &mut members {
                member.read_bytes *= windows;
                member.written_bytes *= windows;
            }
            members
        },
        written: written(windows),
        steadiness: steadiness(windows),
        variability: Variability {
            of_s: 1,
            spans: windows,
            swing: Some(0.13),
            deviation: Some(0.04),
            stalled_s: 2.0,
            classes_stalled_s: [0.0, 0.0, 2.0, 0.0],
        },
        flags: Vec::new(),
    }
}

/// A consumer drive that does not tell what it writes to flash.
fn written(windows: u64) -> Written {
    let application_bytes = windows * 31_200_000;
    Written {
        application_bytes,
        engine_bytes: application_bytes,
        top_bytes: Some(application_bytes * 11 / 10),
        drives_bytes: Some(application_bytes * 11 / 10),
        capacity_bytes: Some(1000 * GIB),
        data_set_bytes: 5 * GIB,
        used_bytes: Some(5 * GIB),
        used_bytes_max: Some(5 * GIB),
        ..Written::default()
    }
}

fn steadiness(windows: u64) -> Steadiness {
    let bytes = 5 * GIB + windows * 34_320_000;
    Steadiness {
        level_since_s: (windows >= 30).then_some(0.0),
        capacities_written: Some(bytes as f64 / (1000 * GIB) as f64),
        capacities_needed: Some(3.0),
        figures: vec!["scan MB/s".into()],
        ..Steadiness::default()
    }
}

fn change(before: f64, after: f64, verdict: Verdict) -> Change {
    Change {
        before: Some(before),
        before_range: Some((before * 0.97, before * 1.04)),
        after: Some(after),
        after_range: Some((after * 0.97, after * 1.04)),
        verdict,
    }
}

/// Four turns: a gain, a loss of durability, one under a flag, and one that still gathers.
pub fn ledger() -> Vec<LedgerLine> {
    let line = |number: u64, at_s: u64, knob: &str, from: &str, to: &str| LedgerLine {
        number,
        at_ns: at_s * SECOND_NS,
        knob: knob.into(),
        from: from.into(),
        to: to.into(),
        scan_mb_per_s: change(1850.0, 2310.0, Verdict::Higher),
        point_p99_ns: change(288_000.0, 291_000.0, Verdict::NoClearChange),
        wal_p99_ns: change(7_200_000.0, 7_150_000.0, Verdict::NoClearChange),
        total_mb_per_s: change(2040.0, 2500.0, Verdict::Higher),
        cycles_per_byte: change(1.52, 1.37, Verdict::Lower),
        windows: (8, 8),
        ..LedgerLine::default()
    };
    vec![
        line(1, 40, "scan.depth", "64", "128"),
        LedgerLine {
            less_durable: true,
            wal_p99_ns: change(7_200_000.0, 46_000.0, Verdict::Lower),
            ..line(2, 52, "wal.sync", "fdatasync", "none")
        },
        LedgerLine {
            undo: true,
            flags: vec!["cache 97%".into(), "drifting".into()],
            scan_mb_per_s: change(2310.0, 2290.0, Verdict::None),
            point_p99_ns: change(291_000.0, 290_000.0, Verdict::None),
            wal_p99_ns: change(46_000.0, 7_210_000.0, Verdict::None),
            total_mb_per_s: change(2500.0, 2480.0, Verdict::None),
            cycles_per_byte: change(1.37, 1.38, Verdict::None),
            ..line(3, 58, "wal.sync", "none", "fdatasync")
        },
        LedgerLine {
            number: 4,
            at_ns: 66 * SECOND_NS,
            knob: "io.page_size".into(),
            from: "16KiB".into(),
            to: "64KiB".into(),
            open: true,
            scan_mb_per_s: Change { before: Some(2290.0), ..Change::default() },
            ..LedgerLine::default()
        },
    ]
}

pub fn wanted() -> Wanted {
    Wanted {
        typed: "S4EWNX0R123456".into(),
        path: "/dev/disk/by-id/nvme-Samsung_SSD_970_EVO_Plus_1TB_S4EWNX0R123456-part-of-a-very-long-name"
            .into(),
        model: Some("Samsung SSD 970 EVO Plus 1TB".into()),
        serial: Some("S4EWNX0R123456".into()),
        size_bytes: 1_000_204_886_016,
        content: vec![
            "a GPT partition table with 3 partitions".into(),
            "an ext4 file system `home` at partition 2, last mounted at /home".into(),
            "pages that are not zero and not stacktune's at 14 of 16 sampled places".into(),
        ],
    }
}

fn drive(number: u64) -> Wanted {
    let serial = format!("S4EWNX0R12345{number}");
    Wanted {
        typed: serial.clone(),
        path: format!(
            "/dev/disk/by-id/nvme-SAMSUNG_MZQL23T8HCLS-00A07_{serial}_with_a_name_that_goes_on_and_on_{number}"
        )
        .into(),
        model: Some("SAMSUNG MZQL23T8HCLS-00A07".into()),
        serial: Some(serial),
        size_bytes: 3_840_755_982_336,
        content: vec![
            "a GPT partition table with 3 partitions".into(),
            format!("an xfs file system `archive-{number}` at partition 2, last mounted at /srv/archive"),
        ],
    }
}

/// A plan over four drives by long names that hold something.
pub fn plan_destroying() -> PlanShown {
    let drives: Vec<_> = (1..=4).map(drive).collect();
    let parts: Vec<_> = drives.iter().map(|drive| format!("{}-part1", drive.path.display())).collect();
    let mut lines: Vec<_> =
        drives.iter().map(|drive| format!("blkdiscard -f {}", drive.path.display())).collect();
    lines.extend(drives.iter().map(|drive| {
        let path = drive.path.display();
        format!("sgdisk --clear --new=1:0:+2861GiB --typecode=1:8300 --change-name=1:stacktune {path}")
    }));
    lines.push(format!(
        "mdadm --create /dev/md/stacktune-7f3a --level=5 --chunk=512 --raid-devices=4 --assume-clean {}",
        parts.join(" ")
    ));
    lines.push("mkfs.xfs -f -L 'stack  tune' /dev/md/stacktune-7f3a".into());
    lines.push("mount -o noatime /dev/md/stacktune-7f3a /var/lib/stacktune/mounts/7f3a".into());
    PlanShown {
        number: 7,
        opens: None,
        turns: vec![
            ("stack.filesystem".into(), "none".into(), "xfs".into()),
            ("stack.raid".into(), "none".into(), "md5".into()),
            ("stack.use".into(), "100%".into(), "80%".into()),
        ],
        takes_down: Vec::new(),
        times: (0..lines.len()).map(|at| Some(Duration::from_millis(420 + at as u64 * 60_000))).collect(),
        lines,
        destroys: drives,
        writes_bytes: 500_000_000_000,
        wear: wear(),
        properties: Some(properties()),
        last_time: Some(Duration::from_secs(754)),
    }
}

/// The same steps over drives that hold nothing.
pub fn plan_long() -> PlanShown {
    PlanShown {
        destroys: Vec::new(),
        wear: Vec::new(),
        times: Vec::new(),
        last_time: None,
        ..plan_destroying()
    }
}

/// A plan that opens other files.
pub fn plan_short() -> PlanShown {
    PlanShown {
        number: 3,
        opens: None,
        turns: vec![("target.files.count".into(), "4".into(), "8".into())],
        takes_down: Vec::new(),
        lines: vec![
            "open 8 files in /tmp/demo, 10.0 GiB with the WAL".into(),
            "fill what is not filled".into(),
        ],
        destroys: Vec::new(),
        writes_bytes: 0,
        wear: Vec::new(),
        properties: None,
        times: Vec::new(),
        last_time: None,
    }
}

/// What four drives lose by 116 GiB each.
fn wear() -> Vec<DriveWear> {
    let endurance = Endurance { rated: Some(Rated::DataSheet(1_200_000_000_000_000)), used_percent: Some(4) };
    let wear =
        |number| DriveWear { drive: format!("nvme{number}n1"), writes_bytes: 124_554_051_584, endurance };
    (1..=4).map(wear).collect()
}

/// What a RAID 5 survives.
pub fn properties() -> Properties {
    Properties {
        resilience: Resilience { power_cut: PowerCutReason::UnknownCache, drives_lost: 1, fewer: None },
        usable_bytes: 9_213_829_836_964,
        price: None,
        price_missing: None,
    }
}

/// A run on a stack that stands.
pub fn standing(columns: u16, lines: u16) -> State {
    let mut state = running(columns, lines);
    tell(&mut state, Event::Status(Arc::new(standing_status())));
    state
}

pub fn standing_status() -> Status {
    Status { properties: Some(properties()), standing: true, ..status(Phase::Running) }
}

/// A screen in the middle of building.
pub fn building(columns: u16, lines: u16) -> State {
    let mut state = running(columns, lines);
    tell(&mut state, Event::Status(Arc::new(status(Phase::Building))));
    let advance = Advance {
        step: 8,
        steps: 11,
        command: plan_destroying().lines[8].clone(),
        undoing: false,
        bytes: Some((412_000_000_000, 1_030_000_000_000)),
        left_s: Some(1550.0),
    };
    tell(&mut state, Event::Step(advance));
    state
}

/// What mkfs said.
pub fn build_error() -> Error {
    Error::failed(
        "`mkfs.xfs -f /dev/md/stacktune-7f3a` failed with exit status 1: mkfs.xfs: cannot open \
         /dev/md/stacktune-7f3a: Device or resource busy\nmkfs.xfs: another process holds it; \
         the file system was not made, and nothing was written to the device",
    )
    .hint("everything before this step was undone")
}

/// A screen after building failed.
pub fn failed(columns: u16, lines: u16) -> State {
    let mut state = building(columns, lines);
    let mut former = settings();
    former.stack.raid = crate::settings::Raid::Md0;
    tell(&mut state, Event::Former(Box::new(former)));
    tell(&mut state, Event::Ended(Err(build_error())));
    state
}

/// A screen at that size that knows nothing yet.
pub fn empty(columns: u16, lines: u16) -> State {
    State::new(Theme::mono(), columns, lines)
}

pub fn tell(state: &mut State, event: Event) {
    update(state, Msg::Session(event));
}

/// A screen while the data files are filled.
pub fn filling(columns: u16, lines: u16) -> State {
    let mut state = empty(columns, lines);
    tell(&mut state, Event::Status(Arc::new(status(Phase::Filling))));
    let progress = Progress {
        what: "filling data-2".into(),
        done_bytes: 9 * GIB / 4,
        all_bytes: 5 * GIB,
        rate_bytes_per_s: 412e6,
    };
    tell(&mut state, Event::Progress(progress));
    state
}

/// A screen after 70 windows without a turn.
pub fn running(columns: u16, lines: u16) -> State {
    running_for(70, columns, lines)
}

/// A screen after so many windows.
pub fn running_for(windows: u64, columns: u16, lines: u16) -> State {
    let mut state = empty(columns, lines);
    tell(&mut state, Event::Status(Arc::new(status(Phase::Running))));
    for index in 0..windows {
        tell(&mut state, Event::Window(Arc::new(window(index)), Arc::new(totals(index + 1))));
    }
    state
}

/// The same with four turns.
pub fn turned(columns: u16, lines: u16) -> State {
    let mut state = running(columns, lines);
    for line in ledger() {
        tell(&mut state, Event::Ledger(Arc::new(line)));
    }
    state
}

/// The same with errors, flags, a stopped class, fallbacks and notes.
pub fn troubled(columns: u16, lines: u16) -> State {
    let mut state = turned(columns, lines);
    let flag = |text: &str, why: &str| Flag { text: text.into(), why: why.into(), forbids_verdict: true };
    let mut bad = status(Phase::Running);
    bad.settings.io.interface = Interface::IoUring;
    bad.draining = vec!["io.page_size".into()];
    bad.fallbacks = vec!["unregistered buffers: RLIMIT_MEMLOCK is 64KiB".into()];
    bad.notes = vec!["the flush covers the whole device".into()];
    tell(&mut state, Event::Status(Arc::new(bad)));
    let mut window = window(70);
    let mut totals = totals(71);
    window.turned = true;
    window.flags = vec![flag("steal", "other guests took 12% of the CPU time")];
    let scan = &mut window.classes[0];
    scan.flags = vec![
        flag("cache 97%", "reads were served without storage I/O"),
        flag("data fits memory", "the data is smaller than the memory"),
    ];
    let point = &mut window.classes[1];
    *point = ClassFigures {
        state: ClassState::Stopped("1,204 errors in a second".into()),
        errors: 1204,
        ..ClassFigures::default()
    };
    window.classes[3].state = ClassState::Off;
    window.classes[3].latencies = crate::meter::window::Latencies::default();
    window.classes[3].mb_per_s = 0.0;
    window.classes[3].iops = 0.0;
    totals.classes[1].errors = 1209;
    totals.classes[1].errnos = [("EIO".to_owned(), 1204), ("ETIMEDOUT".to_owned(), 5)].into();
    tell(&mut state, Event::Window(Arc::new(window), Arc::new(totals)));
    tell(&mut state, Event::Notice("point was paused: 1,204 errors in a second".into()));
    state
}
