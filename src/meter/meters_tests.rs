//! Windows and totals from scripted sources.

use super::super::devices::block::BlockProbe;
use super::super::flag::{Flag, FlagKind};
use super::super::flags::tests::context;
use super::super::processors::tasks::TaskProbe;
use super::super::source::LatencyDelta;
use super::*;
use crate::settings::{Buffering, Interface};
use crate::units::MIB;
use crate::units::SECOND_NS;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

type Step = Box<dyn FnMut(&mut Delta) -> bool + Send>;

/// A source that a function fills.
struct Scripted(Class, Step);

impl Source for Scripted {
    fn class(&self) -> Class {
        self.0
    }
    fn counts(&mut self, delta: &mut Delta) -> bool {
        (self.1)(delta)
    }
    fn latencies(&mut self, _: &mut Delta) {}
    fn thread_id(&self) -> Option<i32> {
        None
    }
}

fn members() -> Vec<Member> {
    ["data-0", "data-1"].map(|name| Member { name: name.into(), device: None, path: None }).to_vec()
}

fn meters() -> Meters {
    Meters::new(0, members(), Probes::none())
}

fn simulated(seconds: u64) -> WindowContext<'static> {
    let mut context = WindowContext { now_ns: seconds * SECOND_NS, ..context() };
    for class in &mut context.classes {
        class.interface = Interface::Sim;
    }
    context
}

fn random_source(class: Class, seed: u64) -> Scripted {
    let mut random = StdRng::seed_from_u64(seed);
    let mut left = 30 + seed;
    let step = move |delta: &mut Delta| {
        for _ in 0..random.random_range(0..300) {
            let bits = random.random_range(1..36);
            let ns = random.random_range(0..1 << bits);
            for latency in [&mut delta.service, &mut delta.response, &mut delta.write, &mut delta.flush] {
                latency.histogram.record(ns).unwrap();
                latency.max_ns = latency.max_ns.max(ns);
            }
            delta.ios += 1;
            delta.bytes += 4096;
            delta.members[random.random_range(0..2)].1 += 4096;
        }
        delta.intended += random.random_range(0..1000);
        delta.missed += random.random_range(0..5);
        delta.errnos[random.random_range(0..134)] += 1;
        left -= 1;
        left > 0
    };
    Scripted(class, Box::new(step))
}

#[test]
fn the_counted_windows_sum_exactly_to_the_totals() {
    let mut meters = meters();
    for seed in 0..12 {
        meters.add(Box::new(random_source(Class::ALL[seed as usize % 4], seed)));
    }
    let mut counted = Vec::new();
    for at in 1..=60 {
        let mut context = simulated(at);
        (context.warmup, context.turned, context.paused) = (at < 5, at % 7 == 0, at % 11 == 0);
        let window = meters.window(&context);
        if !window.warmup {
            counted.push(window);
        }
    }
    assert!(meters.sources.is_empty(), "all have ended");
    let totals = meters.totals();
    assert_eq!((totals.windows, totals.duration_s), (56, 56.0));
    for class in Class::ALL {
        let (total, at) = (&totals.classes[class.index()], class.index());
        let sum = |figure: fn(&ClassFigures) -> u64| -> u64 {
            counted.iter().map(|window| figure(window.class(class))).sum()
        };
        assert_eq!(total.ios, sum(|figures| figures.ios));
        assert_eq!(total.bytes, sum(|figures| figures.bytes));
        assert_eq!(total.intended, sum(|figures| figures.intended));
        assert_eq!(total.missed, sum(|figures| figures.missed));
        assert_eq!(total.errors, sum(|figures| figures.errors));
        assert_eq!(total.errors, total.errnos.values().sum::<u64>());
        assert!(total.ios > 0 && total.errors > 0);
        let mut merged = LatencyDelta::default();
        for window in &counted {
            if let Some(histogram) = &window.histograms[at].service {
                merged.histogram.add(histogram).unwrap();
            }
            let max = window.class(class).latencies.service_ns.as_ref().and_then(|latency| latency.max);
            merged.max_ns = merged.max_ns.max(max.unwrap_or(0));
        }
        assert_eq!(total.latencies.service_ns, summarize(&merged));
    }
    assert_eq!(totals.total.bytes, counted.iter().map(|window| window.total.bytes).sum::<u64>());
    for (at, member) in totals.members.iter().enumerate() {
        let written: u64 = counted.iter().map(|window| window.members[at].written_bytes).sum();
        assert_eq!(member.written_bytes, written);
    }
    let written: u64 = totals.members.iter().map(|member| member.written_bytes).sum();
    assert_eq!(written, totals.total.bytes);
    meters.reset_totals();
    assert_eq!(meters.totals().windows, 0);
}

