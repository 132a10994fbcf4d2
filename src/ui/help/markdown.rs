//! Markdown for a terminal: the subset that the help texts use.
//!
//! Headings, paragraphs, lists, tables, fenced code, and `code`, **bold** and *emphasis* in a line.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::short_list;

/// Indentation of the text below a heading.
const INDENT: usize = 2;
/// Spaces between two columns of a table.
const GAP: usize = 2;
/// Longer words, such as the names of RocksDB's options, may be broken.
const UNBROKEN_MAX: usize = 24;
const BOLD: (&str, &str) = ("\x1b[1m", "\x1b[22m");
const UNDERLINED: (&str, &str) = ("\x1b[4m", "\x1b[24m");

/// A block of text.
#[derive(Debug, PartialEq, Eq)]
enum Block<'a> {
    Heading(&'a str),
    Paragraph(String),
    /// A marker (`-`, `1.`) and its text.
    Item(&'a str, String),
    Code(Vec<&'a str>),
    /// Rows of cells; the first is the head.
    Table(Vec<Vec<&'a str>>),
}

/// The text laid out within the columns, in bold where `styled`.
pub fn render(markdown: &str, columns: usize, styled: bool) -> String {
    let mut out = String::new();
    let mut after_item = false;
    for block in &blocks(markdown) {
        let is_item = matches!(block, Block::Item(..));
        let continues_list = after_item && is_item;
        if !out.is_empty() && !continues_list {
            out.push('\n');
        }
        after_item = is_item;
        for line in lines_of(block, columns, styled) {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

/// Splits a text into blocks.
fn blocks(markdown: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim();
        if text.is_empty() || text.starts_with("<!--") {
            continue;
        }
        if text.starts_with("```") {
            let code = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
            blocks.push(Block::Code(code.collect()));
        } else if text.starts_with('#') {
            blocks.push(Block::Heading(text.trim_start_matches('#').trim()));
        } else if text.starts_with('|') {
            let mut rows = vec![cells(text)];
            while let Some(row) = lines.next_if(|line| line.trim_start().starts_with('|')) {
                rows.push(cells(row.trim()));
            }
            rows.retain(|row| !row.iter().all(|cell| is_rule(cell)));
            blocks.push(Block::Table(rows));
        } else {
            let (marker, first) = item(text).unwrap_or(("", text));
            let mut joined = first.to_owned();
            while let Some(next) = lines.next_if(|line| goes_on(line)) {
                joined.push(' ');
                joined.push_str(next.trim());
            }
            blocks.push(match marker {
                "" => Block::Paragraph(joined),
                marker => Block::Item(marker, joined),
            });
        }
    }
    blocks
}

/// Whether a line belongs to the paragraph or the item before it.
fn goes_on(line: &str) -> bool {
    let text = line.trim();
    let opens = ["#", "|", "```", "<!--"].iter().any(|mark| text.starts_with(mark));
    !text.is_empty() && !opens && item(text).is_none()
}

/// The marker and the text of an item of a list.
fn item(text: &str) -> Option<(&str, &str)> {
    let (marker, rest) = text.split_once(' ')?;
    let is_number = |marker: &str| {
        marker.strip_suffix('.').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    (marker == "-" || is_number(marker)).then(|| (marker, rest.trim_start()))
}

/// The cells of a table's row.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// Whether a cell belongs to the rule below a table's header.
fn is_rule(cell: &str) -> bool {
    cell.contains('-') && cell.trim_matches(|c| matches!(c, '-' | ':' | '|')).is_empty()
}

/// A block in lines of that width; code and long words may be wider.
fn lines_of(block: &Block, columns: usize, styled: bool) -> Vec<String> {
    let moved_in = |lines: Vec<String>, by: usize| -> Vec<String> {
        lines.into_iter().map(|line| format!("{:by$}{line}", "")).collect()
    };
    let texts = |text: &str, by: usize| -> Vec<String> {
        wrapped(text, columns.saturating_sub(by), styled).into_iter().map(|line| line.text).collect()
    };
    match block {
        Block::Heading(text) if styled => vec![format!("{}{text}{}", BOLD.0, BOLD.1)],
        Block::Heading(text) => vec![(*text).to_owned()],
        Block::Paragraph(text) => moved_in(texts(text, INDENT), INDENT),
        Block::Item(marker, text) => {
            let by = INDENT + marker.width() + 1;
            let mut lines = moved_in(texts(text, by), by);
            lines[0].replace_range(..by, &format!("{:INDENT$}{marker} ", ""));
            lines
        }
        Block::Code(lines) => moved_in(lines.iter().map(|&line| line.to_owned()).collect(), 2 * INDENT),
        Block::Table(rows) => moved_in(table(rows, columns.saturating_sub(INDENT), styled), INDENT),
    }
}

/// A table whose columns share the width, its header over a rule.
fn table(rows: &[Vec<&str>], columns: usize, styled: bool) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    // The width a column takes when wrapped at that width; with 0, its longest word.
    let widest = |column: usize, columns: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let lines = cells.flat_map(|cell| wrapped(cell, columns, styled));
        lines.map(|line| line.columns).max().unwrap_or(0)
    };
    let wants: Vec<_> = (0..count).map(|column| (widest(column, 0), widest(column, usize::MAX))).collect();
    let widths = shares(&wants, columns.saturating_sub(GAP * count.saturating_sub(1)));
    let gap = " ".repeat(GAP);
    let mut out = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells.map(|(cell, width)| wrapped(cell, *width, styled)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let parts = cells.iter().zip(&widths).map(|(cell, width)| match cell.get(line) {
                Some(Text { text, columns }) => format!("{text}{:1$}", "", width.saturating_sub(*columns)),
                None => " ".repeat(*width),
            });
            out.push(parts.collect::<Vec<_>>().join(&gap));
        }
        if at == 0 {
            out.push(widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join(&gap));
        }
    }
    out
}

/// Distributes a total width over columns, from what each needs at least and at most: the narrow ones get what they
/// want, the wide ones share the rest.
fn shares(wants: &[(usize, usize)], sum: usize) -> Vec<usize> {
    let mut widths: Vec<_> = wants.iter().map(|(least, _)| *least).collect();
    let mut left = sum.saturating_sub(widths.iter().sum());
    let mut order: Vec<_> = (0..wants.len()).collect();
    short_list::sort_by_key(&mut order, |&column| wants[column].1 - wants[column].0);
    for (done, &column) in order.iter().enumerate() {
        let more = (wants[column].1 - wants[column].0).min(left / (order.len() - done));
        widths[column] += more;
        left -= more;
    }
    widths
}

/// How a character is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Bold,
    Underlined,
}

impl Style {
    /// The escape sequences that begin and end it.
    fn marks(self) -> (&'static str, &'static str) {
        match self {
            Style::Plain => ("", ""),
            Style::Bold => BOLD,
            Style::Underlined => UNDERLINED,
        }
    }
}

/// The characters of a line of Markdown without its markers; code keeps its backticks if bold can't be shown.
fn letters(text: &str, styled: bool) -> Vec<(char, Style)> {
    let mut out: Vec<(char, Style)> = Vec::new();
    let (mut style, mut in_code) = (Style::Plain, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.peek() == Some(&'|') {
            // An escaped bar in a table's cell.
        } else if c == '`' {
            in_code = !in_code;
            if !styled {
                out.push((c, style));
            }
        } else if in_code {
            out.push((c, if styled { Style::Bold } else { style }));
        } else if c == '*' {
            let marked = if chars.next_if_eq(&'*').is_some() { Style::Bold } else { Style::Underlined };
            style = if style == Style::Plain { marked } else { Style::Plain };
        } else {
            out.push((c, style));
        }
    }
    out
}

/// A word or a line as written out, and its width in columns.
#[derive(Debug, Default)]
struct Text {
    text: String,
    columns: usize,
}

/// The words of a line of Markdown, each part with whether it begins a word: a long word may be broken after a `_`.
fn words(text: &str, styled: bool) -> Vec<(bool, Text)> {
    let letters = letters(text, styled);
    let words = letters.split(|(c, _)| c.is_whitespace()).filter(|word| !word.is_empty());
    let words = words.flat_map(|word| {
        let parts = word.split_inclusive(|(c, _)| *c == '_' && word.len() > UNBROKEN_MAX);
        parts.enumerate().map(|(at, part)| (at == 0, part))
    });
    let written = |word: &[(char, Style)]| {
        let mut out = Text::default();
        let mut style = Style::Plain;
        for &(c, next) in word.iter().chain([&('\0', Style::Plain)]) {
            if styled && next != style {
                out.text += style.marks().1;
                out.text += next.marks().0;
                style = next;
            }
            if c != '\0' {
                out.text.push(c);
                out.columns += c.width().unwrap_or(0);
            }
        }
        out
    };
    words.map(|(begins, word)| (begins, written(word))).collect()
}

/// The text wrapped at that width; a word that is longer gets its own line, or more where it has parts. By hand,
/// as [`crate::ui::text::wrap`] would count the escape codes of bold words as cells.
fn wrapped(text: &str, columns: usize, styled: bool) -> Vec<Text> {
    let mut lines = vec![Text::default()];
    for (begins, word) in words(text, styled) {
        let line = lines.last().map_or(0, |line| line.columns);
        let gap = usize::from(begins && line > 0);
        if line > 0 && line + gap + word.columns > columns {
            lines.push(Text::default());
        }
        let Some(line) = lines.last_mut() else { continue };
        if gap > 0 && line.columns > 0 {
            line.text.push(' ');
            line.columns += 1;
        }
        line.text += &word.text;
        line.columns += word.columns;
    }
    lines
}
