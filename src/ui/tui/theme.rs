//! Palettes. Nothing is shown by colour alone: without colours, bold, dim and reversed remain.

use ratatui::style::{Color, Modifier, Style};

use crate::class::Class;
use crate::ui::theme_name::ThemeName;

/// A colour: red, green, blue.
pub type Rgb = (u8, u8, u8);

/// The styles of everything on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    /// Figures and text.
    pub plain: Style,
    /// What matters less.
    pub dim: Style,
    /// What matters most.
    pub strong: Style,
    /// Panel titles.
    pub title: Style,
    /// Rules and axes.
    pub rule: Style,
    /// Keys, and what has the focus.
    pub accent: Style,
    /// A gain.
    pub good: Style,
    /// Something that needs attention.
    pub warn: Style,
    /// Something failed.
    pub bad: Style,
    /// The chosen row.
    pub chosen: Style,
    /// The heat map's colours from few to many; empty if shades replace them.
    pub heat: Vec<Rgb>,
    /// The classes' styles, the same in the table and the charts.
    pub classes: [Style; 4],
}

/// From few to many, in steps of about equal lightness: readable without telling hues apart.
const ON_DARK: [Rgb; 8] = [
    (0x2a, 0x2f, 0x4f),
    (0x3b, 0x37, 0x6b),
    (0x5b, 0x3f, 0x82),
    (0x86, 0x45, 0x87),
    (0xb1, 0x4f, 0x7a),
    (0xd8, 0x6a, 0x60),
    (0xf0, 0x96, 0x4b),
    (0xfb, 0xd2, 0x5c),
];
/// The same on a light background.
const ON_LIGHT: [Rgb; 8] = [
    (0xe3, 0xe6, 0xf0),
    (0xc4, 0xd3, 0xe8),
    (0x9d, 0xbc, 0xdc),
    (0x71, 0xa0, 0xcb),
    (0x4d, 0x82, 0xb8),
    (0x35, 0x63, 0xa0),
    (0x26, 0x45, 0x82),
    (0x1a, 0x26, 0x5e),
];

impl Theme {
    /// The palette of that name.
    pub fn named(name: ThemeName) -> Self {
        match name {
            ThemeName::Dark => Self::dark(),
            ThemeName::Light => Self::light(),
            ThemeName::Sixteen => Self::sixteen(),
            ThemeName::Mono => Self::mono(),
        }
    }

    /// The palette for a terminal: whether colours are unwanted, whether it shows all of them, and whether its
    /// background is light, if known.
    pub fn of_terminal(no_color: bool, full: bool, light: Option<bool>) -> Self {
        match (no_color, full, light) {
            (true, ..) => Self::mono(),
            (_, true, Some(true)) => Self::light(),
            (_, true, Some(false)) => Self::dark(),
            // Where the background is unknown only the terminal's own colours are safe on it.
            _ => Self::sixteen(),
        }
    }

