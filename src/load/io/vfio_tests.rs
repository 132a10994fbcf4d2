//! The interface on controllers in memory.

use proptest::prelude::*;

use super::*;
use crate::load::nvme::admin::Patience;
use crate::load::nvme::model::{Answers, ControllerModel, Traits};
use crate::load::nvme::spec;
use crate::load::nvme::status::NvmeStatus;
use crate::settings::RingSetup;
use crate::units::SECOND_NS;

/// For tests in which commands time out.
const SHORT: Patience = Patience {
    command: std::time::Duration::from_millis(20),
    abort: std::time::Duration::from_millis(20),
    admin: std::time::Duration::from_secs(1),
};
/// For the others: no command times out, however busy the host is.
const LONG: Patience = Patience {
    command: std::time::Duration::from_mins(2),
    abort: std::time::Duration::from_mins(2),
    admin: std::time::Duration::from_mins(2),
};

/// Namespaces 1 and 3 of one model, and namespace 1 of another.
fn bench(page_bytes: usize, slots: u32) -> (Arc<ControllerModel>, Polled<ControllerModel>) {
    bench_with(LONG, page_bytes, slots)
}

fn bench_with(
    patience: Patience,
    page_bytes: usize,
    slots: u32,
) -> (Arc<ControllerModel>, Polled<ControllerModel>) {
    let model = ControllerModel::new(Traits::default());
    let controller = Controller::start(model.clone(), patience).unwrap();
    let other = Controller::start(model_beside(&model), patience).unwrap();
    let members = [(controller.clone(), 1), (controller, 3), (other, 1)];
    let drives = Arc::new(Drives::new(members.map(Ok)).unwrap());
    (model, Polled::new(&drives, &setup(page_bytes, slots)).unwrap())
}

fn setup(page_bytes: usize, slots: u32) -> Setup {
    Setup {
        page_bytes,
        slots,
        flush_slots: 3,
        registered_buffers: false,
        registered_files: false,
        ring_setup: RingSetup::Default,
        iopoll: false,
        sqpoll: None,
        poll_sleep_ns: 0,
    }
}

/// Another controller on the same memory, as in one container.
fn model_beside(model: &Arc<ControllerModel>) -> Arc<ControllerModel> {
    ControllerModel::beside(model, Traits { mdts: 1, ..Traits::default() })
}

fn op(slot: u32, kind: OpKind, file: u32, offset_bytes: u64) -> Op {
    Op { slot, kind, file, offset_bytes }
}

/// Submits the queued operations and waits for all of them; returns results by slot.
fn results(polled: &mut Polled<ControllerModel>) -> Vec<(u32, i32)> {
    let mut done = Vec::new();
    polled.advance(Wait { completions: u32::MAX, until_ns: None }, &mut done).unwrap();
    let mut results: Vec<_> = done.iter().map(|done| (done.slot, done.result)).collect();
    results.sort_unstable();
    results
}

#[test]
fn pages_of_every_size_are_written_and_read_back_on_each_drive() {
    for page in [4096, 8192, 16384, 1 << 20] {
        let (model, mut polled) = bench(page, 6);
        let (files, at) = (0..3_u32, page as u64);
        for file in files.clone() {
            for (n, byte) in polled.buffer(file).iter_mut().enumerate() {
                *byte = (n * 7 + n / 4096 + file as usize) as u8;
            }
            polled.queue(op(file, OpKind::Write, file, at));
        }
        let expected: Vec<_> = files.clone().map(|file| (file, page as i32)).collect();
        assert_eq!(results(&mut polled), expected);
        assert_eq!(model.disk(1)[page], 0);
        assert_eq!(model.disk(1)[page + 5000 % page], ((5000 % page) * 7 + (5000 % page) / 4096) as u8);
        files.clone().for_each(|file| polled.queue(op(3 + file, OpKind::Read, file, at)));
        results(&mut polled);
        for file in files {
            let written = polled.buffer(file).to_vec();
            assert!(polled.buffer(3 + file) == written, "{page} bytes on member {file}");
        }
    }
}

#[test]
fn pages_smaller_than_a_block_are_refused() {
    let drives = bench(4096, 1).1.drives.clone();
    // Blocks of namespace 3 are 4 KiB.
    let error = Polled::new(&drives, &setup(512, 1)).err().unwrap();
    assert!(error.what.contains("smaller than a block") && error.exit_status() == 2, "{error}");
}

