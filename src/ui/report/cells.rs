//! Text tables: padding by what is seen, and figures as text.

pub use crate::ui::text::{NONE, latency, paragraph};
use crate::units::three_digits;

/// The text at the left of `width` columns.
pub fn left(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// The text at the right of `width` columns.
pub fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// A figure with three digits, or nothing.
pub fn figure(x: Option<f64>) -> String {
    x.map_or_else(|| NONE.into(), three_digits)
}

/// A share of 1 as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}
