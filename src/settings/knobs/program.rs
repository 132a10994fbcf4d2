//! The knobs of programs: a profile names them, so they are not in the table.
//!
//! A knob lives as long as stacktune does, which is why there is one table for all. A program's knobs are
//! made when they are first asked for, and kept: there are few, however often a profile is opened.

use std::sync::{LazyLock, Mutex, PoisonError};

use super::knob::{self, Knob};
use super::spec::{PLAIN, Scope, Spec};
use super::value::{Kind, Value};
use crate::settings::values::program::MEMORY_MAX;
use crate::settings::values::{ProgramKnob, Settings};
use crate::units::{GIB, MIB};

/// The table of profiles that they are in.
pub(super) const TABLE: &str = "command";

/// A knob's definition by its program, and the knob made from it.
type Known = (ProgramKnob, &'static Knob);

/// The knobs of the settings' program, in its order; none if the classes are the load.
pub fn of_program(settings: &Settings) -> Vec<&'static Knob> {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let Some(program) = &settings.program else { return Vec::new() };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let own = program.knobs.iter().map(|own| of_definition(&mut known, own));
    // Without a limit from the beginning, its cgroup may be one whose memory can't be limited.
    own.chain(program.memory_max_bytes.map(|_| &*MEMORY_LIMIT)).collect()
}

/// The limit of a program's memory.
static MEMORY_LIMIT: LazyLock<Knob> = LazyLock::new(|| {
    let kind = Kind::Size {
        min: MIB,
        max: 1 << 50,
        multiple: 1,
        power_of_two: false,
        optional: false,
        steps: &[
            64 * MIB,
            128 * MIB,
            256 * MIB,
            512 * MIB,
            GIB,
            2 * GIB,
            4 * GIB,
            8 * GIB,
            16 * GIB,
            32 * GIB,
            64 * GIB,
            128 * GIB,
        ],
    };
    let help = "The most memory that the program may use, page cache included.";
    let spec = Spec { key: MEMORY_MAX, help, kind, scope: Scope::Live, ..PLAIN };
    Knob { path: format!("{TABLE}.{MEMORY_MAX}"), class: None, spec: Box::leak(Box::new(spec)) }
});

/// All knobs of the settings: the table's, and their program's.
pub fn all_of(settings: &Settings) -> impl Iterator<Item = &'static Knob> {
    knob::all().iter().chain(of_program(settings))
}

/// The knob with that path, among the table's and those of the settings' program.
pub fn find_of(settings: &Settings, path: &str) -> Option<&'static Knob> {
    let own = || of_program(settings).into_iter().find(|knob| knob.path == path);
    knob::find(path).or_else(own)
}

fn of_definition(known: &mut Vec<Known>, own: &ProgramKnob) -> &'static Knob {
    let is_same = |(of, _): &&Known| {
        of.name == own.name
            && of.values == own.values
            && of.turn == own.turn
            && of.less_durable == own.less_durable
    };
    if let Some((_, knob)) = known.iter().find(is_same) {
        return knob;
    }
    let meaning = |value: &String| if own.less_durable.contains(value) { "less durable" } else { "" };
    let values = own.values.iter().map(|value| (&*value.clone().leak(), meaning(value)));
    let values: Vec<(&str, &str)> = values.collect();
    let (scope, help) = match own.turn.first() {
        Some(command) => (Scope::Live, format!("A knob of the program's own, turned by {command}.")),
        None => (Scope::Rebuild, "A knob of the program's own; turning it restarts the program.".to_owned()),
    };
    let kind = Kind::Choice(values.leak());
    let spec = Spec { key: own.name.clone().leak(), help: help.leak(), kind, scope, ..PLAIN };
    let path = format!("{TABLE}.{}", own.name);
    let knob: &Knob = Box::leak(Box::new(Knob { path, class: None, spec: Box::leak(Box::new(spec)) }));
    known.push((own.clone(), knob));
    knob
}

impl Knob {
    /// Its name in the program that it belongs to; none for the table's knobs.
    pub fn of_program(&self) -> Option<&str> {
        self.path.strip_prefix(TABLE)?.strip_prefix('.')
    }

    /// Whether a run of a program has this knob: the program's own, and those for what lies below it.
    pub fn is_of_programs(&self) -> bool {
        let (table, key) = self.path.split_once('.').unwrap_or((&self.path, ""));
        match (table, key) {
            // These are about what the classes do.
            ("run", "cache_limit" | "max_writes" | "pace" | "slow_log" | "seed") => false,
            _ => matches!(table, TABLE | "target" | "stack" | "queue" | "md" | "run"),
        }
    }

    /// The program's own value under that name.
    pub(super) fn own_value(&self, name: &str, settings: &Settings) -> Value {
        let value = settings.program.as_ref().and_then(|program| program.text_of(name));
        value.and_then(|value| self.spec.kind.parse(&value).ok()).unwrap_or(Value::Inherit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::values::Program;

    fn settings(values: &[&str], turn: &[&str]) -> Settings {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let knob = ProgramKnob {
            name: "pool".into(),
            values: words(values),
            value: values[0].into(),
            turn: words(turn),
            less_durable: Vec::new(),
        };
        let program = Program { knobs: vec![knob], ..Program::default() };
        Settings { program: Some(program), ..Settings::default() }
    }

    #[test]
    fn a_programs_knob_is_turned_as_one_of_the_table() {
        let mut live = settings(&["1GB", "4GB"], &["turn", "{value}"]);
        let knob = find_of(&live, "command.pool").unwrap();
        assert_eq!((knob.of_program(), knob.get(&live).to_string()), (Some("pool"), "1GB".to_owned()));
        assert_eq!(knob.scope_of(&knob.parse("4GB").unwrap(), &live), Scope::Live);
        knob.set(&mut live, knob.parse("4GB").unwrap());
        assert_eq!(live.program.as_ref().unwrap().value_of("pool"), Some("4GB"));
        assert_eq!(knob.parse("5GB").unwrap_err(), "1GB or 4GB");
        assert!(std::ptr::eq(knob, find_of(&live, "command.pool").unwrap()), "made once");

        // Its memory limit is one, if it has a limit.
        assert!(find_of(&live, "command.memory_max").is_none());
        live.program.as_mut().unwrap().memory_max_bytes = Some(GIB);
        let limit = find_of(&live, "command.memory_max").unwrap();
        assert_eq!((limit.get(&live), limit.spec.scope), (Value::Size(Some(GIB)), Scope::Live));
        limit.set(&mut live, limit.parse("300MB").unwrap());
        assert_eq!(live.program.as_ref().unwrap().memory_max_bytes, Some(300_000_000));
        assert_eq!(limit.get(&live).to_string(), "300MB");

        // The same name in another program is another knob.
        let anew = settings(&["8GB"], &[]);
        let other = find_of(&anew, "command.pool").unwrap();
        assert!(!std::ptr::eq(knob, other) && other.spec.scope == Scope::Rebuild);
        assert_eq!(knob.get(&anew), Value::Inherit);
        assert_eq!(find_of(&Settings::default(), "command.pool").map(|knob| &knob.path), None);
    }
}
