//! How well a traced run kept the rules of drives, from its `contract.json`.
//!
//! | field | is |
//! |---|---|
//! | `schema` | 1 |
//! | `lost` | events that the trace lacks |
//! | `lost_completions` | those of them that are known to be completions: unless all are, nothing is judged |
//! | `is_cut` | whether the trace ended before the run did |
//! | `drives` | for each drive its `name`, and what `stacktune contract --json` prints about it, or `why` there is nothing |
//!
//! Others may have written the file, so it is only data: texts are made printable, numbers are taken as they are.

use serde_json::Value;

use crate::error::Result;
use crate::printable;

/// More than a run uses.
const DRIVES_MAX: usize = 64;
/// Rules of a drive.
const RULES_MAX: usize = 5;

/// How well a traced run kept the rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract {
    /// Events that its trace lacks.
    pub lost: u64,
    /// How many of them are known to be completions.
    pub lost_completions: u64,
    /// Whether the trace ended before the run did.
    pub is_cut: bool,
    /// The drives.
    pub drives: Vec<DriveKept>,
    /// The file's content.
    pub value: Value,
}

/// How a drive was used.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveKept {
    /// Its name.
    pub name: String,
    /// Why nothing is known about it, if so.
    pub why: Option<String>,
    /// The rules.
    pub rules: Vec<RuleKept>,
    /// All figures.
    figures: Value,
}

/// How well a rule was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleKept {
    /// The rule's name.
    pub rule: String,
    /// Its light, or why it has none.
    pub is_kept: String,
    /// Its figure, in words.
    pub figure: String,
    /// What to turn.
    pub turn: String,
}

impl Contract {
    /// From the file's content; none if that is not a contract.
    pub fn of(value: &Value) -> Option<Self> {
        let drives = value["drives"].as_array()?.iter().take(DRIVES_MAX).map(DriveKept::of);
        Some(Self {
            lost: value["lost"].as_u64()?,
            // Earlier versions did not record it.
            lost_completions: value["lost_completions"].as_u64().unwrap_or(0),
            is_cut: value["is_cut"].as_bool()?,
            drives: drives.collect::<Option<_>>()?,
            value: value.clone(),
        })
    }
}

impl DriveKept {
    /// From the file's part about a drive; none if that is not one.
    pub fn of(value: &Value) -> Option<Self> {
        let rules = value["rules"].as_array().map_or(&[][..], Vec::as_slice);
        Some(Self {
            name: text(&value["name"])?,
            why: text(&value["why"]),
            rules: rules.iter().take(RULES_MAX).map(RuleKept::of).collect::<Option<_>>()?,
            figures: value.clone(),
        })
    }

    /// One of its numbers, by JSON pointer; none if it is unknown.
    pub fn number(&self, pointer: &str) -> Option<f64> {
        self.figures.pointer(pointer)?.as_f64().filter(|number| number.is_finite())
    }

    /// One of its booleans, by JSON pointer; none if it is unknown.
    pub fn is(&self, pointer: &str) -> Option<bool> {
        self.figures.pointer(pointer)?.as_bool()
    }
}

impl RuleKept {
    fn of(value: &Value) -> Option<Self> {
        Some(Self {
            rule: text(&value["rule"])?,
            is_kept: text(&value["is_kept"])?,
            figure: text(&value["figure"])?,
            turn: text(&value["turn"])?,
        })
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(|text| printable::line(text).into_owned())
}

/// The content of a recording's file; none if it has no such file, or if that is damaged, which a note says.
pub(super) fn read(read: Result<Option<Value>>, notes: &mut Vec<String>) -> Option<Contract> {
    let contract = match &read {
        Ok(None) => return None,
        Ok(Some(value)) => Contract::of(value),
        Err(_) => None,
    };
    if contract.is_none() {
        let why =
            read.err().map_or_else(|| "it lacks what it should have".to_owned(), |error| error.one_line());
        notes.push(format!("How the rules of drives were kept can't be read: {why}."));
    }
    contract
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Error;

    fn read_from(content: &str) -> (Option<Contract>, Vec<String>) {
        let mut notes = Vec::new();
        let value = serde_json::from_str(content).map(Some);
        (read(value.map_err(|error| Error::failed(error.to_string())), &mut notes), notes)
    }

    #[test]
    fn what_was_kept_is_read_and_made_printable() {
        let rule = json!({ "rule": "a", "is_kept": "good\u{1b}[2J", "figure": "f", "turn": "t" });
        let drives = json!([
            { "name": "sda", "rules": [rule], "lifetime": { "gini": 0.25 }, "grouping": { "is_stable": true } },
            { "name": "sdb", "why": "nothing was issued to it" },
        ]);
        let value = json!({ "schema": 1, "lost": 3, "is_cut": false, "drives": drives });
        let (contract, notes) = read_from(&value.to_string());
        let contract = contract.unwrap();
        assert_eq!((contract.lost, contract.is_cut, notes), (3, false, Vec::new()));
        let [sda, sdb] = &contract.drives[..] else { panic!("{contract:?}") };
        assert!(!sda.rules[0].is_kept.contains('\u{1b}'), "{:?}", sda.rules);
        assert_eq!(sda.number("/lifetime/gini"), Some(0.25));
        assert_eq!(sda.is("/grouping/is_stable"), Some(true));
        assert_eq!((sda.number("/lifetime/mean"), sda.is("/lifetime/gini")), (None, None));
        assert_eq!(sdb.why.as_deref(), Some("nothing was issued to it"));
    }

    #[test]
    fn a_damaged_file_is_a_note() {
        for content in ["", "{", "[]", r#"{"lost":1}"#, r#"{"lost":-1,"is_cut":true,"drives":[]}"#] {
            let (contract, notes) = read_from(content);
            assert!(contract.is_none() && notes.len() == 1, "{content}: {notes:?}");
        }
        let mut notes = Vec::new();
        assert_eq!(read(Ok(None), &mut notes), None);
        assert!(notes.is_empty());
    }
}
