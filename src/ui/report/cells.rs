//! Text tables: padding by display width, and figures as text.

pub use crate::ui::text::{NONE, latency, paragraph};
use crate::units::three_digits;

/// The text, left-aligned in `width` columns.
pub fn left(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// The text, right-aligned in `width` columns.
pub fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// A figure with three digits, or empty.
pub fn figure(x: Option<f64>) -> String {
    x.map_or_else(|| NONE.into(), three_digits)
}

/// A fraction as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
