//! Theme files of btop, which people pass on.

use stacktune::testing::ui::tui::themes;

use super::printed;

/// A theme's file: colours, or a sentence about the line that is none.
pub fn theme(input: &[u8]) {
    match themes::parse(input) {
        Ok(theme) => assert!(theme.heat.is_empty() || theme.heat.len() == 8),
        Err(why) => {
            let shown = printed(&why);
            // What the file says is not repeated.
            assert!(shown == why && why.len() < 200 && !why.contains('\n'), "{why:?}");
        }
    }
}
