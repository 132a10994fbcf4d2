//! Cells of a bar, filled in eighths.

const FROM_LEFT: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const FROM_BELOW: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar of that many eighths of a cell, growing to the right, as many cells long as it needs.
pub fn row(eighths: usize) -> String {
    (0..eighths.div_ceil(8)).map(|cell| filled(FROM_LEFT, eighths - cell * 8)).collect()
}

/// A bar of that many eighths of a cell, growing upwards, the lowest of `cells` first.
pub fn column(eighths: usize, cells: usize) -> impl Iterator<Item = char> {
    (0..cells).map(move |cell| filled(FROM_BELOW, eighths.saturating_sub(cell * 8)))
}

fn filled(parts: [char; 8], eighths: usize) -> char {
    if eighths == 0 { ' ' } else { parts[eighths.min(8) - 1] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_end_within_a_cell() {
        assert_eq!([0, 1, 8, 12].map(row), ["", "▏", "█", "█▌"]);
        assert_eq!(column(12, 3).collect::<String>(), "█▄ ");
        assert_eq!(column(99, 2).collect::<String>(), "██");
    }
}
