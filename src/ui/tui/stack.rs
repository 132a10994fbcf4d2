//! Each layer of the stack: its setting, and the I/O that passes through it.

use super::state::State;
use crate::class::Class;
use crate::host::LevelDrive;
use crate::meter::flag::FlagKind;
use crate::meter::window::{ClassFigures, Latencies, MemberFigures, ProgramFigures, Window};
use crate::meter::written::Written;
use crate::printable;
use crate::runs::session::message::Status;
use crate::settings::knobs::StackLayer;
use crate::settings::{Buffering, Filesystem, Named, Program, Raid, Settings};
use crate::ui::text::NONE;
use crate::units::{approx_size, mb_per_s};

/// The load's and the drives' I/Os may differ in number by a tenth.
const ONE_FOR_ONE_IN: u64 = 10;

/// A layer, as the operator sees it; a figure that is not measured is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerShown {
    /// What it is set to, in a word or two.
    pub setting: String,
    /// More about that.
    pub detail: String,
    /// MB/s through it.
    pub mb_per_s: Option<f64>,
    /// The mean time that it adds to an I/O, in nanoseconds.
    pub mean_ns: Option<f64>,
    /// Its part of the bracket around layers whose time is only known as a sum; empty if there is none.
    pub bracket: &'static str,
    /// Bytes written below it per byte written above it.
    pub amplification: Option<f64>,
    /// The p99 of the time in it, in nanoseconds, by a trace of the window shown; absent without a trace.
    pub traced_p99_ns: Option<u64>,
    /// Whether nothing is there.
    pub is_absent: bool,
}

/// The layer, with the figures shown and the settings that were in force then.
pub fn layer(state: &State, layer: StackLayer) -> LayerShown {
    let Some(status) = state.status_shown() else { return LayerShown::default() };
    let figures = state.figures();
    let window = figures.window.as_deref();
    let written = figures.totals.as_ref().map(|totals| &totals.written);
    let between_ns = window.filter(|_| !status.settings.is_keyed()).and_then(between_ns);
    let bracket = |of: &'static str| if between_ns.is_some() { of } else { "" };
    let settings = &status.settings;
    if let Some(program) = &settings.program {
        return of_program((status, program), window, layer);
    }
    match layer {
        StackLayer::Application => application(settings, window),
        StackLayer::Interface => {
            LayerShown { bracket: bracket("╮"), ..interface(settings, window, written) }
        }
        StackLayer::PageCache => LayerShown { mean_ns: between_ns, ..page_cache(settings, window) },
        StackLayer::FileSystem => LayerShown { bracket: bracket("│"), ..file_system(status, written) },
        StackLayer::Raid => LayerShown { bracket: bracket("╯"), ..raid(settings, window, written) },
        StackLayer::Drives => LayerShown { amplification: wa_d(window, written), ..drives(status, window) },
    }
}

/// The same when a program is the load. How it does its I/O is its own affair; what reaches the devices is counted.
fn of_program(
    (status, program): (&Status, &Program),
    window: Option<&Window>,
    layer: StackLayer,
) -> LayerShown {
    let used = window.and_then(|window| Some((window.program.as_ref()?, window.duration_ns)));
    let passed = |of: fn(&ProgramFigures) -> Option<u64>| {
        used.and_then(|(used, duration_ns)| Some(mb_per_s(of(used)?, duration_ns)))
    };
    let own = |detail: &str| LayerShown {
        setting: "its own".into(),
        detail: detail.to_owned(),
        ..LayerShown::default()
    };
    match layer {
        StackLayer::Application => {
            let path = program.run.first().map_or(NONE, String::as_str);
            let name = path.rsplit('/').next().unwrap_or(path);
            LayerShown { setting: printable::line(name).into_owned(), ..own("a program") }
        }
        StackLayer::Interface => own("as the program asks"),
        StackLayer::PageCache => {
            let held = used
                .and_then(|(used, _)| used.cache_bytes)
                .map(|bytes| format!("holds {}", approx_size(bytes)));
            own(&held.unwrap_or_default())
        }
        StackLayer::FileSystem
            if status.settings.stack.filesystem == Filesystem::None && status.target.is_none() =>
        {
            LayerShown { setting: "the host's".into(), ..LayerShown::default() }
        }
        StackLayer::FileSystem => file_system(status, None),
        StackLayer::Raid => {
            let shown = raid(&status.settings, None, None);
            let top = passed(|used| used.top_read_bytes?.checked_add(used.top_written_bytes?));
            LayerShown { mb_per_s: top.filter(|_| !shown.is_absent), ..shown }
        }
        StackLayer::Drives => LayerShown {
            mb_per_s: passed(|used| used.drives_read_bytes?.checked_add(used.drives_written_bytes?)),
            mean_ns: used.and_then(|(used, _)| used.drives_mean_ns()),
            amplification: wa_d(window, None),
            traced_p99_ns: window.and_then(|window| window.traced_p99_ns),
            ..names_of(&status.circumstances.drives)
        },
    }
}

