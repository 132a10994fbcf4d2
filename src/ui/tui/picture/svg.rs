//! A screen as an SVG picture.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;

use super::drawing::{CELL, Drawing, FONT, Paper, STYLE};

const MARGIN: f64 = 12.0;

/// The second line of every picture, by which it is recognized.
const MARK: &str = "<!-- drawn by stacktune picture -->";

/// Whether a file's text is a picture drawn by this module.
pub fn is_svg_of_ours(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.next().is_some_and(|first| first.starts_with(b"<svg ")) && lines.next() == Some(MARK.as_bytes())
}

/// The buffer as SVG.
pub fn svg(buffer: &Buffer, paper: Paper) -> String {
    let mut drawing = Drawing::on(paper);
    let mut out = head(buffer.area, "", paper);
    for y in 0..buffer.area.height {
        let row: Vec<&Cell> = (0..buffer.area.width).map(|x| &buffer[(x, y)]).collect();
        drawing.row(&row, (0, usize::from(y)), false);
    }
    drawing.write(&mut out);
    out.push_str(END);
    out
}

/// How a picture of a screen of that size begins; `style` is added to its styles.
pub(super) fn head(area: Rect, style: &str, paper: Paper) -> String {
    let (width, height) =
        (f64::from(area.width) * CELL.0 + 2.0 * MARGIN, f64::from(area.height) * CELL.1 + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.1} {height:.1}\" font-family=\"'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
         font-size=\"{FONT}\" xml:space=\"preserve\">\n\
         {MARK}\n<style>{STYLE}{style}</style>\n"
    );
    let _ = write!(
        out,
        "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\">\n",
        paper.background
    );
    out
}

/// How it ends.
pub(super) const END: &str = "</g>\n</svg>\n";

#[cfg(test)]
mod tests {
    use ratatui::style::{Color, Style};

    use super::*;

    #[test]
    fn words_are_text_and_what_fills_cells_is_drawn() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 16, 1));
        buffer.set_string(0, 0, "a<b c  d █▀⣀", Style::new().fg(Color::Rgb(1, 2, 3)));
        let svg = svg(&buffer, Paper::DARK);
        assert!(
            svg.contains("<text x=\"0\" y=\"14\">a&lt;b c</text><text x=\"58.8\" y=\"14\">d</text>"),
            "{svg}"
        );
        assert!(is_svg_of_ours(svg.as_bytes()));
        assert!(!is_svg_of_ours(svg.replace(" stacktune ", " another ").as_bytes()) && !is_svg_of_ours(b""));
        assert!(svg.contains("d=\"M18 0h2v4h-2z\"/>") && svg.contains("d=\"M20 1h2\"/>"), "{svg}");
        assert!(svg.contains("class=\"d\" stroke=\"#010203\" d=\"M22.5 3.5h0M23.5 3.5h0\""), "{svg}");
        assert!(svg.contains("fill=\"#010203\"") && svg.trim_end().ends_with("</svg>"), "{svg}");
    }
}