#[test]
fn a_simulated_run_repeats_exactly() {
    let run = || {
        let mut meters = meters();
        meters.add(Box::new(random_source(Class::Wal, 5)));
        let windows: Vec<_> = (1..20).map(|at| meters.window(&simulated(at))).collect();
        (windows, meters.totals())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_rate_with_over_one_percent_missed_is_not_held() {
    let mut meters = meters();
    let mut missed = [10, 11, 0].into_iter();
    let step = move |delta: &mut Delta| {
        delta.ios += 990;
        delta.intended += 1000;
        delta.missed += missed.next().unwrap();
        delta.service.histogram.record(5).unwrap();
        delta.response.histogram.record(5).unwrap();
        true
    };
    meters.add(Box::new(Scripted(Class::Background, Box::new(step))));
    let mut held = Vec::new();
    for at in 1..=3 {
        let mut context = simulated(at);
        context.classes[3].rate_bytes_per_s = Some(25_000_000);
        let window = meters.window(&context);
        let figures = window.class(Class::Background);
        assert_eq!(figures.not_held, figures.latencies.response_ns.is_none());
        assert!(figures.latencies.service_ns.is_some());
        assert_eq!((figures.target_mb_per_s, figures.iops), (Some(25.0), 990.0));
        let totals = meters.totals();
        held.push((!figures.not_held, totals.classes[3].latencies.response_ns.is_some()));
    }
    assert_eq!(held, [(true, true), (false, false), (true, true)]);
}

#[test]
fn the_storage_engines_writes_are_its_part_of_the_amplification() {
    let mut meters = meters();
    let step = |delta: &mut Delta| {
        delta.bytes += 150; // a third of it by gets
        delta.members[0].0 += 50;
        delta.members[0].1 += 100;
        true
    };
    meters.add(Box::new(Scripted(Class::Background, Box::new(step))));
    let engine_with = |bytes: u64| {
        let counts = EngineTotals { log_bytes: bytes, flush_bytes: bytes, ..EngineTotals::default() };
        Some(EngineFigures { counts, ..EngineFigures::default() })
    };
    meters.engine_begins(engine_with(1000)); // what loading wrote does not count
    let mut wrote = Vec::new();
    // In the second window it is closed and reopened.
    for (at, engine) in [(1, engine_with(1050)), (2, None), (3, engine_with(1300))] {
        let context = WindowContext { pairs: true, engine, data_set_bytes: 7000 + at, ..simulated(at) };
        let window = meters.window(&context);
        wrote.push((window.written.application_bytes, window.written.engine_bytes));
    }
    assert_eq!(wrote, [(100, 100), (0, 0), (200, 500)]);
    let totals = meters.totals();
    assert_eq!(totals.written.parts().engine, Some(2.0));
    assert_eq!(totals.written.data_set_bytes, 7003);
    let counts = totals.engine.as_ref().unwrap().counts;
    assert_eq!((counts.user_written_bytes, counts.user_read_bytes), (300, 150));
    assert_eq!(counts.write_amplification(), Some(2.0));
}

#[test]
fn a_trend_and_the_settling_time_are_flagged() {
    let mut meters = meters();
    let mut bytes = 1_000_000;
    let step = move |delta: &mut Delta| {
        bytes += 100_000;
        delta.bytes += bytes;
        true
    };
    meters.add(Box::new(Scripted(Class::Scan, Box::new(step))));
    let flags: Vec<(bool, bool)> = (1..=10)
        .map(|at| {
            let window = meters.window(&simulated(at));
            let has = |flags: &[Flag], kind| flags.iter().any(|flag| flag.is(kind));
            (has(&window.flags, FlagKind::Settling), has(&window.classes[0].flags, FlagKind::Drifting))
        })
        .collect();
    assert_eq!(flags[..2], [(true, false); 2]);
    assert_eq!(flags[2..7], [(false, false); 5]);
    assert_eq!(flags[7..], [(false, true); 3]);
}

#[test]
fn a_pause_and_several_settings_flag_the_totals() {
    let mut meters = meters();
    for at in 1..=30 {
        let context = WindowContext { paused: at == 3, setting: u64::from(at > 9), ..simulated(at) };
        meters.window(&context);
    }
    let totals = meters.totals();
    let texts: Vec<_> = totals.flags.iter().map(|flag| flag.text.as_str()).collect();
    assert_eq!(texts, ["settling", "mixed settings", "paused"]);
    assert_eq!(totals.classes[0].flags[0].text, "simulated");
}

#[test]
fn direct_io_is_compared_with_the_block_layers_count() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("sys/dev/block/259:0");
    std::fs::create_dir_all(&folder).unwrap();
    let stat =
        |sectors: u64| std::fs::write(folder.join("stat"), format!("0 0 {sectors} 0 0 0 0 0")).unwrap();
    stat(0);
    let member = Member { name: "nvme0n1".into(), device: Some((259, 0)), path: None };
    let block = BlockProbe::open(root.path(), &[member.device]);
    let mut meters = Meters::new(0, vec![member], Probes { block, ..Probes::none() });
    let step = |delta: &mut Delta| {
        delta.bytes += 64 * MIB;
        delta.members[0].0 += 64 * MIB;
        true
    };
    meters.add(Box::new(Scripted(Class::Scan, Box::new(step))));
    // 64 MiB are 131,072 sectors.
    for (at, sectors, expected) in
        [(1, 131_072, None), (2, 266_240, None), (3, 420_000, Some("block layer differs 7%"))]
    {
        stat(sectors);
        let window = meters.window(&WindowContext { now_ns: at * SECOND_NS, ..context() });
        assert_eq!(window.members[0].block_written_bytes, Some(0));
        let flag = window.flags.iter().find(|flag| flag.text.starts_with("block"));
        assert_eq!(flag.map(|flag| flag.text.as_str()), expected, "at {at} s");
    }
    assert_eq!(meters.totals().flags.last().unwrap().text, "block layer differs 7%");
    meters.reset_totals();
    stat(551_072);
    let window = meters.window(&WindowContext { now_ns: 4 * SECOND_NS, ..context() });
    assert!(
        !window.flags.iter().any(|flag| flag.text.starts_with("block")),
        "what was before does not count"
    );

    // 4 MiB of 64 are 6%: flagged, unless much of that can be in flight.
    for (at, in_flight_bytes_max, flagged) in [(5, 0, true), (6, MIB / 2, true), (7, MIB, false)] {
        meters.reset_totals();
        stat(551_072 + (at - 4) * 139_264);
        let mut context = WindowContext { now_ns: at * SECOND_NS, ..context() };
        context.classes[0].in_flight_bytes_max = in_flight_bytes_max;
        let window = meters.window(&context);
        assert_eq!(window.flags.iter().any(|flag| flag.text.starts_with("block")), flagged, "at {at} s");
    }
}

struct NoClocks;

impl super::super::processors::tasks::Clocks for NoClocks {
    fn process_ns(&self) -> u64 {
        0
    }
    fn thread_ns(&self, _: i32) -> Option<u64> {
        Some(0)
    }
}

/// A worker with thread number 10 that reads 1000 bytes per window.
struct Reader;

impl Source for Reader {
    fn class(&self) -> Class {
        Class::Scan
    }
    fn counts(&mut self, delta: &mut Delta) -> bool {
        delta.bytes += 1000;
        true
    }
    fn latencies(&mut self, _: &mut Delta) {}
    fn thread_id(&self) -> Option<i32> {
        Some(10)
    }
}

#[test]
fn reads_that_storage_did_not_serve_are_flagged_in_windows_and_totals() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("10")).unwrap();
    let io = folder.path().join("10/io");
    std::fs::write(&io, "read_bytes: 7000").unwrap();
    let tasks = TaskProbe::under(folder.path(), Box::new(NoClocks), 0);
    let mut meters = Meters::new(0, members(), Probes { tasks, ..Probes::none() });
    meters.add(Box::new(Reader));
    let mut shares = Vec::new();
    // Windows of half a second: bytes from storage become known in every other one.
    for (at, read_bytes, turned) in [
        (1, 7000, false),
        (2, 7000, false),
        (3, 7100, false),
        (4, 7500, false),
        (5, 7500, true),
        (6, 9000, false),
        (8, 9600, false),
    ] {
        std::fs::write(&io, format!("rchar: 1\nread_bytes: {read_bytes}\n")).unwrap();
        let mut context = WindowContext { now_ns: at * SECOND_NS / 2, turned, ..context() };
        context.classes[0].buffering = Buffering::Cached;
        shares.push(meters.window(&context).classes[0].cache_share);
    }
    let turned = None;
    assert_eq!(shares, [None, None, None, Some(0.75), Some(0.75), turned, Some(0.4)]);
    let total = &meters.totals().classes[0];
    assert_eq!(total.cache_share, Some(1.0 - 1100.0 / 3000.0));
    assert_eq!(total.flags.iter().map(|flag| flag.text.as_str()).collect::<Vec<_>>(), ["cache 63%"]);
}

#[test]
fn the_cached_share_counts_reads_without_storage() {
    assert_eq!(cache_share(0, 0), None);
    assert_eq!(cache_share(0, 4096), Some(1.0));
    assert_eq!(cache_share(1024, 4096), Some(0.75));
    assert_eq!(cache_share(8192, 4096), Some(0.0), "read-ahead");
    let mut context = context();
    context.classes[0].buffering = Buffering::Cached;
    assert!(context.through_cache(Class::Scan) && !context.through_cache(Class::Point));
}
