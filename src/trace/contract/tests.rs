use super::*;
use crate::trace::io::{Form, LostEvents, Op, Trace, TracedDrive, TracedIo};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// A page.
const PAGE: u64 = 2048;

/// The five numbers, doubled, because all are multiples of one half.
fn halves(numbers: [f64; 5]) -> [u64; 5] {
    numbers.map(|number| (number * 2.0) as u64)
}

/// An I/O to the drive, from one time to another.
fn io(op: Op, from_ns: u64, to_ns: u64, offset_bytes: u64, bytes: u64) -> TracedIo {
    let completed_ns = Some(to_ns);
    TracedIo {
        issued_ns: from_ns,
        completed_ns,
        offset_bytes,
        bytes: bytes as u32,
        drive: TracedDrive(8 << 20),
        pid: 1,
        op,
    }
}

/// I/Os one after another.
fn serial(ios: &[(Op, u64, u64)]) -> Vec<TracedIo> {
    (0..).zip(ios).map(|(at, (op, offset, bytes))| io(*op, 10 * at, 10 * at + 5, *offset, *bytes)).collect()
}

fn trace(ios: Vec<TracedIo>) -> Trace {
    Trace::whole(ios, Form::Blktrace)
}

fn scored(ios: &[(Op, u64, u64)], space_bytes: u64) -> Scores {
    let spec = ContractSpec { space_bytes: Some(space_bytes), ..ContractSpec::default() };
    score(&trace(serial(ios)), &spec).unwrap()
}

#[track_caller]
fn close(figure: impl Into<Option<f64>>, expected: f64) {
    let figure = figure.into().unwrap();
    assert!((figure - expected).abs() < 1e-9, "{figure} for {expected}");
}

#[test]
fn boxes_are_those_of_r() {
    let of = |values: &[u64]| Five::of(values.to_vec()).unwrap();
    let numbers = |values: &[u64]| halves(of(values).numbers);
    // fivenum(1:10), fivenum(1:4), and boxplot.stats(c(1, 2, 3, 4, 100)).
    assert_eq!(numbers(&[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]), [2, 6, 11, 16, 20]);
    assert_eq!(numbers(&[1, 2, 3, 4]), [2, 3, 5, 7, 8]);
    let far = of(&[1, 2, 3, 4, 100]);
    assert_eq!((halves(far.numbers), far.whiskers, far.sum), ([2, 4, 6, 8, 200], [1, 4], 110));
    assert_eq!(numbers(&[7]), [14; 5]);
    assert_eq!(Five::of(Vec::new()), None);
}

#[test]
fn request_scale_is_sizes_and_what_is_open() {
    let ios = vec![
        io(Op::Read, 0, 10, 0, 4 * KIB),
        io(Op::Write, 5, 20, 64 * KIB, 8 * KIB),
        io(Op::Discard, 6, 7, 128 * KIB, 16 * KIB),
        io(Op::Read, 30, 40, 0, 4 * KIB),
    ];
    let requests = score(&trace(ios), &ContractSpec::default()).unwrap().requests;
    let depth = |kind: usize| halves(requests.depth[kind].unwrap().numbers);
    assert_eq!((depth(0), depth(1), depth(2)), ([2; 5], [4; 5], [6; 5]));
    // 10 + 15 + 1 + 10 of 40 ns; nothing from 20 to 30.
    close(requests.mean_depth, 0.9);
    close(requests.idle_share, 0.25);
    close(requests.discard_ratio(), 0.25);
    let drains = requests.between_drains_bytes.unwrap();
    assert_eq!((drains.count, halves(drains.numbers)[0], halves(drains.numbers)[4]), (2, 8192, 24_576));
    let in_flight = requests.in_flight_bytes.unwrap();
    assert_eq!((in_flight.count, halves(in_flight.numbers)), (3, [8192, 8192, 8192, 16_384, 24_576]));
    assert_eq!(requests.sizes[1].unwrap().sum, u128::from(8 * KIB));
}

#[test]
fn bytes_between_flushes_are_those_of_whole_stretches() {
    let flush = (Op::Flush, 0, 0);
    let write = |bytes: u64| (Op::Write, 0, bytes);
    let ios = [write(512), flush, write(4 * KIB), write(4 * KIB), flush, flush, write(16 * KIB)];
    let requests = scored(&ios, MIB).requests;
    let between = requests.between_flushes_bytes.unwrap();
    assert_eq!(
        (requests.flushes, between.count, between.numbers[0], between.numbers[4]),
        (3, 2, 0.0, 8192.0)
    );
}

