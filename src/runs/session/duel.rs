//! A duel in a run: turns the knob as the course says.

use crate::class::Class;
use crate::error::{Error, Result};
use crate::runs::duel::{Begins, Course, DuelMove, DuelSpec, Figure, Report};
use crate::runs::session::message::Event;
use crate::runs::session::run::Session;
use crate::runs::session::turning::survival::survives_less;
use crate::settings::knobs::{self, Knob, Scope, Value};
use crate::settings::values::program::MEMORY_MAX;
use crate::settings::{ArrayState, Named, Program, Settings};

const BY_ITS_METRICS: &str =
    "use one of [command.metrics] or [command.probes] whose `better` is \"higher\" or \"lower\"";

/// A knob and two values of it that can be compared.
#[derive(Debug)]
pub struct Sides {
    /// The knob.
    pub knob: &'static Knob,
    /// Its values.
    pub values: [Value; 2],
    /// The run's settings with each value.
    pub settings: [Settings; 2],
    /// How each block begins.
    pub begins: Begins,
}

impl Sides {
    /// The sides of a duel in a run with these settings.
    ///
    /// # Errors
    /// Input if the two values can't be compared by a duel.
    pub fn of(spec: &DuelSpec, settings: &Settings) -> Result<Self> {
        let knob = knobs::find_of(settings, &spec.knob);
        let knob = knob.ok_or_else(|| Error::input("there is no such knob"))?;
        if settings.program.is_some() && !knob.is_of_programs() {
            return Err(Error::input("it has no effect where a program is the load"));
        }
        if knob.of_program() == Some(MEMORY_MAX) {
            return Err(Error::input("all blocks of a duel have the same memory limit"));
        }
        let parse = |text: &String| {
            let wrong = |expected| {
                Error::input(format!("`{text}` is not a value of {}: expected {expected}", knob.path))
            };
            knob.parse(text).map_err(wrong)
        };
        let values = [parse(&spec.values[0])?, parse(&spec.values[1])?];
        if values[0] == values[1] {
            return Err(Error::input("both values are the same"));
        }
        if knob.spec.only_reckons {
            return Err(Error::input("it changes nothing that is measured"));
        }
        let of = |value: &Value| {
            let mut of = settings.clone();
            knob.set(&mut of, value.clone());
            of
        };
        let both = values.each_ref().map(of);
        if let (Some(why), Some(_)) = (knob.inactive(&both[0]), knob.inactive(&both[1])) {
            return Err(Error::input(format!("{} has no effect with these settings: {why}", knob.path)));
        }
        let ways = [(settings, &values[0]), (&both[0], &values[1]), (&both[1], &values[0])];
        let rebuilds = ways.into_iter().any(|(from, value)| knob.scope_of(value, from) == Scope::Rebuild);
        let builds = rebuilds || lie_differently(&both);
        let begins = match () {
            () if builds => Begins::Built,
            () if cache_differently(&both) => Begins::Uncached,
            () => Begins::Turned,
        };
        Ok(Self { knob, values, settings: both, begins })
    }
}

/// Why a run can't turn between the two values.
fn needs_build(knob: &Knob, settings: &Settings) -> Error {
    let (what, command) = match settings.program {
        None => ("each turn would build the storage anew", "record"),
        Some(_) if knob.of_program().is_some() => {
            ("the knob has no `turn`: each turn would start the program anew, with nothing in memory", "run")
        }
        Some(_) => ("each turn would build the storage anew, and set the program up again", "run"),
    };
    Error::input(what).hint(format!("`stacktune {command} --duel` does that, and shows first what it costs"))
}

/// The course of a duel between runs with these settings. How durable a program's own values are is known
/// from the start; for a stack, facts about the host are needed.
///
/// # Errors
/// Input if the figure can't decide a duel.
pub fn course_of(spec: DuelSpec, begins: Begins, both: &[Settings; 2]) -> Result<Course> {
    if both[0].program.is_none() {
        return Ok(Course::new(spec, begins));
    }
    if !Figure::deciding(&both[0]).contains(&spec.figure) {
        let what = format!("{} does not decide a duel of a program", spec.figure.name());
        return Err(Error::input(what).hint(BY_ITS_METRICS));
    }
    let mut course = Course::of_program(spec, begins, Figure::all_of(&both[0]));
    let own = |of: &Settings| of.program.as_ref().map(Program::durabilities).unwrap_or_default();
    let [one, other] = both.each_ref().map(own);
    let less = |one: &[u8], other: &[u8]| one.iter().zip(other).any(|(one, other)| one < other);
    let less = [less(&one, &other), less(&other, &one)];
    (0..less.len()).filter(|value| less[*value]).for_each(|value| course.survives_less(value));
    Ok(course)
}

