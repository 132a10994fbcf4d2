//! `record --duel`: two values of a knob in one run.

use std::path::Path;

use rand::RngExt as _;

use super::output::{print, print_json};
use crate::error::{Error, Result};
use crate::held_folder::HeldFolder;
use crate::runs::duel::{Course, Spec, Step};
use crate::runs::session::{Event, Session};
use crate::settings::Settings;
use crate::settings::knobs::{self, Knob, Scope, Value};
use crate::ui::cli::{DuelArgs, parse_set};
use crate::ui::report;

/// The file in the recording.
const DUEL: &str = "duel.json";

/// A duel beside a recording.
pub(super) struct Duel {
    knob: &'static Knob,
    values: [Value; 2],
    course: Course,
}

impl Duel {
    /// The duel that the command line asks for, if it does; the settings then begin with its first value.
    pub(super) fn of(args: &DuelArgs, settings: &mut Settings) -> Result<Option<Self>> {
        let Some(asked) = &args.duel else { return Ok(None) };
        let wrong = |what: &str| {
            let error = Error::input(format!("--duel {asked}: {what}"));
            error.hint("write a knob and two values, such as io.interface=libaio,io_uring")
        };
        let (path, texts) = asked.split_once('=').ok_or_else(|| wrong("there are no values"))?;
        let (one, other) = texts.split_once(',').ok_or_else(|| wrong("there is one value only"))?;
        let value = |text: &str| parse_set(&format!("{path}={text}"));
        let ((index, first), (_, second)) = (value(one)?, value(other)?);
        let (knob, values) = (&knobs::all()[index], [first, second]);
        if values[0] == values[1] {
            return Err(wrong("both values are the same"));
        }
        if knob.spec.only_reckons {
            return Err(wrong("it changes nothing that is measured"));
        }
        knob.set(settings, values[0].clone());
        if knob.scope_of(&values[1], settings) == Scope::Rebuild {
            let error = Error::input(format!("--duel {asked}: each turn would build the storage anew"));
            return Err(error.hint("record both values as steps of a sweep, several times"));
        }
        if knob.path.ends_with(".buffering") && values.iter().any(|value| value.to_string() == "cached") {
            let error =
                Error::input(format!("--duel {asked}: the page cache remembers longer than a block lasts"));
            return Err(error.hint("record both values on their own, and compare the recordings"));
        }
        let spec = Spec {
            knob: knob.path.clone(),
            values: values.clone().map(|value| value.to_string()),
            figure: args.duel_figure,
            margin: f64::from(args.duel_margin) / 100.0,
            seed: args.duel_seed.unwrap_or_else(|| rand::rng().random_range(0..1 << 32)),
        };
        Ok(Some(Self { knob, values, course: Course::new(spec) }))
    }

    /// Takes what the run reports, and turns the knob; returns whether it goes on.
    pub(super) fn watch(&mut self, session: &mut Session, event: &Event) -> Result<bool> {
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

    /// Writes it down beside the recording, and prints it.
    pub(super) fn finish(&self, out: &Path, json: bool) -> Result<()> {
        let found = self.course.report();
        let text = serde_json::to_string_pretty(&found)
            .map_err(|error| Error::failed(format!("cannot encode the duel: {error}")))?;
        HeldFolder::open_own(out)?.replace(DUEL, format!("{text}\n").as_bytes())?;
        if json { print_json(&found) } else { print(&report::duel(&found)) }
    }
}
