use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::trace::io::TracedDrive;

const MS: u64 = 1_000_000;
const KIB: u64 = 1 << 10;
/// The whole trace lasts 40 s.
const TICKS: u64 = 40_000;

fn io(op: Op, at_ns: u64, took_ns: u64, offset_bytes: u64, bytes: u64) -> TracedIo {
    TracedIo {
        issued_ns: at_ns,
        completed_ns: Some(at_ns + took_ns),
        offset_bytes,
        bytes: bytes as u32,
        drive: TracedDrive(8 << 20),
        pid: 1,
        op,
    }
}

/// Each millisecond a scan read of 64 KiB, in sequence; every second one a point read and a write of 16 KiB; every
/// fourth a log write of 8 KiB, with a flush after every second of these. In the second half, `pace` times as many.
fn load(pace: u64) -> Vec<TracedIo> {
    let mut random = SmallRng::seed_from_u64(11);
    let pages = 16_384;
    let (mut ios, mut scanned, mut logged) = (Vec::new(), 0_u64, 0_u64);
    for tick in 0..TICKS {
        let times = if tick < TICKS / 2 { 1 } else { pace };
        for time in 0..times {
            let at_ns = tick * MS + time * MS / times;
            ios.push(io(Op::Read, at_ns, MS / 2, scanned * 64 * KIB % (256 * MIB), 64 * KIB));
            scanned += 1;
            if tick % 2 == 0 {
                let mut page = || random.random_range(0..pages) * 16 * KIB;
                ios.push(io(Op::Read, at_ns + 1, MS / 4, page(), 16 * KIB));
                ios.push(io(Op::Write, at_ns + 2, MS, page(), 16 * KIB));
            }
            if tick % 4 == 0 {
                ios.push(io(Op::Write, at_ns + 3, MS / 8, (1 << 30) + logged * 8 * KIB, 8 * KIB));
                logged += 1;
                if logged % 2 == 0 {
                    ios.push(io(Op::Flush, at_ns + 4, MS / 8, 0, 0));
                }
            }
        }
    }
    ios.sort_by_key(|io| io.issued_ns);
    ios
}

#[test]
fn a_scan_that_begins_again_and_again_stays_one() {
    let scanned = (0..3 * 4096_u64).map(|at| io(Op::Read, at * MS, MS / 2, at % 4096 * 64 * KIB, 64 * KIB));
    let ios: Vec<_> = scanned.collect();
    assert!(likes(&ios).iter().all(|like| like.class == Some(Class::Scan)));
}

#[test]
fn each_io_is_of_the_class_that_it_is_like() {
    let ios = load(1);
    let likes = likes(&ios);
    let is_else = |(io, like): &(&TracedIo, &Like)| {
        let expected = match (io.op, io.bytes) {
            (Op::Read, 65_536) => Some(Class::Scan),
            (Op::Read, _) => Some(Class::Point),
            (Op::Write, 8192) => Some(Class::Wal),
            (Op::Write, _) => Some(Class::Background),
            _ => None,
        };
        like.class != expected
    };
    // A few point reads happen to be where the scan continues.
    let others: Vec<_> = ios.iter().zip(&likes).filter(is_else).collect();
    assert!(others.len() <= 5, "{others:?}");
}

#[test]
fn a_load_that_stays_as_it_is_is_alike() {
    let load = mimic(&load(1), true).unwrap();
    assert_eq!((load.space_bytes, load.left_out.len(), load.flushes, load.discards), (256 * MIB, 0, 0, 0));
    let [scan, point, wal, background] = load.classes[..] else { panic!("{:?}", load.classes) };
    let expected = [
        (scan, Class::Scan, 65_536, 65_536_000.0),
        (point, Class::Point, 16_384, 8_192_000.0),
        (wal, Class::Wal, 8192, 2_048_000.0),
        (background, Class::Background, 16_384, 8_192_000.0),
    ];
    for (fit, class, page_bytes, rate) in expected {
        assert_eq!((fit.class, fit.page_bytes), (class, page_bytes));
        assert!((fit.rate_bytes_per_s as f64 / rate - 1.0).abs() < 0.001 && !fit.is_random, "{fit:?}");
    }
    let PagesDrawn::Runs(jumps) = scan.pages else { panic!("{scan:?}") };
    assert!(jumps < 0.001, "{jumps}");
    assert_eq!([point.pages, background.pages], [PagesDrawn::Uniform; 2]);
    assert_eq!((wal.pages, wal.writes_a_flush), (PagesDrawn::InOrder, Some(2)));
    for one in &load.likenesses {
        assert!(one.difference().is_some_and(is_alike), "{one:?}");
    }
    // Scans are open half of the time, and so are writes.
    let depth = |class: Class| {
        let is = |one: &&Likeness| one.class == class && one.quantity == Quantity::Depth;
        load.likenesses.iter().find(is).map(|one| one.fitted)
    };
    assert!((depth(Class::Scan).unwrap() - 0.5).abs() < 0.01, "{:?}", depth(Class::Scan));
    assert!((depth(Class::Background).unwrap() - 0.5).abs() < 0.01, "{:?}", depth(Class::Background));
}

#[test]
fn a_load_that_changes_is_not_alike_and_its_replay_is_measured() {
    let twice = load(2);
    let mut fitted = mimic(&twice, true).unwrap();
    let rates = |load: &MimicLoad| -> Vec<Likeness> {
        load.likenesses.iter().filter(|one| one.quantity == Quantity::MbPerS).copied().collect()
    };
    for one in rates(&fitted) {
        assert!((one.difference().unwrap() + 0.5).abs() < 0.01 && one.replayed.is_none(), "{one:?}");
    }
    // A replay of the held-out half is identical to it.
    let second: Vec<_> = twice.iter().filter(|io| io.issued_ns >= TICKS / 2 * MS).copied().collect();
    fitted.replayed(&second, true).unwrap();
    for one in &fitted.likenesses {
        assert!(one.replayed_difference().is_some_and(|by| by.abs() < 0.01), "{one:?}");
    }
    // Without completions, no depth is known.
    let blind = mimic(&twice, false).unwrap();
    assert!(blind.likenesses.iter().all(|one| one.quantity != Quantity::Depth));
}

#[test]
fn what_has_no_rate_is_refused_and_what_is_rare_left_out() {
    let mut still = load(1);
    still.iter_mut().for_each(|io| io.issued_ns = 0);
    assert!(mimic(&still, false).unwrap_err().what.contains("no issue times"));
    let few: Vec<_> = load(1).into_iter().take(90).collect();
    assert!(mimic(&few, true).unwrap_err().what.contains("no class has 100 I/Os"));
    assert!(mimic(&[], true).is_err());
    let mut rare = load(1);
    let mut reads = 0;
    rare.retain(|io| {
        let is_point = io.op == Op::Read && io.bytes == 16_384;
        reads += u64::from(is_point);
        !is_point || reads <= 50
    });
    let load = mimic(&rare, true).unwrap();
    assert_eq!(load.left_out, [(Class::Point, 50)]);
    assert!(load.classes.iter().all(|fit| fit.class != Class::Point));
}
