//! Both sides in one process, the server in a thread with its workers on files; and helpers that end early.

use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Instant;

use super::super::server::{Devices, serve};
use super::*;
use crate::class::Class;
use crate::load::volume::Extent;
use crate::load::workers::{Activity, Workers};
use crate::meter::source::{Delta, Source};
use crate::settings::Settings;
use crate::settings::jobs::Job;
use crate::settings::jobs::jobs;
use crate::settings::{Buffering, Interface};
use crate::units::MIB;

const PAGE_BYTES: u64 = 16384;

/// Devices that need no preparation.
struct Files;

impl Devices for Files {
    fn attach(&mut self, drives: &[(String, u32)]) -> Result<Attached> {
        let versions = (drives[0].0.clone(), drives[0].1.to_string());
        Ok(Attached { versions, transfer_bytes_max: PAGE_BYTES })
    }

    fn attend(&mut self) {}
}

fn drives() -> Vec<(String, u32)> {
    vec![("0000:01:00.0".to_owned(), 3)]
}

/// A helper in a thread, and our end of its socket.
fn served() -> (Remote, JoinHandle<Result<()>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(move || serve(theirs, &mut Files));
    (Remote::attach(Link::over(ours).unwrap(), drives()).unwrap(), server)
}

/// Workers in the helper, on two files each for data and WAL.
fn workers_on(remote: &Remote, dir: &std::path::Path, writes: &Arc<Writes>) -> RemoteWorkers {
    let region = |id: u8, name: &str, first: u32| {
        let extent = |i: u32| {
            let path = dir.join(format!("{name}-{i}"));
            std::fs::write(&path, vec![1; 4 * MIB as usize]).unwrap();
            Extent { path, identity: None, member: first + i, offset_bytes: MIB }
        };
        Region { id, set: 7, extents: (0..2).map(extent).collect(), extent_bytes: 3 * MIB }
    };
    let (data, wal) = (region(Region::DATA, "data", 0), region(Region::WAL, "wal", 2));
    remote.load(data, wal, 4, writes.clone()).unwrap()
}

fn plans() -> [Job; 4] {
    let mut settings = Settings::default();
    (settings.io.interface, settings.io.buffering) = (Interface::Sync, Buffering::Cached);
    settings.classes.iter_mut().for_each(|class| class.rate_bytes_per_s = None);
    settings.classes[0].depth = 4;
    jobs(&settings)
}

/// Collects until the condition holds, or fails.
fn collect_until(source: &mut dyn Source, delta: &mut Delta, mut enough: impl FnMut(&Delta, bool) -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let more = source.collect(delta);
        if enough(delta, more) {
            return;
        }
        assert!(Instant::now() < deadline, "{delta:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn counts_of_the_helper_arrive_exactly_once() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (remote, server) = served();
    assert_eq!(remote.attached().versions, ("0000:01:00.0".to_owned(), "3".to_owned()));
    let writes = Arc::new(Writes::new(5, Arc::new(1000.into())));
    let mut workers = workers_on(&remote, dir.path(), &writes);
    let mut written_bytes = 1000;
    for class in [Class::Scan, Class::Wal, Class::Wal] {
        let mut sources = workers.start(&plans()[class.index()], &[]).unwrap();
        let mut delta = Delta::new(4);
        collect_until(&mut *sources[0], &mut delta, |delta, _| delta.ios >= 64);
        assert_eq!(workers.activity(class), Activity::Running);
        workers.stop(class);
        collect_until(&mut *sources[0], &mut delta, |_, more| !more);
        assert!(!sources[0].collect(&mut delta), "nothing comes after the last");
        while workers.activity(class) != Activity::Idle {
            std::thread::yield_now();
        }
        assert_eq!((delta.bytes, delta.service.histogram.len()), (delta.ios * PAGE_BYTES, delta.ios));
        let moved: u64 = delta.members.iter().map(|(read, written)| read + written).sum();
        assert_eq!((moved, delta.errnos.iter().sum::<u64>()), (delta.bytes, 0));
        assert!(delta.service.max_ns > 0 && delta.elsewhere.own_ns > 0, "{delta:?}");
        if class == Class::Wal {
            assert!(!delta.flush.histogram.is_empty() && delta.write.histogram.len() == delta.ios);
            written_bytes += delta.bytes;
        }
        assert_eq!(writes.written_bytes(), written_bytes);
    }
    drop(workers);
    drop(remote);
    assert_eq!(server.join().unwrap(), Ok(()));
}

#[test]
fn the_limit_of_writes_holds_in_the_helper_and_can_be_raised() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (remote, _server) = served();
    let writes = Arc::new(Writes::new(0, Arc::default()));
    let mut workers = workers_on(&remote, dir.path(), &writes);
    for pages in [10, 25] {
        writes.limit(Some(pages * PAGE_BYTES + 1));
        workers.start(&plans()[Class::Background.index()], &[]).unwrap();
        while workers.activity(Class::Background) != Activity::Exhausted {
            std::thread::yield_now();
        }
        assert_eq!(writes.written_bytes(), pages * PAGE_BYTES);
    }
}

#[test]
fn classes_stop_once_when_the_helper_is_gone_and_do_not_restart() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (remote, _server) = served();
    let writes = Arc::new(Writes::new(0, Arc::default()));
    let mut workers = workers_on(&remote, dir.path(), &writes);
    let mut sources = workers.start(&plans()[0], &[]).unwrap();
    lock(&remote.link).stream.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(!sources[0].collect(&mut Delta::new(4)));
    assert!(matches!(workers.activity(Class::Scan), Activity::Gone(why) if why.contains("SPDK")));
    assert_eq!(
        (workers.activity(Class::Scan), workers.activity(Class::Wal)),
        (Activity::Idle, Activity::Idle)
    );
    let again = workers.start(&plans()[0], &[]).err().unwrap();
    assert!(again.what.contains("SPDK"), "{again}");
}

#[test]
fn a_helper_that_aborts_is_reported_with_its_last_output() {
    let script = |text: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        Remote::attach(Link::spawn(command).unwrap(), drives()).err().unwrap().to_string()
    };
    let reported =
        script("head -n 1 >/dev/null; echo 'EAL: no memory'; echo 'EAL: panic' >&2; kill -ABRT $$");
    assert!(reported.contains("signal 6") && reported.contains("EAL: no memory | EAL: panic"), "{reported}");
    let reported = script("exit 5");
    assert!(reported.contains("exit status 5"), "{reported}");
}
