//! A test that returns early without checking anything looks like a pass, so it must report a skip.

use crate::tree::{sources, test_sources};

/// Calls that put a test on the list of skips, or show that this is its helper process. A test that has
/// asserted something may return too.
const REASONS: &[&str] = &[
    "skip(",
    "Loops::take(",
    "Loops::alone(",
    "Examined::blank(",
    "Examined::make(",
    "Target::make(",
    ".ran(",
    "env::var",
    "was_the_session()",
    "assert",
];

/// Early returns in a file's tests without one of `REASONS` before them in the same statement.
fn unseen_returns(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.trim() == "#[test]") {
        let from = |from: usize, is: &dyn Fn(&str) -> bool| {
            lines[from..].iter().position(|line| is(line)).map_or(lines.len(), |length| from + length)
        };
        let head = from(at, &|line| line.trim_start().starts_with("fn "));
        let end = from(head, &|line| line == format!("{}}}", " ".repeat(indent(lines[head]))));
        let begins = |n: &usize| {
            let line = lines[*n].trim_start();
            let goes_on = line.starts_with(['}', ')', ']']) || line.starts_with("else");
            indent(lines[*n]) == indent(lines[head]) + 4 && !goes_on
        };
        for number in head..end {
            if !["return;", "return }", "return,"].iter().any(|bare| lines[number].contains(bare)) {
                continue;
            }
            let begin = (head..=number).rev().find(begins).unwrap_or(head);
            let statement = lines[begin..=number].join("\n");
            if !REASONS.iter().any(|reason| statement.contains(reason)) {
                found.push((number + 1, lines[number].trim().to_owned()));
            }
        }
    }
    found
}

#[test]
fn a_test_that_returns_early_says_so() {
    let unseen = sources().into_iter().chain(test_sources()).flat_map(|source| {
        let unseen = unseen_returns(&source.text).into_iter();
        unseen.map(|(line, text)| format!("{}:{line}: {text}", source.shown())).collect::<Vec<_>>()
    });
    let unseen: Vec<_> = unseen.collect();
    assert!(unseen.is_empty(), "not in the list of skips:\n{}", unseen.join("\n"));
}

#[test]
fn a_return_without_a_reason_is_seen() {
    let text = "    #[test]\n    fn f() {\n        let x = assert!(y);\n        if !x {\n            return;\n        }\n    }\n";
    assert_eq!(unseen_returns(text), [(5, "return;".to_owned())]);
    let text = text.replace("return;", "return common::skip(\"f\", \"needs x\");");
    assert!(unseen_returns(&text).is_empty());
    let text = "#[test]\nfn f() {\n    let Some(l) = Loops::take(\"f\", 1) else { return };\n}\n";
    assert!(unseen_returns(text).is_empty());
}
