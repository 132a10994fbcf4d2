use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::meter::programs::program::{MetricFigures, ProgramFigures};
use crate::meter::turns::recorded_tests::limit_halved;
use crate::units::SECOND_NS;

const MB: u64 = 1_000_000;

/// One second of a run.
#[derive(Clone, Copy)]
struct Second {
    mb: u64,
    amplification: u64,
    capacity_bytes: u64,
}

const LEVEL_SECOND: Second = Second { mb: 100, amplification: 2, capacity_bytes: MB };

fn window(second: u64, of: Second) -> Window {
    let bytes = of.mb * MB;
    let mut window =
        Window { index: second, start_ns: second * SECOND_NS, duration_ns: SECOND_NS, ..Window::default() };
    window.classes[Class::Background.index()].bytes = bytes;
    window.classes[Class::Background.index()].ios = of.mb;
    window.total.bytes = bytes;
    window.written = Written {
        application_bytes: bytes,
        engine_bytes: bytes,
        top_bytes: Some(bytes),
        drives_bytes: Some(bytes * of.amplification),
        capacity_bytes: Some(of.capacity_bytes),
        ..Written::default()
    };
    window
}

fn watched(seconds: impl Iterator<Item = Second>) -> SteadyWatch {
    let mut watch = SteadyWatch::default();
    seconds.enumerate().for_each(|(second, of)| watch.add(&window(second as u64, of)));
    watch
}

fn of(seconds: impl Iterator<Item = Second>) -> Steadiness {
    watched(seconds).steadiness()
}

#[test]
fn a_level_is_steady_after_thirty_seconds_but_not_before() {
    let run = |seconds| of(std::iter::repeat_n(LEVEL_SECOND, seconds));
    assert_eq!(run(29).state, SteadyState::Warming);
    let steady = run(30);
    assert_eq!(
        (steady.state, steady.at_s, steady.to_string().as_str()),
        (SteadyState::Steady, Some(0.0), "steady since 0s")
    );
    assert_eq!(steady.figures, ["background MB/s", "WA-A"]);
    assert_eq!(of(std::iter::empty()), Steadiness::default());
}

#[test]
fn a_run_warms_is_steady_changes_and_is_steady_again() {
    let second = |n: usize| Second {
        mb: [300, 100, 50][[60, 200].iter().filter(|at| n >= **at).count()],
        ..LEVEL_SECOND
    };
    let at = |seconds| of((0..seconds).map(second));
    assert_eq!((at(50).state, at(50).at_s), (SteadyState::Steady, Some(0.0)));
    assert_eq!((at(80).state, at(80).at_s), (SteadyState::Changed, Some(60.0)));
    assert_eq!(at(80).to_string(), "changed at 1m 00s");
    assert_eq!((at(150).state, at(150).at_s), (SteadyState::Steady, Some(60.0)));
    assert_eq!((at(220).state, at(220).at_s), (SteadyState::Changed, Some(200.0)));
    let end = at(300);
    assert_eq!((end.state, end.at_s), (SteadyState::Steady, Some(200.0)));
    let (burst, steady) = (end.burst.unwrap(), end.steady.unwrap());
    // A third of the run each: the burst spans two levels, the steady mean only the last one.
    assert_eq!((burst.from_s, burst.to_s), (0.0, 100.0));
    assert_eq!((burst.mb_per_s, steady.mb_per_s, steady.iops), (220.0, 50.0, 50.0));
    assert_eq!((steady.from_s, steady.to_s, steady.wa_a), (200.0, 300.0, Some(2.0)));
}

#[test]
fn long_runs_have_means_of_ten_minutes() {
    let end = of((0..7200).map(|n| Second { mb: if n < 900 { 300 } else { 100 }, ..LEVEL_SECOND }));
    let (burst, steady) = (end.burst.unwrap(), end.steady.unwrap());
    let long = |mean: &Mean| (mean.to_s - mean.from_s - 600.0).abs() <= 16.0;
    assert!(long(&burst) && long(&steady), "{burst:?} {steady:?}");
    assert_eq!((burst.mb_per_s, steady.mb_per_s), (300.0, 100.0));
    assert!((end.at_s.unwrap() - 900.0).abs() <= 16.0);
}

