//! Deallocating blocks: Dataset Management with the attribute Deallocate (NVM 3.2.3).

use std::sync::Arc;

use super::bus::Bus;
use super::controller::Controller;
use super::identify::Namespace;
use super::lane::Lane;
use super::prp::{PAGE_BYTES, Prp};
use super::spec::{Command, Completion};
use super::status::Status;
use crate::error::{Error, Result};

/// Bytes of a range: context attributes in dword 0, its length in blocks in dword 1, and its first block
/// in dwords 2 and 3 (NVM 3.2.3).
const RANGE_BYTES: usize = 16;
/// Ranges of a command: NR is a byte, one less than meant.
const RANGES_MAX: u64 = 256;
/// Blocks of a range here: large, and what every controller takes.
const RANGE_BLOCKS: u64 = 1 << 22;

/// Deallocates so many blocks of a namespace from `first` on, and waits for it.
///
/// # Errors
/// Input where the controller does not know how; else its status in words.
pub fn deallocate<B: Bus>(
    controller: &Arc<Controller<B>>,
    namespace: Namespace,
    first: u64,
    blocks: u64,
) -> Result<()> {
    if !controller.facts().deallocates {
        return Err(Error::input(format!("{} does not know Dataset Management (ONCS)", controller.name())));
    }
    let bus = controller.bus();
    let page = bus.allocate(PAGE_BYTES)?;
    // It goes before the page, which the controller reads.
    let mut lane = Lane::open(controller, 1)?;
    let (mut at, end) = (first, first.saturating_add(blocks).min(namespace.blocks));
    while at < end {
        let mut ranges = 0;
        while at < end && ranges < RANGES_MAX {
            let length = (end - at).min(RANGE_BLOCKS);
            let place = ranges as usize * RANGE_BYTES;
            page.write_u64(place, length << 32);
            page.write_u64(place + 8, at);
            (at, ranges) = (at + length, ranges + 1);
        }
        let data = Prp { first: page.address(0), second: 0 };
        let status = run(&mut lane, &Command::deallocate(namespace.id, ranges as u32, data))?;
        if !status.is_success() {
            return Err(Error::failed(format!("{} would not deallocate: {status}", controller.name())));
        }
    }
    Ok(())
}

/// Runs one command to its end.
fn run<B: Bus>(lane: &mut Lane<B>, command: &Command) -> Result<Status> {
    let bus = lane.controller().bus().clone();
    lane.push(command, 0, bus.now_ns());
    lane.ring();
    let mut ended = None;
    while ended.is_none() {
        if lane.poll(|_, Completion { status, .. }| ended = Some(status))? == 0 {
            lane.watch(bus.now_ns(), |_| ended = Some(Status::ABORT_REQUESTED))?;
            bus.pause();
        }
    }
    Ok(ended.unwrap_or(Status::SUCCESS))
}

#[cfg(test)]
mod tests {
    use super::super::admin::Patience;
    use super::super::model::{Model, Traits};
    use super::*;

    #[test]
    fn blocks_are_deallocated_up_to_the_end_and_no_further() {
        let model = Model::new(Traits::default());
        let controller = Controller::start(model.clone(), Patience::default()).unwrap();
        let namespace = controller.namespace(1).unwrap();
        deallocate(&controller, namespace, 8, 16).unwrap();
        deallocate(&controller, namespace, 4000, u64::MAX).unwrap();
        let bytes: Vec<usize> = model.take_seen().iter().map(|(_, bytes)| *bytes).collect();
        assert_eq!(bytes, [16 * 512, 96 * 512]);
        assert_eq!(model.queues(), 0);
    }

    #[test]
    fn a_refusal_is_told_in_the_controllers_words() {
        let model = Model::new(Traits::default());
        let controller = Controller::start(model.clone(), Patience::default()).unwrap();
        model.deny([Status(0x20)]);
        let error = deallocate(&controller, controller.namespace(3).unwrap(), 0, 1).unwrap_err();
        assert!(error.what.contains("would not deallocate: Namespace is Write Protected"), "{error}");
    }
}
