//! A knob: its value in settings, what it accepts, and why a value is not available.

use std::sync::OnceLock;

use super::spec::{Conditions, Scope, Spec};
use super::value::{self, Kind, Value};
use super::{kv, table};
use crate::class::Class;
use crate::settings::values::{Cpus, Settings};

/// A knob: a definition at a path in the profile.
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

/// The knob with that path.
pub fn find(path: &str) -> Option<&'static Knob> {
    all().iter().find(|knob| knob.path == path)
}

/// The path closest to an unknown one, if one is close.
pub fn nearest(path: &str) -> Option<&'static str> {
    nearest_of(path, all().iter().map(|knob| knob.path.as_str()))
}

/// The name closest to an unknown one, if one is close.
pub fn nearest_of<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let chars = wrong.chars().count();
    let far = |name: &str| 2.max(name.len() / 3);
    names
        .filter(|name| name.len().abs_diff(chars) <= far(name))
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .min()
        .filter(|(distance, name)| *distance <= far(name))
        .map(|(_, name)| name)
}

impl Knob {
    /// The value in these settings.
    pub fn get(&self, settings: &Settings) -> Value {
        match self.of_program() {
            Some(name) => self.own_value(name, settings),
            None => (self.spec.get)(settings, self.class.unwrap_or(Class::Scan)),
        }
    }

    /// Sets a value of this knob's kind in the settings.
    pub fn set(&self, settings: &mut Settings, value: Value) {
        match self.of_program() {
            Some(name) => set_own(name, settings, &value),
            None => (self.spec.set)(settings, self.class.unwrap_or(Class::Scan), value),
        }
    }

    /// What turning it from these settings to the value requires.
    pub fn scope_of(&self, value: &Value, settings: &Settings) -> Scope {
        let mut turned = settings.clone();
        self.set(&mut turned, value.clone());
        self.scope_between(settings, &turned)
    }

    /// What a turn from the old settings to the new requires.
    pub fn scope_between(&self, old: &Settings, new: &Settings) -> Scope {
        self.spec.scope.max((self.spec.widened)(old, new))
    }

    /// Whether another value means another target, or another stack below it.
    pub fn is_of_target(&self, settings: &Settings) -> bool {
        (self.spec.of_target)(settings)
    }

    /// The effective value: the `[io]` table's if this knob inherits it.
    pub fn effective(&self, settings: &Settings) -> Value {
        match (self.get(settings), find(&format!("io.{}", self.spec.key))) {
            (Value::Inherit, Some(default)) => default.get(settings),
            (value, _) => value,
        }
    }

