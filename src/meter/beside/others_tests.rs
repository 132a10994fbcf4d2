//! Fake processes, and this system's own.

use std::fs;

use super::*;

const OWN: i32 = 50;

/// A folder like `/proc`, with times in hundredths of a second.
struct Proc(tempfile::TempDir);

impl Proc {
    /// With init, two kernel threads, this process, and the shell that started it.
    fn new() -> Self {
        let proc = Self(tempfile::tempdir().unwrap());
        proc.process(1, "init", 0, [0, 0]);
        proc.kernel_thread(2, "kthreadd", 0);
        proc.kernel_thread(9, "kworker/u4:1-loop0", 0);
        proc.process(40, "sh", 1, [0, 0]);
        proc.process(OWN, "stacktune", 40, [0, 0]);
        proc.ran(0);
        proc
    }

    fn stat(&self, id: i32, name: &str, parent: i32, flags: u64, [own, reaped]: [u64; 2]) {
        let folder = self.0.path().join(id.to_string());
        fs::create_dir_all(&folder).unwrap();
        let (user, system, begun) = (own / 2, own - own / 2, 1000 + id);
        let text = format!(
            "{id} ({name}) S {parent} 0 0 0 -1 {flags} 7 7 7 7 {user} {system} {reaped} 0 20 0 1 0 {begun} 9 9\n"
        );
        fs::write(folder.join("stat"), text).unwrap();
    }

    fn process(&self, id: i32, name: &str, parent: i32, ticks: [u64; 2]) {
        self.stat(id, name, parent, 0x0040_0100, ticks);
    }

    fn kernel_thread(&self, id: i32, name: &str, ticks: u64) {
        self.stat(id, name, 2, 2_129_984, [ticks, 0]);
    }

    fn ends(&self, id: i32) {
        fs::remove_dir_all(self.0.path().join(id.to_string())).unwrap();
    }

    /// What a process and its reaped children wrote.
    fn wrote(&self, id: i32, bytes: u64, dropped: u64) {
        let text = format!("read_bytes: 5\nwrite_bytes: {bytes}\ncancelled_write_bytes: {dropped}\n");
        fs::write(self.0.path().join(id.to_string()).join("io"), text).unwrap();
    }

    /// Ticks of user, nice and system time together; the other fields are not read.
    fn ran(&self, ticks: u64) {
        fs::write(self.0.path().join("stat"), format!("cpu  {ticks} 0 0 900 80 70 60 50 0 0\ncpu0 0\n"))
            .unwrap();
    }

    fn probe(&self) -> OthersProbe {
        OthersProbe::under(self.0.path(), OWN, 100.0, 0)
    }
}

/// Thousandths of a core used by kernel threads and by others, and how much of the latter is unattributed, in
/// the window that ends at `seconds`.
fn at(probe: &mut OthersProbe, seconds: u64) -> Option<[i64; 3]> {
    let cpu = probe.window(seconds * SECOND_NS, CpuFigures::default());
    let thousandths = |cores: Option<f64>| Some((cores? * 1000.0).round() as i64);
    Some([
        thousandths(cpu.kernel_cores)?,
        thousandths(cpu.others_cores)?,
        thousandths(cpu.unattributed_cores)?,
    ])
}

#[test]
fn each_process_is_ours_for_us_or_somebody_elses() {
    let proc = Proc::new();
    let mut probe = proc.probe();
    proc.process(OWN, "stacktune", 40, [150, 20]);
    proc.process(51, "stacktune spdk", OWN, [100, 0]);
    proc.process(52, "a (tool) of 51", 51, [5, 0]);
    proc.kernel_thread(9, "kworker/u4:1-loop0", 30);
    proc.kernel_thread(10, "md0_raid5", 12);
    proc.kernel_thread(11, "vhost-4711", 4);
    proc.kernel_thread(12, "nfsd", 2);
    proc.process(60, "cc1", 40, [80, 0]);
    proc.ran(400);
    assert_eq!(at(&mut probe, 1), Some([420, 860, 0]));
    assert_eq!(at(&mut probe, 1), Some([420, 860, 0]), "too soon for another reading");
    assert_eq!(at(&mut probe, 2), Some([0; 3]));
    assert_eq!(at(&mut OthersProbe::none(), 1), None);
}