#[test]
fn an_io_that_ends_as_it_begins_is_open_in_between() {
    let ios = vec![io(Op::Read, 5, 5, 0, 512), io(Op::Read, 5, 5, 512, 512), io(Op::Read, 9, 9, 0, 512)];
    let requests = score(&trace(ios), &ContractSpec::default()).unwrap().requests;
    assert_eq!(halves(requests.depth[0].unwrap().numbers)[4], 4);
    close(requests.mean_depth, 0.0);
}

#[test]
fn without_completions_or_with_lost_ones_there_is_no_depth() {
    let mut lossy = trace(serial(&[(Op::Write, 0, 4 * KIB)]));
    lossy.lost = LostEvents { all: 1, completions: 1 };
    let mut of_log = trace(serial(&[(Op::Write, 0, 4 * KIB)]));
    of_log.form = Form::FioV3;
    of_log.ios[0].completed_ns = None;
    for trace in [lossy, of_log] {
        let requests = score(&trace, &ContractSpec::default()).unwrap().requests;
        assert_eq!((requests.depth, requests.in_flight_bytes, requests.mean_depth), ([None; 3], None, None));
        assert!(requests.sizes[1].is_some());
    }
}

#[test]
fn misses_are_of_the_translation_pages_used_longest_ago() {
    // Ten translation pages of 1 MiB. With six in turn, a cache of five evicts each before its next use.
    let turns: Vec<_> = (0..18).map(|at| (Op::Read, at % 6 * MIB, 2 * KIB)).collect();
    let scores = scored(&turns, 10 * MIB);
    let by_coverage: Vec<_> =
        scores.misses.iter().map(|miss| (miss.coverage_percent, miss.cached, miss.misses)).collect();
    assert_eq!(by_coverage, [(1, 1, 18), (5, 1, 18), (10, 1, 18), (50, 5, 18), (100, 10, 6)]);
    assert_eq!(scores.lights()[1], Light::Poor);
    // With four used in turn, it keeps all.
    let turns: Vec<_> = (0..16).map(|at| (Op::Discard, at % 4 * MIB, 2 * KIB)).collect();
    let misses: Vec<_> = scored(&turns, 10 * MIB).misses.iter().map(|miss| miss.misses).collect();
    assert_eq!(misses, [16, 16, 16, 4, 4]);
}

#[test]
fn sequential_access_misses_once_a_translation_page() {
    let pieces: Vec<_> = (0..80).map(|at| (Op::Write, at * 128 * KIB, 128 * KIB)).collect();
    let scores = scored(&pieces, 10 * MIB);
    for miss in &scores.misses {
        assert_eq!((miss.lookups, miss.misses), (5120, 10));
    }
    assert_eq!(scores.lights()[1], Light::Good);
}

#[test]
fn uniform_access_misses_what_is_not_covered() {
    let mut state = 3_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let ios: Vec<_> = (0..40_000).map(|_| (Op::Read, random(100) * MIB, 2 * KIB)).collect();
    let scores = scored(&ios, 100 * MIB);
    for (miss, expected) in scores.misses.iter().zip([0.99, 0.95, 0.9, 0.5, 0.0025]) {
        let ratio = miss.ratio().unwrap();
        assert!((ratio - expected).abs() < 0.01, "{miss:?}: {ratio}");
    }
}

/// Writes the second half of each block before the first.
fn halves_swapped(block: u64) -> Vec<(Op, u64, u64)> {
    let half = block / 2;
    (0..4).flat_map(|at| [(Op::Write, at * block + half, half), (Op::Write, at * block, half)]).collect()
}

#[test]
fn blocks_written_in_order_are_aligned() {
    let pieces: Vec<_> = (0..32).map(|at| (Op::Write, at * 64 * KIB, 64 * KIB)).collect();
    let scores = scored(&pieces, 4 * MIB);
    for aligned in &scores.alignment {
        assert_eq!((aligned.valid_bytes, aligned.unaligned_bytes, aligned.merged_bytes), (2 * MIB, 0, 0));
    }
    assert_eq!(scores.lights()[2], Light::Good);
}