#[test]
fn a_change_of_wa_a_alone_counts() {
    // Cumulative: it takes a while for the ratio to settle.
    let change = of((0..120).map(|n| Second { amplification: if n < 60 { 2 } else { 8 }, ..LEVEL_SECOND }));
    assert_ne!(change.state, SteadyState::Steady, "{change:?}");
    let rest = of((0..1500).map(|n| Second { amplification: if n < 60 { 2 } else { 8 }, ..LEVEL_SECOND }));
    assert_eq!(rest.state, SteadyState::Steady);
    assert!(rest.at_s.unwrap() > 60.0, "{rest:?}");
    let steady = rest.steady.unwrap();
    assert_eq!((steady.mb_per_s, steady.wa_a), (100.0, Some(8.0)));
}

#[test]
fn without_wa_d_the_drive_must_be_written_three_times_over() {
    // 200 MB a second reach the drives.
    let drive = |capacity_bytes| Second { capacity_bytes, ..LEVEL_SECOND };
    let run = |seconds, capacity_mb| of(std::iter::repeat_n(drive(capacity_mb * MB), seconds));
    let early = run(100, 8_000);
    assert_eq!((early.state, early.level_since_s), (SteadyState::Warming, Some(0.0)));
    assert_eq!(early.capacities_written, Some(2.5));
    assert_eq!(early.waits_for().unwrap(), "level since 0s, WA-D not reported, 2.5 of 3 capacities written");
    assert_eq!(run(120, 8_000).state, SteadyState::Steady);
    // What was written earlier counts; and a load that writes nothing need not wait.
    let mut watch = SteadyWatch::default();
    for second in 0..40 {
        let written_bytes_total = 23_000 * MB + (second + 1) * 100 * MB;
        watch.add(&Window { written_bytes_total, ..window(second, drive(8_000 * MB)) });
    }
    assert_eq!(watch.steadiness().capacities_written, Some((23_000.0 + 8_000.0) / 8_000.0));
    let reads = |second: u64| Window {
        written: Written { capacity_bytes: Some(1 << 40), ..Written::default() },
        ..window(second, LEVEL_SECOND)
    };
    let mut watch = SteadyWatch::default();
    (0..40).for_each(|second| watch.add(&reads(second)));
    assert_eq!(
        (watch.steadiness().state, watch.steadiness().capacities_written),
        (SteadyState::Steady, None)
    );
}

#[test]
fn if_wa_d_is_reported_it_must_be_level_too() {
    let window_of = |second: u64, flash: u64| {
        let mut window = window(second, Second { capacity_bytes: 1 << 40, ..LEVEL_SECOND });
        window.written.host_bytes = Some(200 * MB);
        window.written.flash_bytes = Some(flash * MB);
        window.written.flash_unit_bytes = Some(MB);
        window
    };
    let run = |seconds: u64, flash: fn(u64) -> u64| {
        let mut watch = SteadyWatch::default();
        (0..seconds).for_each(|second| watch.add(&window_of(second, flash(second))));
        watch.steadiness()
    };
    let level = run(60, |_| 300);
    assert_eq!((level.state, level.capacities_written), (SteadyState::Steady, None));
    assert_eq!(level.figures, ["background MB/s", "WA-A", "WA-D"]);
    assert_eq!(level.steady.unwrap().wa_d, Some(1.5));
    // A drive that copies nothing yet may have room left: its level counts from when it was written once.
    let fresh = |seconds: u64, capacity_mb: u64| {
        let mut watch = SteadyWatch::default();
        (0..seconds).for_each(|second| {
            let mut window = window_of(second, 200);
            window.written.capacity_bytes = Some(capacity_mb * MB);
            watch.add(&window);
        });
        watch.steadiness()
    };
    let early = fresh(60, 30_000);
    assert_eq!((early.state, early.capacities_written), (SteadyState::Warming, Some(0.4)));
    assert_eq!(early.waits_for().unwrap(), "WA-D still at 1, 0.4 of 1 capacity written");
    assert_eq!(fresh(60, 8_000).state, SteadyState::Warming, "full for 20 s");
    let full = fresh(80, 8_000);
    assert_eq!((full.state, full.at_s), (SteadyState::Steady, Some(40.0)));
    // Garbage collection begins, at the same throughput so far.
    let collects = run(90, |second| if second < 45 { 200 } else { 600 });
    assert_ne!(collects.state, SteadyState::Steady);
}

