//! Classes whose workers fail: they are never silently restarted, nor left short of workers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::meter::source::Source;
use crate::meter::window::{LedgerLine, Verdict, Window};
use crate::runs::record::fixture;
use crate::runs::session::headless::tests::Nobody;
use crate::runs::session::headless::{record, record_watched};
use crate::runs::session::message::Event;
use crate::runs::session::options::Options;
use crate::runs::session::run::Session;
use crate::settings::knobs::Value;
use crate::settings::{Interface, Settings};

/// How a class's workers should end next; if idle, they can't be started then.
type Fate = Arc<Mutex<Option<(Class, Activity)>>>;

/// Workers that fail on demand.
struct Failing {
    inner: Box<dyn Workers>,
    fate: Fate,
}

impl Workers for Failing {
    fn start(&mut self, job: &Job, cpus: &[u32]) -> Result<Vec<Box<dyn Source>>> {
        let refuses = |(of, fate): &mut (Class, Activity)| (*of, &*fate) == (job.class, &Activity::Idle);
        match self.fate.lock().unwrap().take_if(refuses) {
            Some(_) => Err(crate::error::Error::failed("no more threads")),
            None => self.inner.start(job, cpus),
        }
    }
    fn stop(&mut self, class: Class) {
        self.inner.stop(class);
    }
    fn activity(&mut self, class: Class) -> Activity {
        let ends = |(of, fate): &mut (Class, Activity)| *of == class && *fate != Activity::Idle;
        let fate = self.fate.lock().unwrap().take_if(ends);
        let Some((_, ended)) = fate else { return self.inner.activity(class) };
        self.inner.stop(class);
        while self.inner.activity(class).is_busy() {
            let now_ns = self.inner.now_ns();
            self.inner.run_until(now_ns + 1000);
        }
        ended
    }
    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }
    fn is_simulated(&self) -> bool {
        true
    }
    fn run_until(&mut self, ns: u64) {
        self.inner.run_until(ns);
    }
}

fn opened() -> (Session, Fate) {
    let mut settings = Settings::default();
    settings.io.interface = Interface::Sim;
    settings.classes.iter_mut().for_each(|class| class.rate_bytes_per_s = Some(2_000_000));
    let facts = Arc::new(fixture::facts());
    let mut session = Session::open(settings, Options::default(), facts, &mut Nobody).unwrap();
    let fate = Fate::default();
    let inner = std::mem::replace(&mut session.classes.workers, Box::new(NoWorkers));
    session.classes.workers = Box::new(Failing { inner, fate: fate.clone() });
    (session, fate)
}

struct NoWorkers;

impl Workers for NoWorkers {
    fn start(&mut self, _: &Job, _: &[u32]) -> Result<Vec<Box<dyn Source>>> {
        Ok(Vec::new())
    }
    fn stop(&mut self, _: Class) {}
    fn activity(&mut self, _: Class) -> Activity {
        Activity::Idle
    }
}

/// Lets that many windows pass; returns the last one, and the last line of the ledger.
fn windows(session: &mut Session, count: usize) -> (Arc<Window>, Option<Arc<LedgerLine>>) {
    let (mut last, mut line) = (None, None);
    for _ in 0..count {
        session.advance(session.next_ns());
        session.tick().unwrap();
        for event in session.events() {
            match event {
                Event::Window(window, _) => last = Some(window),
                Event::Ledger(new) => line = Some(new),
                _ => {}
            }
        }
    }
    (last.unwrap(), line)
}

#[test]
fn a_run_without_an_operator_ends_at_once_and_says_what_failed() {
    for (ended, why) in [
        (Activity::Panicked("page 7 is odd".into()), "scan failed: a worker panicked: page 7 is odd"),
        (
            Activity::Broken("no such device (ENODEV)".into()),
            "scan failed: its interface failed: no such device (ENODEV)",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (mut session, fate) = opened();
        let mut seen = 0;
        let summary =
            record(&mut session, &dir.path().join("run"), Duration::from_mins(5), &|| 0, &mut |event| {
                if matches!(event, Event::Window(..)) {
                    seen += 1;
                    if seen == 3 {
                        *fate.lock().unwrap() = Some((Class::Scan, ended.clone()));
                    }
                }
            });
        let summary = summary.unwrap();
        assert_eq!(summary.failure.as_deref(), Some(why));
        assert!(summary.duration_s < 6.0, "{}", summary.duration_s);
        assert!(
            matches!(summary.classes.scan.state, ClassState::Failed(_)),
            "{:?}",
            summary.classes.scan.state
        );
        assert!(summary.classes.scan.flags.contains(&"failed".to_owned()));
    }
}

#[test]
fn on_the_screen_the_others_go_on_and_nothing_is_judged_across_it() {
    let (mut session, fate) = opened();
    session.start().unwrap();
    windows(&mut session, 14);
    session.turn("point.rate", &Value::Rate(Some(3_000_000)));
    windows(&mut session, 4);
    *fate.lock().unwrap() = Some((Class::Scan, Activity::Broken("no such device (ENODEV)".into())));
    let (window, _) = windows(&mut session, 2);
    let scan = window.class(Class::Scan);
    assert_eq!(scan.state, ClassState::Failed("its interface failed: no such device (ENODEV)".into()));
    assert!(scan.ios == 0 && window.class(Class::Point).ios > 0 && window.class(Class::Wal).ios > 0);
    session.restart(Class::Scan);
    let (window, line) = windows(&mut session, 12);
    assert!(window.class(Class::Scan).state == ClassState::Running && window.class(Class::Scan).ios > 0);
    let line = line.unwrap();
    // More than five: a p99 needs them.
    assert_eq!((line.windows.1, line.open), (9, false));
    assert!(line.flags.contains(&"scan failed".to_owned()), "{:?}", line.flags);
    let changes = [&line.scan_mb_per_s, &line.point_p99_ns, &line.total_mb_per_s];
    assert!(changes.iter().all(|change| change.verdict == Verdict::None), "{line:?}");
    // The next turn only has windows from after it.
    session.turn("point.rate", &Value::Rate(Some(2_000_000)));
    let (_, line) = windows(&mut session, 9);
    assert!(line.unwrap().total_mb_per_s.verdict != Verdict::None);
}

#[test]
fn what_fails_while_it_drains_for_a_turn_is_not_started_again() {
    let (mut session, fate) = opened();
    session.start().unwrap();
    windows(&mut session, 3);
    *fate.lock().unwrap() = Some((Class::Scan, Activity::Panicked("page 7 is odd".into())));
    session.turn("scan.depth", &Value::Int(8));
    let (window, _) = windows(&mut session, 2);
    assert_eq!(
        window.class(Class::Scan).state,
        ClassState::Failed("a worker panicked: page 7 is odd".into())
    );
}

#[test]
fn a_class_that_cannot_be_started_again_has_failed_and_the_run_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut session, fate) = opened();
    let mut turned = false;
    let mut watch = |session: &mut Session, event: &Event| {
        if matches!(event, Event::Window(..)) && !std::mem::replace(&mut turned, true) {
            *fate.lock().unwrap() = Some((Class::Scan, Activity::Idle));
            session.turn("scan.depth", &Value::Int(8));
        }
        Ok(true)
    };
    let (out, time) = (dir.path().join("run"), Duration::from_secs(20));
    let summary = record_watched(&mut session, &out, time, &|| 0, &mut watch).unwrap();
    assert_eq!(summary.failure.as_deref(), Some("scan failed: no more threads"));
    assert!(summary.duration_s < 10.0, "{}", summary.duration_s);
}
