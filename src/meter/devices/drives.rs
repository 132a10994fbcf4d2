//! The drives below the members: their temperature, whether they throttle, and whether they are still there.
//! Read in a separate thread, because a drive that hangs takes long to answer.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::block::DriveIos;
use super::layers::{LayerFigures, ReadBelow};
use super::member::Member;
use crate::host::{FlashSource, FlashWrites, Health, Look, Throttling, WatchedDrive};

/// The shortest time between two queries of a drive, as each is a command to it.
const INTERVAL: Duration = Duration::from_secs(1);
/// Writes to flash are queried once in this many rounds: only whole runs show them.
const FLASH_LOOKS: u64 = 10;
/// A reading older than this says nothing about a window.
const STALE: Duration = Duration::from_secs(3);

/// Reads the drives below the members.
#[derive(Debug, Default)]
pub struct DriveProbe {
    drives: Arc<Drives>,
    /// The indices of each member's drives.
    members: Vec<Vec<usize>>,
    /// Ends the thread when it is dropped.
    _running: Option<Sender<()>>,
}

#[derive(Debug, Default)]
struct Drives {
    watched: Vec<WatchedDrive>,
    readings: Mutex<Vec<Reading>>,
}

/// The latest that is known about a drive.
#[derive(Debug, Clone, Default)]
struct Reading {
    /// When it was last read.
    at: Option<Instant>,
    temperature_c: Option<f64>,
    hot: bool,
    lost: bool,
    /// The last health log.
    health: Option<Health>,
    throttling: Option<Throttling>,
    /// The worst since the last window ended, if the drive was read since.
    worst: Option<Throttling>,
    /// The drive's current count of its writes, and the count at the last window.
    flash: Option<FlashWrites>,
    flash_taken: Option<FlashWrites>,
}

/// What all drives together have counted since the last window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlashDelta {
    /// Bytes that hosts wrote.
    pub host_bytes: u64,
    /// Bytes that were written to flash.
    pub flash_bytes: u64,
    /// The resolution of the sums: the drives' units added up.
    pub unit_bytes: u64,
    /// The source of the counts: the first drive's page.
    pub source: FlashSource,
}

/// A window's figures of the drives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DriveFigures {
    /// The temperature of each member's hottest drive, in degrees Celsius.
    pub members_c: Vec<Option<f64>>,
    /// For each member, the worst of its drives that report it.
    pub throttling: Vec<Option<Throttling>>,
    /// The drives at or above the temperature from which they may throttle.
    pub hot: Vec<String>,
    /// The drives that throttled, by their own counts.
    pub throttled: Vec<String>,
    /// The drives that are gone, with their serials if known.
    pub lost: Vec<(String, Option<String>)>,
    /// Bytes that the drives wrote to flash, queried every ten seconds; none unless all of them report it.
    pub flash: Option<FlashDelta>,
    /// See [`crate::meter::window::Window::drive_ios`]; from the block layer, read by the meters.
    pub ios: Option<DriveIos>,
    /// See [`crate::meter::window::Window::read`], likewise.
    pub read: ReadBelow,
}

impl DriveFigures {
    /// The temperature and throttling of each member's drives.
    pub fn by_member(&self) -> impl Iterator<Item = (Option<f64>, Option<Throttling>)> {
        self.members_c.iter().copied().zip(self.throttling.iter().copied())
    }

    /// Takes what the block layer counted, if it sees all of the load's I/Os.
    pub fn count(&mut self, layers: LayerFigures, all_seen: bool) {
        if all_seen {
            (self.ios, self.read) = (layers.drive_ios, layers.read);
        }
    }
}

impl DriveProbe {
    /// Starts watching the drives below the members, under a root (`/`).
    pub fn open(root: &Path, members: &[Member]) -> Self {
        let below = |member: &Member| match (&member.path, member.device) {
            (_, Some(number)) => WatchedDrive::below(root, number),
            (Some(path), None) => WatchedDrive::below_path(path),
            (None, None) => Vec::new(),
        };
        let mut probe = Self::of(members.iter().map(below).collect());
        if !probe.drives.watched.is_empty() {
            let (running, until) = channel();
            let drives = probe.drives.clone();
            let thread = std::thread::Builder::new().name("drives".into());
            // Without the thread nothing is known, just as if the drives reported nothing.
            if thread.spawn(move || drives.look_until(&until)).is_ok() {
                probe = Self { _running: Some(running), ..probe };
            }
        }
        probe
    }

