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

/// Breaks a sentence into lines of at most `width` columns; those after the first start with `indent`,
/// the first with what spaces it has.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let words = text.trim_start();
    let mut out = text[..text.len() - words.len()].to_owned();
    let mut used = out.len();
    let mut starts_line = true;
    for word in words.split_whitespace() {
        let long = word.chars().count();
        if !starts_line && used + 1 + long > width {
            out.push('\n');
            out.push_str(indent);
            used = indent.len();
            starts_line = true;
        }
        if !starts_line {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += long;
        starts_line = false;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_text_keeps_its_indent_and_its_width() {
        assert_eq!(wrap("  aa bb cc", 7, "    "), "  aa bb\n    cc");
        assert_eq!(wrap("aa", 1, ""), "aa");
        assert_eq!(wrap("µµ µµ µµ", 5, " "), "µµ µµ\n µµ");
        assert_eq!(wrap("", 5, " "), "");
    }
}
