//! Text that a terminal shows as it is. Names in recordings, profiles, journals and folders come from others.

use std::borrow::Cow;
use std::path::Path;

/// Whether a terminal obeys the character instead of showing it, or lets it reorder the ones around it.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
}

/// Whether the text is one line that a terminal shows as it is.
pub fn is_line(text: &str) -> bool {
    !text.contains(is_obeyed)
}

/// The text as one line: visible symbols replace characters that a terminal would obey, line ends included.
pub fn line(text: &str) -> Cow<'_, str> {
    if is_line(text) { text.into() } else { text.chars().map(shown).collect() }
}

/// The same for a text of several lines: its line ends stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    let keep = |c| if c == '\n' { c } else { shown(c) };
    if text.chars().all(|c| keep(c) == c) { text.into() } else { text.chars().map(keep).collect() }
}

/// Joins the lines of our own text into one.
pub fn joined(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A path as one line.
pub fn path(path: &Path) -> String {
    line(&path.display().to_string()).into_owned()
}

/// A path in a message: as one line, since others may have named it. Arguments of programs take `display()`.
pub trait Shown {
    /// The path as one line.
    fn shown(&self) -> String;
}

impl Shown for Path {
    fn shown(&self) -> String {
        path(self)
    }
}

/// The character, or its visible symbol.
fn shown(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '␡',
        _ if is_obeyed(c) => '\u{fffd}',
        _ => c,
    }
}

/// JSON with its meaning unchanged, in which the characters that serde leaves as they are (DEL, and those
/// beyond ASCII) are escaped too, if a terminal would obey them.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_left = |c: char| c != '\n' && is_obeyed(c);
    if !text.contains(is_left) {
        return text.into();
    }
    let escaped = |c: char| if is_left(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    text.chars().map(escaped).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_a_picture() {
        assert_eq!(line("\x1b]0;x\x07a\nb\tc\x7f"), "␛]0;x␇a␊b␉c␡");
        assert_eq!(
            line("\u{9b}31m \u{202e}cba\u{2069}\u{200f}\u{2028}"),
            "\u{fffd}31m \u{fffd}cba\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(lines("a\r\nb\x1b[2J\n"), "a␍\nb␛[2J\n");
        for plain in ["", "µs – ×10³ 日本 עברית", "e\u{301}\u{200d}"] {
            assert_eq!((line(plain), lines(plain), json(plain)), (plain.into(), plain.into(), plain.into()));
            assert!(is_line(plain));
        }
        assert_eq!(path(Path::new("a\n/b")), "a␊/b");
        assert_eq!(Path::new("a\n/b").to_owned().shown(), "a␊/b");
        assert_eq!(joined("can't run:\n  one\n  two"), "can't run: one two");
    }

    #[test]
    fn json_means_the_same_and_has_nothing_that_a_terminal_obeys() {
        let value = serde_json::json!({ "a\u{9b}": ["\x1b\n\x7f\u{202e}", "µ"] });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let escaped = json(&text);
        assert!(escaped.chars().all(|c| c == '\n' || !is_obeyed(c)), "{escaped}");
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
    }
}