    fn of(members: Vec<Vec<WatchedDrive>>) -> Self {
        let mut watched: Vec<WatchedDrive> = Vec::new();
        let mut place = |drive: WatchedDrive| {
            let known = watched.iter().position(|known| known.name == drive.name);
            known.unwrap_or_else(|| {
                watched.push(drive);
                watched.len() - 1
            })
        };
        let members: Vec<Vec<usize>> =
            members.into_iter().map(|drives| drives.into_iter().map(&mut place).collect()).collect();
        let readings = Mutex::new(vec![Reading::default(); watched.len()]);
        Self { drives: Arc::new(Drives { watched, readings }), members, _running: None }
    }

    /// The readings since the last window ended, or the ones before it if there are none.
    pub fn window(&self) -> DriveFigures {
        self.at(Instant::now())
    }

    fn at(&self, now: Instant) -> DriveFigures {
        let mut readings = self.drives.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |at: Option<Instant>| at.is_some_and(|at| now.saturating_duration_since(at) <= STALE);
        // A lost drive stays lost; any other old reading says nothing.
        let seen: Vec<Reading> = readings
            .iter_mut()
            .map(|reading| {
                let worst = reading.worst.take();
                let lost = Reading { lost: reading.lost, ..Reading::default() };
                let throttling = worst.or(reading.throttling);
                if fresh(reading.at) { Reading { throttling, ..reading.clone() } } else { lost }
            })
            .collect();
        let flash = flash_since(&self.drives.watched, &mut readings);
        drop(readings);
        let hottest =
            |drives: &Vec<usize>| drives.iter().filter_map(|at| seen[*at].temperature_c).reduce(f64::max);
        let worst = |drives: &Vec<usize>| drives.iter().filter_map(|at| seen[*at].throttling).max();
        let those = |is: &dyn Fn(&Reading) -> bool| {
            let drives = self.drives.watched.iter().zip(&seen);
            drives.filter(|(_, reading)| is(reading)).map(|(drive, _)| drive.name.clone()).collect()
        };
        let lost = self.drives.watched.iter().zip(&seen).filter(|(_, reading)| reading.lost);
        DriveFigures {
            members_c: self.members.iter().map(hottest).collect(),
            throttling: self.members.iter().map(worst).collect(),
            hot: those(&|reading| reading.hot || reading.throttling == Some(Throttling::Hot)),
            throttled: those(&|reading| reading.throttling == Some(Throttling::Yes)),
            lost: lost.map(|(drive, _)| (drive.name.clone(), drive.serial.clone())).collect(),
            flash,
            ..DriveFigures::default()
        }
    }
}

/// What all drives have written since the last such call; none if any of them does not report it.
///
/// The pages belong to controllers: namespaces of one controller, which share its serial, count once.
fn flash_since(watched: &[WatchedDrive], readings: &mut [Reading]) -> Option<FlashDelta> {
    let mut sum: Option<FlashDelta> = None;
    if readings.is_empty() || readings.iter().any(|reading| reading.flash.is_none()) {
        return None;
    }
    for (at, reading) in readings.iter_mut().enumerate() {
        let now = reading.flash?;
        let before = reading.flash_taken.replace(now).unwrap_or(now);
        let serial = &watched[at].serial;
        if serial.is_some() && watched[..at].iter().any(|other| other.serial == *serial) {
            continue;
        }
        let sum = sum.get_or_insert(FlashDelta {
            host_bytes: 0,
            flash_bytes: 0,
            unit_bytes: 0,
            source: now.source,
        });
        sum.host_bytes += now.host_bytes.saturating_sub(before.host_bytes);
        sum.flash_bytes += now.flash_bytes.saturating_sub(before.flash_bytes);
        sum.unit_bytes += now.unit_bytes;
    }
    sum
}

