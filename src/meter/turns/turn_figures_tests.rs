//! How often percentiles of pooled windows differ clearly between equal settings, on synthetic samples.

use std::sync::Arc;

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::meter::turns::estimate::tests::{KINDS, Kind, Series, series};
use crate::meter::window::LedgerLine;

/// A window of I/Os with this level; their latencies are twice exponential, with a long tail.
fn window(level: f64, ios: u64, random: &mut SmallRng) -> Measured {
    let mut histogram = Histogram::new(3).unwrap();
    for _ in 0..ios {
        let of = |random: &mut SmallRng| -random.random::<f64>().max(1e-12).ln();
        let ns = level * (1.0 + of(random) * of(random));
        histogram.record(ns as u64).unwrap();
    }
    let samples = Arc::new(Samples::of(&histogram, None));
    Measured { latencies: [Some(samples.clone()), Some(samples)], ..Measured::default() }
}

/// The line of a turn that changes the level by a factor; `ios` are the I/Os per window before and after it.
fn line(kind: Kind, seed: u64, ios: (u64, u64), factor: f64) -> LedgerLine {
    let (mut series, mut random) = (Series::new(kind, seed), SmallRng::seed_from_u64(seed));
    let before: Vec<_> = (0..20).map(|_| window(series.next(1e5), ios.0, &mut random)).collect();
    series.take(1e5, GAP_WINDOWS);
    let after = if ios.1 * 5 < 1000 { 1000_u64.div_ceil(ios.1) } else { 5 };
    let after: Vec<_> = (0..after).map(|_| window(series.next(1e5 * factor), ios.1, &mut random)).collect();
    let mut line = LedgerLine::default();
    let [before, after] = [&before, &after].map(|side| side.iter().collect::<Vec<_>>());
    compare(&mut line, (&before, &after), (true, true), &Wander::default());
    line
}

#[test]
fn pooled_percentiles_of_equal_settings_differ_clearly_in_one_line_of_twenty_at_most() {
    let (mut all, lines) = (0, series(60));
    for kind in [0, 2, 5].map(|at| KINDS[at]) {
        let clear = [(60, 60), (120, 400), (400, 120), (400, 400)].map(|ios| {
            let made = (0..lines).map(|seed| line(kind, seed, ios, 1.0));
            made.filter(|line| [&line.wal_p50_ns, &line.wal_p99_ns].iter().any(|of| of.verdict.is_clear()))
                .count()
        });
        println!("{:<17} {clear:?} of {lines} lines each", kind.name);
        all += clear.iter().sum::<usize>();
    }
    assert!(all as u64 * 20 <= lines * 12, "{all}");
}

#[test]
fn large_changes_of_few_ios_are_clear() {
    let lines = series(200);
    let found = |factor: f64| {
        let made = (0..lines).map(|seed| line(KINDS[2], seed, (120, 120), factor));
        made.fold((0, 0), |(p50, p99), line| {
            (
                p50 + usize::from(line.wal_p50_ns.verdict.is_clear()),
                p99 + usize::from(line.wal_p99_ns.verdict.is_clear()),
            )
        })
    };
    let found = [1.2, 1.5, 2.0, 4.0].map(found);
    println!("p50 and p99 changed by 20, 50, 100, 300%: {found:?} of {lines} lines");
    assert!(found[2].0 as u64 * 100 >= lines * 95 && found[3].1 as u64 * 100 >= lines * 60, "{found:?}");
}

#[test]
fn a_side_is_pooled_and_reaches_back_as_far_as_its_percentile_needs() {
    let mut random = SmallRng::seed_from_u64(1);
    let samples: Vec<_> =
        (0..60).map(|_| window(1e5, 50, &mut random).latencies[0].clone().unwrap()).collect();
    let p99 = Values::pooled_before(samples.clone(), 10, 100);
    // Stretches of six windows, of which four hold a thousand I/Os.
    assert_eq!((p99.all.len(), p99.counted), (10, 4));
    let expected = Samples::pooled(samples[36..].iter().map(|of| &**of)).percentile(100);
    assert_eq!(p99.value, expected.map(|ns| ns as f64));
    let p50 = Values::pooled_before(samples.clone(), 10, 2);
    assert_eq!((p50.all.len(), p50.counted), (60, 10));
    assert_eq!(Values::pooled_before(samples[50..].to_vec(), 10, 100).value, None, "too few");
    let rest = stretches(samples[..8].iter(), 100);
    assert_eq!(
        rest.iter().map(|of| of.windows).collect::<Vec<_>>(),
        [8],
        "what is left over belongs to the last"
    );
}
