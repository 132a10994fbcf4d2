//! The workers' count of bytes against the block layer's, since the totals began.

use super::context::WindowContext;
use super::window::{ClassState, MemberFigures};
use crate::units::MIB;

/// The block layer's count is compared from this many bytes on, and from this multiple of what can be in
/// flight at once, which is then at most a hundredth.
const COMPARABLE_BYTES: u64 = 64 * MIB;
const COMPARABLE_IN_FLIGHT: u64 = 100;

/// Both counts.
#[derive(Debug, Default)]
pub(super) struct Compared {
    engine_bytes: u64,
    block_bytes: u64,
    /// The most that could be in flight at once under the settings.
    in_flight_bytes_max: u64,
}

impl Compared {
    /// Adds what the members and the block layer counted in a window, if the two must agree: all I/O was
    /// direct and counted.
    pub fn add(&mut self, context: &WindowContext, members: &[MemberFigures], blocks: &[Option<(u64, u64)>]) {
        let counted = !blocks.is_empty() && blocks.iter().all(Option::is_some);
        if !counted || !context.all_direct() || context.turned {
            return;
        }
        self.engine_bytes +=
            members.iter().map(|member| member.read_bytes + member.written_bytes).sum::<u64>();
        self.block_bytes += blocks.iter().flatten().map(|(read, written)| read + written).sum::<u64>();
        let in_flight = context.classes.iter().filter(|class| class.state != ClassState::Off);
        let in_flight_bytes = in_flight.map(|class| class.in_flight_bytes_max).sum();
        self.in_flight_bytes_max = self.in_flight_bytes_max.max(in_flight_bytes);
    }

    /// By what share of the workers' bytes the block layer's differ since the totals began; none while I/O
    /// that the device has completed but no worker has seen could be a large part of them.
    pub fn difference(&self) -> Option<f64> {
        let enough = COMPARABLE_BYTES.max(self.in_flight_bytes_max.saturating_mul(COMPARABLE_IN_FLIGHT));
        let difference = self.engine_bytes.abs_diff(self.block_bytes) as f64 / self.engine_bytes as f64;
        (self.engine_bytes >= enough).then_some(difference)
    }
}