/// The drives' names, when the target has no members of its own.
fn names_of(drives: &[LevelDrive]) -> LayerShown {
    let names = drives.iter().map(|drive| drive.name.as_str()).collect::<Vec<_>>().join(", ");
    match drives.len() {
        0 => LayerShown { setting: NONE.into(), ..LayerShown::default() },
        1 => LayerShown { setting: names, ..LayerShown::default() },
        many => LayerShown { setting: format!("{many} drives"), detail: names, ..LayerShown::default() },
    }
}

fn enabled(settings: &Settings) -> impl Iterator<Item = Class> {
    Class::ALL.into_iter().filter(|class| settings.classes[class.index()].enabled)
}

fn application(settings: &Settings, window: Option<&Window>) -> LayerShown {
    let classes: Vec<_> = enabled(settings).map(Class::name).collect();
    let setting = match classes.len() {
        0 => "all off".into(),
        1 => "1 class".into(),
        many => format!("{many} classes"),
    };
    LayerShown {
        setting,
        detail: classes.join(" "),
        mb_per_s: window.map(|window| window.total.mb_per_s),
        mean_ns: window.and_then(|window| waiting_ns(&window.classes)),
        ..LayerShown::default()
    }
}

/// The mean time from an I/O's intended start to its hand-over, over all I/Os, as for the layers below: without a
/// rate, the hand-over is the intended start. None if no class has a rate, or one does not keep up with its rate.
fn waiting_ns(classes: &[ClassFigures]) -> Option<f64> {
    let (mut ns, mut ios, mut rated) = (0.0, 0.0, false);
    for class in classes.iter().filter(|class| class.ios > 0) {
        let Latencies { service_ns, response_ns, .. } = &class.latencies;
        if class.target_mb_per_s.is_some() {
            let (service, response) = (service_ns.as_ref()?, response_ns.as_ref()?);
            ns += (response.mean? - service.mean?).max(0.0) * class.ios as f64;
            rated = true;
        }
        ios += class.ios as f64;
    }
    rated.then(|| ns / ios)
}

/// The mean time that an I/O spends between its hand-over and the block layer, both ways: in the interface, the page
/// cache, the file system and RAID. None if the block layer's I/Os don't match the load's one for one, or include
/// other processes': their times can't be subtracted then.
fn between_ns(window: &Window) -> Option<f64> {
    if window.flags.iter().any(|flag| flag.is(FlagKind::OthersIo)) {
        return None;
    }
    let drives = window.drive_ios?;
    let load: u64 = window.classes.iter().map(|class| class.ios).sum();
    let is_one_for_one = load.abs_diff(drives.ios) <= load / ONE_FOR_ONE_IN;
    let (mut ns, mut ios) = (0.0, 0.0);
    // A commit's service latency has its flush, which is no read or write of the drives: only its write counts here.
    let latencies = window.classes.iter().map(|class| &class.latencies);
    for service in latencies.filter_map(|of| of.write_ns.as_ref().or(of.service_ns.as_ref())) {
        ns += service.mean? * service.count as f64;
        ios += service.count as f64;
    }
    let between = drives.mean_ns().map(|drives_ns| ns / ios - drives_ns);
    between.filter(|ns| is_one_for_one && *ns >= 0.0)
}

