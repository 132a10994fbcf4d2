//! The one table of all that can be turned.
//!
//! A knob is defined once, in [`table`]: the profile's key, the row on the screen, `--set`,
//! `stacktune knobs` and the checks all come from it.

#[macro_use]
mod spec;

mod kv;
mod polling;
mod stack;
mod table;
pub mod value;

use std::sync::OnceLock;

use crate::class::Class;
use crate::host::{Facts, TargetFacts};
use crate::settings::{Cpus, LoadEngine, Settings};
pub use value::{Kind, Value};

/// When a turn of the knob takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// At once, while the load runs.
    Live,
    /// While the run goes on, once the load has drained and the database was closed and opened again.
    Reopen,
    /// Only when the target is built or opened anew.
    Rebuild,
}

impl Scope {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Live => "live",
            Scope::Reopen => "reopen",
            Scope::Rebuild => "rebuild",
        }
    }
}

/// What decides whether a value can be chosen: this host, and the target where one is open.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The host.
    pub facts: &'a Facts,
    /// The opened target.
    pub target: Option<&'a TargetFacts>,
}

/// A knob's definition, shared by the classes that have it.
#[derive(Debug)]
pub struct Spec {
    /// The key within its table.
    pub key: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
    /// What the paper found about it, with its section.
    pub paper: Option<&'static str>,
    /// What it accepts.
    pub kind: Kind,
    /// Whether `default` (the `[io]` table's value) is accepted.
    pub inherits: bool,
    /// When it takes effect.
    pub scope: Scope,
    /// It changes what is reckoned from figures, and nothing of what is measured.
    pub only_reckons: bool,
    get: fn(&Settings, Class) -> Value,
    set: fn(&mut Settings, Class, Value),
    inactive: fn(&Settings, Class) -> Option<&'static str>,
    unavailable: fn(&Value, &Settings, Class, Ground) -> Option<String>,
}

/// A knob: a definition at a place in the profile.
#[derive(Debug)]
pub struct Knob {
    /// The full key in profiles and `--set` (`scan.depth`, `io.interface`).
    pub path: String,
    /// The class, for a knob of a class.
    pub class: Option<Class>,
    /// The definition.
    pub spec: &'static Spec,
}

/// All knobs, in the order of profiles and of the screen.
pub fn all() -> &'static [Knob] {
    static ALL: OnceLock<Vec<Knob>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut knobs = Vec::new();
        for (prefix, class, specs) in table::SECTIONS {
            knobs.extend(specs.iter().map(|spec| Knob {
                path: format!("{prefix}.{}", spec.key),
                class: *class,
                spec,
            }));
        }
        knobs
    })
}

/// The knob of that path.
pub fn find(path: &str) -> Option<&'static Knob> {
    all().iter().find(|knob| knob.path == path)
}

/// The path nearest to a mistaken one, if one is near.
pub fn nearest(path: &str) -> Option<&'static str> {
    nearest_of(path, all().iter().map(|knob| knob.path.as_str()))
}

/// The name nearest to a mistaken one, if one is near.
pub fn nearest_of<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3))
        .map(|(_, name)| name)
}

impl Knob {
    /// The value in these settings.
    pub fn get(&self, settings: &Settings) -> Value {
        (self.spec.get)(settings, self.class.unwrap_or(Class::Scan))
    }

    /// Puts a value of this knob's kind into the settings.
    pub fn set(&self, settings: &mut Settings, value: Value) {
        (self.spec.set)(settings, self.class.unwrap_or(Class::Scan), value);
    }

    /// When a turn from these settings to the value takes effect: drives that change hands for it take
    /// a rebuild, whatever the knob.
    pub fn scope_of(&self, value: &Value, settings: &Settings) -> Scope {
        let mut turned = settings.clone();
        self.set(&mut turned, value.clone());
        let outside = |of: &Settings| {
            Class::ALL.map(|class| Some(of.interface_of(class)).filter(|interface| interface.leaves_kernel()))
        };
        if outside(&turned) == outside(settings) { self.spec.scope } else { Scope::Rebuild }
    }

    /// The value in force: the `[io]` table's, where this knob takes that.
    pub fn effective(&self, settings: &Settings) -> Value {
        match (self.get(settings), find(&format!("io.{}", self.spec.key))) {
            (Value::Inherit, Some(default)) => default.get(settings),
            (value, _) => value,
        }
    }