#[test]
fn what_ended_counts_once() {
    let proc = Proc::new();
    proc.process(60, "make", 40, [10, 1000]);
    proc.process(61, "cc1", 60, [300, 0]);
    let mut probe = proc.probe();
    // It ran for another half second and was reaped; another child came and went.
    proc.ends(61);
    proc.process(60, "make", 40, [10, 1000 + 350 + 20]);
    proc.ran(70);
    assert_eq!(at(&mut probe, 1), Some([0, 700, 0]));
    proc.process(62, "cc1", 60, [400, 0]);
    proc.ran(470);
    assert_eq!(at(&mut probe, 2).unwrap()[1], 4000);
    // The parent was read before it reaped its child, which had ended by the time it was to be read.
    proc.ends(62);
    assert_eq!(at(&mut probe, 3).unwrap()[1], 0);
    proc.process(60, "make", 40, [10, 1370 + 405]);
    proc.ran(475);
    assert_eq!(at(&mut probe, 4).unwrap()[1], 50, "not its four seconds again");
    // A reused PID is another process.
    proc.process(60, "yes", 40, [25, 0]);
    let stat = proc.0.path().join("60/stat");
    let text = fs::read_to_string(&stat).unwrap().replace(" 1060 9 9", " 5000 9 9");
    fs::write(stat, text).unwrap();
    proc.ran(500);
    assert_eq!(at(&mut probe, 5).unwrap()[1], 250);
}

#[test]
fn others_use_no_more_than_what_ran() {
    let proc = Proc::new();
    let mut probe = proc.probe();
    proc.process(60, "cc1", 40, [500, 0]);
    proc.ran(150);
    assert_eq!(at(&mut probe, 1), Some([0, 1500, 0]));
}

#[test]
fn what_no_process_accounts_for_is_others() {
    let proc = Proc::new();
    let mut probe = proc.probe();
    let mut seconds = |ran_per_s: u64, count: u64, from: u64| {
        (from + 1..=from + count)
            .map(|second| {
                proc.process(OWN, "stacktune", 40, [50 * second, 0]);
                proc.ran(ran_per_s * second);
                at(&mut probe, second).unwrap()
            })
            .collect::<Vec<_>>()
    };
    // An error of a tenth of a core in the ticks raises nothing.
    assert!(seconds(59, 6, 0).iter().all(|used| *used == [0; 3]));
    let hidden = seconds(200, 8, 6);
    assert_eq!(hidden[7], [0, 1500, 1500], "{hidden:?}");
}

#[test]
fn where_all_others_are_hidden_ticks_alone_show_them() {
    let proc = Proc::new();
    [1, 2, 9, 40].iter().for_each(|id| proc.ends(*id));
    let mut probe = proc.probe();
    let mut used = Vec::new();
    for second in 1..=4 {
        proc.process(OWN, "stacktune", 0, [20 * second, 0]);
        proc.ran(170 * second);
        let cpu = probe.window(second * SECOND_NS, CpuFigures::default());
        assert_eq!(cpu.kernel_cores, None);
        used.push(cpu.others_cores.map(|cores| (cores * 1000.0).round() as i64));
    }
    assert_eq!(used, [None, None, Some(1500), Some(1500)], "unknown at first, not zero");
}

#[test]
fn ticks_are_compared_over_some_seconds_only() {
    let proc = Proc::new();
    let mut probe = proc.probe();
    proc.ran(100);
    assert_eq!(at(&mut probe, 1), Some([0; 3]), "one second is too short");
    proc.ran(200);
    assert_eq!(at(&mut probe, 2), Some([0; 3]));
    proc.ran(300);
    assert_eq!(at(&mut probe, 3), Some([0, 1000, 1000]));
    fs::remove_file(proc.0.path().join("stat")).unwrap();
    assert_eq!(at(&mut probe, 4), Some([0; 3]), "it can't be read now");
}

#[test]
fn this_process_is_found_among_all() {
    let id = std::process::id().cast_signed();
    let probe = OthersProbe::open(0).0.unwrap();
    assert_eq!(probe.processes[&id].whose, Whose::Ours);
    let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
    assert!(probe.processes.get(&parent).is_none_or(|parent| parent.whose == Whose::Others));
    assert!(probe.ran().unwrap() > 0);
}

#[test]
fn what_others_write_counts_once_whoever_has_the_count() {
    let proc = Proc::new();
    proc.wrote(OWN, 10, 0);
    proc.process(60, "make", 40, [0, 0]);
    proc.wrote(60, 1000, 0);
    proc.process(61, "cc1", 60, [0, 0]);
    proc.wrote(61, 300, 0);
    let mut probe = proc.probe();
    assert_eq!(probe.written(), None, "nothing has been compared yet");
    proc.wrote(OWN, 5000, 0);
    proc.wrote(61, 350, 10);
    assert!(at(&mut probe, 1).is_some());
    assert_eq!((probe.written(), probe.written()), (Some(40), Some(0)));
    // It wrote 60 more and ended; another came and went, and a third one started.
    proc.ends(61);
    proc.wrote(60, 1000 + 400 + 70, 0);
    proc.process(62, "ld", 60, [0, 0]);
    proc.wrote(62, 7, 0);
    assert!(at(&mut probe, 2).is_some());
    assert_eq!(probe.written(), Some(60 + 70 + 7));
    // If nobody else's count can be read, it is unknown.
    let blind = Proc::new();
    let mut probe = blind.probe();
    assert!(at(&mut probe, 1).is_some());
    assert_eq!((probe.written(), OthersProbe::none().written()), (None, None));
}
