//! The userspace driver on real (emulated) drives, in a virtual machine of its own.
//!
//! The host's side boots it and gives the guest this very test binary; its tests named `guest_…` then run
//! there, one after another, on drives that `tests/lab/nvme.sh` has bound to vfio-pci.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{is_soak, machine, skip};
use stacktune::testing::host::Facts;
use stacktune::testing::load::io::vfio::{Drives, Polled};
use stacktune::testing::load::io::{Op, OpKind, Queue, Setup, Wait, clock};
use stacktune::testing::load::nvme::vfio::VfioBus;
use stacktune::testing::load::nvme::{Controller, Patience};
use stacktune::testing::runs::session::{Advance, Attendant, Options, PlanShown, Progress, Session, Wanted};
use stacktune::testing::settings::RingSetup;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const MIB: u64 = 1 << 20;
/// Each page size gets its own part of the drive.
const PART_BYTES: u64 = 4 * MIB;

/// The guest's tests, by the name that `tests/lab/nvme.sh` puts into `NVME_TEST`.
const IN_GUEST: [(&str, fn()); 11] = [
    ("guest_identify", guest_identify),
    ("guest_patterns", guest_patterns),
    ("guest_kernel_reads", guest_kernel_reads),
    ("guest_beyond_the_end", guest_beyond_the_end),
    ("guest_reset_during_load", guest_reset_during_load),
    ("guest_stuck_command", guest_stuck_command),
    ("guest_iops", guest_iops),
    ("guest_pulled", guest_pulled),
    ("guest_stops_answering", guest_stops_answering),
    ("guest_killed", guest_killed),
    ("guest_panics", guest_panics),
];

#[test]
fn the_driver_works_on_emulated_drives() {
    let test = "the_driver_works_on_emulated_drives";
    if let Ok(name) = std::env::var("NVME_TEST") {
        let (_, run) = IN_GUEST.iter().find(|(known, _)| *known == name).expect("a test of the guest");
        return run();
    }
    if let Some(reason) = machine::missing() {
        return skip(test, &reason);
    }
    let options = ["--drives", "4", "--size", "128M", "--monitor", "--timeout", "1200"];
    let this = std::env::current_exe().unwrap();
    let script = format!("{ROOT}/tests/lab/nvme.sh");
    let soak = format!("SOAK={}", if is_soak() { "1" } else { "" });
    let guest = ["env", &soak, "bash", &script, this.to_str().unwrap(), env!("CARGO_BIN_EXE_stacktune")];
    let printed = machine::run("nvme", &options, &guest);
    println!("{printed}");
    assert!(machine::succeeded(&printed) && printed.contains("\nall went well"), "{printed}");
}

/// The PCI address of a drive, set by the guest's script.
fn address(drive: usize) -> String {
    std::env::var(format!("NVME_DRIVE{drive}")).expect("tests/lab/nvme.sh sets it")
}

/// Agrees to everything.
struct Willing;

impl Attendant for Willing {
    fn progress(&mut self, _: Progress) -> bool {
        true
    }
    fn notice(&mut self, text: &str) {
        println!("{text}");
    }
    fn consent(&mut self, wanted: Vec<Wanted>) -> Option<Vec<String>> {
        Some(wanted.into_iter().map(|wanted| wanted.typed).collect())
    }
    fn plan(&mut self, _: PlanShown) -> Option<Vec<String>> {
        None
    }
    fn step(&mut self, advance: &Advance) -> bool {
        println!("{}/{} {}", advance.step + 1, advance.steps, advance.command);
        true
    }
}

