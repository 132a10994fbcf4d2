//! The drives' temperatures, read in a thread of their own: a drive that hangs does not answer for long.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::meters::Member;
use crate::host::Thermometer;

/// A drive is asked so often at most: asking is a command to it.
const INTERVAL: Duration = Duration::from_secs(1);
/// What is older says nothing of a window.
const STALE: Duration = Duration::from_secs(3);

/// Reads how warm the drives below the members are.
#[derive(Debug, Default)]
pub struct TemperatureProbe {
    drives: Arc<Drives>,
    /// The places of each member's drives.
    members: Vec<Vec<usize>>,
    /// Ends the thread when it is dropped.
    _running: Option<Sender<()>>,
}

#[derive(Debug, Default)]
struct Drives {
    thermometers: Vec<Thermometer>,
    readings: Mutex<Vec<Option<Reading>>>,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    temperature_c: f64,
    hot: bool,
}

/// What a window has of the temperatures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Temperatures {
    /// Of each member, in degrees Celsius, its hottest drive's.
    pub members_c: Vec<Option<f64>>,
    /// The drives at or above the temperature from which on they may slow themselves down.
    pub hot: Vec<String>,
}

impl TemperatureProbe {
    /// Begins to read the sensors of the drives below the members, under a root (`/`).
    pub fn open(root: &Path, members: &[Member]) -> Self {
        let below = |member: &Member| match (&member.path, member.device) {
            (_, Some(number)) => Thermometer::below(root, number),
            (Some(path), None) => Thermometer::below_path(path),
            (None, None) => Vec::new(),
        };
        let mut probe = Self::of(members.iter().map(below).collect());
        if !probe.drives.thermometers.is_empty() {
            let (running, until) = channel();
            let drives = probe.drives.clone();
            let thread = std::thread::Builder::new().name("temperature".into());
            // Without the thread nothing is known, as where there are no sensors.
            if thread.spawn(move || drives.read_until(&until)).is_ok() {
                probe = Self { _running: Some(running), ..probe };
            }
        }
        probe
    }

    fn of(members: Vec<Vec<Thermometer>>) -> Self {
        let mut thermometers: Vec<Thermometer> = Vec::new();
        let mut place = |thermometer: Thermometer| {
            let known = thermometers.iter().position(|known| known.drive == thermometer.drive);
            known.unwrap_or_else(|| {
                thermometers.push(thermometer);
                thermometers.len() - 1
            })
        };
        let members: Vec<Vec<usize>> =
            members.into_iter().map(|drives| drives.into_iter().map(&mut place).collect()).collect();
        let readings = Mutex::new(vec![None; thermometers.len()]);
        Self { drives: Arc::new(Drives { thermometers, readings }), members, _running: None }
    }

    /// What was read last.
    pub fn window(&self) -> Temperatures {
        self.at(Instant::now())
    }

    fn at(&self, now: Instant) -> Temperatures {
        let readings = self.drives.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |reading: &Reading| now.saturating_duration_since(reading.at) <= STALE;
        let reading = |at: usize| readings.get(at).copied().flatten().filter(fresh);
        let hottest = |drives: &Vec<usize>| {
            let found = drives.iter().filter_map(|drive| Some(reading(*drive)?.temperature_c));
            found.reduce(f64::max)
        };
        let names = self.drives.thermometers.iter().enumerate();
        let hot = names.filter(|(at, _)| reading(*at).is_some_and(|reading| reading.hot));
        Temperatures {
            members_c: self.members.iter().map(hottest).collect(),
            hot: hot.map(|(_, thermometer)| thermometer.drive.clone()).collect(),
        }
    }
}