fn interface(settings: &Settings, window: Option<&Window>, written: Option<&Written>) -> LayerShown {
    let mb_per_s = window.map(|window| window.total.mb_per_s);
    if settings.is_keyed() {
        return LayerShown {
            setting: "RocksDB".into(),
            detail: format!("{} compaction", settings.kv.rocksdb.compaction.name()),
            amplification: written.and_then(|written| written.parts().engine),
            ..LayerShown::default()
        };
    }
    let mut names: Vec<_> = enabled(settings).map(|class| settings.interface_of(class).name()).collect();
    names.dedup();
    let io = &settings.io;
    let setting =
        if names.len() == 1 { names[0].to_owned() } else { names.len().to_string() + " interfaces" };
    LayerShown {
        setting: if names.is_empty() { io.interface.name().to_owned() } else { setting },
        detail: format!("completion {}, submission {}", io.completion.name(), io.submission.name()),
        mb_per_s,
        ..LayerShown::default()
    }
}

fn page_cache(settings: &Settings, window: Option<&Window>) -> LayerShown {
    let limit = settings.run.cache_limit_bytes;
    let detail = limit.map_or_else(String::new, |bytes| format!("at most {}", approx_size(bytes)));
    if settings.is_keyed() {
        let direct = settings.kv.rocksdb.direct_reads;
        let setting = if direct { "bypassed" } else { "cached" };
        return LayerShown { setting: setting.into(), detail, is_absent: direct, ..LayerShown::default() };
    }
    let mut names: Vec<_> = enabled(settings).map(|class| settings.buffering_of(class)).collect();
    names.dedup();
    let setting = match names.as_slice() {
        [Buffering::Direct] | [] => "bypassed".to_owned(),
        [one] => one.name().to_owned(),
        _ => "mixed".to_owned(),
    };
    let hits = window.and_then(|window| cached_bytes(&window.classes));
    LayerShown {
        is_absent: setting == "bypassed",
        setting,
        detail: hits.map_or(detail, |(_, share)| format!("{:.0}% of reads from it", share * 100.0)),
        mb_per_s: window.zip(hits).map(|(window, (bytes, _))| mb_per_s(bytes, window.duration_ns)),
        ..LayerShown::default()
    }
}

/// Bytes that the cache served, and their share of what was read through it.
fn cached_bytes(classes: &[ClassFigures]) -> Option<(u64, f64)> {
    let known = || classes.iter().filter_map(|class| Some((class.bytes as f64, class.cache_share?)));
    let read: f64 = known().map(|(bytes, _)| bytes).sum();
    let hits: f64 = known().map(|(bytes, share)| bytes * share).sum();
    (read > 0.0).then(|| (hits as u64, hits / read))
}

fn file_system(status: &Status, written: Option<&Written>) -> LayerShown {
    let stack = &status.settings.stack;
    let target = status.target.as_ref();
    let own = stack.filesystem != Filesystem::None;
    let found = target.filter(|target| !target.devices).map(|target| target.medium.as_str());
    let unknown = if target.is_some() { "none" } else { NONE };
    let setting = match found.filter(|_| !own) {
        Some(found) => format!("host {found}"),
        None if own => stack.filesystem.name().to_owned(),
        None => unknown.to_owned(),
    };
    LayerShown {
        detail: if own || found.is_none() {
            String::new()
        } else {
            "of the host, not of the stack".to_owned()
        },
        amplification: written.and_then(|written| written.parts().file_system).filter(|_| setting != "none"),
        is_absent: !own && found.is_none(),
        setting,
        ..LayerShown::default()
    }
}

fn raid(settings: &Settings, window: Option<&Window>, written: Option<&Written>) -> LayerShown {
    let stack = &settings.stack;
    if stack.raid == Raid::None {
        return LayerShown { setting: "none".into(), is_absent: true, ..LayerShown::default() };
    }
    LayerShown {
        setting: stack.raid.name().to_owned(),
        detail: format!("chunk {}", approx_size(stack.chunk_bytes)),
        // Btrfs is its own RAID: there is no device above its members.
        mb_per_s: window
            .filter(|_| !stack.raid.is_btrfs())
            .and_then(|window| rate(window, window.read.top_bytes, window.written.top_bytes)),
        amplification: written.and_then(|written| written.parts().raid),
        ..LayerShown::default()
    }
}