/// The program panics while it has drives in userspace: unwinding gives them back.
fn guest_panics() {
    let text = std::fs::read_to_string(std::env::var("NVME_PROFILE").unwrap()).unwrap();
    let settings = stacktune::testing::settings::profile::parse(&text, "profile.toml").unwrap().settings;
    let facts = Arc::new(Facts::read(Path::new("/")));
    let mut session = Session::open(settings, Options::default(), facts, &mut Willing)
        .unwrap_or_else(|error| panic!("{error}"));
    session.start().unwrap_or_else(|error| panic!("{error}"));
    let driver = || {
        let link = format!("/sys/bus/pci/devices/{}/driver", address(0));
        std::fs::canonicalize(link).unwrap().file_name().unwrap().to_owned()
    };
    assert_eq!(driver(), "vfio-pci");
    std::thread::sleep(Duration::from_millis(300));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        session.tick().unwrap();
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(driver(), "nvme");
}

fn started(drive: usize, patience: Patience) -> Arc<Controller<VfioBus>> {
    let bus = VfioBus::open(&address(drive)).unwrap_or_else(|error| panic!("{error}"));
    Controller::start(Arc::new(bus), patience).unwrap_or_else(|error| panic!("{error}"))
}

fn polled(controller: &Arc<Controller<VfioBus>>, page_bytes: u64, slots: u32) -> Polled<VfioBus> {
    let setup = Setup {
        page_bytes: page_bytes as usize,
        slots,
        flush_slots: 1,
        registered_buffers: false,
        registered_files: false,
        ring_setup: RingSetup::Default,
        iopoll: false,
        sqpoll: None,
        poll_sleep_ns: 50_000,
    };
    let drives = Drives::new([Ok((controller.clone(), 1))]).unwrap();
    Polled::new(&Arc::new(drives), &setup).unwrap_or_else(|error| panic!("{error}"))
}

/// Submits and waits for all; returns the results by slot.
fn done(polled: &mut Polled<VfioBus>) -> Result<Vec<(u32, i32)>, i32> {
    let mut done = Vec::new();
    polled.advance(Wait { completions: u32::MAX, until_ns: None }, &mut done)?;
    let mut results: Vec<_> = done.iter().map(|done| (done.slot, done.result)).collect();
    results.sort_unstable();
    Ok(results)
}

fn op(slot: u32, kind: OpKind, offset_bytes: u64) -> Op {
    Op { slot, kind, file: 0, offset_bytes }
}

fn pattern(at: u64) -> u8 {
    (at ^ at >> 9 ^ at >> 17 ^ at >> 3).wrapping_mul(37) as u8
}

fn page_sizes() -> impl Iterator<Item = u64> {
    (9..=20).map(|shift| 1_u64 << shift)
}

/// Where pages of a size are placed: a few, including the first and the last of its part.
fn places(page_bytes: u64) -> [u64; 4] {
    let start = u64::from(page_bytes.trailing_zeros() - 9) * PART_BYTES;
    let last = start + PART_BYTES - page_bytes;
    [start, start + page_bytes, last - page_bytes, last]
}

fn guest_identify() {
    let controller = started(0, Patience::default());
    let facts = controller.facts();
    println!("{facts:?}");
    assert_eq!((facts.model.as_str(), facts.serial.as_str()), ("QEMU NVMe Ctrl", "RIG0"));
    let namespace = controller.namespace(1).unwrap();
    assert_eq!((namespace.bytes(), namespace.block_bytes()), (128 * MIB, 512));
    assert_eq!(controller.transfer_bytes_max(), 512 << 10, "QEMU's MDTS");
    assert!(controller.queues_max() >= 8 && controller.queue_entries_max() >= 1024);
}

