//! A worker's queue pair on a controller, with a watchdog.
//!
//! A command that does not come back in time is aborted first (Base 5.1). If that does not help, the
//! controller is reset (Base 3.7.2): this ends all commands of all lanes, and every lane recreates its queue.
//! A controller that is gone or reports a fatal error ends the lane.

use std::sync::Arc;
use std::time::Duration;

use super::admin::{Condition, fatal, gone, recalled};
use super::bus::Bus;
use super::controller::Controller;
use super::queue::QueuePair;
use super::spec::{NvmeCommand, NvmeCompletion};
use crate::error::{Error, Result};
use crate::meter::counts::counters::Incidents;

/// How often to check on the controller.
const LOOK: Duration = Duration::from_millis(100);

/// One thread's queue pair on a controller that others use too.
pub struct Lane<B: Bus> {
    controller: Arc<Controller<B>>,
    queue: QueuePair<B>,
    generation: u32,
    look_ns: u64,
    /// The command that is being aborted (its identifier, and since when it is outstanding), and when the
    /// abort was requested.
    abort: Option<(u16, u64, u64)>,
    incidents: Incidents,
}

impl<B: Bus> Lane<B> {
    /// Creates a queue pair for that many concurrent commands, or as many as the controller accepts.
    pub fn open(controller: &Arc<Controller<B>>, commands: u32) -> Result<Self> {
        let (queue, generation) = controller.open_queue(commands.saturating_add(1))?;
        let controller = controller.clone();
        Ok(Self { controller, queue, generation, look_ns: 0, abort: None, incidents: Incidents::default() })
    }

    /// The controller.
    pub fn controller(&self) -> &Arc<Controller<B>> {
        &self.controller
    }

    /// Timeouts and resets that the watchdog handled.
    pub fn incidents(&self) -> Incidents {
        self.incidents
    }

    /// How many more commands can be outstanding.
    #[inline]
    pub fn room(&self) -> usize {
        self.queue.room()
    }

    /// Queues a command; false if there is no room. `owner` comes back with its completion.
    #[inline]
    pub fn push(&mut self, command: &NvmeCommand, owner: u32, now_ns: u64) -> bool {
        self.queue.push(command, owner, now_ns).is_some()
    }

    /// Submits the queued commands with one doorbell write.
    #[inline]
    pub fn ring(&mut self) {
        // After a reset the controller does not know this queue until [`Self::watch`] has recreated it.
        if self.generation == self.controller.generation() {
            self.queue.ring();
        }
    }

    /// Takes all completions that are there. Returns how many.
    ///
    /// # Errors
    /// If one is malformed: the controller can't be trusted any more.
    #[inline]
    pub fn poll(&mut self, each: impl FnMut(u32, NvmeCompletion)) -> Result<u32> {
        let max = self.queue.entries();
        self.queue.poll(max, each).map_err(|malformed| {
            let what = format!("{} malfunctions: {malformed}", self.controller.name());
            Error::failed(what).hint("its data can't be trusted: update its firmware, or replace it")
        })
    }

    /// Checks whether the controller still works and whether a command is overdue. Call it again and again;
    /// except every 100 ms, it costs one comparison. `lost` is given the owners of commands that a reset has
    /// ended.
    ///
    /// # Errors
    /// If it is gone or wanted back, reports a fatal error, or does not come back after a reset.
    pub fn watch(&mut self, now_ns: u64, mut lost: impl FnMut(u32)) -> Result<()> {
        if self.generation != self.controller.generation() {
            return self.begin_anew(&mut lost);
        }
        if now_ns < self.look_ns {
            return Ok(());
        }
        self.look_ns = now_ns + LOOK.as_nanos() as u64;
        match self.controller.condition() {
            Condition::Removed => return Err(gone(self.controller.name())),
            Condition::Fatal => return Err(fatal(self.controller.name())),
            Condition::Recalled => return Err(recalled(self.controller.name())),
            // Unless another lane is resetting it right now, it has stopped by itself.
            Condition::Stopped if self.generation == self.controller.generation() => {
                self.reset()?;
                return self.begin_anew(&mut lost);
            }
            Condition::Ready | Condition::Stopped => {}
        }
        let Some((cid, since_ns)) = self.queue.oldest() else { return Ok(()) };
        let patience = self.controller.patience();
        let is_over = |from_ns: u64, patience: Duration| {
            u128::from(now_ns.saturating_sub(from_ns)) >= patience.as_nanos()
        };
        if let Some((of, from, asked_ns)) = self.abort
            && (of, from) == (cid, since_ns)
        {
            if !is_over(asked_ns, patience.abort) {
                return Ok(());
            }
            self.reset()?;
            return self.begin_anew(&mut lost);
        }
        if is_over(since_ns, patience.command) { self.abort(cid, since_ns, now_ns) } else { Ok(()) }
    }

    /// Requests the abort of a command. Its own completion shows whether it was found and aborted; a
    /// controller that can't take more aborts now will be reset later.
    fn abort(&mut self, cid: u16, since_ns: u64, now_ns: u64) -> Result<()> {
        self.abort = Some((cid, since_ns, now_ns));
        self.incidents.timeouts += 1;
        match self.controller.abort(self.queue.id(), cid) {
            Err(error) if self.controller.condition() != Condition::Ready => Err(error),
            _ => Ok(()),
        }
    }

    fn begin_anew(&mut self, lost: &mut impl FnMut(u32)) -> Result<()> {
        self.generation = self.controller.reopen_queue(&mut self.queue, lost)?;
        self.abort = None;
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        let done = self.controller.reset(self.generation)?;
        self.incidents.resets += u64::from(done);
        Ok(())
    }
}

impl<B: Bus> Drop for Lane<B> {
    fn drop(&mut self) {
        // If it can't be deleted, the controller is stopped or gone: either way it leaves the queue's memory
        // alone, and the lane's user already knows.
        let _ = self.controller.close_queue(&self.queue, self.generation);
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
