//! Text tables: padding by display width, and figures as text.

use crate::ui::text::width;
pub use crate::ui::text::{NONE, WIDTH, latency, paragraph};

/// The text, left-aligned in that many columns; longer ones are left whole.
pub fn left(text: &str, columns: usize) -> String {
    text.to_owned() + &" ".repeat(columns.saturating_sub(width(text)))
}

/// The text, right-aligned in that many columns; longer ones are left whole.
pub fn right(text: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(width(text))) + text
}

/// A fraction as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
