//! Theme files of btop, which people share.

use stacktune::testing::ui::tui::themes;

use super::printed;

/// A theme file: colours, or a sentence about the first line that isn't one.
pub fn theme(input: &[u8]) {
    match themes::parse(input) {
        Ok(theme) => assert!(theme.heat.is_empty() || theme.heat.len() == 8),
        Err(why) => {
            let shown = printed(&why);
            // The file's own text is not repeated.
            assert!(shown == why && why.len() < 200 && !why.contains('\n'), "{why:?}");
        }
    }
}
