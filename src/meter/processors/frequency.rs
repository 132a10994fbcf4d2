//! The clock frequency of each CPU, if the system reports it. Read by hand, because sysinfo does not say
//! where a frequency comes from, and reports an unknown one as 0.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::units::SECOND_NS;

/// Frequencies by CPU, and where they come from, in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Frequencies {
    hz: BTreeMap<u32, f64>,
    /// Where they come from.
    pub source: &'static str,
}

impl Frequencies {
    /// The mean over CPUs, each weighted by its busy time: an idle CPU's frequency does not matter.
    pub fn mean_hz(&self, busy: &BTreeMap<u32, u64>) -> Option<f64> {
        let weight = |cpu: &u32| busy.get(cpu).copied().unwrap_or(0) as f64;
        let all: f64 = self.hz.keys().map(weight).sum();
        if all > 0.0 {
            return Some(self.hz.iter().map(|(cpu, hz)| hz * weight(cpu)).sum::<f64>() / all);
        }
        (!self.hz.is_empty()).then(|| self.hz.values().sum::<f64>() / self.hz.len() as f64)
    }
}

/// Reads the frequencies, at most once a second.
#[derive(Debug)]
pub struct FrequencyProbe {
    root: PathBuf,
    last: Option<(u64, Option<Frequencies>)>,
}

impl FrequencyProbe {
    /// For the system under that root.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), last: None }
    }

    /// The frequencies, less than a second old; none if the system reports none.
    pub fn read(&mut self, now_ns: u64, cpus: impl Iterator<Item = u32>) -> Option<&Frequencies> {
        let fresh = matches!(&self.last, Some((at, _)) if now_ns.saturating_sub(*at) < SECOND_NS);
        if !fresh {
            let frequencies = from_cpufreq(&self.root, cpus).or_else(|| from_cpuinfo(&self.root));
            self.last = Some((now_ns, frequencies));
        }
        self.last.as_ref().and_then(|(_, frequencies)| frequencies.as_ref())
    }
}

fn from_cpufreq(root: &Path, cpus: impl Iterator<Item = u32>) -> Option<Frequencies> {
    let khz = |cpu: u32| -> Option<f64> {
        let path = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"));
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let hz: BTreeMap<_, _> =
        cpus.filter_map(|cpu| Some((cpu, khz(cpu).filter(|khz| *khz > 0.0)? * 1e3))).collect();
    (!hz.is_empty()).then_some(Frequencies { hz, source: "cpufreq, mean over the busy CPUs" })
}

fn from_cpuinfo(root: &Path) -> Option<Frequencies> {
    let text = std::fs::read_to_string(root.join("proc/cpuinfo")).ok()?;
    let mut hz = BTreeMap::new();
    let mut cpu = None;
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        match key.trim() {
            "processor" => cpu = value.trim().parse().ok(),
            "cpu MHz" => {
                if let (Some(cpu), Ok(mhz)) = (cpu, value.trim().parse::<f64>())
                    && mhz > 0.0
                {
                    hz.insert(cpu, mhz * 1e6);
                }
            }
            _ => {}
        }
    }
    (!hz.is_empty()).then_some(Frequencies { hz, source: "/proc/cpuinfo, mean over the busy CPUs" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn cpufreq_is_preferred_to_cpuinfo_and_idle_cpus_do_not_count() {
        let root = tempfile::tempdir().unwrap();
        let mut probe = FrequencyProbe::new(root.path());
        assert!(probe.read(0, 0..2).is_none());

        fs::create_dir_all(root.path().join("proc")).unwrap();
        let cpuinfo =
            "processor\t: 0\nmodel name\t: X\ncpu MHz\t\t: 2000.000\n\nprocessor\t: 1\ncpu MHz\t: 1000.0\n";
        fs::write(root.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        assert!(probe.read(SECOND_NS - 1, 0..2).is_none(), "read again within a second");
        let frequencies = probe.read(SECOND_NS, 0..2).unwrap();
        assert_eq!(frequencies.mean_hz(&BTreeMap::from([(0, 3), (1, 1)])), Some(1.75e9));
        assert_eq!(frequencies.mean_hz(&BTreeMap::new()), Some(1.5e9));
        assert!(frequencies.source.contains("cpuinfo"));

        let folder = root.path().join("sys/devices/system/cpu/cpu1/cpufreq");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("scaling_cur_freq"), "3500000\n").unwrap();
        let frequencies = probe.read(2 * SECOND_NS, 0..2).unwrap();
        assert_eq!(frequencies.mean_hz(&BTreeMap::from([(1, 1)])), Some(3.5e9));
        assert!(frequencies.source.contains("cpufreq"));
    }
}
