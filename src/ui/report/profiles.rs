//! The list of profiles.

use std::fmt::Write;

use serde::Serialize;

use super::cells::{WIDTH, left, paragraph};

/// The origin of a profile that is part of the program.
pub const BUILT_IN: &str = "built in";

/// A profile as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileRow {
    /// Its name on the command line.
    pub name: String,
    /// Its description.
    pub about: String,
    /// How many steps it has; 0 for an ordinary profile.
    pub steps: usize,
    /// Where it comes from: [`BUILT_IN`], or its file.
    pub from: String,
}

/// The list as text.
pub fn text(rows: &[ProfileRow]) -> String {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0) + 2;
    let indent = " ".repeat(width);
    let mut out = String::new();
    for row in rows {
        let steps = if row.steps == 0 { String::new() } else { format!("{} steps", row.steps) };
        // Most are built in; the list says where the others come from.
        let from = if row.from == BUILT_IN { "" } else { &row.from };
        let notes: Vec<&str> = [&steps, from].into_iter().filter(|note| !note.is_empty()).collect();
        let about = match (row.about.as_str(), notes.join(", ")) {
            (about, notes) if notes.is_empty() => about.to_owned(),
            ("", notes) => notes,
            (about, notes) => format!("{about} ({notes})"),
        };
        // The padding must survive the wrapping, so only the description is wrapped.
        let rest = paragraph(&about, WIDTH - width.min(WIDTH / 2), &indent);
        let _ = writeln!(out, "{}{rest}", left(&row.name, width));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_descriptions_are_wrapped_beside_the_names() {
        let row = |name: &str, about: &str, from: &str| ProfileRow {
            name: name.into(),
            about: about.into(),
            steps: if name == "mine" { 3 } else { 0 },
            from: from.into(),
        };
        let about = "Four files in the cache folder, WAL and background at a rate that any drive holds";
        let text = text(&[row("demo", about, BUILT_IN), row("mine", "", "/home/u/mine.toml")]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with("demo  Four files"), "{text}");
        assert!(!text.contains(BUILT_IN), "{text}");
        assert!(text.ends_with("mine  3 steps, /home/u/mine.toml\n"), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("      "), "{text}");
    }
}
