//! Another program beside the load: the recording shows it, and its cycles don't count as the load's.

use std::process::{Child, Command, Stdio};

use crate::common::program::json_lines;
use crate::common::recorded::Home;
use serde_json::Value;

/// A program that burns CPU until it is dropped.
struct Burner(Child);

impl Burner {
    fn new() -> Self {
        let burns = Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Self(burns.unwrap())
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The flag for others' processor time; other tests may also write to the same disk, which has another flag.
fn others<'a>(flags: impl IntoIterator<Item = &'a Value>) -> Option<&'a str> {
    let is_of_cores = |flag: &&str| flag.starts_with("others ") && flag.ends_with(" cores");
    flags.into_iter().filter_map(Value::as_str).find(is_of_cores)
}

#[test]
fn another_program_beside_the_load_is_flagged() {
    let home = Home::new();
    let profile = home.small_files("small");
    let burner = Burner::new();
    let recorded = home.record(&profile, "out", &["--for", "3s"]);
    drop(burner);
    let summary = recorded.summary();
    let flag = others(summary["flags"].as_array().unwrap()).expect("flagged");
    let note = &summary["flag_notes"][flag];
    assert_eq!(note["forbids_verdict"], false, "it forbids that on cycles and cores alone");

    let (total, cpu) = (&summary["total"], &summary["total"]["cpu"]);
    assert!(number(&cpu["others_cores"]) > 0.2 && number(&cpu["own_cores"]) > 0.0, "{cpu:#}");
    assert!(number(&total["attributable_cycles_per_byte"]) < number(&total["cycles_per_byte"]), "{total:#}");
    let shown = home.run(&["show", "out"]).out;
    assert!(shown.contains(&format!("! run: {flag}: Other programs used")), "{shown}");
    assert!(shown.contains("without others") && !shown.contains("Inconsistent"), "{shown}");

    let windows = json_lines(&recorded.dir.join("windows.jsonl"));
    let flagged = |window: &Value| {
        others(window["flags"].as_array().unwrap().iter().map(|flag| &flag["text"])).is_some()
    };
    assert!(windows.iter().any(flagged), "{windows:#?}");
}
