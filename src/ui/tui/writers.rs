//! When writers will reach their limit.

use super::state::State;
use crate::runs::session::message::Phase;

/// Seconds until then, at the rate of the last windows; none if that never comes.
pub fn end_in_s(state: &State) -> Option<f64> {
    let limit = state.status.as_ref()?.settings.run.max_writes_bytes.filter(|_| state.replay.is_none())?;
    let left = limit.checked_sub(state.written_bytes).filter(|left| *left > 0)?;
    let left_s = left as f64 / state.live.written_bytes_per_s()?;
    (state.phase() == Phase::Running).then_some(left_s)
}
