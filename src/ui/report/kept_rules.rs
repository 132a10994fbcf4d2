//! How a traced run kept the rules of drives, by its recording.

use std::fmt::Write;

use super::cells::{WIDTH, left, paragraph};
use crate::runs::record::{Contract, DriveKept};
use crate::units::grouped;

const RULE: usize = 24;
const LIGHT: usize = 16;

/// A few lines for each drive.
pub fn text(contract: &Contract) -> String {
    let mut out = String::from("\nRules of drives\n");
    let lost = contract.lost;
    let others = lost.saturating_sub(contract.lost_completions);
    let doubts = [
        (
            others > 0,
            format!(
                "events are missing from the trace, {}: nothing is judged by what is left",
                grouped(lost)
            ),
        ),
        (
            lost > 0 && others == 0,
            format!("completions are missing from the trace, {}: nothing is known of depth", grouped(lost)),
        ),
        (contract.is_cut, "the trace ended before the run did, as long as can be read".to_owned()),
    ];
    for (_, doubt) in doubts.iter().filter(|(is, _)| *is) {
        let _ = writeln!(out, "{}", paragraph(&format!("  {doubt}"), WIDTH, "  "));
    }
    contract.drives.iter().for_each(|drive| out += &of_drive(drive));
    out
}

fn of_drive(drive: &DriveKept) -> String {
    if let Some(why) = &drive.why {
        return format!("{}\n", paragraph(&format!("  {}: {why}", drive.name), WIDTH, "  "));
    }
    let mut out = format!("  {}\n", drive.name);
    for rule in &drive.rules {
        let labels = format!("  {}{}", left(&rule.rule, RULE), left(&rule.is_kept, LIGHT));
        let indent = " ".repeat(RULE + LIGHT + 2);
        let figure = paragraph(&format!("{indent}{}", rule.figure), WIDTH, &indent);
        let _ = writeln!(out, "{labels}{}", figure.trim_start());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::record::RuleKept;

    #[test]
    fn each_rule_has_a_line_and_what_lacks_is_said_before() {
        let rule = |rule: &str, is_kept: &str, figure: &str| RuleKept {
            rule: rule.into(),
            is_kept: is_kept.into(),
            figure: figure.into(),
            turn: String::new(),
        };
        let rules = vec![
            rule("request scale", "no model", "median write 4.00 KiB at depth 3; in flight 12.0 KiB"),
            rule("grouping by death time", "not stable yet", "zombies: 12.5%"),
        ];
        let drive = |name: &str, rules, why: Option<&str>| {
            let value = serde_json::json!({ "name": name, "why": why });
            let mut drive = DriveKept::of(&value).unwrap();
            drive.rules = rules;
            drive
        };
        let contract = Contract {
            lost: 1234,
            lost_completions: 1233,
            is_cut: false,
            drives: vec![
                drive("sda", rules, None),
                drive("sdb", Vec::new(), Some("nothing was issued to it")),
            ],
            value: serde_json::Value::Null,
        };
        let whole = text(&Contract { lost_completions: 1234, ..contract.clone() });
        let expected = "\nRules of drives\n  completions are missing from the trace, 1,234: nothing is known of depth\n  sda";
        assert!(whole.starts_with(expected), "{whole}");
        assert_eq!(
            text(&contract),
            "\nRules of drives\n  events are missing from the trace, 1,234: nothing is judged by what is left\n  \
             sda\n  request scale           no model        median write 4.00 KiB at depth 3; in\n\
             \x20                                         flight 12.0 KiB\n  \
             grouping by death time  not stable yet  zombies: 12.5%\n  sdb: nothing was issued to it\n"
        );
    }
}
