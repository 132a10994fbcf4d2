//! Text tables: padding by what is seen, and figures as text.

use crate::units::{format_latency, three_digits};

/// What stands where there is no figure.
pub const NOTHING: &str = "–";

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
    x.map_or_else(|| NOTHING.into(), three_digits)
}

/// A latency, or nothing.
pub fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| NOTHING.into(), format_latency)
}

/// A share of 1 as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Breaks a sentence into lines of at most `width` columns; those after the first start with `indent`.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > width {
            lines.push(format!("{indent}{word}"));
        } else if let Some(last) = lines.last_mut() {
            if line > 0 {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n")
}