/// Writes, flushes and reads back every page size, across the limits of MDTS and of PRP lists.
fn guest_patterns() {
    let controller = started(0, Patience::default());
    for page_bytes in page_sizes() {
        let mut polled = polled(&controller, page_bytes, 8);
        let kinds = [OpKind::Write, OpKind::WriteDurable, OpKind::Write, OpKind::WriteDurable];
        for (slot, (place, kind)) in (0..).zip(places(page_bytes).into_iter().zip(kinds)) {
            for (n, byte) in (0..).zip(polled.buffer(slot)) {
                *byte = pattern(place + n);
            }
            polled.queue(op(slot, kind, place));
        }
        let whole = |slot: u32| (slot, page_bytes as i32);
        assert_eq!(done(&mut polled).unwrap(), (0..4).map(whole).collect::<Vec<_>>());
        polled.queue(op(8, OpKind::Flush, 0));
        assert_eq!(done(&mut polled).unwrap(), [(8, 0)]);
        for (slot, place) in (4..).zip(places(page_bytes)) {
            polled.queue(op(slot, OpKind::Read, place));
        }
        assert_eq!(done(&mut polled).unwrap(), (4..8).map(whole).collect::<Vec<_>>());
        for (slot, place) in (4..).zip(places(page_bytes)) {
            let right = (0..).zip(polled.buffer(slot)).all(|(n, byte)| *byte == pattern(place + n));
            assert!(right, "{page_bytes} bytes at {place}");
        }
        println!("{page_bytes} bytes: as written");
    }
}

/// Reads the driver's writes through the kernel's own driver.
fn guest_kernel_reads() {
    let node = File::open(std::env::var("NVME_NODE").unwrap()).unwrap();
    for page_bytes in page_sizes() {
        for place in places(page_bytes) {
            let mut page = vec![0; page_bytes as usize];
            node.read_exact_at(&mut page, place).unwrap();
            let right = (0..).zip(&page).all(|(n, byte)| *byte == pattern(place + n));
            assert!(right, "{page_bytes} bytes at {place}");
        }
    }
}

/// A request beyond the end of the drive returns the drive's own status.
fn guest_beyond_the_end() {
    let controller = started(0, Patience::default());
    let mut polled = polled(&controller, 4096, 2);
    polled.queue(op(0, OpKind::Read, 1 << 40));
    polled.queue(op(1, OpKind::Read, 0));
    assert_eq!(done(&mut polled).unwrap(), [(0, -libc::EREMOTEIO), (1, 4096)]);
}

/// Keeps 64 reads outstanding for a while; returns how many completed, and how many failed.
fn load(polled: &mut Polled<VfioBus>, slots: u32, goes_on: impl Fn() -> bool) -> Result<(u64, u64), i32> {
    let (mut complete, mut failed) = (0, 0);
    let mut free: Vec<u32> = (0..slots).collect();
    let mut place = 0_u64;
    let mut done = Vec::new();
    while goes_on() || free.len() < slots as usize {
        let batch = if goes_on() { free.len().min(256) } else { 0 };
        for slot in free.drain(free.len() - batch..) {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            polled.queue(op(slot, OpKind::Read, (place >> 40) % (100 * MIB / 4096) * 4096));
        }
        let soon = clock::now_ns() + 50_000_000;
        polled.advance(Wait { completions: 1, until_ns: Some(soon) }, &mut done)?;
        for done in done.drain(..) {
            free.push(done.slot);
            complete += 1;
            failed += u64::from(done.result != 4096);
        }
    }
    Ok((complete, failed))
}

fn guest_reset_during_load() {
    let controller = started(1, Patience::default());
    let stop = AtomicBool::new(false);
    let loaded = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut polled = polled(&controller, 4096, 64);
                    load(&mut polled, 64, || !stop.load(Ordering::Relaxed)).unwrap()
                })
            })
            .collect();
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(300));
            controller.reset(controller.generation()).unwrap_or_else(|error| panic!("{error}"));
        }
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    println!("complete, failed: {loaded:?}");
    for (complete, failed) in loaded {
        assert!(complete > failed && failed <= 3 * 64, "{complete} {failed}");
    }
    assert_eq!(controller.generation(), 3);
}

fn monitor(command: &str) {
    let mut port = File::options().write(true).open("/dev/virtio-ports/monitor").unwrap();
    writeln!(port, "{command}").unwrap();
}