#[test]
fn blocks_begun_in_the_middle_are_not() {
    let scores = scored(&halves_swapped(128 * KIB), MIB);
    let [small, large] = [scores.alignment[0], scores.alignment[1]];
    assert_eq!((small.unaligned_bytes, small.merged_bytes), (512 * KIB, 512 * KIB));
    // A block twice as large never does better.
    assert_eq!((large.unaligned_bytes, large.merged_bytes), (512 * KIB, 512 * KIB));
    close(small.ratio(), 1.0);
    assert_eq!(scores.lights()[2], Light::Poor);
    let scores = scored(&halves_swapped(MIB), 4 * MIB);
    let unaligned: Vec<_> = scores.alignment.iter().map(|of| of.unaligned_bytes).collect();
    // Each half is four blocks of 128 KiB, written in order.
    assert_eq!(unaligned, [0, 4 * MIB]);
}

#[test]
fn a_page_that_is_written_again_lies_elsewhere() {
    let mut ios = vec![(Op::Write, 0, 128 * KIB), (Op::Write, 128 * KIB, 128 * KIB), (Op::Write, 0, PAGE)];
    let again = scored(&ios, MIB).alignment[0];
    // The first block's 64 pages are in two flash blocks; the second begins in order: 63 pages are copied.
    assert_eq!(
        (again.valid_bytes, again.unaligned_bytes, again.merged_bytes),
        (256 * KIB, 128 * KIB, 63 * PAGE)
    );
    // Not in order: all are copied.
    ios[2].1 = PAGE;
    assert_eq!(scored(&ios, MIB).alignment[0].merged_bytes, 128 * KIB);
    // With those discarded again, the rest is in one flash block.
    ios.push((Op::Discard, 0, PAGE * 2));
    let left = scored(&ios, MIB).alignment[0];
    assert_eq!((left.valid_bytes, left.unaligned_bytes), (254 * KIB - 2 * KIB, 0));
}

#[test]
fn unaligned_bytes_are_held_against_the_files() {
    let spec =
        ContractSpec { space_bytes: Some(MIB), file_bytes: Some(256 * KIB), ..ContractSpec::default() };
    let scores = score(&trace(serial(&halves_swapped(128 * KIB))), &spec).unwrap();
    // Ghosts: more than the files hold.
    close(scores.alignment[0].ratio(), 2.0);
    close(scores.alignment[0].share(), 1.0);
    // A trace that begins after most of the files were written is judged by what it saw.
    let large = ContractSpec { file_bytes: Some(512 * MIB), ..spec };
    let scores = score(&trace(serial(&halves_swapped(128 * KIB))), &large).unwrap();
    assert!(scores.alignment[0].ratio().unwrap() < 0.01);
    assert_eq!(scores.lights()[2], Light::Poor);
}

#[test]
fn full_blocks_are_no_zombies() {
    // 16 channels with a block each.
    let scores = scored(&[(Op::Write, 0, 2 * MIB)], 4 * MIB);
    let [one, segmented] = &scores.zombies;
    assert_eq!((one.live(), one.blocks[64], one.valid()), (16, 16, 1024));
    close(one.zombie_share(), 0.0);
    close(one.length(), 0.5);
    close(one.area(), 0.5);
    assert_eq!(one.blocks, segmented.blocks);
}

#[test]
fn half_of_a_block_overwritten_makes_two_zombies() {
    // Half of the pages of every block move to 16 new blocks.
    let scores = scored(&[(Op::Write, 0, 2 * MIB), (Op::Write, 0, MIB)], 4 * MIB);
    let one = &scores.zombies[0];
    assert_eq!((one.live(), one.blocks[32]), (32, 32));
    close(one.zombie_share(), 0.5);
    close(one.length(), 1.0);
    close(one.area(), 0.5);
    // All of the pages: the old blocks are empty, and no part of the curve.
    let scores = scored(&[(Op::Write, 0, 2 * MIB), (Op::Write, 0, 2 * MIB)], 4 * MIB);
    let one = &scores.zombies[0];
    assert_eq!((one.live(), one.blocks[0], one.blocks[64]), (16, 16, 16));
}

#[test]
fn segments_keep_apart_what_dies_apart() {
    // Two streams, 16 pages of each by turns; one is discarded at the end.
    let two =
        |at: u64| [(Op::Write, at * 32 * KIB, 32 * KIB), (Op::Write, 128 * MIB + at * 32 * KIB, 32 * KIB)];
    let mut ios: Vec<_> = (0..128).flat_map(two).collect();
    ios.push((Op::Discard, 128 * MIB, 4 * MIB));
    let scores = scored(&ios, 256 * MIB);
    let [one, segmented] = &scores.zombies;
    assert_eq!((one.live(), one.blocks[32]), (64, 64));
    assert_eq!((segmented.live(), segmented.blocks[64], segmented.blocks[0]), (32, 32, 32));
    close(one.zombie_share(), 0.5);
    close(segmented.zombie_share(), 0.0);
}

