use super::*;
use crate::trace::io::edges;

/// All of the events, paired.
fn pairs(events: &[TraceEvent]) -> Paired {
    pair(events).unwrap()
}

fn event(at_ns: u64, act: Act, op: Op, sector: u64, sectors: u32) -> TraceEvent {
    let (offset_bytes, bytes) = (sector.wrapping_mul(512), sectors * 512);
    TraceEvent { at_ns, offset_bytes, bytes, drive: TracedDrive(1), pid: 7, act, op }
}

fn issue(at_ns: u64, op: Op, sector: u64, sectors: u32) -> TraceEvent {
    event(at_ns, Act::Issue, op, sector, sectors)
}

fn complete(at_ns: u64, op: Op, sector: u64, sectors: u32) -> TraceEvent {
    event(at_ns, Act::Complete, op, sector, sectors)
}

/// When each I/O was issued and completed.
fn times(paired: &Paired) -> Vec<(u64, Option<u64>)> {
    paired.ios.iter().map(|io| (io.issued_ns, io.completed_ns)).collect()
}

#[test]
fn a_completion_belongs_to_the_oldest_issue_of_its_place_and_length() {
    let paired = pairs(&[
        issue(1, Op::Read, 8, 8),
        issue(2, Op::Read, 8, 16),
        issue(3, Op::Read, 8, 8),
        complete(4, Op::Read, 8, 16),
        complete(5, Op::Read, 8, 8),
        complete(6, Op::Read, 8, 8),
        complete(7, Op::Read, 8, 8),
    ]);
    assert_eq!(times(&paired), [(1, Some(5)), (2, Some(4)), (3, Some(6))]);
    assert_eq!(paired.unpaired, 1);
}

#[test]
fn a_request_is_complete_with_its_last_part() {
    let paired = pairs(&[
        issue(1, Op::Write, 0, 24),
        issue(2, Op::Write, 8, 8),
        complete(3, Op::Write, 0, 8),
        // The rest begins where the other I/O does, but it is longer, so this does not complete it.
        complete(4, Op::Write, 8, 8),
        complete(5, Op::Write, 8, 16),
    ]);
    assert_eq!(times(&paired), [(1, Some(5)), (2, Some(4))]);
    assert_eq!((paired.ios[0].offset_bytes, paired.ios[0].bytes), (0, 24 * 512));
    let open = pairs(&[issue(1, Op::Write, 0, 16), complete(2, Op::Write, 0, 8)]);
    assert_eq!(times(&open), [(1, None)]);
}

#[test]
fn a_flush_before_a_write_ends_once() {
    // A write with a preflush, as the kernel reports it: flush, data, and the end of the whole, with no sectors.
    let paired = pairs(&[
        issue(1, Op::Flush, 0, 0),
        issue(2, Op::Flush, 0, 0),
        complete(3, Op::Flush, u64::MAX, 0),
        issue(4, Op::Write, 64, 8),
        complete(5, Op::Write, 64, 8),
        complete(6, Op::Write, 64, 0),
        complete(7, Op::Flush, u64::MAX, 0),
        complete(8, Op::Write, 0, 0),
    ]);
    assert_eq!(times(&paired), [(1, Some(3)), (2, Some(7)), (4, Some(5))]);
    assert_eq!((paired.unpaired, paired.ios[0].offset_bytes), (0, 0));
}

#[test]
fn what_the_driver_hands_back_was_not_done() {
    let paired = pairs(&[
        issue(1, Op::Read, 8, 8),
        issue(2, Op::Read, 16, 8),
        event(3, Act::Requeue, Op::Read, 8, 8),
        issue(4, Op::Read, 8, 8),
        complete(5, Op::Read, 8, 8),
        complete(6, Op::Read, 16, 8),
        event(7, Act::Requeue, Op::Read, 99, 8),
    ]);
    assert_eq!(times(&paired), [(2, Some(6)), (4, Some(5))]);
    assert_eq!((paired.requeued, paired.unpaired), (1, 1));
}

#[test]
fn drives_are_apart() {
    let other = TraceEvent { drive: TracedDrive(2), ..complete(2, Op::Read, 8, 8) };
    let paired = pairs(&[issue(1, Op::Read, 8, 8), other]);
    assert_eq!((times(&paired), paired.unpaired), (vec![(1, None)], 1));
}

/// Generated streams in which the fate of each request is known: completed whole, in parts, after a preflush,
/// or requeued first. Every issue ends once, and nothing ends before it began.
#[test]
fn every_issue_of_a_made_stream_ends_once() {
    for seed in 1..200_u64 {
        let mut state = seed;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut events, mut at, mut expected, mut handed_back) = (Vec::new(), 0, 0_usize, 0);
        let mut ends: Vec<Vec<TraceEvent>> = Vec::new();
        for request in 0..100 {
            at += random(3);
            let (sector, sectors) = (request * 1000, 8 * (1 + random(4) as u32));
            match random(5) {
                0 => {
                    events.push(issue(at, Op::Flush, 0, 0));
                    ends.push(vec![complete(0, Op::Flush, u64::MAX, 0), complete(0, Op::Write, sector, 0)]);
                }
                1 => {
                    events.push(issue(at, Op::Read, sector, sectors));
                    events.push(event(at, Act::Requeue, Op::Read, sector, sectors));
                    events.push(issue(at, Op::Read, sector, sectors));
                    ends.push(vec![complete(0, Op::Read, sector, sectors)]);
                    handed_back += 1;
                }
                2 if sectors > 8 => {
                    events.push(issue(at, Op::Write, sector, sectors));
                    let rest = complete(0, Op::Write, sector + 8, sectors - 8);
                    ends.push(vec![complete(0, Op::Write, sector, 8), rest]);
                }
                _ => {
                    events.push(issue(at, Op::Discard, sector, sectors));
                    ends.push(vec![complete(0, Op::Discard, sector, sectors)]);
                }
            }
            expected += 1;
            while ends.len() > random(8) as usize {
                let done = ends.swap_remove(random(ends.len() as u64) as usize);
                at += random(3);
                events.extend(done.into_iter().map(|end| TraceEvent { at_ns: at, ..end }));
            }
        }
        events.extend(ends.into_iter().flatten().map(|end| TraceEvent { at_ns: at, ..end }));
        let paired = pairs(&events);
        assert_eq!(
            (paired.ios.len(), paired.unpaired, paired.requeued),
            (expected, 0, handed_back),
            "{seed}"
        );
        assert!(paired.ios.iter().all(|io| io.completed_ns.is_some_and(|end| end >= io.issued_ns)), "{seed}");
        let mut depth = 0_i64;
        for edge in edges(&paired.ios) {
            depth += if edge.is_issue() { 1 } else { -1 };
            assert!(depth >= 0, "{seed}");
        }
        assert_eq!(depth, 0, "{seed}");
    }
}
