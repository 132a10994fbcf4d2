//! Text tables: padding by display width, and figures as text.

pub use crate::ui::text::{NONE, latency, paragraph};

/// The text, left-aligned in `width` columns.
pub fn left(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// The text, right-aligned in `width` columns.
pub fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// A fraction as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
