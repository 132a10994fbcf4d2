//! From settings to the values of attributes that are changed while the load runs.

use crate::settings::{MdSettings, QueueSettings};

/// The attribute that is set first, because others depend on it.
pub const SCHEDULER: &str = "scheduler";

/// An attribute and its value; an attribute without a value is restored.
pub type Wanted = (&'static str, Option<String>);

/// The wanted values, by name and in the order of setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveValues {
    /// Of each drive's queue, the scheduler first.
    pub queue: [Wanted; 6],
    /// Of the stack's md array.
    pub array: [Wanted; 4],
}

impl Default for LiveValues {
    /// All attributes are restored.
    fn default() -> Self {
        live_values(&QueueSettings::default(), &MdSettings::default())
    }
}

impl LiveValues {
    /// Whether this is the name of a queue attribute.
    pub fn has_of_queue(attribute: &str) -> bool {
        Self::default().queue.iter().any(|(name, _)| *name == attribute)
    }

    /// Whether this is the name of an array attribute.
    pub fn has_of_array(attribute: &str) -> bool {
        Self::default().array.iter().any(|(name, _)| *name == attribute)
    }

    /// The scheduler, if one is requested.
    pub fn scheduler(&self) -> Option<&String> {
        self.queue[0].1.as_ref()
    }
}

/// The values that the settings request.
pub fn live_values(queue: &QueueSettings, md: &MdSettings) -> LiveValues {
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    LiveValues {
        queue: [
            (SCHEDULER, queue.scheduler.clone()),
            ("nr_requests", number(queue.nr_requests)),
            ("wbt_lat_usec", number(queue.wbt_lat_usec)),
            ("read_ahead_kb", number(queue.read_ahead_kb)),
            ("nomerges", number(queue.nomerges)),
            ("rq_affinity", number(queue.rq_affinity)),
        ],
        array: [
            ("group_thread_cnt", number(md.group_thread_cnt)),
            ("stripe_cache_size", number(md.stripe_cache_size)),
            // md refuses a minimum above the maximum.
            ("sync_speed_max", number(md.sync_speed_max)),
            ("sync_speed_min", number(md.sync_speed_min)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{OF_ARRAYS, OF_QUEUES};

    #[test]
    fn what_knobs_turn_is_what_the_host_watches() {
        let values = LiveValues::default();
        assert_eq!(values.queue.map(|(name, _)| name), OF_QUEUES);
        assert_eq!(values.array.map(|(name, _)| name), OF_ARRAYS);
    }
}
