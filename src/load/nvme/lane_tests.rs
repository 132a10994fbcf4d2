//! Time-outs, aborts, resets and removal under a lane, on a controller in memory.

use super::super::admin::Patience;
use super::super::model::{Answers, ControllerModel, Traits};
use super::super::status::NvmeStatus;
use super::*;

const NONE: [u32; 0] = [];
const SECOND_NS: u64 = 1_000_000_000;
const PATIENCE: Patience = Patience {
    command: Duration::from_secs(2),
    abort: Duration::from_secs(1),
    admin: Duration::from_secs(2),
};

fn lanes(count: usize) -> (Arc<ControllerModel>, Vec<Lane<ControllerModel>>) {
    let model = ControllerModel::new(Traits::default());
    let controller = Controller::start(model.clone(), PATIENCE).unwrap();
    let lanes = (0..count).map(|_| Lane::open(&controller, 8).unwrap()).collect();
    (model, lanes)
}

fn flush(lane: &mut Lane<ControllerModel>, owner: u32, now_ns: u64) {
    assert!(lane.push(&NvmeCommand::flush(1), owner, now_ns));
    lane.ring();
}

fn polled(lane: &mut Lane<ControllerModel>) -> Vec<(u32, NvmeStatus)> {
    let mut done = Vec::new();
    lane.poll(|owner, completion| done.push((owner, completion.status))).unwrap();
    done
}

/// Watches at that time; returns the owners whose commands a reset ended.
fn watched(lane: &mut Lane<ControllerModel>, now_ns: u64) -> Result<Vec<u32>> {
    let mut lost = Vec::new();
    lane.watch(now_ns, |owner| lost.push(owner)).map(|()| lost)
}

#[test]
fn commands_complete_in_any_order() {
    let (model, mut lanes) = lanes(1);
    model.answer(Answers::Held);
    (0..4).for_each(|owner| flush(&mut lanes[0], owner, 0));
    assert_eq!(polled(&mut lanes[0]), []);
    assert_eq!(model.held(), 4);
    [3, 0, 1, 0].into_iter().for_each(|at| assert!(model.release(at)));
    assert_eq!(polled(&mut lanes[0]).iter().map(|(owner, _)| *owner).collect::<Vec<_>>(), [3, 0, 2, 1]);
}

#[test]
fn a_command_in_time_is_left_alone() {
    let (model, mut lanes) = lanes(1);
    model.answer(Answers::Held);
    flush(&mut lanes[0], 1, 0);
    assert_eq!(watched(&mut lanes[0], 2 * SECOND_NS - 1).unwrap(), NONE);
    assert_eq!(model.aborts(), 0);
    model.release(0);
    assert_eq!(polled(&mut lanes[0]), [(1, NvmeStatus::SUCCESS)]);
}

#[test]
fn a_stuck_command_is_aborted_once_and_the_others_go_on() {
    let (model, mut lanes) = lanes(1);
    model.answer(Answers::IfAborted);
    let room = lanes[0].room();
    flush(&mut lanes[0], 1, 0);
    flush(&mut lanes[0], 2, SECOND_NS);
    for tenths in 0..5 {
        assert_eq!(watched(&mut lanes[0], 2 * SECOND_NS + tenths * SECOND_NS / 10).unwrap(), NONE);
    }
    assert_eq!(model.aborts(), 1);
    assert_eq!(polled(&mut lanes[0]), [(1, NvmeStatus::ABORT_REQUESTED)]);
    assert_eq!(lanes[0].incidents(), Incidents { timeouts: 1, resets: 0 });
    assert_eq!(room - lanes[0].room(), 1, "the other one is still outstanding");
    assert_eq!(model.starts(), 1, "no reset was needed");
}