#[test]
fn a_turn_or_a_pause_restarts_it() {
    let mut watch = watched(std::iter::repeat_n(LEVEL_SECOND, 40));
    assert!(watch.steadiness().is_steady());
    watch.add(&Window { turned: true, setting: 1, ..window(40, LEVEL_SECOND) });
    let turned = watch.steadiness();
    assert_eq!((turned.state, turned.at_s), (SteadyState::Changed, Some(40.0)));
    (41..70).for_each(|second| watch.add(&Window { setting: 1, ..window(second, LEVEL_SECOND) }));
    assert_eq!(watch.steadiness().state, SteadyState::Changed);
    watch.add(&Window { setting: 1, ..window(70, LEVEL_SECOND) });
    assert_eq!(watch.steadiness().at_s, Some(41.0));
    let mut early = watched(std::iter::repeat_n(LEVEL_SECOND, 10));
    early.add(&Window { paused: true, ..window(10, LEVEL_SECOND) });
    assert_eq!(
        early.steadiness(),
        Steadiness {
            capacities_written: early.steadiness().capacities_written,
            capacities_needed: early.steadiness().capacities_needed,
            ..Steadiness::default()
        }
    );
}

#[test]
fn a_change_in_a_recorded_run_is_found_to_the_second() {
    let windows = limit_halved();
    let after = |count: usize| {
        let mut watch = SteadyWatch::default();
        windows[..count].iter().for_each(|window| watch.add(window));
        watch.steadiness()
    };
    let near = |of: &Steadiness, second: f64| (of.at_s.unwrap() - second).abs() <= 1.0;
    assert_eq!(after(20).state, SteadyState::Warming);
    let (before, changed, end) = (after(58), after(75), after(windows.len()));
    assert!(before.state == SteadyState::Steady && near(&before, 0.0), "{before:?}");
    assert!(changed.state == SteadyState::Changed && near(&changed, 60.0), "{changed:?}");
    assert!(end.state == SteadyState::Steady && near(&end, 60.0), "{end:?}");
    let (burst, steady) = (end.burst.unwrap(), end.steady.unwrap());
    assert!((burst.mb_per_s - 40.0).abs() < 1.0 && (steady.mb_per_s - 20.0).abs() < 1.0);
}

/// Bins whose WA-A changes by a factor at one of them, and 600 after it; each is off by up to `percent`.
fn varying(change_at: usize, factor: f64, percent: f64, seed: u64) -> Vec<Bin> {
    let mut random = SmallRng::seed_from_u64(seed);
    let bin = |at: usize| {
        let level = if at < change_at { 1.5 } else { 1.5 * factor };
        let noise = 1.0 + percent / 100.0 * (random.random::<f64>() * 2.0 - 1.0);
        let application_bytes = 100 * MB;
        let drives_bytes = Some((application_bytes as f64 * level * noise) as u64);
        let written = Written { application_bytes, drives_bytes, ..Written::default() };
        Bin { duration_ns: SECOND_NS, written, ..Bin::default() }
    };
    (0..change_at + 600).map(bin).collect()
}

/// Where WA-A changes, by bin or cumulative.
fn changes_of_wa_a(bins: &[Bin], by_bin: bool) -> Vec<usize> {
    let mut of_wa_a = series(bins, None).into_iter().filter(|series| series.name == "WA-A");
    let series = if by_bin { of_wa_a.next() } else { of_wa_a.next_back() };
    series.map(|series| series.changes()).unwrap_or_default()
}

/// How many bins after such a change it is detected; none within 600.
fn delay(change_at: usize, factor: f64, percent: f64, seed: u64, by_bin: bool) -> Option<usize> {
    let bins = varying(change_at, factor, percent, seed);
    let shows =
        |until: usize| changes_of_wa_a(&bins[..until], by_bin).iter().any(|at| *at + LEVEL / 2 >= change_at);
    (1..600).step_by(4).find(|after| shows(change_at + after))
}

/// After a long time at one level the cumulative ratio moves too slowly to show a change soon.
#[test]
fn a_change_of_amplification_shows_within_forty_bins_however_late_it_comes() {
    const SEEDS: u64 = 3;
    let median = |change_at, factor, percent, by_bin| {
        let mut delays: Vec<_> = (0..SEEDS)
            .map(|seed| delay(change_at, factor, percent, seed, by_bin).unwrap_or(usize::MAX))
            .collect();
        delays.sort_unstable();
        delays[delays.len() / 2]
    };
    let shown = |bins: usize| if bins == usize::MAX { "over 600".into() } else { bins.to_string() };
    println!("WA-A from 1.5; bins from the change until it is found, median of {SEEDS}: by bin, cumulative");
    for (factor, percent) in [(1.2, 5.0), (1.2, 30.0), (1.5, 30.0)] {
        for change_at in [60, 300] {
            let delays = [true, false].map(|by_bin| median(change_at, factor, percent, by_bin));
            let [of_bins, cumulative] = delays.map(shown);
            println!("× {factor}, noise ±{percent}%, after {change_at} bins: {of_bins}, {cumulative}");
            assert!(
                delays[0] <= 40 && delays[0] < delays[1],
                "× {factor}, ±{percent}%, after {change_at}: {delays:?}"
            );
        }
    }
}

