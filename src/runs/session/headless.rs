//! A session without an operator: recorded for a given time.

use std::time::Duration;

use super::message::Event;
use super::run::Session;
use crate::error::{Error, Result};
use crate::load::io::clock;
use crate::runs::record::{Destination, Outcome, Summary};
use crate::units::SECOND_NS;

/// Interval between checks for signals.
const LOOK_NS: u64 = SECOND_NS / 10;
/// Interval between checks of a class that drains or starts.
const SETTLE_NS: u64 = SECOND_NS / 500;

/// How long a run is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// The longest time, warm-up included.
    pub time: Duration,
    /// Whether to end sooner, once it is steady.
    pub steady: bool,
}

impl From<Duration> for Until {
    fn from(time: Duration) -> Self {
        Self { time, steady: false }
    }
}

/// Runs an opened session for that time, recording into a new folder. `interrupts` counts the signals so far:
/// the first ends the run cleanly, with a valid summary; a second one ends the draining too. Losing too many
/// drives to go on also ends it cleanly, and the summary says so.
///
/// # Errors
/// If the folder or a class can't be used, or the recording can't be written.
pub fn record<'a>(
    session: &mut Session,
    out: impl Into<Destination<'a>>,
    until: impl Into<Until>,
    interrupts: &dyn Fn() -> usize,
    on_event: &mut dyn FnMut(Event),
) -> Result<Summary> {
    let mut watch = |_: &mut Session, event: &Event| {
        on_event(event.clone());
        Ok(true)
    };
    record_watched(session, out, until, interrupts, &mut watch)
}

/// Watches a run's events, may turn its knobs, and says whether it goes on.
pub type Watch<'a> = dyn FnMut(&mut Session, &Event) -> Result<bool> + 'a;

/// The same with a watcher that may turn knobs, or end it.
///
/// # Errors
/// Likewise, or if `watch` fails.
pub fn record_watched<'a>(
    session: &mut Session,
    out: impl Into<Destination<'a>>,
    until: impl Into<Until>,
    interrupts: &dyn Fn() -> usize,
    watch: &mut Watch<'_>,
) -> Result<Summary> {
    session.record(out)?;
    let until = until.into();
    let ran = session.start().and_then(|()| run_until(session, until, interrupts, watch));
    // What fails after the operator's signal may have failed by it.
    let failed_first = interrupts() == 0 && session.failure().is_some();
    session.end();
    let waits = |session: &mut Session| !session.is_drained() && interrupts() < 2;
    while !session.drains_in_vain() && waits(session) {
        clock::sleep_until(clock::now_ns() + SETTLE_NS);
    }
    let outcome = match &ran {
        Err(error) => Outcome::Failed(error.one_line()),
        Ok(()) if interrupts() > 0 && !failed_first => Outcome::Interrupted,
        Ok(()) => session.failure().map_or(Outcome::Complete, |why| Outcome::Failed(why.to_owned())),
    };
    let finished = session.conclude(&outcome);
    let last: Vec<Event> = session.events().collect();
    let watched = last.iter().try_for_each(|event| watch(session, event).map(drop));
    // I/O that hangs even now holds files and memory that must not be reused yet.
    while waits(session) {
        clock::sleep_until(clock::now_ns() + SETTLE_NS);
    }
    ran.and(watched)?;
    finished?.ok_or_else(|| Error::failed("the recording ended before the run"))
}

