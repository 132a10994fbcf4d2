//! A safety net below the checks of specific figures: compares all summary values that follow from the windows.

use crate::json;
use serde_json::Value;

use super::derived::differs;
use super::summary::Summary;

/// Values that have their own check, are no figures, or are not in the windows.
const ELSEWHERE: [&str; 16] = [
    "service_ns",
    "response_ns",
    "write_ns",
    "flush_ns",
    "steady",
    "variability",
    "pitfalls",
    "cost",
    "members",
    "flags",
    "flag_notes",
    "schema",
    "stacktune",
    "profile",
    "interrupted",
    "failure",
];

/// Values of the summary that differ from `again`, which is made from its windows. A missing value is an
/// earlier version's.
pub(super) fn against(summary: &Summary, again: &Summary) -> Vec<String> {
    let [has, again] = [summary, again].map(json::value);
    let mut found = Vec::new();
    compare("", &has, &again, &mut found);
    found
}

fn compare(at: &str, has: &Value, again: &Value, found: &mut Vec<String>) {
    match has {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, has) in fields.iter().filter(|(key, _)| !ELSEWHERE.contains(&key.as_str())) {
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                compare(&at, has, &again[key.as_str()], found);
            }
        }
        Value::Array(values) => {
            for (number, has) in values.iter().enumerate() {
                compare(&format!("{at}[{number}]"), has, &again[number], found);
            }
        }
        _ if !is_same(has, again) => {
            let shown = if again.is_null() { "unknown".to_owned() } else { again.to_string() };
            found.push(format!("the summary's {at} is {has}, but {shown} by windows.jsonl"));
        }
        _ => {}
    }
}

fn is_same(has: &Value, again: &Value) -> bool {
    match (has.as_f64(), again.as_f64()) {
        (Some(has), Some(again)) => !differs(has, again),
        // A zero may stand for a value that an earlier version did not write.
        (Some(has), None) => has == 0.0,
        _ => has == again,
    }
}
