//! A session without an operator: recorded for a given time.

use std::path::Path;
use std::time::Duration;

use super::message::Event;
use super::run::Session;
use crate::error::{Error, Result};
use crate::io::clock;
use crate::record::{Outcome, Summary};
use crate::units::SECOND_NS;

/// Signals are looked for this often.
const LOOK_NS: u64 = SECOND_NS / 10;
/// A class that drains or starts is looked at this often.
const SETTLE_NS: u64 = SECOND_NS / 500;

/// Runs an opened session for `time`, recording into a new folder. `interrupts` counts the signals so
/// far: the first ends the run in order, with a valid summary; one more ends the draining too.
///
/// # Errors
/// Where the folder or a class can't be used, or the recording can't be written.
pub fn record(
    session: &mut Session,
    out: &Path,
    time: Duration,
    interrupts: &dyn Fn() -> usize,
    on_event: &mut dyn FnMut(Event),
) -> Result<Summary> {
    session.record(out)?;
    let end_ns = time.as_nanos() as u64;
    let ran = session.start().and_then(|()| run_until(session, end_ns, interrupts, on_event));
    let outcome = match &ran {
        Err(error) => Outcome::Failed(error.to_string()),
        Ok(()) if interrupts() > 0 => Outcome::Interrupted,
        Ok(()) => Outcome::Complete,
    };
    let finished = session.finish_window().and_then(|()| session.end_recording(&outcome));
    session.events().for_each(&mut *on_event);
    session.end();
    while !session.is_drained() && interrupts() < 2 {
        clock::sleep_until(clock::now_ns() + SETTLE_NS);
    }
    ran?;
    finished?.ok_or_else(|| Error::failed("the recording ended before the run"))
}

fn run_until(
    session: &mut Session,
    end_ns: u64,
    interrupts: &dyn Fn() -> usize,
    on_event: &mut dyn FnMut(Event),
) -> Result<()> {
    while session.now_ns() < end_ns && interrupts() == 0 {
        let due_ns = session.next_ns().min(end_ns);
        if session.is_simulated() {
            session.advance(due_ns);
        } else {
            let now_ns = session.now_ns();
            let look_ns = now_ns + if session.is_settling() { SETTLE_NS } else { LOOK_NS };
            clock::sleep_until(clock::now_ns() + due_ns.min(look_ns).saturating_sub(now_ns));
        }
        session.tick()?;
        session.events().for_each(&mut *on_event);
    }
    Ok(())
}
