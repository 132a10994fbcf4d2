//! The list of profiles.

use std::fmt::Write;

use serde::Serialize;

use super::cells::{left, paragraph};

const WIDTH: usize = 80;

/// A profile as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name on the command line.
    pub name: String,
    /// Its description.
    pub about: String,
    /// How many steps it has; 0 for an ordinary profile.
    pub steps: usize,
    /// Where it comes from: `built in`, or its file.
    pub from: String,
}

/// The list as text.
pub fn text(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0) + 2;
    let indent = " ".repeat(width);
    let mut out = String::new();
    for row in rows {
        let from = match row.steps {
            0 => row.from.clone(),
            steps => format!("{steps} steps, {}", row.from),
        };
        let about = if row.about.is_empty() { &from } else { &format!("{} ({from})", row.about) };
        // The padding must survive the wrapping, so only the description is wrapped.
        let rest = paragraph(about, WIDTH - width.min(WIDTH / 2), &indent);
        let _ = writeln!(out, "{}{rest}", left(&row.name, width));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_descriptions_are_wrapped_beside_the_names() {
        let row = |name: &str, about: &str, from: &str| Row {
            name: name.into(),
            about: about.into(),
            steps: if name == "mine" { 3 } else { 0 },
            from: from.into(),
        };
        let about = "Four files in the cache folder, WAL and background at a rate that any drive holds";
        let text = text(&[row("demo", about, "built in"), row("mine", "", "/home/u/mine.toml")]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with("demo  Four files"), "{text}");
        assert!(text.ends_with("mine  3 steps, /home/u/mine.toml\n"), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("      "), "{text}");
    }
}
