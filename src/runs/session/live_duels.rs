//! Duels that the operator asks for while the load runs.
//!
//! A duel turns its knob many times. These turns share one ledger line, which the screen gets with the
//! verdict, and can't be undone: once the duel is over, the knob has its previous value again.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use rand::RngExt as _;

use super::duel::Duel;
use super::message::{Command, DuelAsked, DuelShown, Event};
use super::run::Session;
use crate::error::{Error, Result};
use crate::meter::window::LedgerLine;
use crate::runs::duel::{DuelSpec, PAIRS_MAX};
use crate::settings::knobs::Value;

/// Differences below this fraction do not matter.
const MARGIN: f64 = 0.05;

/// The duels of a session.
#[derive(Default)]
pub(super) struct Duels {
    on: Option<Fight>,
}

/// A duel in progress.
struct Fight {
    duel: Duel,
    /// The knob's value before the duel.
    before: Value,
    /// Pairs when the score was last shown.
    shown: usize,
}

impl Duels {
    /// Takes a command about duels, and ends the current duel before a command that it can't coexist with;
    /// returns the command if there is more to do.
    pub fn command(&mut self, session: &mut Session, command: Command) -> Option<Command> {
        match command {
            Command::Duel(Some(asked)) if self.on.is_none() => {
                if let Err(error) = self.begin(session, asked) {
                    session.notice(format!("no duel: {}", error.one_line()));
                }
                None
            }
            Command::Duel(None) => {
                self.end(session);
                None
            }
            Command::Duel(Some(_)) => None,
            // These do not affect the load.
            Command::Record(_) | Command::Consent(_) => Some(command),
            // Turning back is pointless when the load ends.
            Command::Quit | Command::QuitKeeping => {
                self.conclude(session, false);
                Some(command)
            }
            command => {
                self.end(session);
                Some(command)
            }
        }
    }

    fn begin(&mut self, session: &mut Session, asked: DuelAsked) -> Result<()> {
        let DuelAsked { knob, values, figure } = asked;
        let seed = rand::rng().random_range(0..1 << 32);
        let settings = &session.resolved.settings;
        let duel = Duel::new(DuelSpec { knob, values, figure, margin: MARGIN, seed }, settings)?;
        let (knob, first) = duel.first();
        let (first, before) = (first.clone(), knob.get(settings));
        if session.destroys(&knob.path, &first) {
            let error = Error::input("it would begin by failing a member, whose serial has to be typed");
            return Err(error.hint("turn the knob to one of the two values first"));
        }
        duel.turn(session, &first);
        let fight = Fight { duel, before, shown: 0 };
        session.report(Event::Duel(Arc::new(fight.shown(session, None))));
        self.on = Some(fight);
        Ok(())
    }

    /// Ends the current duel, if any: its knob is turned back, and its verdict is reported.
    fn end(&mut self, session: &mut Session) {
        self.conclude(session, true);
    }

    fn conclude(&mut self, session: &mut Session, turns_back: bool) {
        let Some(fight) = self.on.take() else { return };
        if turns_back {
            fight.duel.turn(session, &fight.before);
        }
        fight.duel.close(session);
        let written = session.recorder.dir().map(|folder| fight.duel.report().write(folder)).transpose();
        let kept = written.unwrap_or_else(|error| {
            session.notice(format!("the duel could not be written down: {}", error.one_line()));
            None
        });
        session.report(Event::Duel(Arc::new(DuelShown { is_over: true, ..fight.shown(session, kept) })));
    }

    /// Passes on the session's events, turning a duel's knob on the way.
    pub fn pass_on(&mut self, session: &mut Session, events: &Sender<Event>) {
        loop {
            let reported: Vec<Event> = session.events().collect();
            if reported.is_empty() {
                return;
            }
            for event in reported {
                self.watch(session, &event);
                // The screen shows a duel in progress in its own way.
                let is_own = |line: &LedgerLine| line.open && !line.duel.is_empty();
                if !matches!(&event, Event::Ledger(line) if is_own(line)) {
                    let _ = events.send(event);
                }
            }
        }
    }

    fn watch(&mut self, session: &mut Session, event: &Event) {
        let Some(fight) = &mut self.on else { return };
        match fight.duel.watch(session, event) {
            Ok(true) => {}
            Ok(false) => return self.end(session),
            Err(error) => {
                session.notice(error.one_line());
                return self.end(session);
            }
        }
        let pairs = fight.duel.course().pairs();
        if pairs != fight.shown && !fight.duel.course().is_over() {
            fight.shown = pairs;
            let shown = fight.shown(session, None);
            session.report(Event::Duel(Arc::new(shown)));
        }
    }
}