/// QEMU is throttled to one I/O in ten seconds: the next one is stuck.
fn guest_stuck_command() {
    let patience = Patience {
        command: Duration::from_millis(500),
        abort: Duration::from_millis(500),
        admin: Duration::from_mins(1),
    };
    let controller = started(1, patience);
    let mut polled = polled(&controller, 4096, 16);
    // QEMU applies the throttle with a delay; nothing gets stuck before that.
    let mut failed = Vec::new();
    for _ in 0..20 {
        monitor("block_set_io_throttle drive1 0 0 0 1 0 0");
        std::thread::sleep(Duration::from_millis(500));
        for slot in 0..16 {
            polled.queue(op(slot, OpKind::Read, u64::from(slot) * 4096));
        }
        let began = Instant::now();
        let results = done(&mut polled).unwrap();
        println!("after {:?}: {results:?}, {} resets", began.elapsed(), controller.generation());
        failed = results.iter().map(|(_, result)| *result).filter(|result| *result != 4096).collect();
        if !failed.is_empty() {
            break;
        }
    }
    monitor("block_set_io_throttle drive1 0 0 0 0 0 0");
    assert!(!failed.is_empty());
    assert!(failed.iter().all(|errno| [-libc::ECANCELED, -libc::ETIMEDOUT].contains(errno)));
    std::thread::sleep(Duration::from_millis(500));
    polled.queue(op(0, OpKind::Read, 0));
    assert_eq!(done(&mut polled).unwrap(), [(0, 4096)], "it works again");
}

/// Reads per second of the driver at the paper's depth and batch, with and without sleep.
fn guest_iops() {
    let controller = started(1, Patience::default());
    let mut polled = polled(&controller, 4096, 1023);
    let began = Instant::now();
    let (complete, failed) = load(&mut polled, 1023, || began.elapsed() < Duration::from_secs(2)).unwrap();
    println!("vfio, depth 1023, batch 256, sleep 50 us: {:.0} IOPS", complete as f64 / 2.0);
    assert_eq!(failed, 0);
    assert!(complete > 1023);
}

/// The kernel takes the drive away while it is polled: the load ends and reports that.
fn guest_pulled() {
    let controller = started(2, Patience::default());
    let mut polled = polled(&controller, 4096, 64);
    monitor("device_del drive2");
    let began = Instant::now();
    let ended = load(&mut polled, 64, || began.elapsed() < Duration::from_secs(40));
    println!("after {:?}: {ended:?}, {:?}", began.elapsed(), controller.condition());
    assert_eq!(ended, Err(libc::ENODEV));
}

/// The drive stops answering altogether. QEMU then returns zeros for reads of its registers.
fn guest_stops_answering() {
    let controller = started(3, Patience::default());
    let mut polled = polled(&controller, 4096, 64);
    let began = Instant::now();
    let ended = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&mut polled, 64, || began.elapsed() < Duration::from_secs(40)));
        std::thread::sleep(Duration::from_millis(300));
        // PCI's command register, behind VFIO's back: no memory, no bus mastering.
        let path = format!("/sys/bus/pci/devices/{}/config", address(3));
        let config = File::options().read(true).write(true).open(path).unwrap();
        config.write_all_at(&[0, 0], 4).unwrap();
        let ended = loading.join().unwrap();
        config.write_all_at(&[6, 0], 4).unwrap();
        ended
    });
    println!("after {:?}: {ended:?}", began.elapsed());
    assert!([Err(libc::ENODEV), Err(libc::EIO)].contains(&ended));
    assert!(began.elapsed() < Duration::from_secs(30));
}

/// The guest's script waits until this runs, then kills it.
fn guest_killed() {
    let controller = started(1, Patience::default());
    let mut polled = polled(&controller, 4096, 64);
    println!("loading");
    std::io::stdout().flush().unwrap();
    let _ = load(&mut polled, 64, || true);
    let _ = std::io::stdin().read(&mut [0]);
}
