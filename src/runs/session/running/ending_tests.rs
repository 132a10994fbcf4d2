//! I/O in flight at a run's end, on a device that hangs from its 7th to its 12th second.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::runs::record::{Recording, fixture};
use crate::runs::session::Options;
use crate::runs::session::headless::record;
use crate::runs::session::headless::tests::Nobody;
use crate::settings::{Interface, Settings, SimDevice};
use crate::units::{MIB, SECOND_NS};

const RATE_BYTES_PER_S: u64 = 4 * MIB;

fn opened(drain: Duration) -> Session {
    let mut settings = Settings::default();
    (settings.io.interface, settings.sim.device) = (Interface::Sim, SimDevice::Hanging);
    settings.classes.iter_mut().for_each(|class| class.rate_bytes_per_s = Some(RATE_BYTES_PER_S));
    settings.run.drain = drain;
    Session::open(settings, Options::default(), Arc::new(fixture::facts()), &mut Nobody).unwrap()
}

fn recorded(out: &Path, drain: Duration) -> Summary {
    record(&mut opened(drain), out, Duration::from_secs(10), &|| 0, &mut |_| {}).unwrap()
}

/// Each class's intended starts in that many seconds.
fn intended_in(session: &Session, seconds: u64) -> [u64; 4] {
    Class::ALL.map(|class| seconds * RATE_BYTES_PER_S / session.resolved.job(class).page_bytes)
}

#[test]
fn a_device_that_hangs_in_the_last_seconds_is_waited_for_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let summary = recorded(&dir.path().join("run"), Duration::from_secs(30));
    assert_eq!((summary.duration_s, summary.windows), (10.0, 10));
    let intended = intended_in(&opened(Duration::ZERO), 10);
    for class in Class::ALL {
        let figures = summary.class(class);
        let service = figures.service_ns.as_ref().unwrap();
        assert!(service.max.unwrap() >= 4 * SECOND_NS, "{class}: {service:?}");
        assert!(figures.intended.abs_diff(intended[class.index()]) <= 4, "{class}: {}", figures.intended);
        assert!(figures.missed * 5 > figures.intended, "{class} missed {}", figures.missed);
        assert!(figures.response_not_held, "{class}");
        let drained = figures.drained.unwrap();
        assert_eq!((drained.unfinished, service.count), (0, figures.ios + drained.ios), "{class}");
        assert!(figures.mb_per_s * 1e7 <= figures.bytes as f64 * 1.001, "what drained is no throughput");
    }
    let read = Recording::open(&dir.path().join("run")).unwrap();
    assert!(!read.summary.flags.iter().any(|flag| flag == "inconsistent"), "{:?}", read.notes);
}

#[test]
fn what_does_not_end_counts_with_its_age() {
    let dir = tempfile::tempdir().unwrap();
    let summary = recorded(&dir.path().join("run"), Duration::from_secs(1));
    let intended = intended_in(&opened(Duration::ZERO), 10);
    for class in Class::ALL {
        let figures = summary.class(class);
        let service = figures.service_ns.as_ref().unwrap();
        let drained = figures.drained.unwrap();
        assert!(drained.unfinished > 0 && service.count == figures.ios + drained.ios + drained.unfinished);
        assert!((3 * SECOND_NS..5 * SECOND_NS).contains(&service.max.unwrap()), "{class}: {service:?}");
        assert!(figures.intended.abs_diff(intended[class.index()]) <= 4, "{class}: {}", figures.intended);
        assert!(figures.flags.contains(&"unfinished".to_owned()), "{class}: {:?}", figures.flags);
    }
    let read = Recording::open(&dir.path().join("run")).unwrap();
    assert!(!read.summary.flags.iter().any(|flag| flag == "inconsistent"), "{:?}", read.notes);
}

#[test]
fn a_recording_that_ends_while_the_load_goes_on_takes_what_was_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = opened(Duration::from_secs(30));
    session.start().unwrap();
    session.record(&dir.path().join("run")).unwrap();
    for at_ms in (100..20_000).step_by(100) {
        session.advance(at_ms * SECOND_NS / 1000);
        session.tick().unwrap();
        if at_ms == 9000 {
            session.end_recording();
        }
    }
    let summary = Recording::open(&dir.path().join("run")).unwrap().summary;
    assert!(!summary.rebuilt && (12.0..13.0).contains(&summary.duration_s), "{}", summary.duration_s);
    let max_ns = summary.classes.point.service_ns.as_ref().unwrap().max.unwrap();
    assert!(max_ns >= 4 * SECOND_NS, "{max_ns}");
}