#[test]
fn a_curve_is_stable_once_it_stays() {
    // The same 2 MiB over and over: the curve is the same after each pass.
    let again: Vec<_> = (0..100).map(|_| (Op::Write, 0, 2 * MIB)).collect();
    let scores = scored(&again, 2 * MIB);
    assert!(scores.zombies[0].is_stable);
    assert_eq!(scores.lights()[3], Light::Good);
    // Half of the old blocks lose pages in the last tenth of the writes.
    let late = scored(&[(Op::Write, 0, 4 * MIB), (Op::Write, 0, 512 * KIB)], 4 * MIB);
    assert_eq!(late.lights()[3], Light::Unjudged(Why::NotStable));
}

#[test]
fn lifetimes_are_the_writes_of_pages() {
    let ten = |hot: u64, cold: u64| -> Vec<(Op, u64, u64)> {
        let cold = (0..cold).map(|_| (Op::Write, PAGE, 9 * PAGE));
        (0..hot).map(|_| (Op::Write, 0, PAGE)).chain(cold).collect()
    };
    let scores = scored(&ten(100, 1), 10 * PAGE);
    let lifetime = &scores.lifetime;
    assert_eq!(lifetime.curve, [(100, 1), (1, 9)]);
    close(lifetime.max_to_mean(), 100.0 / 10.9);
    close(lifetime.p99_to_p50(), 100.0);
    // Sum of rank times writes: 1 + … + 9, and 10 times 100.
    close(lifetime.gini(), 2.0 * 1045.0 / (10.0 * 109.0) - 1.1);
    close(scores.traffic(), 10.9);
    assert_eq!(scores.lights()[4], Light::Unjudged(Why::TooShort));
    assert_eq!(scored(&ten(500, 5), 10 * PAGE).lights()[4], Light::Doubt);
    assert_eq!(scored(&ten(600, 5), 10 * PAGE).lights()[4], Light::Poor);
    let even = scored(&ten(60, 60), 10 * PAGE);
    assert_eq!(even.lights()[4], Light::Good);
    close(even.lifetime.gini(), 0.0);
    close(even.lifetime.max_to_mean(), 1.0);
}

#[test]
fn a_page_written_in_part_is_written_whole() {
    let scores = scored(&[(Op::Write, 512, 512), (Op::Write, PAGE + 512, PAGE), (Op::Discard, 0, 512)], MIB);
    // One page, then two that are both written in part; the discard leaves its page as it was.
    assert_eq!((scores.rewritten_in_part, scores.lifetime.writes()), (3, 3));
    assert_eq!(scores.zombies[0].valid(), 3);
}

#[test]
fn nothing_is_judged_where_events_are_lost() {
    let mut lost = trace(serial(&[(Op::Write, 0, 2 * MIB)]));
    let whole = score(&lost, &ContractSpec::default()).unwrap();
    lost.lost = LostEvents::unknown(1);
    let scores = score(&lost, &ContractSpec::default()).unwrap();
    assert_eq!(scores.lights(), [Light::Unjudged(Why::Lost); 5]);
    // Whatever depends only on issues is the same without a completion.
    lost.ios.iter_mut().for_each(|io| io.completed_ns = None);
    lost.lost = LostEvents { all: 1, completions: 1 };
    let scores = score(&lost, &ContractSpec::default()).unwrap();
    assert_eq!(scores.lights(), whole.lights());
    assert!(
        scores.lights().iter().all(|light| *light != Light::Unjudged(Why::Lost)),
        "{:?}",
        scores.lights()
    );
    assert_eq!(scores.requests.sizes, whole.requests.sizes);
    let of = |scores: &Scores| (scores.misses.clone(), scores.alignment.clone(), scores.zombies.clone());
    assert_eq!(of(&scores), of(&whole));
    let reads = scored(&[(Op::Read, 0, 4 * KIB)], MIB).lights();
    assert_eq!(reads[0], Light::Unjudged(Why::NoModel));
    assert_eq!(reads[2..], [Light::Unjudged(Why::NoWrites); 3]);
}

