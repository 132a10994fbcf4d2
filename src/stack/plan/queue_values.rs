//! From the settings to the values of the block layer's queue attributes.

use crate::settings::QueueSettings;

/// The attribute that is set first: others depend on it.
pub const SCHEDULER: &str = "scheduler";

/// The wanted values of a drive's queue attributes, by name and in the order of setting, the scheduler first;
/// one without a value is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueValues(pub [(&'static str, Option<String>); 6]);

impl Default for QueueValues {
    /// All restored.
    fn default() -> Self {
        queue_values(&QueueSettings::default())
    }
}

impl QueueValues {
    /// Whether this names one of the attributes.
    pub fn has(attribute: &str) -> bool {
        Self::default().0.iter().any(|(name, _)| *name == attribute)
    }

    /// The scheduler, if one is requested.
    pub fn scheduler(&self) -> Option<&String> {
        self.0[0].1.as_ref()
    }
}

/// The values that the settings request.
pub fn queue_values(settings: &QueueSettings) -> QueueValues {
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    QueueValues([
        (SCHEDULER, settings.scheduler.clone()),
        ("nr_requests", number(settings.nr_requests)),
        ("wbt_lat_usec", number(settings.wbt_lat_usec)),
        ("read_ahead_kb", number(settings.read_ahead_kb)),
        ("nomerges", number(settings.nomerges)),
        ("rq_affinity", number(settings.rq_affinity)),
    ])
}
