//! `null`: completes every operation at once, which leaves only the generator's own cost.

use std::sync::Arc;

use super::backend::{Backend, Done, Op, OpKind, OpenRequest, Queue, Setup, Wait};
use super::buffers::Buffers;
use super::clock;
use crate::error::Result;

/// An interface that does nothing, successfully.
#[derive(Debug)]
pub struct Null {
    buffers: Buffers,
    queued: Vec<Op>,
}

impl Queue for Null {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.get(slot)
    }

    #[inline]
    fn queue(&mut self, op: Op) {
        self.queued.push(op);
    }
}

impl Backend for Null {
    type Members = ();

    fn open_members(_: &OpenRequest) -> Result<()> {
        Ok(())
    }

    fn open(_: &Arc<()>, setup: &Setup) -> Result<Self> {
        let queued = Vec::with_capacity((setup.slots + setup.flush_slots) as usize);
        Ok(Self { buffers: Buffers::new(setup.slots, setup.page_bytes), queued })
    }

    fn advance(&mut self, wait: Wait, done: &mut Vec<Done>) -> std::result::Result<(), i32> {
        if self.queued.is_empty() {
            clock::sleep_until(wait.until_ns.unwrap_or(0));
        }
        let moved = self.buffers.page_bytes() as i32;
        done.extend(
            self.queued
                .drain(..)
                .map(|op| Done { slot: op.slot, result: if op.kind == OpKind::Flush { 0 } else { moved } }),
        );
        Ok(())
    }
}