#[test]
fn a_page_beyond_the_limit_goes_as_several_commands_and_completes_once() {
    let (model, mut polled) = bench(64 << 10, 2);
    // The other controller has the lower limit, of 8 KiB.
    assert_eq!(polled.transfers.parts(), 8);
    polled.queue(op(0, OpKind::Write, 0, 0));
    assert_eq!(results(&mut polled), [(0, 64 << 10)]);
    assert_eq!(model.take_seen(), [(spec::WRITE, 8192); 8]);
    // If some of them fail, the page fails with the first error.
    model.deny([NvmeStatus::SUCCESS, NvmeStatus(0x280), NvmeStatus(0x281)]);
    polled.queue(op(1, OpKind::Write, 0, 0));
    assert_eq!(results(&mut polled), [(1, -libc::ENODATA)]);
}

#[test]
fn a_page_of_more_commands_than_a_queue_has_waits_for_room() {
    // 128 commands a page, and 63 in the ring.
    let (model, mut polled) = bench(1 << 20, 1);
    polled.queue(op(0, OpKind::Read, 0, 0));
    assert_eq!(results(&mut polled), [(0, 1 << 20)]);
    assert_eq!(model.take_seen().len(), 128);
}

#[test]
fn a_batch_is_one_doorbell_and_completions_another() {
    let (model, mut polled) = bench(4096, 8);
    model.take_doorbells();
    (0..8).for_each(|slot| polled.queue(op(slot, OpKind::Read, 0, u64::from(slot) * 4096)));
    assert_eq!(results(&mut polled).len(), 8);
    assert_eq!(model.take_doorbells(), 2);
}

#[test]
fn flushes_and_durable_writes_are_the_drives_own() {
    let (model, mut polled) = bench(4096, 2);
    polled.queue(op(0, OpKind::WriteDurable, 0, 0));
    polled.queue(op(2, OpKind::Flush, 0, 0));
    polled.queue(op(3, OpKind::Flush, 1, 0));
    assert_eq!(results(&mut polled), [(0, 4096), (2, 0), (3, 0)]);
    assert_eq!(model.take_seen(), [(spec::WRITE, 4096), (spec::FLUSH, 0), (spec::FLUSH, 0)]);
}

#[test]
fn only_pages_beyond_the_end_fail() {
    let (_model, mut polled) = bench(4096, 2);
    polled.queue(op(0, OpKind::Read, 0, 1 << 30));
    polled.queue(op(1, OpKind::Read, 0, 0));
    assert_eq!(results(&mut polled), [(0, -libc::EREMOTEIO), (1, 4096)]);
}

#[test]
fn waiting_ends_in_time_and_every_poll_is_counted() {
    let (model, mut polled) = bench(4096, 2);
    model.answer(Answers::Held);
    polled.queue(op(0, OpKind::Read, 0, 0));
    let mut done = Vec::new();
    for sleep_ns in [0, SECOND_NS / 1000] {
        polled.sleep_ns = sleep_ns;
        let until_ns = clock::now_ns() + SECOND_NS / 500;
        polled.advance(Wait { completions: 1, until_ns: Some(until_ns) }, &mut done).unwrap();
        assert!(done.is_empty() && clock::now_ns() >= until_ns);
    }
    assert!(polled.polls.polls > 0 && polled.polls.polls == polled.polls.empty_polls);
    model.release(0);
    assert_eq!(results(&mut polled), [(0, 4096)]);
    assert_eq!(polled.polls.polls - polled.polls.empty_polls, 1);
}

#[test]
fn stuck_commands_fail_after_a_reset_and_the_load_continues() {
    let (model, mut polled) = bench_with(SHORT, 4096, 4);
    model.answer(Answers::Never);
    (0..2).for_each(|slot| polled.queue(op(slot, OpKind::Read, 0, 0)));
    assert_eq!(results(&mut polled), [(0, -libc::ETIMEDOUT), (1, -libc::ETIMEDOUT)]);
    assert_eq!((model.aborts(), model.starts()), (1, 2));
    assert_eq!((polled.incidents(), polled.reason()), (Incidents { timeouts: 1, resets: 1 }, None));
    model.answer(Answers::Prompt);
    polled.queue(op(0, OpKind::Read, 0, 0));
    assert_eq!(results(&mut polled), [(0, 4096)]);
}

#[test]
fn a_drive_that_is_pulled_ends_the_interface() {
    let (model, mut polled) = bench(4096, 4);
    model.answer(Answers::Held);
    polled.queue(op(0, OpKind::Read, 0, 0));
    model.pull();
    let mut done = Vec::new();
    assert_eq!(polled.advance(Wait { completions: 1, until_ns: None }, &mut done), Err(libc::ENODEV));
    assert!(polled.reason().unwrap().contains("no longer there"), "{:?}", polled.reason());
}