/// Whether the pairs' layout differs: a turn changes only files written after it, so both values would be
/// measured on the same mixture.
fn lie_differently(both: &[Settings; 2]) -> bool {
    let [one, other] = both.each_ref().map(|of| of.is_keyed().then(|| of.kv.rocksdb.layout()));
    one != other
}

/// Whether the page cache would hold different data under the two.
fn cache_differently([one, other]: &[Settings; 2]) -> bool {
    let of_engine = |settings: &Settings| {
        let rocksdb = &settings.kv.rocksdb;
        settings.is_keyed().then_some((rocksdb.direct_reads, rocksdb.direct_flush))
    };
    let of_classes = |settings: &Settings| Class::ALL.map(|class| settings.buffering_of(class));
    of_engine(one) != of_engine(other) || of_classes(one) != of_classes(other)
}

/// A duel in progress.
#[derive(Debug)]
pub struct Duel {
    knob: &'static Knob,
    values: [Value; 2],
    course: Course,
    /// The run's settings with each value, until it is known which one survives less.
    settings: Option<Box<[Settings; 2]>>,
}

impl Duel {
    /// A duel in a run with these settings, which then begins with the first value.
    ///
    /// # Errors
    /// Input if the two values can't be compared within a run.
    pub fn new(spec: DuelSpec, settings: &Settings) -> Result<Self> {
        let Sides { knob, values, begins, settings: both } = Sides::of(&spec, settings)?;
        if begins == Begins::Built {
            return Err(needs_build(knob, settings));
        }
        if knob.path == "md.array"
            && values.iter().any(|value| value.to_string() == ArrayState::Healthy.name())
        {
            let error = Error::input("an array is healthy again only once it is rebuilt");
            return Err(error.hint("record both values on their own, and compare the recordings"));
        }
        let course = course_of(spec, begins, &both)?;
        Ok(Self { knob, values, course, settings: Some(Box::new(both)) })
    }

    /// The knob and its first value, which must be in force when the first window comes.
    pub fn first(&self) -> (&'static Knob, &Value) {
        (self.knob, &self.values[0])
    }

    /// Turns the knob to this value: one of the two, or the previous one.
    pub fn turn(&self, session: &mut Session, value: &Value) {
        session.turn_in_duel(&self.knob.path, value, self.values.each_ref().map(ToString::to_string));
    }