#[test]
fn ios_outside_of_the_space_are_others() {
    let ios =
        serial(&[(Op::Write, 0, MIB), (Op::Write, MIB, MIB), (Op::Write, 2 * MIB, MIB), (Op::Flush, 0, 0)]);
    let spec = ContractSpec { start_bytes: MIB, space_bytes: Some(MIB), ..ContractSpec::default() };
    let scores = score(&trace(ios.clone()), &spec).unwrap();
    assert_eq!((scores.ios, scores.others, scores.lifetime.pages()), (2, 2, 512));
    let across = ContractSpec { space_bytes: Some(MIB + 512), ..spec };
    let error = score(&trace(ios.clone()), &across).unwrap_err();
    assert_eq!(error.exit_status(), 2);
    assert!(error.what.contains("a write of 1048576 B at 2097152 crosses the space's end"), "{error}");
    // Without a size, the space ends after the furthest I/O.
    let open = score(&trace(ios), &ContractSpec::default()).unwrap();
    assert_eq!((open.space_bytes, open.space_is_assumed), (3 * MIB, true));
}

#[test]
fn one_drive_is_scored() {
    let mut ios = serial(&[(Op::Write, 0, MIB), (Op::Write, MIB, MIB)]);
    ios[1].drive = TracedDrive::new(259, 3).unwrap();
    let two = trace(ios);
    let error = score(&two, &ContractSpec::default()).unwrap_err();
    assert_eq!(error.one_line(), "the trace is of 2 drives: 8:0, 259:3 – choose one with --drive");
    let spec = ContractSpec { drive: TracedDrive::parse("259:3"), ..ContractSpec::default() };
    assert_eq!(score(&two, &spec).unwrap().ios, 1);
    let none = ContractSpec { drive: TracedDrive::parse("7:7"), ..ContractSpec::default() };
    assert!(score(&two, &none).unwrap_err().what.contains("no drive 7:7"));
}

#[test]
fn what_is_spread_too_far_is_refused() {
    let far: Vec<_> = (0..140_000).map(|at| (Op::Write, at * 3 * MIB, 4 * KIB)).collect();
    let error = score(&trace(serial(&far)), &ContractSpec::default()).unwrap_err();
    assert!(error.what.starts_with("the trace's writes are spread over 137 GiB: too much"), "{error}");
    // As the hint advises.
    let spec = ContractSpec { page_bytes: 16 * KIB, ..ContractSpec::default() };
    assert_eq!(score(&trace(serial(&far)), &spec).unwrap().lifetime.pages(), 140_000);
    let endless: Vec<_> = (0..2000).map(|_| (Op::Write, 0, u64::from(u32::MAX) / 512 * 512)).collect();
    assert!(score(&trace(serial(&endless)), &ContractSpec::default()).is_err());
    let discards: Vec<_> =
        (0..5000).map(|at| (Op::Discard, at << 33, u64::from(u32::MAX) / 512 * 512)).collect();
    assert!(score(&trace(serial(&discards)), &ContractSpec::default()).is_err());
}

/// The scores under a modified spec.
fn scored_with(ios: &[(Op, u64, u64)], change: impl FnOnce(&mut ContractSpec)) -> Scores {
    let mut spec = ContractSpec { space_bytes: Some(10 * MIB), ..ContractSpec::default() };
    change(&mut spec);
    score(&trace(serial(ios)), &spec).unwrap()
}

#[test]
fn coverages_are_those_that_are_asked_for() {
    // Three translation pages in turn: a cache of two always misses, one of three only at first.
    let turns: Vec<_> = [0, 1, 2, 0, 1, 2].map(|at| (Op::Read, at * MIB, PAGE)).into();
    let scores = scored_with(&turns, |spec| spec.coverage_percent = vec![20, 30]);
    let found: Vec<_> =
        scores.misses.iter().map(|of| (of.coverage_percent, of.cached, of.lookups, of.misses)).collect();
    assert_eq!(found, [(20, 2, 6, 6), (30, 3, 6, 3)]);
    assert_eq!(scores.lights()[1], Light::Unjudged(Why::NotAsked), "it goes by 10%");
}

#[test]
fn blocks_are_those_that_are_asked_for() {
    // Two halves of 64 KiB in the wrong order; each is aligned in a block of its own.
    let halves = [(Op::Write, 32 * KIB, 32 * KIB), (Op::Write, 0, 32 * KIB)];
    let scores = scored_with(&halves, |spec| spec.block_bytes = vec![64 * KIB, 32 * KIB]);
    let found: Vec<_> = scores.alignment.iter().map(|of| (of.block_bytes, of.unaligned_bytes)).collect();
    assert_eq!(found, [(64 * KIB, 64 * KIB), (32 * KIB, 0)]);
    assert_eq!(scores.lights()[2], Light::Unjudged(Why::NotAsked), "it goes by 128 KiB");
}