impl Fight {
    fn shown(&self, session: &Session, kept: Option<std::path::PathBuf>) -> DuelShown {
        let course = self.duel.course();
        let pair_ns = course.pair_windows() as u64 * session.resolved.pace.window_ns;
        let left_ns = pair_ns * PAIRS_MAX.saturating_sub(course.pairs()) as u64;
        DuelShown { report: self.duel.report(), is_over: false, pair_ns, left_ns_max: left_ns, kept }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::runs::duel::Figure;
    use crate::runs::duel::report::Verdict;
    use crate::runs::record::Recording;
    use crate::runs::session::Options;
    use crate::runs::session::headless::tests::Nobody;
    use crate::settings::{Interface, Settings};

    /// Short, since simulating takes time.
    const WINDOW_NS: u64 = 50_000_000;

    /// A run on simulated devices under an operator.
    struct Bench {
        session: Session,
        duels: Duels,
        events: Sender<Event>,
        received: Receiver<Event>,
        windows: u64,
    }

    impl Bench {
        fn new() -> Self {
            let mut settings = Settings::default();
            settings.io.interface = Interface::Sim;
            settings.classes[0].depth = 64;
            settings.run.window = std::time::Duration::from_nanos(WINDOW_NS);
            let facts = Arc::new(crate::runs::record::fixture::facts());
            let mut session = Session::open(settings, Options::default(), facts, &mut Nobody).unwrap();
            session.start().unwrap();
            let (events, received) = channel();
            Self { session, duels: Duels::default(), events, received, windows: 0 }
        }

        /// Returns the events shown to the operator in the next windows, until a duel is over.
        fn run(&mut self, windows: u64) -> Vec<Event> {
            let end = self.windows + windows;
            let mut shown = Vec::new();
            while self.windows < end && !shown.iter().any(is_over) {
                self.windows += 1;
                self.session.advance(self.windows * WINDOW_NS);
                self.session.tick().unwrap();
                self.duels.pass_on(&mut self.session, &self.events);
                shown.extend(self.received.try_iter());
            }
            shown
        }

        fn duel(&mut self, knob: &str, values: [&str; 2]) {
            let asked =
                DuelAsked { knob: knob.into(), values: values.map(str::to_owned), figure: Figure::Scan };
            assert_eq!(self.duels.command(&mut self.session, Command::Duel(Some(asked))), None);
        }
    }

    fn is_over(event: &Event) -> bool {
        matches!(event, Event::Duel(shown) if shown.is_over)
    }

    fn verdicts(events: &[Event]) -> Vec<(bool, Verdict)> {
        let of = |event: &Event| match event {
            Event::Duel(shown) => Some((shown.is_over, shown.report.verdict)),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    }

    /// Numbers of the ledger lines that are shown.
    fn lines(events: &[Event]) -> Vec<u64> {
        let of = |event: &Event| if let Event::Ledger(line) = event { Some(line.number) } else { None };
        events.iter().filter_map(of).collect()
    }

    #[test]
    fn a_duel_turns_the_knob_and_leaves_it_as_it_was() {
        let mut bench = Bench::new();
        bench.run(20);
        bench.session.turn("scan.depth", &Value::Int(32));
        assert!(lines(&bench.run(20)).contains(&1));
        bench.duel("scan.depth", ["2", "64"]);
        let shown = bench.run(600);
        let verdicts = verdicts(&shown);
        assert_eq!(verdicts.last(), Some(&(true, Verdict::Second)), "{verdicts:?}");
        assert!(verdicts.len() >= 7, "after each pair: {verdicts:?}");
        let own = lines(&shown).into_iter().filter(|line| *line != 1);
        assert_eq!(own.collect::<Vec<_>>(), [2], "its turns are one line of the ledger, once it is over");
        let line = shown.iter().rev().find_map(|event| match event {
            Event::Ledger(line) => Some(Arc::clone(line)),
            _ => None,
        });
        let outcome = line.and_then(|line| line.duel_outcome.clone()).unwrap();
        let (low, high) = outcome.interval.unwrap();
        let change = outcome.change.unwrap();
        assert_eq!((outcome.verdict, outcome.figure.as_str()), (Verdict::Second, "scan MB/s"));
        assert!(low <= change && change <= high && change > 0.05, "{outcome:?}");
        assert_eq!(bench.session.resolved.settings.classes[0].depth, 32);
        assert_eq!(lines(&bench.run(30)), Vec::<u64>::new(), "nor is that back");
        bench.session.undo();
        assert_eq!(bench.session.resolved.settings.classes[0].depth, 64, "the operator's own turn is undone");
        assert!(!lines(&bench.run(10)).is_empty(), "which is a line again");
    }

    #[test]
    fn what_the_operator_turns_meanwhile_ends_it() {
        let mut bench = Bench::new();
        bench.duel("scan.depth", ["2", "64"]);
        bench.run(30);
        let turn = Command::Turn { knob: "point.depth".into(), value: Value::Int(2) };
        assert_eq!(bench.duels.command(&mut bench.session, turn.clone()), Some(turn));
        let shown = bench.run(5);
        assert_eq!(verdicts(&shown).last(), Some(&(true, Verdict::Unclear)));
        assert_eq!(bench.session.resolved.settings.classes[0].depth, 64);
        // A recording may begin and end during the duel.
        bench.duel("scan.depth", ["2", "64"]);
        assert_eq!(
            bench.duels.command(&mut bench.session, Command::Record(None)),
            Some(Command::Record(None))
        );
        assert!(!bench.run(10).iter().any(is_over));
        assert_eq!(bench.duels.command(&mut bench.session, Command::Duel(None)), None);
        assert!(bench.run(5).iter().any(is_over));
    }

    #[test]
    fn quitting_keeps_what_is_known_so_far() {
        let mut bench = Bench::new();
        bench.duel("scan.depth", ["2", "64"]);
        bench.run(30);
        assert_eq!(bench.duels.command(&mut bench.session, Command::Quit), Some(Command::Quit));
        bench.duels.pass_on(&mut bench.session, &bench.events);
        let lines: Vec<_> = bench.received.try_iter().collect();
        let closed = lines.iter().find_map(|event| match event {
            Event::Ledger(line) => line.duel_outcome.clone(),
            _ => None,
        });
        let outcome = closed.unwrap();
        assert_eq!((outcome.verdict, outcome.pairs > 0), (Verdict::Unclear, true), "{outcome:?}");
        assert!(outcome.change.is_some() && outcome.why.unwrap().contains("ended before"));
        assert!(!bench.session.close_turn(), "its line is closed");
    }

    #[test]
    fn values_that_can_not_be_compared_are_refused_in_a_sentence() {
        let mut bench = Bench::new();
        for (knob, values, said) in [
            ("scan.depth", ["4", "4"], "both values are the same"),
            ("scan.depth", ["4", "many"], "is not a value of scan.depth"),
            ("stack.filesystem", ["ext4", "xfs"], "build the storage anew"),
            ("no.knob", ["1", "2"], "no such knob"),
        ] {
            bench.duel(knob, values);
            let shown = bench.run(1);
            let is_said = |event: &Event| matches!(event, Event::Notice(text) if text.contains(said));
            assert!(shown.iter().any(is_said), "{knob}: {shown:?}");
            assert!(bench.duels.on.is_none());
        }
    }

    #[test]
    fn a_verdict_is_kept_in_the_recording() {
        let dir = tempfile::tempdir().unwrap();
        let mut bench = Bench::new();
        let recording = dir.path().join("recording");
        bench.session.record(&recording).unwrap();
        bench.run(2);
        for name in ["duel.json", "duel-2.json"] {
            bench.duel("scan.depth", ["2", "64"]);
            let shown = bench.run(600);
            let kept = shown.iter().find_map(|event| match event {
                Event::Duel(shown) => shown.kept.clone(),
                _ => None,
            });
            assert_eq!(kept, Some(recording.join(name)));
            let text = std::fs::read_to_string(recording.join(name)).unwrap();
            assert!(text.contains("\"verdict\": \"second\""), "{text}");
        }
        bench.session.end_recording();
        bench.run(5);
        // Each duel is one line of the recording, which covers all its turns.
        let read = Recording::open(&recording).unwrap();
        let of = |line: &LedgerLine| (line.number, line.from.clone(), line.to.clone(), line.open);
        let lines: Vec<_> = read.ledger.iter().map(of).collect();
        assert_eq!(lines, [1, 2].map(|number| (number, "2".to_owned(), "64".to_owned(), false)));
        let turns: usize = read.ledger.iter().map(|line| line.duel.len()).sum();
        let settings = read.windows.last().unwrap().setting - read.windows[0].setting;
        assert_eq!(turns as u64, settings, "as many as the windows have settings");
        assert!(turns >= 2 * 7, "{turns}");
    }
}