impl Drives {
    fn look_until(&self, until: &Receiver<()>) {
        for look in 0_u64.. {
            self.look();
            if look.is_multiple_of(FLASH_LOOKS) {
                self.look_at_flash();
            }
            if until.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn look_at_flash(&self) {
        for (at, drive) in self.watched.iter().enumerate().filter(|(_, drive)| drive.reports_flash()) {
            if let Some(flash) = drive.flash() {
                self.readings.lock().unwrap_or_else(PoisonError::into_inner)[at].flash = Some(flash);
            }
        }
    }

    fn look(&self) {
        for (at, drive) in self.watched.iter().enumerate() {
            let look = drive.look();
            self.readings.lock().unwrap_or_else(PoisonError::into_inner)[at].take(look, Instant::now());
        }
    }
}

impl Reading {
    /// Takes the result of a reading.
    fn take(&mut self, look: Look, now: Instant) {
        let written = look.health.as_ref().zip(self.health.as_ref());
        let written = written.and_then(|(now, before)| now.throttling_since(before));
        // A drive that does not count throttling is hot, or its state is unknown.
        self.throttling = written.max(look.hot.then_some(Throttling::Hot));
        self.worst = self.worst.max(self.throttling);
        (self.at, self.temperature_c, self.hot) = (Some(now), look.temperature_c, look.hot);
        self.lost = look.lost;
        // The first log after a failed one covers all the time in between.
        if look.health.is_some() {
            self.health = look.health;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::context::WindowContext;
    use crate::meter::flags::tests::context;
    use crate::meter::{Meters, Probes};
    use crate::units::SECOND_NS;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// An array of two drives, the second of which reports no limit; and a drive without a sensor.
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

    fn probe(root: &tempfile::TempDir) -> DriveProbe {
        let numbers = [(9, 0), (259, 0), (259, 1), (259, 2), (259, 3)];
        DriveProbe::of(numbers.map(|number| WatchedDrive::below(root.path(), number)).to_vec())
    }

    #[test]
    fn a_member_is_as_warm_as_its_hottest_drive() {
        let root = host();
        warm(&root, "nvme0n1", "41850\n");
        warm(&root, "nvme1n1", "55000\n");
        let probe = probe(&root);
        assert_eq!(probe.drives.watched.len(), 3, "each drive is queried once");
        assert_eq!(probe.window().members_c, [None; 5], "nothing has been read yet");
        probe.drives.look();
        let read = probe.window();
        assert_eq!(read.members_c, [Some(55.0), Some(41.85), Some(55.0), None, None]);
        assert!(read.hot.is_empty());
        assert_eq!(probe.at(Instant::now() + 2 * STALE).members_c, [None; 5], "it is too old");
    }

    #[test]
    fn a_drive_is_hot_at_its_limit_or_if_it_reports_so() {
        let root = host();
        warm(&root, "nvme0n1", "69850\n");
        warm(&root, "nvme1n1", "90000\n");
        let probe = probe(&root);
        probe.drives.look();
        assert_eq!(probe.window().hot, ["nvme0n1"], "the other one reports no limit");
        fs::write(root.path().join("sys/block/nvme1n1/device/hwmon3/temp1_alarm"), "1\n").unwrap();
        warm(&root, "nvme0n1", "69000\n");
        probe.drives.look();
        assert_eq!(probe.window().hot, ["nvme1n1"]);
        warm(&root, "nvme1n1", "");
        probe.drives.look();
        assert_eq!(probe.window().members_c[2], None, "it no longer answers");
    }

    #[test]
    fn a_hot_drive_is_in_the_window_and_in_the_totals() {
        let root = host();
        warm(&root, "nvme0n1", "45000");
        let number = (259, 0);
        let probe = DriveProbe::of(vec![WatchedDrive::below(root.path(), number)]);
        let drives = probe.drives.clone();
        let member = Member { name: "nvme0n1".into(), device: Some(number), path: None };
        let mut meters = Meters::new(0, vec![member], Probes { drives: probe, ..Probes::none() });
        for (at_s, text, read_c, hot) in
            [(1, "45000", Some(45.0), false), (2, "70000", Some(70.0), true), (3, "?", None, false)]
        {
            warm(&root, "nvme0n1", text);
            drives.look();
            let window = meters.window(&WindowContext { now_ns: at_s * SECOND_NS, ..context() });
            assert_eq!(window.members[0].temperature_c, read_c);
            assert_eq!(window.flags.iter().any(|flag| flag.text == "hot"), hot, "{:?}", window.flags);
        }
        assert_eq!(meters.totals().members[0].temperature_c, Some(70.0));
    }

    #[test]
    fn writes_to_flash_are_counted_since_the_last_window_of_all_drives_or_none() {
        let root = host();
        let probe = DriveProbe::of(vec![WatchedDrive::below(root.path(), (9, 0))]);
        let count = |at: usize, host_bytes: u64, flash_bytes: u64| {
            let unit_bytes = 512_000;
            let flash = FlashWrites { host_bytes, flash_bytes, unit_bytes, source: FlashSource::Ocp };
            probe.drives.readings.lock().unwrap()[at].flash = Some(flash);
        };
        let written = || probe.window().flash.map(|flash| (flash.host_bytes, flash.flash_bytes));
        assert_eq!(written(), None);
        count(0, 1000, 3000);
        assert_eq!(written(), None, "the other one does not report it");
        count(1, 50, 60);
        assert_eq!(written(), Some((0, 0)), "from then on");
        count(0, 1100, 3300);
        count(1, 50, 65);
        assert_eq!(written(), Some((100, 305)));
        assert_eq!(written(), Some((0, 0)), "not queried since");
    }

    #[test]
    fn namespaces_of_one_drive_count_its_writes_once() {
        let root = host();
        for namespace in ["nvme0n1", "nvme1n1"] {
            fs::write(root.path().join(format!("sys/block/{namespace}/device/serial")), "S1\n").unwrap();
        }
        let probe = DriveProbe::of(vec![WatchedDrive::below(root.path(), (9, 0))]);
        for (host_bytes, written) in [(1000, (0, 0)), (1100, (100, 300))] {
            for reading in &mut *probe.drives.readings.lock().unwrap() {
                let (flash_bytes, unit_bytes) = (host_bytes * 3, 1);
                let flash = FlashWrites { host_bytes, flash_bytes, unit_bytes, source: FlashSource::Ocp };
                reading.flash = Some(flash);
            }
            let flash = probe.window().flash.unwrap();
            assert_eq!((flash.host_bytes, flash.flash_bytes, flash.unit_bytes), (written.0, written.1, 1));
        }
    }

    fn look(health: Option<Health>) -> Look {
        Look { health, ..Look::default() }
    }

    #[test]
    fn a_window_has_the_worst_of_its_readings_and_a_short_one_repeats_the_last() {
        use crate::host::Throttled;
        use crate::host::health_tests::calm;
        let now = Instant::now();
        let count = |transitions| calm(Some(Throttled { transitions: [transitions, 0], seconds: [0; 2] }));
        let root = host();
        let probe = DriveProbe::of(vec![WatchedDrive::below(root.path(), (259, 0))]);
        let take = |transitions| {
            probe.drives.readings.lock().unwrap()[0].take(look(Some(count(transitions))), now);
        };
        take(5);
        assert_eq!(probe.at(now).throttling, [None], "a first log has nothing to compare with");
        take(6);
        take(6);
        let window = probe.at(now);
        assert_eq!(window.throttling, [Some(Throttling::Yes)], "it did in the first of two readings");
        assert_eq!(window.throttled, ["nvme0n1"]);
        assert_eq!(probe.at(now).throttling, [Some(Throttling::No)], "not read since");
        probe.drives.readings.lock().unwrap()[0].take(look(None), now);
        assert_eq!(probe.at(now).throttling, [None], "it does not answer");
        take(7);
        assert_eq!(probe.at(now).throttling, [Some(Throttling::Yes)], "it did meanwhile");
        assert_eq!(probe.at(now + 2 * STALE).throttling, [None]);
    }

    #[test]
    fn a_drive_that_throttled_or_was_lost_is_named_in_the_run() {
        let root = host();
        warm(&root, "nvme0n1", "45000");
        fs::write(root.path().join("sys/block/nvme0n1/device/serial"), "S1\n").unwrap();
        let probe = DriveProbe::of(vec![WatchedDrive::below(root.path(), (259, 0))]);
        let drives = probe.drives.clone();
        let member = Member { name: "nvme0n1".into(), device: Some((259, 0)), path: None };
        let mut meters = Meters::new(0, vec![member], Probes { drives: probe, ..Probes::none() });
        let mut window = |second: u64| {
            drives.look();
            let window = meters.window(&WindowContext { now_ns: second * SECOND_NS, ..context() });
            window.flags.iter().map(|flag| flag.text.clone()).collect::<Vec<_>>()
        };
        (1..=20).for_each(|second| assert!(!window(second).iter().any(|text| text.starts_with("lost"))));
        fs::remove_dir_all(root.path().join("sys/block/nvme0n1")).unwrap();
        assert!(window(21).contains(&"lost nvme0n1".to_owned()));
        let totals = meters.totals();
        let flag = totals.flags.iter().find(|flag| flag.text == "lost nvme0n1").expect("one window in 21");
        assert!(flag.why.contains("serial S1") && flag.forbids_verdict, "{flag:?}");
    }
}
