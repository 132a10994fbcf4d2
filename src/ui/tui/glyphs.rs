//! Which glyphs the terminal can show.

/// The environment variable that overrides this.
pub const VARIABLE: &str = "STACKTUNE_GLYPHS";

/// Glyphs, each kind with those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Only ASCII.
    Ascii,
    /// Lines, blocks and Braille.
    #[default]
    Blocks,
    /// Blocks of two by four (Unicode 16, 2024).
    Octants,
}

/// Terminals that draw all octants themselves, whatever their font has, by the name in their answer, and since when.
/// VTE's number is of GNOME's terminals, and `WezTerm`'s a date. `foot` lacks six of the 256.
const WITH_OCTANTS: [(&str, [u32; 2]); 4] =
    [("kitty", [0, 47]), ("ghostty", [1, 2]), ("VTE", [7800, 0]), ("WezTerm", [20_250_209, 0])];

impl Glyphs {
    /// The glyphs of that name, if there are any.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ascii" => Some(Self::Ascii),
            "blocks" => Some(Self::Blocks),
            "octants" => Some(Self::Octants),
            _ => None,
        }
    }

    /// Those of a terminal in that environment: what [`VARIABLE`] says, the values of `TERM` and of the first of
    /// `LC_ALL`, `LC_CTYPE` and `LANG` that says something, and the terminal's name and version, if it answered. Where no
    /// locale is set, as in containers, UTF-8 is usual.
    pub fn of_terminal(
        said: Option<Self>,
        term: Option<&str>,
        locale: Option<&str>,
        version: Option<&str>,
    ) -> Self {
        let utf8 = |locale: &str| {
            let small = locale.to_lowercase();
            small.contains("utf-8") || small.contains("utf8")
        };
        match said {
            Some(said) => said,
            _ if matches!(term, Some("linux" | "dumb")) => Self::Ascii,
            _ if locale.is_some_and(|locale| !utf8(locale)) => Self::Ascii,
            _ if version.is_some_and(draws_octants) => Self::Octants,
            _ => Self::Blocks,
        }
    }
}

/// Whether a terminal of that name and version does: `kitty(0.47.0)`, `ghostty 1.2.3`.
fn draws_octants(version: &str) -> bool {
    let (name, rest) = version.split_at(version.find(['(', ' ']).unwrap_or(version.len()));
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    let version: [u32; 2] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    WITH_OCTANTS.iter().any(|(known, since)| name.eq_ignore_ascii_case(known) && version >= *since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_what_the_terminal_has() {
        let of = |term, locale| Glyphs::of_terminal(None, term, locale, None);
        assert_eq!([of(Some("xterm"), Some("en_US.UTF-8")), of(None, None)], [Glyphs::Blocks; 2]);
        assert_eq!(of(Some("xterm-256color"), Some("C.utf8")), Glyphs::Blocks);
        assert_eq!([of(Some("linux"), Some("C.UTF-8")), of(Some("xterm"), Some("C"))], [Glyphs::Ascii; 2]);
    }

    #[test]
    fn octants_are_for_terminals_that_draw_them() {
        let of = |version| Glyphs::of_terminal(None, Some("xterm"), Some("C.UTF-8"), Some(version));
        let with = ["kitty(0.47.0)", "ghostty 1.2.0", "VTE(7800)", "WezTerm 20250209-182623-44866cc1"];
        assert_eq!(with.map(of), [Glyphs::Octants; 4]);
        let without = ["kitty(0.46.2)", "ghostty 1.1.3", "VTE(7603)", "WezTerm 20240203-110809-5046fc22"];
        assert_eq!(without.map(of), [Glyphs::Blocks; 4]);
        assert_eq!(["foot(1.21.0)", "tmux 3.5a", "XTerm(390)", "", "kitty"].map(of), [Glyphs::Blocks; 5]);
        let said =
            |said| Glyphs::of_terminal(Glyphs::named(said), Some("linux"), None, Some("kitty(0.47.0)"));
        assert_eq!(
            ["ascii", "blocks", "octants", "odd"].map(said),
            [Glyphs::Ascii, Glyphs::Blocks, Glyphs::Octants, Glyphs::Ascii]
        );
    }
}
