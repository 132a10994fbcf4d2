//! What the tables of knobs are written with.

use super::value::{Kind, Value};
use super::{Scope, Spec};
pub(super) use crate::settings::Named;

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

/// A knob without conditions, to be completed by `..`.
pub(super) const PLAIN: Spec = Spec {
    key: "",
    help: "",
    paper: None,
    kind: Kind::Bool,
    inherits: false,
    scope: Scope::Live,
    only_reckons: false,
    get: |_, _| Value::Inherit,
    set: |_, _, _| {},
    inactive: |_, _| None,
    unavailable: |_, _, _, _| None,
};

/// How a field is read and written, from one expression for its place.
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
