//! The help texts: their form, their generated parts, and how they look on a terminal.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn file_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("assets/help/{name}.md"))
}

/// The text with its generated part replaced.
fn with_part(text: &str, mark: &str, part: &str) -> String {
    let (begin, end) = (format!("<!-- {mark}: generated -->\n"), format!("\n<!-- {mark}: end -->"));
    let (head, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("there is no {begin}"));
    let (_, tail) = rest.split_once(end.trim_start()).unwrap_or_else(|| panic!("there is no {end}"));
    format!("{head}{begin}{}{end}{tail}", part.trim_end())
}

/// After a change of a knob's text: `UPDATE_HELP=1 make quick NAME=help`.
#[test]
fn generated_tables_agree_with_the_code() {
    for (name, part) in generated::parts() {
        let text = fs::read_to_string(file_of(name)).unwrap();
        let wanted = with_part(&text, name, &part);
        if std::env::var_os("UPDATE_HELP").is_some() {
            fs::write(file_of(name), &wanted).unwrap();
        } else {
            assert!(
                text == wanted,
                "the table in assets/help/{name}.md differs from the code: regenerate it with \
                 `UPDATE_HELP=1 make quick NAME=help`, and review the diff"
            );
        }
    }
}

#[test]
fn every_text_is_a_topic_and_begins_with_its_heading() {
    let files = fs::read_dir(file_of("flags").parent().unwrap()).unwrap();
    let files: BTreeSet<_> =
        files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let topics: BTreeSet<_> = TOPICS.iter().map(|topic| topic.name.to_owned()).collect();
    assert_eq!(files, topics);
    for topic in TOPICS {
        assert!(topic.text.starts_with("# "), "{}", topic.name);
        assert!(list().contains(topic.about) && topic.about.len() < 60, "{}", topic.name);
    }
}

#[test]
fn every_topic_fits_the_terminal() {
    for topic in TOPICS {
        for columns in [80, 100] {
            let text = render(topic.text, columns, false);
            assert!(!text.contains("**") && !text.contains("<!--"), "{}", topic.name);
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{}: {line}", topic.name);
            }
        }
        let plain = render(topic.text, 80, true).replace("\x1b[1m", "").replace("\x1b[22m", "");
        assert!(plain.contains(topic.text.lines().next().unwrap().trim_start_matches("# ")));
    }
}

#[test]
fn a_text_is_laid_out() {
    let text = "# Title\n\nOne `two words` and **bold**\ngoes on.\n\n- first\n  line\n- second\n\n\
                | a | b |\n|---|---|\n| `x \\| y` | long enough to wrap |\n\n```\nas   is\n```\n";
    insta::assert_snapshot!(render(text, 28, false));
    let styled = render("`two words` here", 9, true);
    assert_eq!(styled, "  \x1b[1mtwo\x1b[22m\n  \x1b[1mwords\x1b[22m\n  here\n");
}

#[test]
fn topics_that_the_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documents = ["README.md", "CONTRIBUTING.md"].map(|name| fs::read_to_string(root.join(name)).unwrap());
    for text in documents.iter().map(String::as_str).chain(TOPICS.iter().map(|topic| topic.text)) {
        for rest in text.split("stacktune help ").skip(1) {
            let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
            let is_placeholder = word.is_empty() || word == "TOPIC" || word == "COMMAND";
            assert!(is_placeholder || topic(&word).is_some(), "there is no `stacktune help {word}`");
        }
    }
}

#[test]
fn topics_are_found_by_name() {
    assert_eq!(topic("flags").map(|topic| topic.name), Some("flags"));
    assert_eq!(topic("flag"), None);
}
