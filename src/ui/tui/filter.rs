//! The words by which a list is narrowed down while they are typed.

use super::typed::Typed;

/// What is typed; none while the list is whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter(pub Option<Typed>);

impl Filter {
    /// Whether words are being typed.
    pub fn is_typed(&self) -> bool {
        self.0.is_some()
    }

    /// Which of that many rows have each of the words in their text.
    pub fn rows(&self, all: usize, text: &dyn Fn(usize) -> String) -> Vec<usize> {
        let words = self.0.as_ref().map_or_else(String::new, |typed| typed.to_lowercase());
        let has = |row: &usize| {
            let text = text(*row).to_lowercase();
            words.split_whitespace().all(|word| text.contains(word))
        };
        (0..all).filter(has).collect()
    }

    /// The list's title, followed by what is typed.
    pub fn titled(&self, title: &str) -> String {
        match &self.0 {
            Some(typed) => {
                let (before, behind) = typed.around();
                format!("{title} /{before}▏{behind}")
            }
            None => title.to_owned(),
        }
    }
}
