//! A duel in a run: its knob is turned as the course says.

use crate::error::{Error, Result};
use crate::runs::duel::{Course, Report, Spec, Step};
use crate::runs::session::message::Event;
use crate::runs::session::run::Session;
use crate::settings::knobs::{self, Knob, Scope, Value};
use crate::settings::{ArrayState, Named, Settings};

/// A duel that goes on.
#[derive(Debug)]
pub struct Duel {
    knob: &'static Knob,
    values: [Value; 2],
    course: Course,
}

impl Duel {
    /// The duel of a run with these settings, which then begins with the first value.
    ///
    /// # Errors
    /// Input where the two values can't be compared by a duel.
    pub fn new(spec: Spec, settings: &Settings) -> Result<Self> {
        let knob = knobs::find(&spec.knob).ok_or_else(|| Error::input("there is no such knob"))?;
        let parse = |text: &String| {
            let wrong = |expected| {
                Error::input(format!("`{text}` is no value of {}: expected {expected}", knob.path))
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
        let mut first = settings.clone();
        knob.set(&mut first, values[0].clone());
        if [&values[0], &values[1]]
            .into_iter()
            .zip([settings, &first])
            .any(|(value, from)| knob.scope_of(value, from) == Scope::Rebuild)
        {
            let error = Error::input("each turn would build the storage anew");
            return Err(error.hint("record both values as steps of a sweep, several times"));
        }
        if knob.path == "md.array"
            && values.iter().any(|value| value.to_string() == ArrayState::Healthy.name())
        {
            let error = Error::input("an array is healthy again only once it is rebuilt");
            return Err(error.hint("record both values on their own, and compare the recordings"));
        }
        if knob.path.ends_with(".buffering") && values.iter().any(|value| value.to_string() == "cached") {
            let error = Error::input("the page cache remembers longer than a block lasts");
            return Err(error.hint("record both values on their own, and compare the recordings"));
        }
        Ok(Self { knob, values, course: Course::new(spec) })
    }

    /// The knob and its first value, which the run must have when the first window comes.
    pub fn first(&self) -> (&'static Knob, &Value) {
        (self.knob, &self.values[0])
    }

    /// Takes what the run reports, and turns the knob; returns whether it goes on.
    ///
    /// # Errors
    /// Where the knob can't be turned.
    pub fn watch(&mut self, session: &mut Session, event: &Event) -> Result<bool> {
        match event {
            Event::Turned { knob, outcome: Err(why) } if *knob == self.knob.path => {
                return Err(Error::failed(format!("the duel ends, as {knob} can't be turned: {why}")));
            }
            Event::Ledger(line) if line.knob == self.knob.path && line.is_less_safe() => {
                let to = self.values.iter().position(|value| value.to_string() == line.to);
                to.into_iter().for_each(|value| self.course.survives_less(value));
            }
            Event::Window(window, _) => match self.course.window(window) {
                Step::Stay => {}
                Step::Turn(to) => session.turn(&self.knob.path, &self.values[to]),
                Step::Over => return Ok(false),
            },
            _ => {}
        }
        Ok(true)
    }

    /// Where it stands.
    pub fn course(&self) -> &Course {
        &self.course
    }

    /// What it came to; a duel that was ended early is unclear.
    pub fn report(&self) -> Report {
        self.course.report()
    }
}
