//! Filling a target before the load begins.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::message::Progress;
use super::run::Attendant;
use super::target::{self, Target};
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::units::approx_span;

/// A fill that takes less is over before anybody has read how long it takes.
const TOLD_S: f64 = 3.0;

/// Fills what is not filled, and adds the bytes to those written.
pub(super) fn fill(
    target: &mut Target,
    settings: &Settings,
    written_bytes: &AtomicU64,
    attendant: &mut dyn Attendant,
) -> Result<()> {
    let Some(volume) = &mut target.volume else { return Ok(()) };
    let Some(whole) = volume.missing_fill() else { return Ok(()) };
    target::refuse_over_limit(whole.bytes, written_bytes.load(Ordering::Relaxed), settings)?;
    attendant.passing(&format!("{whole}; the rate of its first half second tells how long it takes"));
    let (stop, began) = (AtomicBool::new(false), Instant::now());
    let (start, rest) = volume.measure_fill(&stop)?;
    written_bytes.fetch_add(start.written_bytes, Ordering::Relaxed);
    let Some(rest) = rest else {
        target.built.iter().for_each(|built| built.filled_in(began.elapsed()));
        return Ok(());
    };
    if let Some(seconds) = rest.time_s().filter(|seconds| *seconds >= TOLD_S) {
        attendant.passing(&format!("filling takes about {} more", approx_span(seconds)));
    }
    let mut progress = |progress: Progress| {
        // Of all that was to be filled, the measured start included.
        let (done_bytes, all_bytes) = (progress.done_bytes + start.written_bytes, whole.bytes);
        let rate_bytes_per_s = done_bytes as f64 / began.elapsed().as_secs_f64();
        if !attendant.progress(Progress { done_bytes, all_bytes, rate_bytes_per_s, ..progress }) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let end = volume.fill(&mut progress, &stop)?;
    written_bytes.fetch_add(end.written_bytes, Ordering::Relaxed);
    if !end.complete {
        let error = Error::interrupted("the fill was stopped");
        // A stack that was built for it goes with it.
        let goes_on = target.built.is_none();
        return Err(if goes_on { error.hint("the next run goes on where it stopped") } else { error });
    }
    // A stack was empty before: that was all of it.
    target.built.iter().for_each(|built| built.filled_in(began.elapsed()));
    Ok(())
}
