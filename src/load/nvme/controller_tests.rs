//! Start, queues, reset and shutdown of a controller in memory.

use super::super::model::{ControllerModel, Traits};
use super::*;

const PATIENCE: Patience = Patience {
    command: Duration::from_secs(1),
    abort: Duration::from_secs(1),
    admin: Duration::from_secs(2),
};

fn started() -> (Arc<ControllerModel>, Arc<Controller<ControllerModel>>) {
    let model = ControllerModel::new(Traits::default());
    let controller = Controller::start(model.clone(), PATIENCE).unwrap();
    (model, controller)
}

fn error_of<T>(outcome: Result<T>) -> Error {
    outcome.err().expect("it fails")
}

#[test]
fn a_controller_is_started_and_reports_what_it_has() {
    let (model, controller) = started();
    assert_eq!(controller.facts().serial, "MODEL");
    assert_eq!(controller.transfer_bytes_max(), 16384);
    assert_eq!((controller.queues_max(), controller.queue_entries_max()), (4, 64));
    let shifts: Vec<_> = controller.namespaces.iter().map(|n| (n.id, n.blocks, n.block_shift)).collect();
    assert_eq!(shifts, [(1, 4096, 9), (3, 512, 12)]);
    assert_eq!(controller.namespace(3).unwrap().bytes(), 2 << 20);
    assert!(controller.namespace(2).unwrap_err().what.contains("no namespace 2"));
    assert_eq!(controller.condition(), Condition::Ready);
    drop(controller);
    assert!(model.is_shut_down());
}

#[test]
fn without_a_limit_of_its_own_the_lists_are_the_limit() {
    let model = ControllerModel::new(Traits { mdts: 0, ..Traits::default() });
    let controller = Controller::start(model, PATIENCE).unwrap();
    assert_eq!(controller.transfer_bytes_max(), TRANSFER_BYTES_MAX);
}

#[test]
fn a_namespace_with_odd_blocks_is_left_out_and_says_why() {
    let model = ControllerModel::new(Traits { namespaces: vec![(1, 8, 9), (2, 8, 16)], ..Traits::default() });
    let controller = Controller::start(model, PATIENCE).unwrap();
    assert_eq!(controller.namespaces.len(), 1);
    assert!(controller.namespace(2).unwrap_err().what.contains("2^16 bytes"));
}

#[test]
fn queue_pairs_are_given_out_until_there_is_none_and_come_back() {
    let (model, controller) = started();
    let mut queues: Vec<_> = (0..4).map(|_| controller.open_queue(1000).unwrap()).collect();
    assert_eq!(queues[0].0.entries(), 64, "as many as it can have");
    let error = error_of(controller.open_queue(8));
    assert!(error.what.contains("4 queue pairs") && error.hint.is_some(), "{error}");
    let (queue, generation) = queues.remove(1);
    controller.close_queue(&queue, generation).unwrap();
    assert_eq!(model.queues(), 3);
    assert_eq!(controller.open_queue(8).unwrap().0.id(), 2);
}

#[test]
fn doorbells_that_lie_beyond_the_registers_are_no_queues() {
    // At 512 bytes per doorbell, 4 KiB have room for four pairs, one of them the admin queue's.
    let cap = Traits::default().cap | 7 << 32;
    let controller =
        Controller::start(ControllerModel::new(Traits { cap, ..Traits::default() }), PATIENCE).unwrap();
    assert_eq!(controller.queues_max(), 3);
}

#[test]
fn a_controller_that_is_not_known_is_refused() {
    let with = |cap: u64| {
        error_of(Controller::start(ControllerModel::new(Traits { cap, ..Traits::default() }), PATIENCE))
    };
    let cap = Traits::default().cap;
    assert!(with(cap & !(1 << 37)).what.contains("CAP.CSS"));
    assert!(with(cap | 1 << 48).what.contains("CAP.MPSMIN"));
}

#[test]
fn one_that_never_becomes_ready_is_given_up_after_the_time_that_it_names() {
    let model = ControllerModel::new(Traits::default());
    model.never_ready();
    let error = error_of(Controller::start(model.clone(), PATIENCE));
    assert!(error.what.contains("did not become ready within 500ms"), "{error}");
    assert!(model.now_ns() < 600_000_000);
}

#[test]
fn one_that_is_gone_or_fatally_wrong_says_so_at_once() {
    let model = ControllerModel::new(Traits::default());
    model.pull();
    assert!(error_of(Controller::start(model, PATIENCE)).what.contains("no longer there"));
    let (model, controller) = started();
    model.fail_fatally();
    assert_eq!(controller.condition(), Condition::Fatal);
    model.mute_admin();
    assert!(error_of(controller.open_queue(8)).what.contains("CSTS.CFS"));
    let (model, controller) = started();
    model.pull();
    assert_eq!(controller.condition(), Condition::Removed);
    assert!(error_of(controller.open_queue(8)).what.contains("no longer there"));
}

#[test]
fn an_admin_command_without_answer_ends_the_controller() {
    let (model, controller) = started();
    model.mute_admin();
    let error = error_of(controller.open_queue(8));
    assert!(error.what.contains("no answer within 2s"), "{error}");
    let again = error_of(controller.open_queue(8));
    assert!(again.what.contains("no answer within 2s"), "the reason stays: {again}");
    assert_eq!(controller.condition(), Condition::Stopped, "it writes to no memory any more");
}

#[test]
fn a_malformed_answer_to_an_admin_command_ends_the_controller() {
    let (model, controller) = started();
    model.forge(0, [0, 0, 0, 9], true);
    let error = error_of(controller.open_queue(8));
    assert!(error.what.contains("command 9, which is not outstanding"), "{error}");
    assert_eq!(controller.condition(), Condition::Stopped);
}

#[test]
fn a_reset_is_done_once_for_all_who_ask_for_the_same() {
    let (model, controller) = started();
    let (mut queue, generation) = controller.open_queue(8).unwrap();
    controller.reset(generation).unwrap();
    controller.reset(generation).unwrap();
    assert_eq!((model.starts(), model.queues(), controller.generation()), (2, 0, 1));
    assert_eq!(controller.reopen_queue(&mut queue, |_| {}).unwrap(), 1);
    assert_eq!(model.queues(), 1);
}

#[test]
fn a_queue_of_before_a_reset_is_void_and_needs_no_deletion() {
    let (model, controller) = started();
    let (queue, generation) = controller.open_queue(8).unwrap();
    controller.reset(generation).unwrap();
    controller.close_queue(&queue, generation).unwrap();
    assert_eq!(model.queues(), 0);
    assert_eq!(controller.open_queue(8).unwrap().0.id(), 1);
}

#[test]
fn one_that_does_not_come_back_after_a_reset_is_given_up() {
    let (model, controller) = started();
    model.never_ready();
    let error = error_of(controller.reset(0));
    assert!(error.what.contains("does not come back after a reset"), "{error}");
    assert!(error_of(controller.open_queue(8)).what.contains("does not come back"));
}

#[test]
fn after_a_shutdown_nothing_is_accepted() {
    let (model, controller) = started();
    controller.shut_down().unwrap();
    assert!(model.is_shut_down());
    assert!(error_of(controller.open_queue(8)).what.contains("was shut down"));
}
