//! A net below the checks that know a figure: every value of a summary that its windows make is compared with theirs.

use crate::json;
use serde_json::Value;

use super::derived::differs;
use super::summary::Summary;

/// What has a check of its own, is no figure, or is not in the windows.
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

/// Values of the summary that are not those of its windows, `again`. What it lacks was not written by an earlier
/// version.
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
            found.push(format!("the summary's {at} is {has}, by windows.jsonl {shown}"));
        }
        _ => {}
    }
}

fn is_same(has: &Value, again: &Value) -> bool {
    match (has.as_f64(), again.as_f64()) {
        (Some(has), Some(again)) => !differs(has, again),
        // A zero may stand for what an earlier version did not write.
        (Some(has), None) => has == 0.0,
        _ => has == again,
    }
}
