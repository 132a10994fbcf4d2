//! The processor's figures.

use serde::{Deserialize, Serialize};

/// What others use matters if it exceeds this share of the busy time, and this many cores.
pub(in crate::meter) const OTHERS_SHARE: f64 = 0.1;
const OTHERS_CORES: f64 = 0.1;

/// Above this share of all CPU time, threads that become ready often wait for a processor.
const FULL: f64 = 0.9;

/// The number of cores above which others' use matters, with `busy_cores` busy.
pub(super) fn matters_from(busy_cores: f64) -> f64 {
    OTHERS_CORES.max(OTHERS_SHARE * busy_cores)
}

/// Where the cycles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CyclesSource {
    /// Counted by the performance-monitoring unit, user and kernel, on every CPU.
    Pmu,
    /// Busy CPU time × clock frequency.
    #[default]
    Estimate,
}

/// The processor over a window, the whole system unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuFigures {
    /// Number of CPUs online.
    pub cpus: u32,
    /// Shares of all CPU time, 0 to 1: user (with nice).
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// Interrupts, hard and soft.
    pub interrupt: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Everything but idle and waiting for I/O; what the hypervisor took counts as busy. At least what the
    /// clocks of this process's own threads show, some of which the kernel's ticks (the shares above) may miss.
    pub busy: f64,
    /// Cores that this process kept busy, including its kernel-side workers.
    pub own_cores: f64,
    /// Cores that stacktune itself used outside the workers (screen, meters): the CPU time of its threads
    /// that neither work nor serve workers (kernel-side ones, and those that flush).
    pub overhead_cores: f64,
    /// Cores used by kernel threads that count as working for the load (`stacktune help figures` says which).
    /// They are not part of [`Self::own_cores`]. None if unknown, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_cores: Option<f64>,
    /// Cores that others used: the whole system without this process, its descendants, the kernel's threads
    /// above and interrupts. From the times of all processes in `/proc`, read twice a second at most (shorter
    /// windows repeat the last reading), with [`Self::unattributed_cores`]. None if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cores: Option<f64>,
    /// The part of these that no process in `/proc` accounts for, as in a container that hides the others: by
    /// the kernel's ticks over the last five seconds. Zero while the ticks' error could explain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattributed_cores: Option<f64>,
    /// Cycles of the whole system: counted, or estimated as busy time without what the hypervisor took ×
    /// frequency. 0 if neither is known.
    pub cycles: f64,
    /// Where the cycles come from.
    pub cycles_source: CyclesSource,
    /// The frequency of an estimate in Hz: the mean over CPUs, weighted by busy time.
    pub frequency_hz: Option<f64>,
    /// Where that frequency comes from.
    pub frequency_source: Option<String>,
    /// Whether the window is too short for the kernel's 10 ms clock, so that shares are coarse.
    pub coarse: bool,
}

impl CpuFigures {
    /// Cores that the whole system kept busy.
    pub fn cores_used(&self) -> f64 {
        self.busy * f64::from(self.cpus)
    }

    /// What others used, if it is enough to matter for cycles and cores: over a tenth of the busy time, and
    /// over a tenth of a core.
    pub fn others_that_matter(&self) -> Option<f64> {
        self.others_cores.filter(|cores| *cores > matters_from(self.cores_used()))
    }

    /// Whether others used so much that hardly a processor was idle: then it is the load that waits.
    pub fn full_by_others(&self) -> bool {
        self.busy > FULL && self.others_that_matter().is_some()
    }

    /// The share of the cycles that others did not take, by run time: the cycles of this process, of the
    /// kernel threads that work for it, and of interrupts. None if unknown.
    pub fn attributable_share(&self) -> Option<f64> {
        let ran = self.cores_used() - self.steal * f64::from(self.cpus);
        let others = self.others_cores.filter(|_| ran > 0.0 && !self.coarse)?;
        Some(((ran - others).max(self.own_cores.min(ran)) / ran).clamp(0.0, 1.0))
    }

    /// Cycles per second of a busy core: an estimate's own frequency, else counted cycles over busy time.
    pub fn busy_frequency_hz(&self, duration_s: f64) -> Option<f64> {
        let busy_s = (self.busy - self.steal) * f64::from(self.cpus) * duration_s;
        let counted = (busy_s > 0.0).then(|| self.cycles / busy_s);
        self.frequency_hz.or(counted).filter(|hz| *hz > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(busy_cores: f64, others: f64) -> CpuFigures {
        CpuFigures { cpus: 16, busy: busy_cores / 16.0, others_cores: Some(others), ..CpuFigures::default() }
    }

    #[test]
    fn others_matter_from_a_tenth_of_a_core_and_of_the_busy_time_on() {
        for (busy, others, matter) in
            [(0.5, 0.11, true), (0.5, 0.09, false), (8.0, 0.79, false), (8.0, 0.81, true), (2.0, 1.85, true)]
        {
            let figures = used(busy, others);
            assert_eq!(figures.others_that_matter(), matter.then_some(others), "{others} of {busy}");
        }
        assert_eq!(CpuFigures::default().others_that_matter(), None);
    }

    #[test]
    fn the_processors_are_full_by_others_only_where_these_matter() {
        for (busy, others, full) in [(15.5, 3.0, true), (15.5, 0.5, false), (14.0, 12.0, false)] {
            assert_eq!(used(busy, others).full_by_others(), full, "{others} of {busy}");
        }
    }

    #[test]
    fn what_others_did_not_take_is_attributable() {
        let share = |figures: &CpuFigures| figures.attributable_share().unwrap();
        assert!((share(&used(2.0, 1.5)) - 0.25).abs() < 1e-9);
        let stolen = CpuFigures { steal: 1.0 / 16.0, ..used(2.0, 0.5) };
        assert!((share(&stolen) - 0.5).abs() < 1e-9, "what the hypervisor took had no cycles");
        let missed = CpuFigures { own_cores: 1.0, ..used(2.0, 1.9) };
        assert!((share(&missed) - 0.5).abs() < 1e-9, "what this process ran is its own in any case");
        let none = [
            CpuFigures { others_cores: None, ..used(2.0, 0.5) },
            CpuFigures { coarse: true, ..used(2.0, 0.5) },
            used(0.0, 0.5),
        ];
        assert!(none.iter().all(|figures| figures.attributable_share().is_none()));
    }
}