fn run_until(
    session: &mut Session,
    until: Until,
    interrupts: &dyn Fn() -> usize,
    watch: &mut Watch<'_>,
) -> Result<()> {
    let end_ns = until.time.as_nanos() as u64;
    let mut reached = false;
    while session.now_ns() < end_ns && !reached && interrupts() == 0 && session.failure().is_none() {
        let due_ns = session.next_ns().min(end_ns);
        if session.is_simulated() {
            session.advance(due_ns);
        } else {
            let now_ns = session.now_ns();
            let look_ns = now_ns + if session.is_settling() { SETTLE_NS } else { LOOK_NS };
            clock::sleep_until(clock::now_ns() + due_ns.min(look_ns).saturating_sub(now_ns));
        }
        // The last window ends with the run, and includes the I/O in flight then.
        if session.now_ns() >= end_ns {
            return Ok(());
        }
        session.tick()?;
        reached |= session.has_program_ended();
        let events: Vec<Event> = session.events().collect();
        for event in &events {
            if let Event::Window(_, totals) = event {
                reached |= until.steady && totals.steadiness.is_steady();
            }
            reached |= !watch(session, event)?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::meter::context::ByTrace;
    use crate::runs::record::{Recording, fixture};
    use crate::runs::session::{Attendant, Options, Progress, Tap, Wanted};
    use crate::settings::Interface;
    use crate::settings::Settings;

    pub struct Nobody;

    impl Attendant for Nobody {
        fn progress(&mut self, _: Progress) -> bool {
            true
        }
        fn notice(&mut self, _: &str) {}
        fn consent(&mut self, _: Vec<Wanted>) -> Option<Vec<String>> {
            None
        }
        fn plan(&mut self, _: crate::runs::session::PlanShown) -> Option<Vec<String>> {
            None
        }
        fn step(&mut self, _: &crate::runs::session::Advance) -> bool {
            true
        }
    }

    /// Slow, so that minutes of it are simulated in no time.
    fn opened(warmup: Duration, change: impl Fn(&mut Settings)) -> Session {
        let mut settings = Settings::default();
        settings.io.interface = Interface::Sim;
        settings.classes.iter_mut().for_each(|class| class.rate_bytes_per_s = Some(2_000_000));
        change(&mut settings);
        let options = Options { warmup, ..Options::default() };
        Session::open(settings, options, Arc::new(fixture::facts()), &mut Nobody).unwrap()
    }

    /// A simulated run of `time`, after `warmup`.
    fn recorded(out: &Path, time: Duration, warmup: Duration, change: impl Fn(&mut Settings)) -> Summary {
        let mut session = opened(warmup, change);
        record(&mut session, out, warmup + time, &|| 0, &mut |_| {}).unwrap()
    }

    #[test]
    fn totals_are_of_just_the_time_after_the_warm_up() {
        let dir = tempfile::tempdir().unwrap();
        for (at, warmup_ms) in [0, 500, 1000, 1500].into_iter().enumerate() {
            let (time, warmup) = (Duration::from_secs(3), Duration::from_millis(warmup_ms));
            let background = crate::class::Class::Background;
            let summary = recorded(&dir.path().join(at.to_string()), time, warmup, |settings| {
                settings.classes[background.index()].rate_bytes_per_s = Some(20_000_000);
            });
            let times = [summary.duration_s, summary.warmup_s].map(Duration::from_secs_f64);
            assert_eq!(times, [time, warmup]);
            let mb_per_s = summary.class(background).mb_per_s;
            assert!((mb_per_s / 20.0 - 1.0).abs() < 0.01, "after {warmup_ms} ms: {mb_per_s}");
        }
    }

    #[test]
    fn windows_have_the_figures_of_a_trace_but_for_the_one_in_which_it_begins() {
        let mut session = opened(Duration::ZERO, |_| {});
        session.start().unwrap();
        // The tap reports the window's length, in seconds.
        let taken =
            |ns: u64| ByTrace { figures: [("seconds".to_owned(), ns as f64 / 1e9)].into(), p99_ns: Some(ns) };
        let tap = || Tap::of(taken);
        let mut seen = Vec::new();
        for (second, turned) in
            [(1, None), (2, Some(Some(tap()))), (3, None), (4, None), (5, Some(None)), (6, None)]
        {
            session.advance(second * SECOND_NS - SECOND_NS / 2);
            if let Some(tap) = turned {
                session.tap(tap);
            }
            session.advance(second * SECOND_NS);
            session.tick().unwrap();
            for event in session.events().collect::<Vec<_>>() {
                if let Event::Window(window, _) = event {
                    let flagged = window.flags.iter().any(|flag| flag.text == "traced");
                    let seconds = window.traced.get("seconds").copied();
                    assert_eq!(window.traced_p99_ns.map(|ns| ns as f64 / 1e9), seconds);
                    seen.push((seconds, flagged));
                }
            }
        }
        let whole = Some(1.0);
        // The fifth ends without the trace, but was traced in its first half.
        let expected =
            [(None, false), (None, true), (whole, true), (whole, true), (None, true), (None, false)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_run_until_it_is_steady_ends_as_soon_as_it_is_or_when_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let run = |name: &str, until: Until| {
            let mut session = opened(Duration::from_secs(2), |_| {});
            record(&mut session, &dir.path().join(name), until, &|| 0, &mut |_| {}).unwrap()
        };
        let time = Duration::from_mins(10);
        let summary = run("steady", Until { time, steady: true });
        assert!(summary.steady.is_steady(), "{:?}", summary.steady);
        assert!((30.0..120.0).contains(&summary.duration_s), "{}", summary.duration_s);
        let short = run("short", Until { time: Duration::from_secs(20), steady: true });
        assert_eq!((short.steady.is_steady(), short.duration_s), (false, 18.0));
        let whole = run("whole", Duration::from_secs(130).into());
        assert_eq!((whole.steady.is_steady(), whole.duration_s), (true, 128.0));
    }

    #[test]
    fn a_pause_within_a_window_marks_it_and_a_window_ended_early_loses_nothing() {
        let mut session = opened(Duration::ZERO, |_| {});
        session.start().unwrap();
        let ms = SECOND_NS / 1000;
        session.advance(300 * ms);
        session.pause(true);
        session.advance(500 * ms);
        session.pause(false);
        session.advance(1000 * ms);
        session.tick().unwrap();
        for early_ms in [1300, 1700] {
            session.advance(early_ms * ms);
            session.finish_window().unwrap();
            session.finish_window().unwrap();
        }
        let windows = session.events().filter_map(|event| match event {
            Event::Window(window, _) => Some((window.duration_ns / ms, window.paused)),
            _ => None,
        });
        assert_eq!(windows.collect::<Vec<_>>(), [(1000, true), (300, false), (400, false)]);
    }

    #[test]
    fn a_recording_begun_while_a_class_drains_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut session = opened(Duration::ZERO, |_| {});
        session.start().unwrap();
        session.advance(500 * SECOND_NS / 1000);
        session.turn("scan.depth", &crate::settings::knobs::Value::Int(8));
        assert!(session.is_settling());
        session.finish_window().unwrap();
        session.record(&dir.path().join("run")).unwrap();
        session.events().for_each(drop);
        while session.is_settling() {
            session.advance(session.now_ns() + SECOND_NS / 1000);
            session.tick().unwrap();
        }
        for end_ns in [1, 2].map(|s| s * SECOND_NS) {
            session.advance(end_ns);
            session.tick().unwrap();
        }
        let windows = session.events().filter_map(|event| match event {
            Event::Window(window, _) => {
                let draining = window.classes[0].flags.iter().any(|flag| flag.text == "draining");
                Some((window.turned, draining))
            }
            _ => None,
        });
        assert_eq!(windows.collect::<Vec<_>>(), [(true, true), (false, false)]);
    }

    #[test]
    fn a_killed_run_has_the_totals_of_the_summary_that_it_lacks() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        let (time, warmup) = (Duration::from_secs(5), Duration::from_millis(1500));
        let summary = recorded(&out, time, warmup, |settings| {
            settings.classes[1].rate_bytes_per_s = Some(1_000_000_000); // far more than it can
            settings.run.window = Duration::from_millis(400);
        });
        assert!(summary.classes.point.response_not_held);
        std::fs::remove_file(out.join("summary.json")).unwrap();
        let rebuilt = Recording::open(&out).unwrap().summary;
        assert!(rebuilt.rebuilt);
        assert_eq!(Summary { rebuilt: false, ..rebuilt }, summary);
    }
}
