//! The settings of a profile that this host does not support, and why.

use std::fmt;

use serde::Serialize;

use crate::settings::knobs::{self, Conditions};
use crate::settings::values::Settings;

/// A value that this host, or this target, does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The knob's path.
    pub knob: &'static str,
    /// Its value, as profiles write it.
    pub value: String,
    /// Why not, as a sentence without a full stop.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` can't be {}: {}", self.knob, self.value, self.reason)
    }
}

/// Every value of the settings that is not supported here; if there is none, they can run.
pub fn check(settings: &Settings, conditions: Conditions) -> Vec<Problem> {
    knobs::problems(settings, conditions)
        .into_iter()
        .filter_map(|(path, reason)| {
            let knob = knobs::find(path)?;
            Some(Problem { knob: path, value: knob.get(settings).to_string(), reason })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::capable_host;

    #[test]
    fn a_stack_that_cannot_be_built_is_a_problem_with_its_value() {
        let facts = capable_host();
        let mut settings = Settings::default();
        settings.stack.raid = crate::settings::Raid::Md5;
        settings.target.count = 2;
        settings.target.serials = vec!["A".into()];
        let problems = check(&settings, Conditions { facts: &facts, target: None });
        let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "`target.serials` can't be A: serials: 1, devices: 0; each device has one serial, in the same order",
                "`stack.raid` can't be md5: it needs 3 members, but the target has 2",
            ]
        );
    }

    #[test]
    fn drives_leave_the_kernel_as_a_whole_and_only_behind_an_iommu() {
        use crate::settings::{Interface, Raid};
        let mut facts = capable_host();
        facts.platform.iommu_groups = 4;
        let mut settings = Settings::default();
        settings.io.interface = Interface::Vfio;
        let problem = |settings: &Settings, facts: &crate::host::Facts| {
            let problems = check(settings, Conditions { facts, target: None });
            problems.first().map(ToString::to_string).unwrap_or_default()
        };
        assert!(problem(&settings, &facts).contains("the target is files"));
        settings.target.devices = vec!["/dev/nvme0n1".into(), "/dev/nvme1n1".into()];
        assert_eq!(problem(&settings, &facts), "");
        let mut odd = settings.clone();
        odd.classes[0].interface = Some(Interface::Libaio);
        assert!(problem(&odd, &facts).contains("scan would have no drives"));
        let mut odd = settings.clone();
        odd.stack.raid = Raid::Md0;
        assert!(problem(&odd, &facts).contains("a stack on them needs the kernel"));
        let mut odd = settings.clone();
        odd.wal.target = Some("/dev/nvme2n1".into());
        assert!(problem(&odd, &facts).contains("wal.target would stay"));
        let mut odd = settings.clone();
        odd.queue.nomerges = Some(2);
        assert!(problem(&odd, &facts).contains("queue.*"));
        let mut spdk = settings.clone();
        spdk.io.interface = Interface::Spdk;
        facts.platform.spdk = crate::host::Spdk::default();
        assert!(problem(&spdk, &facts).contains("built without SPDK"));
        facts.platform.spdk.usable = crate::host::Feature::Present;
        assert_eq!(problem(&spdk, &facts), "");
        spdk.classes[0].interface = Some(Interface::Vfio);
        assert!(problem(&spdk, &facts).contains("scan would have no drives"));
        facts.platform.iommu_groups = 0;
        assert!(problem(&settings, &facts).contains("no IOMMU"));
    }

    #[test]
    fn the_defaults_run_on_a_capable_host() {
        let facts = capable_host();
        assert_eq!(check(&Settings::default(), Conditions { facts: &facts, target: None }), []);
    }
}
