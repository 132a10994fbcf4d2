//! Cycles of the whole system from the performance-monitoring unit.

use std::io;

use perf_event::events::Hardware;
use perf_event::{Builder, CountAndTime, Counter};

/// Something that counts the whole system's cycles.
pub trait CycleCounter: Send {
    /// The CPUs that it counts.
    fn cpus(&self) -> &[u32];
    /// Cycles since the last call; none if the counters did not run or can't be read.
    fn cycles(&mut self) -> Option<f64>;
}

/// A counter of CPU cycles, user and kernel, on each CPU.
pub struct Pmu {
    cpus: Vec<u32>,
    counters: Vec<(Counter, CountAndTime)>,
}

impl Pmu {
    /// Opens and starts the counters.
    ///
    /// # Errors
    /// The system's error, if there is no such unit or its use is forbidden (`perf_event_paranoid`).
    pub fn open(cpus: &[u32]) -> io::Result<Self> {
        let counters = cpus.iter().map(|&cpu| counter(cpu)).collect::<io::Result<_>>()?;
        Ok(Self { cpus: cpus.to_vec(), counters })
    }
}

fn counter(cpu: u32) -> io::Result<(Counter, CountAndTime)> {
    let mut counter = Builder::new(Hardware::CPU_CYCLES)
        .any_pid()
        .one_cpu(cpu as usize)
        .exclude_kernel(false)
        .exclude_hv(false)
        .build()?;
    counter.enable()?;
    let start = counter.read_count_and_time()?;
    Ok((counter, start))
}

impl CycleCounter for Pmu {
    fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn cycles(&mut self) -> Option<f64> {
        let mut sum = Some(0.0);
        // Read every counter, so that none carries this window's cycles into the next.
        for (counter, last) in &mut self.counters {
            let cycles = counter.read_count_and_time().ok().and_then(|now| {
                let last = std::mem::replace(last, now);
                scaled(
                    now.count.wrapping_sub(last.count),
                    now.time_enabled.wrapping_sub(last.time_enabled),
                    now.time_running.wrapping_sub(last.time_running),
                )
            });
            sum = sum.zip(cycles).map(|(sum, cycles)| sum + cycles);
        }
        sum.filter(|cycles| *cycles > 0.0)
    }
}

/// A count scaled up to the whole time, if the counter was multiplexed with those of other users.
fn scaled(count: u64, enabled_ns: u64, running_ns: u64) -> Option<f64> {
    (running_ns > 0).then(|| count as f64 * enabled_ns as f64 / running_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_counter_is_scaled_to_the_whole_time() {
        assert_eq!(scaled(1000, 500, 500), Some(1000.0));
        assert_eq!(scaled(1000, 500, 250), Some(2000.0));
        assert_eq!(scaled(0, 500, 0), None);
    }
}