    /// The value that a text stands for, or what was expected.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        if self.spec.inherits && text.trim() == value::INHERIT {
            return Ok(Value::Inherit);
        }
        self.spec
            .kind
            .parse(text)
            .map_err(|e| if self.spec.inherits { format!("{e}, or default") } else { e })
    }

    /// What the knob accepts, as words.
    pub fn expected(&self) -> String {
        let or_default = if self.spec.inherits { ", or default" } else { "" };
        format!("{}{or_default}", self.spec.kind.expected())
    }

    /// Why the value, shown as written, is wrong; with the nearest right name where it has names.
    pub fn refusal(&self, shown: &str) -> String {
        let refusal = format!("`{}` wants {}, not {shown}", self.path, self.expected());
        let Kind::Choice(choices) = self.spec.kind else { return refusal };
        let names = choices.iter().map(|(name, _)| *name);
        match nearest_of(shown.trim_matches(['"', '\'']), names) {
            Some(name) => format!("{refusal}; did you mean `{name}`?"),
            None => refusal,
        }
    }

    /// Whether it is another load engine's than that of these settings.
    pub fn is_of_another_engine(&self, settings: &Settings) -> bool {
        kv::of_another_engine(&self.path, settings).is_some()
    }

    /// Why the knob has no effect under these settings, if it has none.
    pub fn inactive(&self, settings: &Settings) -> Option<&'static str> {
        if let Some(why) = kv::of_another_engine(&self.path, settings) {
            return Some(why);
        }
        (self.spec.inactive)(settings, self.class.unwrap_or(Class::Scan))
    }

    /// Why this host or target can't do the value, if it can't.
    ///
    /// A default is judged by the classes that take it; a class that takes it, by the default.
    pub fn unavailable(&self, value: &Value, settings: &Settings, ground: Ground) -> Option<String> {
        let mut turned = settings.clone();
        self.set(&mut turned, value.clone());
        // What the load's engine does not look at can have any value.
        if kv::of_another_engine(&self.path, &turned).is_some() {
            return None;
        }
        let value = self.effective(&turned);
        if let Some(class) = self.class {
            return (self.spec.unavailable)(&value, &turned, class, ground);
        }
        let inherits = |class: &Class| match self.of_class(*class) {
            Some(own) => own.get(&turned) == Value::Inherit,
            None => *class == Class::Scan,
        };
        Class::ALL
            .into_iter()
            .filter(inherits)
            .find_map(|class| (self.spec.unavailable)(&value, &turned, class, ground))
    }

    /// The knob by which a class overrides this default.
    fn of_class(&self, class: Class) -> Option<&'static Knob> {
        let key = self.path.strip_prefix("io.")?;
        find(&format!("{class}.{key}"))
    }

    /// The stops of the arrow keys on this host, ascending.
    pub fn steps(&self, ground: Ground) -> Vec<Value> {
        let mut steps: Vec<_> = self.spec.inherits.then_some(Value::Inherit).into_iter().collect();
        steps.extend(self.spec.kind.steps());
        if matches!(self.spec.kind, Kind::Cpus) {
            let cpu = &ground.facts.cpu;
            steps.push(Value::Cpus(Cpus::Any));
            steps.extend(cpu.nodes.iter().map(|node| Value::Cpus(Cpus::Node(node.id))));
            steps.extend(cpu.online.iter().map(|&id| Value::Cpus(Cpus::List(vec![id]))));
        }
        steps
    }

    /// The next stop upwards (`true`) or downwards from the settings' value; none at the end.
    pub fn step(&self, settings: &Settings, ground: Ground, up: bool) -> Option<Value> {
        let steps = self.steps(ground);
        let now = self.get(settings);
        if let Some(at) = steps.iter().position(|step| *step == now) {
            let next = if up { at.checked_add(1)? } else { at.checked_sub(1)? };
            return steps.get(next).cloned();
        }
        // A value typed in lies between two stops.
        let above = |step: &&Value| magnitude(step) > magnitude(&now);
        if up { steps.iter().find(above).cloned() } else { steps.iter().rev().find(|s| !above(s)).cloned() }
    }
}

/// Orders the values of one kind; no limit is above every limit.
fn magnitude(value: &Value) -> f64 {
    match value {
        Value::Bool(on) => f64::from(u8::from(*on)),
        Value::Size(None) | Value::Rate(None) => f64::INFINITY,
        other => other.as_number().unwrap_or(-1.0),
    }
}

/// Whether both settings open the same target on the same stack; of pairs, also as they were loaded.
pub fn same_target(one: &Settings, other: &Settings) -> bool {
    let of_target = |knob: &&Knob| {
        let place = ["target.", "stack.", "wal.target", "wal.serial", "load.", "kv.", "rocksdb."];
        knob.spec.scope == Scope::Rebuild && place.iter().any(|prefix| knob.path.starts_with(prefix))
    };
    let laid_out = |of: &Settings| (of.kv.engine == LoadEngine::Rocksdb).then(|| of.kv.rocksdb.layout());
    laid_out(one) == laid_out(other)
        && all().iter().filter(of_target).all(|knob| knob.get(one) == knob.get(other))
}

/// Every knob's reason why the settings can't run here: path and reason.
pub fn problems(settings: &Settings, ground: Ground) -> Vec<(&'static str, String)> {
    all()
        .iter()
        .filter(|knob| knob.get(settings) != Value::Inherit)
        .filter_map(|knob| {
            let reason = knob.unavailable(&knob.get(settings), settings, ground)?;
            Some((knob.path.as_str(), reason))
        })
        .collect()
}

/// What a capable host refuses of settings, a line each.
#[cfg(test)]
fn refusals(settings: &Settings) -> String {
    let facts = crate::settings::testing::capable_host();
    let found = problems(settings, Ground { facts: &facts, target: None });
    let lines: Vec<_> = found.into_iter().map(|(path, why)| format!("{path}: {why}")).collect();
    lines.join("\n")
}
