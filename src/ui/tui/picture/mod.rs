//! Pictures of the screen for documents: as SVG, still or moving, and as a recording of a terminal.

mod animated;
mod cast;
mod drawing;
mod film;
mod scroll;
mod svg;
#[cfg(test)]
mod tests;

pub use animated::animated;
pub use cast::{cast, is_cast_of_ours};
pub use drawing::Paper;
pub use film::Film;
pub use svg::{is_svg_of_ours, svg};
