//! Other programs on this host: their names, and how much of the processor they use.

use std::time::Duration;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use crate::printable;

/// A program that runs alongside this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Its process.
    pub pid: u32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// CPUs that it kept busy: 1.0 is one of them.
    pub cpus: f64,
}

/// How busy other programs keep this host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OtherLoad {
    /// CPUs that they kept busy in total.
    pub cpus: f64,
    /// The busiest ones, in descending order.
    pub programs: Vec<Program>,
}

impl OtherLoad {
    /// Programs below this share of a CPU are not named.
    const NAMED_CPUS: f64 = 0.05;
    /// How long to watch: a few of the kernel's ticks of 10 ms.
    const WINDOW: Duration = Duration::from_millis(250);

    /// Watches this host for a quarter of a second; none if its processes can't be read.
    pub fn measure() -> Option<Self> {
        let mut system = System::new().ok()?;
        let refresh = |system: &mut System| {
            let what = ProcessRefreshKind::nothing().with_cpu().without_tasks();
            system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
        };
        refresh(&mut system);
        std::thread::sleep(Self::WINDOW.max(sysinfo::MINIMUM_CPU_UPDATE_INTERVAL));
        refresh(&mut system);
        let others = system.processes().iter().filter(|(pid, _)| pid.as_u32() != std::process::id());
        Some(Self::of(others.map(|(pid, process)| Program {
            pid: pid.as_u32(),
            name: printable::line(&process.name().to_string_lossy()).into_owned(),
            cpus: f64::from(process.cpu_usage()) / 100.0,
        })))
    }

    fn of(all: impl Iterator<Item = Program>) -> Self {
        let mut programs: Vec<Program> = all.collect();
        let cpus = programs.iter().map(|program| program.cpus).sum();
        programs.retain(|program| program.cpus >= Self::NAMED_CPUS);
        programs.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
        Self { cpus, programs }
    }
}

/// The name of a process; none if it has ended.
pub fn program_name(pid: u32) -> Option<String> {
    let mut system = System::new().ok()?;
    let pid = Pid::from_u32(pid);
    let what = ProcessRefreshKind::nothing().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, what);
    Some(printable::line(&system.process(pid)?.name().to_string_lossy()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_programs_come_first_and_idle_ones_only_count() {
        let program = |pid, cpus| Program { pid, name: format!("p{pid}"), cpus };
        let load = OtherLoad::of([program(1, 0.04), program(2, 0.5), program(3, 1.0)].into_iter());
        assert!((load.cpus - 1.54).abs() < 1e-9);
        assert_eq!(load.programs.iter().map(|program| program.pid).collect::<Vec<_>>(), [3, 2]);
    }

    #[test]
    fn a_busy_program_is_found_with_its_name() {
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        // On a busy host it may be kept waiting for a while.
        let seen = (0..40).find_map(|_| {
            let load = OtherLoad::measure().unwrap();
            load.programs.into_iter().find(|program| program.pid == busy.id())
        });
        let name = program_name(busy.id());
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(name.is_some());
        assert_eq!(seen.map(|program| program.name), name);
    }
}