    /// Takes the run's event, and turns the knob; returns whether the duel goes on.
    ///
    /// # Errors
    /// If the knob can't be turned.
    pub fn watch(&mut self, session: &mut Session, event: &Event) -> Result<bool> {
        if let Some(settings) = self.settings.take() {
            let less = survives_less(&settings, &session.resolved.facts);
            let values = (0..less.len()).filter(|value| less[*value]);
            values.for_each(|value| self.course.survives_less(value));
        }
        match event {
            Event::Turned { knob, outcome: Err(why) } if *knob == self.knob.path => {
                return Err(Error::failed(format!("the duel ends, as {knob} can't be turned: {why}")));
            }
            Event::Window(window, _) => {
                if let Some(why) = session.cache_stayed() {
                    self.course.forbid(why);
                }
                match self.course.window(window) {
                    DuelMove::Stay => {}
                    DuelMove::Turn(to) => {
                        self.turn(session, &self.values[to]);
                        if self.course.begins() == Begins::Uncached {
                            session.empty_cache();
                        }
                    }
                    DuelMove::Over => return Ok(false),
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// The same if no more turns follow: closes its ledger line when it is over.
    ///
    /// # Errors
    /// If the knob can't be turned.
    pub fn watch_and_close(&mut self, session: &mut Session, event: &Event) -> Result<bool> {
        let goes_on = self.watch(session, event)?;
        if !goes_on {
            self.close(session);
        }
        Ok(goes_on)
    }

    /// Closes its ledger line, with the result.
    pub fn close(&self, session: &mut Session) {
        session.turns.duel = None;
        if let Some(line) = session.turns.ledger.close_duel(Some(self.report().outcome())) {
            session.recorder.line(line);
        }
    }

    /// Its course so far.
    pub fn course(&self) -> &Course {
        &self.course
    }

    /// Its result; a duel that was ended early is unclear.
    pub fn report(&self) -> Report {
        self.course.report()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::duel::report::Verdict;
    use crate::settings::LoadEngine;
    use crate::settings::profile::parse;

    fn begins(knob: &str, values: [&str; 2], engine: LoadEngine) -> Begins {
        let mut settings = Settings::default();
        settings.kv.engine = engine;
        let values = values.map(str::to_owned);
        let spec = DuelSpec { knob: knob.into(), values, figure: Figure::Total, margin: 0.05, seed: 1 };
        Sides::of(&spec, &settings).unwrap().begins
    }

    #[test]
    fn pairs_are_loaded_for_each_block_where_they_would_lie_otherwise() {
        for (knob, values) in [
            ("rocksdb.block_size", ["4KiB", "64KiB"]),
            ("rocksdb.fanout", ["4", "10"]),
            ("rocksdb.bloom_bits", ["0", "10"]),
            ("rocksdb.compression", ["none", "lz4"]),
        ] {
            assert_eq!(begins(knob, values, LoadEngine::Rocksdb), Begins::Built, "{knob}");
        }
        assert_eq!(begins("rocksdb.jobs", ["2", "8"], LoadEngine::Rocksdb), Begins::Turned);
        assert_eq!(begins("scan.depth", ["1", "8"], LoadEngine::Pages), Begins::Turned);
    }

    const PROGRAM: &str = r#"
[command]
run = ["bench", "--pool={pool}"]
[command.metrics]
lat = { line = 'lat ([0-9]+)', better = "lower" }
load = { line = 'load ([0-9]+)' }
[[command.knob]]
name = "pool"
values = ["1GB", "4GB"]
[[command.knob]]
name = "sync"
values = ["everysec", "always", "no"]
turn = ["set", "{value}"]
less_durable = ["everysec", "no"]
[stack]
filesystem = "ext4"
"#;

    fn of_program(knob: &str, values: [&str; 2], figure: &str) -> Result<Duel> {
        let settings = crate::runs::session::for_program(parse(PROGRAM, "p.toml").unwrap().settings).unwrap();
        let figure = Figure::all_of(&settings).into_iter().find(|of| of.name() == figure);
        let (figure, values) = (figure.unwrap_or(Figure::Total), values.map(str::to_owned));
        Duel::new(DuelSpec { knob: knob.into(), values, figure, margin: 0.05, seed: 1 }, &settings)
    }

    #[test]
    fn what_would_start_a_program_anew_or_has_no_effect_on_it_is_refused() {
        for (knob, values, figure, why) in [
            ("command.pool", ["1GB", "4GB"], "lat", "start the program anew"),
            ("stack.filesystem", ["ext4", "xfs"], "lat", "set the program up again"),
            ("scan.depth", ["1", "4"], "lat", "no effect where a program is the load"),
            ("command.sync", ["always", "maybe"], "lat", "`maybe` is not a value of command.sync"),
            ("command.sync", ["no", "no"], "lat", "both values are the same"),
            ("command.none", ["1", "2"], "lat", "no such knob"),
            ("command.sync", ["always", "no"], "load", "load does not decide a duel of a program"),
            ("command.sync", ["always", "no"], "total", "does not decide a duel of a program"),
        ] {
            let error = of_program(knob, values, figure).unwrap_err();
            assert!(error.what.contains(why), "{why}: {}", error.what);
        }
        let report = of_program("queue.scheduler", ["none", "mq-deadline"], "lat").unwrap().report();
        assert_eq!((report.begins, report.less_durable), (Begins::Turned, None));
    }

    #[test]
    fn of_a_programs_values_the_less_durable_one_is_known_from_the_start() {
        for (values, less) in [(["always", "no"], 1), (["no", "everysec"], 0), (["everysec", "always"], 0)] {
            let report = of_program("command.sync", values, "lat").unwrap().report();
            assert_eq!((report.verdict, report.less_durable), (Verdict::Unclear, Some(less)), "{values:?}");
            assert_eq!(report.measured.iter().map(Figure::name).collect::<Vec<_>>(), ["lat", "load"]);
        }
    }
}
