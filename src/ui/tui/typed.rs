//! A line that is being typed.

use std::ops::Deref;

/// The longest line: longer than any path, serial or list of CPUs. In bytes.
const BYTES_MAX: usize = 4096;

/// What is typed, and where the next character goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed {
    text: String,
    /// A byte between two characters.
    at: usize,
    /// Whether it is a suggestion, shown as selected text: typing replaces it, moving the cursor keeps it.
    suggested: bool,
}

impl Typed {
    /// A suggestion.
    pub fn suggested(text: String) -> Self {
        Self { suggested: true, ..text.into() }
    }

    /// Whether typing replaces it.
    pub fn is_suggested(&self) -> bool {
        self.suggested
    }

    /// Types a character.
    pub fn insert(&mut self, c: char) -> bool {
        if self.suggested {
            self.clear();
        }
        let fits = self.text.len() < BYTES_MAX;
        if fits {
            self.text.insert(self.at, c);
            self.at += c.len_utf8();
        }
        fits
    }

    /// Erases the character before the cursor, or all of a suggestion; returns whether there was one.
    pub fn erase(&mut self) -> bool {
        if self.suggested {
            return self.clear();
        }
        let before = self.at;
        self.left();
        if self.at < before {
            self.text.remove(self.at);
        }
        self.at < before
    }

    /// Erases all; returns whether there was anything.
    pub fn clear(&mut self) -> bool {
        !std::mem::take(self).text.is_empty()
    }

    /// Moves the cursor to the left.
    pub fn left(&mut self) {
        self.suggested = false;
        self.at -= self.text[..self.at].chars().next_back().map_or(0, char::len_utf8);
    }

    /// Moves it to the right.
    pub fn right(&mut self) {
        self.suggested = false;
        self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
    }

    /// Moves it to the beginning.
    pub fn first(&mut self) {
        self.suggested = false;
        self.at = 0;
    }

    /// Moves it to the end.
    pub fn last(&mut self) {
        self.suggested = false;
        self.at = self.text.len();
    }

    /// The text before the cursor, and that after it.
    pub fn around(&self) -> (&str, &str) {
        self.text.split_at(self.at)
    }
}

impl From<String> for Typed {
    fn from(text: String) -> Self {
        Self { at: text.len(), text, suggested: false }
    }
}

impl Deref for Typed {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_typed_and_erased_where_the_cursor_is() {
        let mut typed = Typed::from("aéc".to_owned());
        typed.left();
        typed.left();
        assert_eq!(typed.around(), ("a", "éc"));
        assert!(typed.insert('→'));
        assert_eq!((&*typed, typed.around().0), ("a→éc", "a→"));
        typed.right();
        assert!(typed.erase() && typed.erase());
        assert_eq!(typed.around(), ("a", "c"));
        typed.first();
        assert!(!typed.erase());
        typed.left();
        typed.last();
        typed.right();
        assert_eq!(typed.around(), ("ac", ""));
        assert!(typed.clear() && !typed.clear() && typed.is_empty());
    }

    #[test]
    fn typing_replaces_a_suggestion_and_moving_keeps_it() {
        let suggested = || Typed::suggested("16".into());
        let after = |change: &dyn Fn(&mut Typed)| {
            let mut typed = suggested();
            change(&mut typed);
            typed.insert('8');
            typed.to_string()
        };
        let moved = [Typed::left, Typed::right, Typed::first, Typed::last];
        assert_eq!(after(&|_| {}), "8");
        assert_eq!(after(&|typed| _ = typed.erase()), "8");
        assert_eq!(moved.map(|step| after(&|typed| step(typed))), ["186", "168", "816", "168"]);
        assert!(suggested().is_suggested() && &*suggested() == "16");
    }
}