#[test]
fn where_an_abort_does_not_help_all_lanes_begin_anew_after_a_reset() {
    let (model, mut lanes) = lanes(2);
    model.answer(Answers::Never);
    flush(&mut lanes[0], 1, 0);
    flush(&mut lanes[0], 2, 0);
    flush(&mut lanes[1], 7, SECOND_NS);
    assert_eq!(watched(&mut lanes[0], 2 * SECOND_NS).unwrap(), NONE);
    let mut lost = watched(&mut lanes[0], 3 * SECOND_NS).unwrap();
    lost.sort_unstable();
    assert_eq!((lost, model.starts()), (vec![1, 2], 2));
    // The other lane learns of it, and submits nothing before it has recreated its queue.
    model.answer(Answers::Prompt);
    model.take_doorbells();
    flush(&mut lanes[1], 8, 3 * SECOND_NS);
    assert_eq!(model.take_doorbells(), 0);
    let mut lost = watched(&mut lanes[1], 3 * SECOND_NS).unwrap();
    lost.sort_unstable();
    assert_eq!((lost, model.starts()), (vec![7, 8], 2));
    for (lane, owner) in lanes.iter_mut().zip([3, 9]) {
        flush(lane, owner, 4 * SECOND_NS);
        assert_eq!(polled(lane), [(owner, NvmeStatus::SUCCESS)]);
    }
    let resets: u64 = lanes.iter().map(|lane| lane.incidents().resets).sum();
    assert_eq!(resets, 1, "one lane asked for it");
}

#[test]
fn a_controller_that_is_gone_or_fatally_wrong_ends_the_lane() {
    let (model, mut lanes) = lanes(1);
    flush(&mut lanes[0], 1, 0);
    model.fail_fatally();
    assert!(watched(&mut lanes[0], SECOND_NS).unwrap_err().what.contains("CSTS.CFS"));
    model.pull();
    let error = watched(&mut lanes[0], 2 * SECOND_NS).unwrap_err();
    assert!(error.what.contains("no longer there") && error.hint.is_some(), "{error}");
}

#[test]
fn a_controller_that_has_stopped_by_itself_is_started_again() {
    let (model, mut lanes) = lanes(1);
    model.answer(Answers::Held);
    flush(&mut lanes[0], 4, 0);
    model.stop();
    assert_eq!(watched(&mut lanes[0], SECOND_NS).unwrap(), [4]);
    assert_eq!((model.starts(), lanes[0].incidents().resets), (2, 1));
    model.stop();
    model.never_ready();
    let error = watched(&mut lanes[0], 2 * SECOND_NS).unwrap_err();
    assert!(error.what.contains("does not come back after a reset"), "{error}");
}

#[test]
fn the_registers_are_read_ten_times_a_second_at_most() {
    let (model, mut lanes) = lanes(1);
    assert_eq!(watched(&mut lanes[0], SECOND_NS).unwrap(), NONE);
    model.pull();
    assert_eq!(watched(&mut lanes[0], SECOND_NS + SECOND_NS / 20).unwrap(), NONE);
    assert!(watched(&mut lanes[0], SECOND_NS + SECOND_NS / 10).is_err());
}

#[test]
fn a_malformed_completion_ends_the_lane_in_an_error_that_speaks() {
    let (model, mut lanes) = lanes(1);
    model.answer(Answers::Held);
    flush(&mut lanes[0], 1, 0);
    model.forge(1, [0, 0, 1 << 16, 5], true);
    let error = lanes[0].poll(|_, _| panic!("it is not believed")).unwrap_err();
    assert!(error.what.contains("the model malfunctions: the controller completed command 5"), "{error}");
}

#[test]
fn an_entry_with_the_wrong_tag_is_not_there() {
    let (model, mut lanes) = lanes(1);
    model.answer(Answers::Held);
    flush(&mut lanes[0], 1, 0);
    model.forge(1, [0, 0, 1 << 16, 0], false);
    assert_eq!(polled(&mut lanes[0]), []);
}

#[test]
fn a_lane_that_ends_leaves_no_queue() {
    let (model, lanes) = lanes(3);
    assert_eq!(model.queues(), 3);
    drop(lanes);
    assert_eq!(model.queues(), 0);
    assert!(model.is_shut_down());
}