#[test]
fn malformed_completions_end_the_interface() {
    let (model, mut polled) = bench(4096, 4);
    model.answer(Answers::Held);
    polled.queue(op(0, OpKind::Read, 0, 0));
    let mut done = Vec::new();
    let soon = Wait { completions: 1, until_ns: Some(0) };
    polled.advance(soon, &mut done).unwrap();
    model.forge(1, [0, 0, 1 << 16, 999], true);
    assert_eq!(polled.advance(soon, &mut done), Err(libc::EIO));
    assert!(done.is_empty());
}

/// What may happen between two polls, whether the controller behaves or not.
#[derive(Debug, Clone)]
enum Happens {
    /// The load queues an operation, if a slot is free.
    Queue {
        write: bool,
        file: u32,
        page: u64,
    },
    /// One of the held commands is performed.
    Release(usize),
    /// A completion with this content appears, with or without the phase tag of a new one.
    Forge {
        queue: u16,
        dwords: [u32; 4],
        new: bool,
    },
    /// The next commands get this answer.
    Deny(u16),
    Pull,
    Fail,
    Stop,
}

fn happens() -> impl Strategy<Value = Happens> {
    // Mostly plausible numbers: all existing queues and identifiers, and some others.
    let dword3 = prop_oneof![3 => 0..40_u32, 1 => any::<u32>()];
    let dword2 = prop_oneof![3 => (0..40_u32, 0..4_u32).prop_map(|(head, queue)| queue << 16 | head), 1 => any::<u32>()];
    let forged = (1..3_u16, any::<u32>(), dword2, dword3, any::<bool>())
        .prop_map(|(queue, d0, d2, d3, new)| Happens::Forge { queue, dwords: [d0, 0, d2, d3], new });
    prop_oneof![
        12 => (any::<bool>(), 0..3_u32, 0..600_u64).prop_map(|(write, file, page)| Happens::Queue { write, file, page }),
        12 => (0..16_usize).prop_map(Happens::Release),
        2 => forged,
        2 => (0..0x400_u16).prop_map(Happens::Deny),
        1 => Just(Happens::Pull),
        1 => Just(Happens::Fail),
        1 => Just(Happens::Stop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Whatever a controller does, each operation is reported at most once, none is reported that was not
    /// queued, and the interface either ends with a reason or continues.
    #[test]
    fn no_controller_makes_the_driver_report_what_did_not_happen(all in prop::collection::vec(happens(), 1..60)) {
        let (model, mut polled) = bench_with(SHORT, 4096, 8);
        model.answer(Answers::Held);
        let mut outstanding = std::collections::BTreeSet::new();
        let soon = Wait { completions: 1, until_ns: Some(0) };
        for what in all {
            match what {
                Happens::Queue { write, file, page } => {
                    let Some(slot) = (0..8).find(|slot| !outstanding.contains(slot)) else { continue };
                    outstanding.insert(slot);
                    let kind = if write { OpKind::Write } else { OpKind::Read };
                    polled.queue(op(slot, kind, file, page * 4096));
                }
                Happens::Release(at) => drop(model.release(at)),
                Happens::Forge { queue, dwords, new } if model.queues() >= usize::from(queue) => {
                    model.forge(queue, dwords, new);
                }
                Happens::Forge { .. } => {}
                Happens::Deny(status) => model.deny([NvmeStatus(status)]),
                Happens::Pull => model.pull(),
                Happens::Fail => model.fail_fatally(),
                Happens::Stop => model.stop(),
            }
            // Let time pass, so that the lanes check for timeouts.
            model.pass(SECOND_NS / 5);
            let mut done = Vec::new();
            let ended = polled.advance(soon, &mut done);
            for done in done {
                prop_assert!(outstanding.remove(&done.slot), "slot {} twice", done.slot);
                prop_assert!(done.result == 4096 || done.result < 0);
            }
            if let Err(errno) = ended {
                prop_assert!([libc::EIO, libc::ENODEV].contains(&errno) && polled.reason().is_some());
                break;
            }
        }
    }
}

#[test]
fn a_member_is_a_namespace_at_a_pci_address() {
    assert_eq!(member_of(Path::new("vfio:0000:01:00.0/2")).unwrap(), ("0000:01:00.0".into(), 2));
    for odd in ["/dev/nvme0n1", "vfio:0000:01:00.0", "vfio:0000:01:00.0/x"] {
        assert!(member_of(Path::new(odd)).unwrap_err().what.contains(odd), "{odd}");
    }
}