    /// Parses a text; an error says what was expected.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        if self.spec.inherits && text.trim() == value::INHERIT {
            return Ok(Value::Inherit);
        }
        self.spec
            .kind
            .parse(text)
            .map_err(|e| if self.spec.inherits { format!("{e}, or default") } else { e })
    }

    /// What the knob accepts, in words.
    pub fn expected(&self) -> String {
        let or_default = if self.spec.inherits { ", or default" } else { "" };
        format!("{}{or_default}", self.spec.kind.expected())
    }

    /// Why the value, shown as written, is wrong; with the closest valid name, if there are names.
    pub fn refusal(&self, shown: &str) -> String {
        let refusal = format!("`{}` must be {}, not {shown}", self.path, self.expected());
        let Kind::Choice(choices) = self.spec.kind else { return refusal };
        let names = choices.iter().map(|(name, _)| *name);
        match nearest_of(shown.trim_matches(['"', '\'']), names) {
            Some(name) => format!("{refusal}; did you mean `{name}`?"),
            None => refusal,
        }
    }

    /// Whether it belongs to another load engine than that of these settings.
    pub fn is_of_another_engine(&self, settings: &Settings) -> bool {
        kv::of_another_engine(&self.path, settings).is_some()
    }

    /// Why the knob has no effect under these settings, or none if it has an effect.
    pub fn inactive(&self, settings: &Settings) -> Option<&'static str> {
        if let Some(why) = kv::of_another_engine(&self.path, settings) {
            return Some(why);
        }
        (self.spec.inactive)(settings, self.class.unwrap_or(Class::Scan))
    }

    /// Why this host or target does not support the value, or none if it does.
    ///
    /// A default is checked for the classes that inherit it, and an inheriting class is checked by the default.
    pub fn unavailable(&self, value: &Value, settings: &Settings, conditions: Conditions) -> Option<String> {
        let mut turned = settings.clone();
        self.set(&mut turned, value.clone());
        // Values that the load's engine ignores may be anything.
        if kv::of_another_engine(&self.path, &turned).is_some() {
            return None;
        }
        let value = self.effective(&turned);
        if let Some(class) = self.class {
            return (self.spec.unavailable)(&value, &turned, class, conditions);
        }
        let inherits = |class: &Class| match self.of_class(*class) {
            Some(own) => own.get(&turned) == Value::Inherit,
            None => *class == Class::Scan,
        };
        Class::ALL
            .into_iter()
            .filter(inherits)
            .find_map(|class| (self.spec.unavailable)(&value, &turned, class, conditions))
    }

    /// The knob by which a class overrides this default.
    fn of_class(&self, class: Class) -> Option<&'static Knob> {
        let key = self.path.strip_prefix("io.")?;
        find(&format!("{class}.{key}"))
    }

    /// The preset values for the arrow keys on this host, ascending.
    pub fn steps(&self, conditions: Conditions) -> Vec<Value> {
        let mut steps: Vec<_> = self.spec.inherits.then_some(Value::Inherit).into_iter().collect();
        steps.extend(self.spec.kind.steps());
        if matches!(self.spec.kind, Kind::Cpus) {
            let cpu = &conditions.facts.cpu;
            steps.push(Value::Cpus(Cpus::Any));
            steps.extend(cpu.nodes.iter().map(|node| Value::Cpus(Cpus::Node(node.id))));
            steps.extend(cpu.online.iter().map(|&id| Value::Cpus(Cpus::List(vec![id]))));
        }
        steps
    }

    /// The next preset value upwards (`true`) or downwards from the settings' value; none at the end.
    pub fn step(&self, settings: &Settings, conditions: Conditions, up: bool) -> Option<Value> {
        let steps = self.steps(conditions);
        let now = self.get(settings);
        if let Some(at) = steps.iter().position(|step| *step == now) {
            let next = if up { at.checked_add(1)? } else { at.checked_sub(1)? };
            return steps.get(next).cloned();
        }
        // A typed value may lie between two presets.
        let above = |step: &&Value| magnitude(step) > magnitude(&now);
        if up { steps.iter().find(above).cloned() } else { steps.iter().rev().find(|s| !above(s)).cloned() }
    }
}

/// Sets the knob that the settings' program gives this name.
fn set_own(name: &str, settings: &mut Settings, value: &Value) {
    if let Some(program) = &mut settings.program {
        // A value of another program's knob of that name may not be one of this knob's.
        let _ = program.turn(name, &value.to_string());
    }
}

/// Orders values of one kind; no limit is above every limit.
fn magnitude(value: &Value) -> f64 {
    match value {
        Value::Bool(on) => f64::from(u8::from(*on)),
        Value::Size(None) | Value::Rate(None) => f64::INFINITY,
        other => other.as_number().unwrap_or(-1.0),
    }
}

/// Every knob whose value this host does not support, with the reason.
pub fn problems(settings: &Settings, conditions: Conditions) -> Vec<(&'static str, String)> {
    all()
        .iter()
        .filter(|knob| knob.get(settings) != Value::Inherit)
        .filter_map(|knob| {
            let reason = knob.unavailable(&knob.get(settings), settings, conditions)?;
            Some((knob.path.as_str(), reason))
        })
        .collect()
}
