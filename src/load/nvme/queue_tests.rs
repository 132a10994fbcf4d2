//! The rings by themselves: the tests write what a controller would write to them.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::model::ControllerModel;
use super::*;

const ENTRIES: u32 = 8;

/// A queue pair and the controller's side of it: where it writes next, and with which tag.
struct Pair {
    queue: QueuePair<ControllerModel>,
    tail: u32,
    phase: bool,
}

impl Pair {
    fn new() -> Self {
        let queue = QueuePair::new(&Arc::new(ControllerModel::default()), 1, ENTRIES, 4).unwrap();
        Self { queue, tail: 0, phase: true }
    }

    fn outstanding(&self) -> usize {
        self.queue.entries() as usize - 1 - self.queue.room()
    }

    fn push(&mut self, owner: u32) -> Option<u16> {
        self.queue.push(&NvmeCommand::flush(1), owner, 0)
    }

    /// Writes a completion of four dwords, with the tag of this round.
    fn write(&mut self, dwords: [u32; 4]) {
        let end = dwords[3] & !(1 << 16) | u32::from(self.phase) << 16;
        let at = self.tail as usize * COMPLETION_BYTES;
        let words = [(dwords[0], dwords[1]), (dwords[2], end)];
        for (n, (low, high)) in words.into_iter().enumerate() {
            self.queue.completions.write_u64(at + n * 8, u64::from(low) | u64::from(high) << 32);
        }
        self.tail = (self.tail + 1) % ENTRIES;
        self.phase ^= self.tail == 0;
    }

    fn complete(&mut self, cid: u16) {
        self.write([0, 0, 1 << 16, cid.into()]);
    }

    fn poll(&mut self) -> std::result::Result<Vec<u32>, Malformed> {
        let mut owners = Vec::new();
        self.queue.poll(u32::MAX, |owner, _| owners.push(owner)).map(|_| owners)
    }
}

#[test]
fn as_many_commands_are_outstanding_as_the_ring_has_entries_less_one() {
    let mut pair = Pair::new();
    for owner in 0..ENTRIES - 1 {
        assert!(pair.push(owner).is_some());
    }
    assert_eq!((pair.push(99), pair.queue.room(), pair.outstanding()), (None, 0, 7));
}

#[test]
fn rings_wrap_around_and_the_tag_turns_with_each_round() {
    let mut pair = Pair::new();
    for round in 0..100 {
        let cids: Vec<u16> = (0..3).map(|n| pair.push(round * 3 + n).unwrap()).collect();
        assert_eq!(pair.poll().unwrap(), [0; 0], "what is left of the last round is not new");
        // Not in the order in which they were queued.
        for cid in [cids[2], cids[0], cids[1]] {
            pair.complete(cid);
        }
        assert_eq!(pair.poll().unwrap(), [round * 3 + 2, round * 3, round * 3 + 1]);
        assert_eq!(pair.outstanding(), 0);
    }
}

#[test]
fn a_batch_is_one_doorbell_each_way() {
    let bus = ControllerModel::new(super::super::model::Traits::default());
    let mut queue = QueuePair::new(&bus, 1, ENTRIES, 4).unwrap();
    let cids: Vec<u16> = (0..5).map(|n| queue.push(&NvmeCommand::flush(1), n, 0).unwrap()).collect();
    assert_eq!(bus.take_doorbells(), 0);
    queue.ring();
    queue.ring();
    assert_eq!(bus.take_doorbells(), 1);
    for (n, cid) in cids.iter().enumerate() {
        queue.completions.write_u64(n * 16 + 8, 1 << 16 | (1 << 16 | u64::from(*cid)) << 32);
    }
    assert_eq!(queue.poll(u32::MAX, |_, _| {}), Ok(5));
    assert_eq!(queue.poll(u32::MAX, |_, _| {}), Ok(0));
    assert_eq!(bus.take_doorbells(), 1);
}

#[test]
fn no_more_is_taken_than_was_asked_for() {
    let mut pair = Pair::new();
    let cids: Vec<u16> = (0..4).map(|n| pair.push(n).unwrap()).collect();
    cids.into_iter().for_each(|cid| pair.complete(cid));
    let mut owners = Vec::new();
    assert_eq!(pair.queue.poll(3, |owner, _| owners.push(owner)), Ok(3));
    assert_eq!((owners, pair.poll().unwrap()), (vec![0, 1, 2], vec![3]));
}