fn drives(status: &Status, window: Option<&Window>) -> LayerShown {
    let lies_on: Vec<_> = status.circumstances.drives.iter().map(|drive| drive.name.as_str()).collect();
    let members = window.map_or(&[][..], |window| &window.members);
    let many = members.len();
    let word = if status.target.as_ref().is_some_and(|target| target.devices) { "device" } else { "file" };
    let of_data = match word {
        "device" => status.settings.target.devices.len(),
        _ => status.settings.target.count as usize,
    };
    let with_wal = of_data > 0 && many == of_data + 1;
    let setting = match (many, word) {
        (0, _) => lies_on.first().copied().unwrap_or(NONE).to_owned(),
        (1, _) => members[0].name.clone(),
        (_, word) if with_wal => format!("{of_data}+1 {word}s"),
        (many, word) => format!("{many} {word}s"),
    };
    let wal = if with_wal { ", the WAL's own among them" } else { "" };
    LayerShown {
        setting,
        detail: if lies_on.is_empty() || many == 0 {
            String::new()
        } else {
            format!("on {}{wal}", lies_on.join(", "))
        },
        mb_per_s: window.and_then(|window| {
            rate(window, window.read.drives_bytes, window.written.drives_bytes)
                .or_else(|| block_mb_per_s(&window.members, window.duration_ns))
        }),
        mean_ns: window.and_then(|window| window.drive_ios?.mean_ns()),
        traced_p99_ns: window.and_then(|window| window.traced_p99_ns),
        ..LayerShown::default()
    }
}

/// WA-D since the measurement began; of the window for modelled drives, which count every write.
fn wa_d(window: Option<&Window>, written: Option<&Written>) -> Option<f64> {
    let of_window = window.and_then(|window| window.written.wa_d_of_window());
    of_window.or_else(|| written.and_then(Written::wa_d))
}

/// MB/s on devices as the block layer counted them, reads and writes together.
fn rate(window: &Window, read_bytes: Option<u64>, written_bytes: Option<u64>) -> Option<f64> {
    Some(mb_per_s(read_bytes?.checked_add(written_bytes?)?, window.duration_ns))
}

