//! The types used by the tables of knobs.

use super::value::{Kind, Value};
use crate::class::Class;
use crate::host::{Facts, Feature, TargetFacts};
pub(super) use crate::settings::named::Named;
use crate::settings::values::Settings;

/// What a turn of a knob requires, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Nothing: it takes effect immediately, while the load runs.
    Live,
    /// The load drains, and the database is closed and reopened; the run continues.
    Reopen,
    /// The target is rebuilt or reopened.
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

/// The facts that decide whether a value is available: about this host, and the target if one is open.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// What this host has and can do.
    pub facts: &'a Facts,
    /// What the opened target can do; none before it is opened.
    pub target: Option<&'a TargetFacts>,
}

/// A knob's definition, shared by the classes that have it.
#[derive(Debug)]
pub struct Spec {
    /// The key within its table.
    pub key: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
    /// The paper's findings on it, with the section.
    pub paper: Option<&'static str>,
    /// What it accepts.
    pub kind: Kind,
    /// Whether `default` (the `[io]` table's value) is accepted.
    pub inherits: bool,
    /// What a turn of it requires on its own.
    pub scope: Scope,
    /// Whether it affects only what is derived from figures, not what is measured.
    pub only_reckons: bool,
    /// What a turn requires beyond that, given the settings before and after.
    pub(super) widened: fn(&Settings, &Settings) -> Scope,
    /// Whether settings that differ in it open different targets, or stacks on them.
    pub(super) of_target: fn(&Settings) -> bool,
    pub(super) get: fn(&Settings, Class) -> Value,
    pub(super) set: fn(&mut Settings, Class, Value),
    pub(super) inactive: fn(&Settings, Class) -> Option<&'static str>,
    pub(super) unavailable: fn(&Value, &Settings, Class, Conditions) -> Option<String>,
}

/// A knob without conditions, to be used with `..`.
pub(super) const PLAIN: Spec = Spec {
    key: "",
    help: "",
    paper: None,
    kind: Kind::Bool,
    inherits: false,
    scope: Scope::Live,
    only_reckons: false,
    widened: |_, _| Scope::Live,
    of_target: |_| false,
    get: |_, _| Value::Inherit,
    set: |_, _, _| {},
    inactive: |_, _| None,
    unavailable: |_, _, _, _| None,
};

/// For knobs that always determine which target is opened.
pub(super) fn always(_: &Settings) -> bool {
    true
}

/// Why the host lacks a feature, or none if it has it.
pub(super) fn missing(feature: &Feature) -> Option<String> {
    feature.reason().map(str::to_owned)
}

/// Name and meaning of each value of an enum, for [`Kind::Choice`].
pub(super) const fn names<T: Named, const N: usize>() -> [(&'static str, &'static str); N] {
    let mut out = [("", ""); N];
    let mut i = 0;
    while i < N {
        out[i] = (T::NAMES[i].1, T::NAMES[i].2);
        i += 1;
    }
    assert!(T::NAMES.len() == N);
    out
}

/// Reads and writes a field, from one expression for it.
macro_rules! at {
    ($variant:ident, |$s:ident, $c:ident| $place:expr) => {
        Spec {
            get: |$s, $c| {
                let _ = $c;
                Value::$variant($place.clone())
            },
            set: |$s, $c, value| {
                let _ = $c;
                if let Value::$variant(value) = value {
                    $place = value;
                }
            },
            ..PLAIN
        }
    };
    (some $variant:ident, |$s:ident, $c:ident| $place:expr) => {
        Spec {
            get: |$s, $c| {
                let _ = $c;
                Value::$variant(Some($place))
            },
            set: |$s, $c, value| {
                let _ = $c;
                if let Value::$variant(Some(value)) = value {
                    $place = value;
                }
            },
            ..PLAIN
        }
    };
    (named $type:ty, |$s:ident, $c:ident| $place:expr) => {
        Spec {
            get: |$s, $c| {
                let _ = $c;
                Value::Choice($place.name())
            },
            set: |$s, $c, value| {
                let _ = $c;
                if let Value::Choice(name) = value {
                    $place = <$type>::named(name).unwrap_or($place);
                }
            },
            ..PLAIN
        }
    };
    (own $type:ty, |$s:ident, $c:ident| $place:expr) => {
        Spec {
            get: |$s, $c| $place.map_or(Value::Inherit, |own: $type| Value::Choice(own.name())),
            set: |$s, $c, value| {
                $place = match value {
                    Value::Choice(name) => <$type>::named(name),
                    _ => None,
                };
            },
            inherits: true,
            ..PLAIN
        }
    };
}
