//! The cost of a duel whose every block needs a build, as far as it is known in advance.

use std::time::Duration;

use crate::runs::duel::{PAIRS_MAX, PAIRS_MIN};
use crate::runs::session::PlanShown;
use crate::stack::plan::DriveWear;

/// The cost of a duel that builds storage for each block.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Minimum builds: one for each value of each pair.
    pub builds: usize,
    /// Maximum builds.
    pub builds_max: usize,
    /// Bytes that the minimum builds write, including the fills but not the load's own writes; none if unknown.
    pub writes_bytes: Option<u64>,
    /// How long the minimum builds take, going by each one's last time; none if unknown.
    pub build_time: Option<Duration>,
    /// How long the load runs between them.
    pub load_time: Duration,
    /// The share of each drive's life that the minimum builds use.
    pub wear: Vec<DriveWear>,
}

impl Cost {
    /// From the plans of both values, and the time that the load of a pair runs.
    pub fn of(plans: &[PlanShown; 2], pair_time: Duration) -> Self {
        let pairs = PAIRS_MIN as u32;
        let times = |bytes: u64| bytes.saturating_mul(PAIRS_MIN as u64);
        let both = plans[0].writes_bytes.zip(plans[1].writes_bytes);
        let mut wear: Vec<DriveWear> = Vec::new();
        for more in plans.iter().flat_map(|plan| &plan.wear) {
            let bytes = times(more.writes_bytes);
            match wear.iter_mut().find(|known| known.drive == more.drive) {
                Some(known) => known.writes_bytes = known.writes_bytes.saturating_add(bytes),
                None => wear.push(DriveWear { writes_bytes: bytes, ..more.clone() }),
            }
        }
        Self {
            builds: 2 * PAIRS_MIN,
            builds_max: 2 * PAIRS_MAX,
            writes_bytes: both.map(|(one, other)| times(one.saturating_add(other))),
            build_time: plans[0].last_time.zip(plans[1].last_time).map(|(one, other)| (one + other) * pairs),
            load_time: pair_time * pairs,
            wear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::plan::Endurance;

    fn plan(bytes: Option<u64>, time_s: Option<u64>, drives: &[(&str, u64)]) -> PlanShown {
        let wear = drives.iter().map(|(drive, writes_bytes)| DriveWear {
            drive: (*drive).to_owned(),
            writes_bytes: *writes_bytes,
            endurance: Endurance::default(),
        });
        PlanShown {
            number: 0,
            opens: None,
            live: false,
            turns: Vec::new(),
            takes_down: Vec::new(),
            lines: Vec::new(),
            destroys: Vec::new(),
            writes_bytes: bytes,
            wear: wear.collect(),
            properties: None,
            times: Vec::new(),
            last_time: time_s.map(Duration::from_secs),
        }
    }

    #[test]
    fn seven_builds_of_each_value_are_added_up() {
        let plans = [
            plan(Some(100), Some(10), &[("nvme0n1", 60), ("nvme1n1", 40)]),
            plan(Some(50), Some(20), &[("nvme0n1", 50)]),
        ];
        let cost = Cost::of(&plans, Duration::from_secs(32));
        assert_eq!((cost.builds, cost.builds_max, cost.writes_bytes), (14, 80, Some(7 * 150)));
        assert_eq!(cost.build_time, Some(Duration::from_secs(210)));
        assert_eq!(cost.load_time, Duration::from_secs(7 * 32));
        let worn: Vec<_> = cost.wear.iter().map(|wear| (wear.drive.as_str(), wear.writes_bytes)).collect();
        assert_eq!(worn, [("nvme0n1", 7 * 110), ("nvme1n1", 7 * 40)]);
        let unknown = Cost::of(&[plan(None, None, &[]), plans[1].clone()], Duration::ZERO);
        assert_eq!((unknown.writes_bytes, unknown.build_time), (None, None));
    }
}