/// Bins that merely vary around a level do not look like a change.
#[test]
fn noise_of_the_bins_is_no_change_of_amplification() {
    let alarms = |percent| {
        let found = |seed: &u64| changes_of_wa_a(&varying(600, 1.0, percent, *seed)[..600], true).is_empty();
        (0..100).filter(|seed| !found(seed)).count()
    };
    let found = [5.0, 30.0].map(alarms);
    println!("of 100 runs of 600 bins, with noise of ±5 and ±30%: {found:?} with a change");
    assert!(found.iter().all(|alarms| *alarms <= 2), "{found:?}");
}

/// A second of a program that reports at an interval in seconds, while the drives take that many bytes.
fn of_program(second: u64, (tps, every): (f64, u64), written_bytes: u64) -> Window {
    let mut program = ProgramFigures::default();
    // NaN stands for no report.
    if second % every == every - 1 && !tps.is_nan() {
        let figure = |value, better| MetricFigures { better: Some(better), ..MetricFigures::of(value, "") };
        program.metrics.insert("a latency".into(), figure(1e3 / tps, Better::Lower));
        program.metrics.insert("tps".into(), figure(tps, Better::Higher));
    }
    let mut window = window(second, Second { mb: 0, capacity_bytes: 8_000 * MB, ..LEVEL_SECOND });
    window.written.drives_bytes = Some(written_bytes);
    window.program = Some(program);
    window
}

#[test]
fn the_figure_that_a_program_reports_stands_in_for_the_classes() {
    let run = |seconds, tps: fn(u64) -> f64, every, written_bytes| {
        let mut watch = SteadyWatch::default();
        (0..seconds).for_each(|second| {
            watch.add(&of_program(second, (tps(second), every), written_bytes));
        });
        watch.steadiness()
    };
    let level = run(40, |_| 900.0, 1, 0);
    assert_eq!(
        (level.state, level.at_s, level.figures),
        (SteadyState::Steady, Some(0.0), vec!["tps".to_owned()])
    );
    let mean = level.steady.unwrap();
    assert_eq!((mean.reported, mean.mb_per_s), (Some(900.0), 0.0));
    assert_eq!(run(29, |_| 900.0, 1, 0).state, SteadyState::Warming);
    // It need not report in each window, but thirty times, and until the end.
    assert_eq!(run(40, |_| 900.0, 5, 0).state, SteadyState::Warming);
    let seldom = run(160, |_| 900.0, 5, 0);
    assert_eq!((seldom.state, seldom.at_s), (SteadyState::Steady, Some(4.0)));
    let stops = |second| if second < 50 { 900.0 } else { f64::NAN };
    assert_eq!(run(80, stops, 1, 0).state, SteadyState::Warming, "its last report is old");
    let late = run(60, |second| if second == 59 { 900.0 } else { f64::NAN }, 1, 0);
    assert_eq!(late.state, SteadyState::Warming, "one report says nothing of the time before it");
    let halved = run(70, |second| if second < 45 { 900.0 } else { 450.0 }, 1, 0);
    assert_eq!((halved.state, halved.at_s), (SteadyState::Changed, Some(45.0)));
    // What a file system writes by itself does not make the program one that writes.
    assert_eq!(run(40, |_| 900.0, 1, MB / 2).state, SteadyState::Steady);
    let writes = run(40, |_| 900.0, 1, 200 * MB);
    assert_eq!((writes.state, writes.capacities_written), (SteadyState::Warming, Some(1.0)));
    assert_eq!(run(120, |_| 900.0, 1, 200 * MB).state, SteadyState::Steady);
    // It reports nothing.
    assert_eq!(run(40, |_| 900.0, 1000, 0), Steadiness::default());
}

/// Reports that scatter by a tenth, every five seconds or every second, are not called a change more often than windows.
#[test]
fn a_programs_scattered_reports_are_seldom_called_a_change() {
    let mut random = SmallRng::seed_from_u64(7);
    for every in [1, 5] {
        let changed = (0..200).filter(|_| {
            let mut watch = SteadyWatch::default();
            (0..60 * every).for_each(|second| {
                let tps = 900.0 * (1.0 + 0.1 * (random.random::<f64>() + random.random::<f64>() - 1.0));
                watch.add(&of_program(second, (tps, every), 0));
            });
            watch.steadiness().state != SteadyState::Steady
        });
        let changed = changed.count();
        assert!(changed <= 4, "every {every} s: {changed} of 200");
    }
}
