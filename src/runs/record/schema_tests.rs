//! The schema of `summary.json` is that of the types, and written summaries conform to it.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::names::SCHEMA;
use super::summary::{SUMMARY_SCHEMA, Summary};
use super::{Outcome, fixture};

/// Violations of a schema by a value, key by key. Only the parts of the language that [`schema`] writes; a
/// key that the schema does not name is a mistake here, though not for a reader.
fn mistakes(root: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        mistakes(root, &root["$defs"][name.trim_start_matches("#/$defs/")], value, at, out);
    }
    if let Some(choices) = ["oneOf", "anyOf"].into_iter().find_map(|key| schema[key].as_array()) {
        // Keys next to a choice are in the schema around it.
        let fits = |choice: &&Value| {
            let mut found = Vec::new();
            mistakes(root, choice, value, at, &mut found);
            found.iter().all(|mistake| schema["properties"].is_object() && mistake.ends_with(UNNAMED))
        };
        if !choices.iter().any(|choice| fits(&choice)) {
            out.push(format!("{at}: {value} is none of the choices"));
        }
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |wanted: &Value| wanted == kind || (wanted == "number" && kind == "integer");
    let allowed = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is),
        one => is(one),
    };
    let constant = &schema["const"];
    let listed = schema["enum"].as_array().is_none_or(|values| values.contains(value));
    if !allowed || !listed || (!constant.is_null() && constant != value) {
        out.push(format!("{at}: {value} is not {schema}"));
    }
    let items = value.as_array().filter(|_| schema["items"].is_object());
    for item in items.into_iter().flatten() {
        mistakes(root, &schema["items"], item, &format!("{at}[]"), out);
    }
    if value.is_object() && schema["type"] == "object" {
        keys(root, schema, value, at, out);
    }
}

const UNNAMED: &str = "is not in the schema";

/// The same for an object's keys.
fn keys(root: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(key).is_none() {
            out.push(format!("{at}.{key} is missing"));
        }
    }
    let in_a_choice = |key: &str| {
        let choices = schema["oneOf"].as_array().into_iter().flatten();
        choices.into_iter().any(|choice| choice["properties"].get(key).is_some())
    };
    for (key, item) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{key}");
        match schema["properties"].get(key).or_else(|| schema.get("additionalProperties")) {
            Some(named) => mistakes(root, named, item, &at, out),
            None if in_a_choice(key) => {}
            None => out.push(format!("{at} {UNNAMED}")),
        }
    }
}

/// The schema of the types as they are now.
fn schema() -> String {
    let mut schema =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Summary>().to_value();
    schema["title"] = json!(format!("summary.json of a recording by stacktune, version {SCHEMA}"));
    schema["properties"]["schema"]["const"] = json!(SCHEMA);
    format!("{schema:#}\n")
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/summary.schema.json")
}

/// After a change of a figure: `UPDATE_HELP=1 make quick NAME=schema`.
#[test]
fn the_schema_is_that_of_the_types() {
    if std::env::var_os("UPDATE_HELP").is_some() {
        fs::write(file(), schema()).unwrap();
    } else {
        assert!(
            SUMMARY_SCHEMA == schema(),
            "run `UPDATE_HELP=1 make quick NAME=schema`, and review the diff"
        );
    }
}

/// A summary's violations of the schema.
fn against(summary: &Value) -> Vec<String> {
    let schema = serde_json::from_str(SUMMARY_SCHEMA).unwrap();
    let mut found = Vec::new();
    mistakes(&schema, &schema, summary, "", &mut found);
    found
}

/// All `summary.json` files below a folder.
fn summaries(dir: &Path) -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(summaries(&entry));
        } else if entry.ends_with("summary.json") {
            let text = fs::read_to_string(&entry).unwrap();
            found.push((entry, serde_json::from_str(&text).unwrap()));
        }
    }
    found
}

#[test]
fn every_recording_keeps_to_the_schema() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/earlier");
    let mut all = summaries(&kept);
    assert!(all.len() >= 4, "{}", all.len());
    let (dir, windows) = (tempfile::tempdir().unwrap(), fixture::windows(fixture::Like::default()));
    let writer = super::tests::written(dir.path(), &windows);
    writer.finish(&fixture::totals(&windows), &Outcome::Complete).unwrap();
    all.extend(summaries(dir.path()));
    for (name, summary) in all {
        assert_eq!(against(&summary), Vec::<String>::new(), "{}", name.display());
    }
}

/// A change to a good summary.
type Change = fn(&mut Value);

#[test]
fn what_breaks_the_schema_is_found() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/earlier/run/summary.json");
    let good: Value = serde_json::from_str(&fs::read_to_string(kept).unwrap()).unwrap();
    let changes: [(&str, Change); 7] = [
        (".schema", |summary| summary["schema"] = json!(2)),
        (".profile is missing", |summary| drop(summary.as_object_mut().unwrap().remove("profile"))),
        (".new is not in the schema", |summary| summary["new"] = json!(1)),
        (".classes.scan.ios", |summary| summary["classes"]["scan"]["ios"] = json!("3")),
        (".classes.wal.flush_ns", |summary| summary["classes"]["wal"]["flush_ns"]["p50"] = json!(1.5)),
        (".classes.scan", |summary| summary["classes"]["scan"]["state"] = json!("idle")),
        (".total.cycles_source", |summary| summary["total"]["cycles_source"] = json!("guess")),
    ];
    for (named, change) in changes {
        let mut summary = good.clone();
        change(&mut summary);
        let found = against(&summary);
        assert!(found.iter().any(|mistake| mistake.contains(named)), "{named}: {found:?}");
    }
}
