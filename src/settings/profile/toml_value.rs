//! From a knob's value to TOML.

use crate::settings::knobs::Value;

/// The value as written in a profile.
pub(super) fn to_value(value: &Value) -> toml::Value {
    match value {
        Value::Bool(on) => (*on).into(),
        Value::Int(n) => i64::try_from(*n).map_or_else(|_| n.to_string().into(), toml::Value::from),
        Value::Float(x) => (*x).into(),
        // Whether the empty text is written as `none` is up to the knob.
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(String::as_str).collect::<Vec<_>>().into(),
        Value::Size(_)
        | Value::Percent(_)
        | Value::Rate(_)
        | Value::Time(_)
        | Value::Choice(_)
        | Value::Cpus(_)
        | Value::Inherit => value.to_string().into(),
    }
}