#[test]
fn pages_are_striped_over_the_channels_that_are_asked_for() {
    // One block's pages: in one block, in two half full ones, and in sixteen.
    for (channels, live, share) in [(1, 1, 0.0), (2, 2, 0.5), (16, 16, 0.9375)] {
        let scores = scored_with(&[(Op::Write, 0, 128 * KIB)], |spec| spec.channels = channels);
        assert_eq!(scores.zombies[0].live(), live);
        close(scores.zombies[0].zombie_share(), share);
    }
}

#[test]
fn segments_are_of_the_size_that_is_asked_for() {
    let far = [(Op::Write, 0, 64 * KIB), (Op::Write, MIB, 64 * KIB)];
    for (segment_bytes, share) in [(MIB, 0.5), (2 * MIB, 0.0)] {
        let scores = scored_with(&far, |spec| (spec.channels, spec.segment_bytes) = (1, segment_bytes));
        let [one, segmented] = &scores.zombies;
        assert_eq!(segmented.segment_bytes, Some(segment_bytes));
        close(one.zombie_share(), 0.0);
        close(segmented.zombie_share(), share);
    }
}

#[test]
fn rules_that_are_not_asked_for_have_no_figures() {
    let scores = scored_with(&[(Op::Write, 0, 128 * KIB)], |spec| spec.rules = vec![Rule::Lifetime]);
    assert!(scores.misses.is_empty() && scores.alignment.is_empty() && scores.requests.sizes[1].is_none());
    assert_eq!((scores.zombies[0].valid(), scores.lifetime.pages()), (0, 64));
    assert_eq!(scores.lights()[..4], [Light::Unjudged(Why::NotAsked); 4]);
    assert_eq!(scores.lights()[4], Light::Unjudged(Why::TooShort));
}

#[test]
fn what_no_drive_has_is_refused() {
    let refused = |change: fn(&mut ContractSpec)| {
        let mut spec = ContractSpec::default();
        change(&mut spec);
        let error = score(&trace(serial(&[(Op::Write, 0, MIB)])), &spec).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        error.what
    };
    let block = refused(|spec| spec.block_bytes = vec![2 * MIB]);
    assert!(
        block.starts_with("blocks of 2MiB: with pages of 2KiB, a power of two from 2KiB to 1MiB"),
        "{block}"
    );
    assert!(refused(|spec| spec.block_bytes = vec![96 * KIB]).contains("blocks of 96KiB"));
    assert!(refused(|spec| spec.coverage_percent = vec![0]).contains("cover 0% of a space"));
    assert!(refused(|spec| spec.coverage_percent = vec![101]).contains("cover 101%"));
    assert!(refused(|spec| spec.coverage_percent = vec![1; 17]).contains("16 blocks or coverages"));
    assert!(refused(|spec| spec.segment_bytes = MIB + 512).contains("whole pages"));
    assert!(refused(|spec| spec.segment_bytes = 512 * KIB).contains("1MiB at least"));
    assert!(refused(|spec| spec.channels = 0).contains("0 channels: 1 to 64"));
}

#[test]
fn written_bytes_are_divided_by_flushes() {
    let written = |ios: &[(Op, u64, u64)]| scored(ios, MIB).requests.written_a_flush();
    let mut ios = vec![(Op::Write, 0, 4 * KIB), (Op::Write, 0, 12 * KIB), (Op::Read, 0, 64 * KIB)];
    assert_eq!(written(&ios), None);
    ios.push((Op::Flush, 0, 0));
    close(written(&ios), 16384.0);
    ios.push((Op::Flush, 0, 0));
    close(written(&ios), 8192.0);
}

#[test]
fn written_pages_are_counted_by_their_quarter() {
    // Quarters of 512 pages: one page twice; the second's last two and the third's first two; all of the last.
    let ios = [
        (Op::Write, 0, PAGE),
        (Op::Write, 0, PAGE),
        (Op::Write, 2 * MIB - 2 * PAGE, 4 * PAGE),
        (Op::Write, 3 * MIB, MIB),
    ];
    let lifetime = scored(&ios, 4 * MIB).lifetime;
    assert_eq!(lifetime.by_quarter, [1, 2, 2, 512]);
    close(lifetime.written_shares()[1], 2.0 / 512.0);
    close(lifetime.written_shares()[3], 1.0);
}