/// MB/s on all members as the block layer counted them; none if any of them lacks a count.
fn block_mb_per_s(members: &[MemberFigures], duration_ns: u64) -> Option<f64> {
    let bytes = |member: &MemberFigures| Some(member.block_read_bytes? + member.block_written_bytes?);
    let all = members.iter().map(bytes).sum::<Option<u64>>()?;
    (!members.is_empty()).then(|| mb_per_s(all, duration_ns))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::meter::window::{DriveIos, Latency, ReadBelow};
    use crate::ui::tui::fixture;

    #[test]
    fn the_layers_say_what_they_are_set_to_and_no_figure_is_inferred() {
        let state = fixture::running(80, 24);
        let all = StackLayer::ALL.map(|of| layer(&state, of));
        let settings = all.clone().map(|shown| shown.setting);
        assert_eq!(settings, ["4 classes", "io_uring", "bypassed", "host ext4", "none", "4 files"]);
        assert_eq!(all[5].detail, "on nvme0n1");
        assert_eq!(all[5].mb_per_s, None, "the block layer's count of files is unknown");
        assert_eq!(all[3].amplification, Some(1.1));
        assert_eq!(all[0].mean_ns, None, "the WAL does not hold its rate");
        assert_eq!(all[1].mean_ns, None);
    }

    #[test]
    fn a_programs_layers_have_what_was_counted_of_it_and_nothing_of_the_classes() {
        let mut state = fixture::running(80, 24);
        let status = Arc::make_mut(state.status.as_mut().unwrap());
        let run = vec!["/usr/bin/pgbench".to_owned(), "-c".to_owned()];
        status.settings.program = Some(Program { run, ..Program::default() });
        let program = ProgramFigures {
            cache_bytes: Some(1 << 20),
            drives_read_bytes: Some(3_000_000),
            drives_written_bytes: Some(1_000_000),
            drives_ios: Some(4),
            drives_ms: Some(2),
            ..ProgramFigures::default()
        };
        let window = Window { duration_ns: 1_000_000_000, program: Some(program), ..Window::default() };
        state.live.window = Some(Arc::new(window));
        let all = StackLayer::ALL.map(|of| layer(&state, of));
        let settings = all.clone().map(|shown| shown.setting);
        assert_eq!(settings, ["pgbench", "its own", "its own", "host ext4", "none", "nvme0n1"]);
        assert_eq!(all[2].detail, "holds 1.00 MiB");
        assert_eq!(all.clone().map(|shown| shown.mb_per_s), [None, None, None, None, None, Some(4.0)]);
        assert_eq!(all[5].mean_ns, Some(500_000.0));
    }

    #[test]
    fn an_array_has_what_passed_its_device_and_drives_what_passed_theirs() {
        let mut settings = Settings::default();
        settings.stack.raid = Raid::Md1;
        let written =
            Written { top_bytes: Some(1_000_000), drives_bytes: Some(2_000_000), ..Written::default() };
        let window = Window {
            duration_ns: 1_000_000_000,
            read: ReadBelow { top_bytes: Some(3_000_000), drives_bytes: Some(3_000_000) },
            written,
            ..Window::default()
        };
        assert_eq!(raid(&settings, Some(&window), None).mb_per_s, Some(4.0));
        let state = fixture::running(80, 24);
        assert_eq!(drives(state.status.as_ref().unwrap(), Some(&window)).mb_per_s, Some(5.0));
        settings.stack.raid = Raid::Btrfs1;
        assert_eq!(raid(&settings, Some(&window), None).mb_per_s, None, "no device is above its members");
        settings.stack.raid = Raid::Md1;
        let unknown = Window { read: ReadBelow::default(), ..window };
        assert_eq!(raid(&settings, Some(&unknown), None).mb_per_s, None);
    }

    #[test]
    fn what_lies_between_is_known_where_the_drives_ios_are_the_loads() {
        let mut window = fixture::window(3);
        assert_eq!(between_ns(&window), None);
        let load: u64 = window.classes.iter().map(|class| class.ios).sum();
        let mut with = |ios: u64, ns: f64| {
            window.drive_ios = Some(DriveIos { ios, ms: (ios as f64 * ns / 1e6) as u64 });
            between_ns(&window)
        };
        let all = with(load, 0.0).unwrap();
        let rest = with(load + load / 20, all / 2.0).unwrap();
        assert!((rest / all - 0.5).abs() < 0.1, "{rest} of {all}");
        assert_eq!(with(load, all * 2.0), None, "less than the drives'");
        assert_eq!(with(load * 2, all / 2.0), None, "each is split in two");
        let others = Window { drive_ios: Some(DriveIos { ios: load, ms: 0 }), ..window.clone() };
        let flags = vec![FlagKind::OthersIo.with_rate("vda", "5 MB/s", "")];
        assert_eq!(between_ns(&Window { flags, ..others }), None, "some are others'");
        let latencies = &mut window.classes[Class::Wal.index()].latencies;
        let (write, commit) = (latencies.write_ns.clone().unwrap(), latencies.service_ns.as_mut().unwrap());
        assert!(commit.mean > write.mean);
        commit.mean = commit.mean.map(|ns| ns * 10.0);
        assert_eq!(
            between_ns(&Window { drive_ios: Some(DriveIos { ios: load, ms: 0 }), ..window }),
            Some(all),
            "no flush"
        );
    }

    #[test]
    fn the_time_before_the_hand_over_is_a_mean_over_all_ios() {
        let class = |ios, target_mb_per_s, mean: [Option<f64>; 2]| {
            let [service_ns, response_ns] = mean.map(|mean| Some(Latency { mean, ..Latency::default() }));
            let latencies = Latencies { service_ns, response_ns, ..Latencies::default() };
            ClassFigures { ios, target_mb_per_s, latencies, ..ClassFigures::default() }
        };
        let scan = class(900, None, [Some(50.0), None]);
        let rated = class(100, Some(1.0), [Some(50.0), Some(1050.0)]);
        assert_eq!(waiting_ns(&[scan.clone(), rated.clone()]), Some(100.0));
        assert_eq!(waiting_ns(std::slice::from_ref(&scan)), None, "nothing is intended");
        let mut late = rated.clone();
        late.latencies.response_ns = None;
        assert_eq!(waiting_ns(&[scan, rated, late]), None, "a rate is not held");
    }

    #[test]
    fn reads_from_the_cache_are_weighed_by_bytes() {
        let class = |bytes, share| ClassFigures { bytes, cache_share: share, ..ClassFigures::default() };
        let classes = [class(300, Some(1.0)), class(100, Some(0.0)), class(50, None)];
        assert_eq!(cached_bytes(&classes), Some((300, 0.75)));
        assert_eq!(cached_bytes(&[class(50, None)]), None);
    }
}