#[test]
fn malformed_completions_are_distinguished_and_stay_where_they_are() {
    let foreign = Malformed::Queue { found: 2, expected: 1 };
    let head = Malformed::Head { found: ENTRIES as u16, entries: ENTRIES };
    let beyond = Malformed::Command { cid: 4000 };
    let idle = Malformed::Command { cid: 3 };
    for (dwords, expected) in [
        ([0, 0, 2 << 16, 0], foreign),
        ([0, 0, 1 << 16 | ENTRIES, 0], head),
        ([0, 0, 1 << 16, 4000], beyond),
        ([0, 0, 1 << 16, 3], idle),
    ] {
        let mut pair = Pair::new();
        let cid = pair.push(7).unwrap();
        pair.write(dwords);
        pair.complete(cid);
        assert_eq!(pair.poll(), Err(expected));
        assert_eq!(pair.poll(), Err(expected), "nothing behind it is believed");
        assert!(!expected.to_string().is_empty());
    }
}

#[test]
fn one_command_does_not_complete_twice() {
    let mut pair = Pair::new();
    let cid = pair.push(1).unwrap();
    pair.complete(cid);
    pair.complete(cid);
    assert_eq!(pair.poll(), Err(Malformed::Command { cid }));
}

#[test]
fn the_oldest_command_is_found_and_a_new_beginning_reports_who_lost_theirs() {
    let mut pair = Pair::new();
    for (owner, since_ns) in [(5, 30), (6, 10), (7, 20)] {
        pair.queue.push(&NvmeCommand::flush(1), owner, since_ns).unwrap();
    }
    assert_eq!(pair.queue.oldest().map(|(_, since)| since), Some(10));
    let mut lost = Vec::new();
    pair.queue.begin_anew(|owner| lost.push(owner));
    lost.sort_unstable();
    assert_eq!(lost, [5, 6, 7]);
    assert_eq!((pair.queue.oldest(), pair.queue.room()), (None, 7));
    (pair.tail, pair.phase) = (0, true);
    let cid = pair.push(1).unwrap();
    pair.complete(cid);
    assert_eq!(pair.poll().unwrap(), [1]);
}

#[derive(Debug, Clone)]
enum Move {
    Push,
    /// Completes one of the outstanding commands, in any order.
    Complete(prop::sample::Index),
    Garbage([u32; 4]),
    Poll,
}

fn any_move() -> impl Strategy<Value = Move> {
    // Garbage that is nearly right is the most likely to be believed.
    let near = (0..16_u32, 0..4_u32, 0..16_u32, any::<u16>()).prop_map(|(cid, queue, head, status)| {
        Move::Garbage([0, 0, queue << 16 | head, u32::from(status) << 17 | cid])
    });
    prop_oneof![
        6 => Just(Move::Push),
        5 => any::<prop::sample::Index>().prop_map(Move::Complete),
        4 => Just(Move::Poll),
        1 => near,
        1 => any::<[u32; 4]>().prop_map(Move::Garbage),
    ]
}

proptest! {
    /// Whatever a controller writes, only completions of outstanding commands are believed, each once; a
    /// malformed one ends in an error that stays.
    #[test]
    fn garbage_never_passes_for_a_completion(moves in prop::collection::vec(any_move(), 1..200)) {
        let mut pair = Pair::new();
        let mut outstanding: BTreeMap<u16, u32> = BTreeMap::new();
        // Completions that the controller has written and the host has not read: their identifiers, or `None`
        // for those of another queue or place.
        let mut written: Vec<Option<u16>> = Vec::new();
        let mut unanswered: Vec<u16> = Vec::new();
        let mut next_owner = 0;
        for step in moves {
            match step {
                Move::Push => {
                    if let Some(cid) = pair.push(next_owner) {
                        prop_assert!(outstanding.insert(cid, next_owner).is_none());
                        unanswered.push(cid);
                        next_owner += 1;
                    }
                }
                // The ring's last entry stays free, as a controller leaves it.
                _ if !matches!(step, Move::Poll) && written.len() >= ENTRIES as usize - 1 => {}
                Move::Complete(_) if unanswered.is_empty() => {}
                Move::Complete(index) => {
                    let cid = unanswered.remove(index.index(unanswered.len()));
                    pair.complete(cid);
                    written.push(Some(cid));
                }
                Move::Garbage(dwords) => {
                    let right = dwords[2] >> 16 == 1 && dwords[2] & 0xffff < ENTRIES;
                    written.push(right.then_some(dwords[3] as u16));
                    pair.write(dwords);
                }
                Move::Poll => {
                    let mut owners = Vec::new();
                    let polled = pair.queue.poll(u32::MAX, |owner, _| owners.push(owner));
                    let answered = written.iter().map_while(|cid| outstanding.remove(&(*cid)?));
                    let expected: Vec<u32> = answered.collect();
                    prop_assert_eq!(&owners, &expected);
                    prop_assert_eq!(polled.is_ok(), expected.len() == written.len());
                    prop_assert_eq!(pair.outstanding(), outstanding.len());
                    if polled.is_err() {
                        prop_assert_eq!(pair.poll(), polled.map(|_| Vec::new()));
                        return Ok(());
                    }
                    unanswered.retain(|cid| outstanding.contains_key(cid));
                    written.clear();
                }
            }
        }
    }
}