    /// No colour at all.
    pub fn mono() -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let dim = plain.add_modifier(Modifier::DIM);
        Self {
            plain,
            dim,
            strong: bold,
            title: bold,
            rule: dim,
            accent: bold,
            good: plain,
            warn: bold,
            bad: bold.add_modifier(Modifier::UNDERLINED),
            // Faint text on the reversed ground could hardly be read.
            chosen: plain.add_modifier(Modifier::REVERSED).remove_modifier(Modifier::DIM),
            heat: Vec::new(),
            classes: [plain; 4],
        }
    }

    /// The terminal's own 16 colours. Its background is unknown, so that only its text's colour, red and magenta can be
    /// read for sure: yellow and cyan are lost on white, blue on black.
    pub fn sixteen() -> Self {
        let fg = |color| Style::new().fg(color);
        let (mono, magenta_bold) = (Self::mono(), fg(Color::Magenta).add_modifier(Modifier::BOLD));
        Self {
            good: mono.strong,
            warn: mono.bad,
            bad: fg(Color::Red).add_modifier(Modifier::BOLD),
            classes: [mono.plain, fg(Color::Magenta), mono.strong, magenta_bold],
            ..mono
        }
    }

    /// Full colours on a dark background. The classes' are Okabe and Ito's, made for colour-blind eyes.
    pub fn dark() -> Self {
        let rgb = |r, g, b| Style::new().fg(Color::Rgb(r, g, b));
        let bold = Modifier::BOLD;
        Self {
            plain: rgb(0xd6, 0xdb, 0xe3),
            dim: rgb(0x83, 0x8d, 0x9c),
            strong: rgb(0xff, 0xff, 0xff).add_modifier(bold),
            title: rgb(0xff, 0xff, 0xff).add_modifier(bold),
            rule: rgb(0x4a, 0x53, 0x61),
            accent: rgb(0x7c, 0xc7, 0xff),
            good: rgb(0x2f, 0xc4, 0x9a),
            warn: rgb(0xf0, 0xc0, 0x4a).add_modifier(bold),
            bad: rgb(0xff, 0x80, 0x6a).add_modifier(bold),
            chosen: rgb(0xff, 0xff, 0xff).bg(Color::Rgb(0x24, 0x3b, 0x55)).add_modifier(bold),
            heat: ON_DARK.to_vec(),
            classes: [
                rgb(0x56, 0xb4, 0xe9),
                rgb(0xe6, 0x9f, 0x00),
                rgb(0xd8, 0x8f, 0xb8),
                rgb(0x4f, 0xbf, 0x9f),
            ],
        }
    }

    /// Full colours on a light background.
    pub fn light() -> Self {
        let rgb = |r, g, b| Style::new().fg(Color::Rgb(r, g, b));
        let bold = Modifier::BOLD;
        Self {
            plain: rgb(0x22, 0x28, 0x31),
            dim: rgb(0x6a, 0x73, 0x80),
            strong: rgb(0x00, 0x00, 0x00).add_modifier(bold),
            title: rgb(0x00, 0x00, 0x00).add_modifier(bold),
            rule: rgb(0xb4, 0xbb, 0xc4),
            accent: rgb(0x00, 0x5f, 0xa3),
            good: rgb(0x00, 0x7a, 0x57),
            warn: rgb(0x8f, 0x62, 0x00).add_modifier(bold),
            bad: rgb(0xb3, 0x2d, 0x00).add_modifier(bold),
            chosen: rgb(0x00, 0x00, 0x00).bg(Color::Rgb(0xcf, 0xe3, 0xf7)).add_modifier(bold),
            heat: ON_LIGHT.to_vec(),
            classes: [
                rgb(0x00, 0x72, 0xb2),
                rgb(0xb3, 0x5c, 0x00),
                rgb(0x9b, 0x3f, 0x78),
                rgb(0x00, 0x7a, 0x57),
            ],
        }
    }

    /// The class's style.
    pub fn class(&self, class: Class) -> Style {
        self.classes[class.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its relative luminance, as the rules for readable web pages define it.
    fn luminance((r, g, b): Rgb) -> f64 {
        let linear = |part: u8| {
            let share = f64::from(part) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    fn contrast(one: Rgb, other: Rgb) -> f64 {
        let [a, b] = [one, other].map(luminance);
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Xterm's colours; bold text has the bright one in many terminals.
    fn of_xterm(color: Color) -> [Rgb; 2] {
        match color {
            Color::Red => [(0xcd, 0, 0), (0xff, 0, 0)],
            Color::Green => [(0, 0xcd, 0), (0, 0xff, 0)],
            Color::Yellow => [(0xcd, 0xcd, 0), (0xff, 0xff, 0)],
            Color::Blue => [(0, 0, 0xee), (0x5c, 0x5c, 0xff)],
            Color::Magenta => [(0xcd, 0, 0xcd), (0xff, 0, 0xff)],
            Color::Cyan => [(0, 0xcd, 0xcd), (0, 0xff, 0xff)],
            other => panic!("{other}"),
        }
    }

    #[test]
    fn sixteen_colours_can_be_read_on_white_and_on_black() {
        let readable = |color: Color| {
            let on = |ground: Rgb| of_xterm(color).iter().all(|own| contrast(*own, ground) >= 3.0);
            on((0xff, 0xff, 0xff)) && on((0, 0, 0))
        };
        assert!(!readable(Color::Yellow) && !readable(Color::Cyan) && !readable(Color::Blue));
        let t = Theme::sixteen();
        let own = [t.plain, t.dim, t.strong, t.title, t.rule, t.accent, t.good, t.warn, t.bad, t.chosen];
        for style in own.into_iter().chain(t.classes) {
            assert!(style.fg.is_none_or(readable) && style.bg.is_none(), "{style:?}");
        }
        let distinct = |styles: &[Style]| styles.iter().enumerate().all(|(n, s)| !styles[..n].contains(s));
        assert!(distinct(&t.classes) && distinct(&[t.plain, t.accent, t.warn, t.bad]));
    }

    #[test]
    fn the_terminal_chooses_the_palette() {
        let of = Theme::of_terminal;
        assert_eq!(of(true, true, Some(false)), Theme::mono());
        assert_eq!(of(false, true, Some(false)), Theme::dark());
        assert_eq!(of(false, true, Some(true)), Theme::light());
        assert_eq!(of(false, true, None), Theme::sixteen());
        assert_eq!(of(false, false, Some(true)), Theme::sixteen());
    }
}
