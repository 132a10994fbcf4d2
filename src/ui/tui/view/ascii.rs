//! The screen in ASCII, for terminals without other glyphs.

use ratatui::buffer::Buffer;

/// Glyphs of the screen, and their stand-ins.
const STAND_INS: [(&str, &str); 20] = [
    ("─━", "-"),
    ("│┃├┤▏", "|"),
    ("┊", ":"),
    ("╭╮╰╯┌┐└┘┼", "+"),
    ("▸▶›→", ">"),
    ("◂‹←", "<"),
    ("↑▴⇧", "^"),
    ("↓▾", "v"),
    ("·•∙", "."),
    ("–—−", "-"),
    ("µ", "u"),
    ("≈", "~"),
    ("…", "~"),
    ("×", "x"),
    ("●◆", "*"),
    ("⚑", "!"),
    ("⏎", "~"),
    ("⌫", "<"),
    ("≤", "<"),
    ("≥", ">"),
];
/// From few to many: shades, and the eighths of a bar.
const LEVELS: [(&str, &str); 2] = [("░▒▓█", ",+%#"), ("▁▂▃▄▅▆▇▀", "_..-=+*^")];

/// Replaces every glyph that is not ASCII.
pub fn render(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if !cell.symbol().is_ascii() {
            let plain = plain(cell.symbol());
            cell.set_symbol(plain.encode_utf8(&mut [0; 4]));
        }
    }
}

fn plain(symbol: &str) -> char {
    let Some(c) = symbol.chars().next() else { return ' ' };
    if let Some((_, stand_in)) = STAND_INS.iter().find(|(glyphs, _)| glyphs.contains(c)) {
        return stand_in.chars().next().unwrap_or('?');
    }
    for (glyphs, stand_ins) in LEVELS {
        if let Some(at) = glyphs.chars().position(|glyph| glyph == c) {
            return stand_ins.chars().nth(at).unwrap_or('?');
        }
    }
    match u32::from(c) {
        // Braille: whether the dots are high or low.
        dots @ 0x2800..=0x28ff => match dots & 0xff {
            0 => ' ',
            dots if dots & 0b1_1011 == 0 => '.',
            dots if dots & 0b1110_0100 == 0 => '\'',
            _ => ':',
        },
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use crate::ui::tui::fixture;
    use crate::ui::tui::glyphs::Glyphs;
    use crate::ui::tui::tests::{SIZES, shown};

    #[test]
    fn every_glyph_has_a_stand_in_and_nothing_moves() {
        let mut state = fixture::turned(160, 50);
        let full = shown(&state);
        state.glyphs = Glyphs::Ascii;
        let plain = shown(&state);
        let unknown = |text: &str| text.matches('?').count();
        assert!(plain.is_ascii() && unknown(&plain) == unknown(&full), "{plain}");
        // Except for the line of keys, where Enter is spelled out.
        let cells = |text: &str| text.lines().take(49).map(|line| line.chars().count()).collect::<Vec<_>>();
        assert_eq!(cells(&full), cells(&plain));
        for (columns, lines) in SIZES {
            let mut state = fixture::turned(columns, lines);
            state.glyphs = Glyphs::Ascii;
            insta::assert_snapshot!(format!("ascii_{columns}x{lines}"), shown(&state));
        }
    }
}