impl Drives {
    fn read_until(&self, until: &Receiver<()>) {
        loop {
            self.read();
            if until.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn read(&self) {
        for (at, thermometer) in self.thermometers.iter().enumerate() {
            let reading = thermometer.read_c().map(|temperature_c| Reading {
                at: Instant::now(),
                temperature_c,
                hot: thermometer.is_hot(temperature_c),
            });
            self.readings.lock().unwrap_or_else(PoisonError::into_inner)[at] = reading;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::flags::WindowContext;
    use crate::meter::flags::tests::context;
    use crate::meter::meters::{Meters, Probes};
    use crate::units::SECOND_NS;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// An array of two drives, of which the second tells no limit; and a drive without a sensor.
    fn host() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for path in ["sys/dev/block", "sys/block/md0/slaves", "sys/block/nvme2n1/device"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        for (drive, number) in [("nvme0n1", "259:0"), ("nvme1n1", "259:1")] {
            fs::create_dir_all(at(&format!("sys/block/{drive}/device/hwmon3"))).unwrap();
            symlink(format!("../../{drive}"), at(&format!("sys/block/md0/slaves/{drive}"))).unwrap();
            symlink(format!("../../block/{drive}"), at(&format!("sys/dev/block/{number}"))).unwrap();
        }
        symlink("../../block/md0", at("sys/dev/block/9:0")).unwrap();
        symlink("../../block/nvme2n1", at("sys/dev/block/259:2")).unwrap();
        fs::write(at("sys/block/nvme0n1/device/hwmon3/temp1_max"), "69850\n").unwrap();
        root
    }

    fn warm(root: &tempfile::TempDir, drive: &str, text: &str) {
        fs::write(root.path().join(format!("sys/block/{drive}/device/hwmon3/temp1_input")), text).unwrap();
    }

    fn probe(root: &tempfile::TempDir) -> TemperatureProbe {
        let numbers = [(9, 0), (259, 0), (259, 1), (259, 2), (259, 3)];
        TemperatureProbe::of(numbers.map(|number| Thermometer::below(root.path(), number)).to_vec())
    }

    #[test]
    fn a_member_is_as_warm_as_the_hottest_drive_below_it() {
        let root = host();
        warm(&root, "nvme0n1", "41850\n");
        warm(&root, "nvme1n1", "55000\n");
        let probe = probe(&root);
        assert_eq!(probe.drives.thermometers.len(), 2, "each drive is asked once");
        assert_eq!(probe.window().members_c, [None; 5], "nothing was read yet");
        probe.drives.read();
        let read = probe.window();
        assert_eq!(read.members_c, [Some(55.0), Some(41.85), Some(55.0), None, None]);
        assert!(read.hot.is_empty());
        assert_eq!(probe.at(Instant::now() + 2 * STALE).members_c, [None; 5], "it is too old");
    }

    #[test]
    fn a_drive_is_hot_at_its_limit_and_where_it_says_so() {
        let root = host();
        warm(&root, "nvme0n1", "69850\n");
        warm(&root, "nvme1n1", "90000\n");
        let probe = probe(&root);
        probe.drives.read();
        assert_eq!(probe.window().hot, ["nvme0n1"], "the other one tells no limit");
        fs::write(root.path().join("sys/block/nvme1n1/device/hwmon3/temp1_alarm"), "1\n").unwrap();
        warm(&root, "nvme0n1", "69000\n");
        probe.drives.read();
        assert_eq!(probe.window().hot, ["nvme1n1"]);
        warm(&root, "nvme1n1", "");
        probe.drives.read();
        assert_eq!(probe.window().members_c[2], None, "it does not answer any more");
    }

    #[test]
    fn a_hot_drive_is_in_the_window_and_in_the_totals() {
        let root = host();
        warm(&root, "nvme0n1", "45000");
        let number = (259, 0);
        let temperature = TemperatureProbe::of(vec![Thermometer::below(root.path(), number)]);
        let drives = temperature.drives.clone();
        let member = Member { name: "nvme0n1".into(), device: Some(number), path: None };
        let mut meters = Meters::new(0, vec![member], Probes { temperature, ..Probes::none() });
        for (at_s, text, read_c, hot) in
            [(1, "45000", Some(45.0), false), (2, "70000", Some(70.0), true), (3, "?", None, false)]
        {
            warm(&root, "nvme0n1", text);
            drives.read();
            let window = meters.window(&WindowContext { now_ns: at_s * SECOND_NS, ..context() });
            assert_eq!(window.members[0].temperature_c, read_c);
            assert_eq!(window.flags.iter().any(|flag| flag.text == "hot"), hot, "{:?}", window.flags);
        }
        assert_eq!(meters.totals().members[0].temperature_c, Some(70.0));
    }
}
