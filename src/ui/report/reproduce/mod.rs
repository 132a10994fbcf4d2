//! An experiment of the paper: its numbers, this host's and others', and a ruling on each claim.

mod shown;
#[cfg(test)]
mod tests;
mod text;
#[cfg(all(test, feature = "trace"))]
mod traced_tests;

pub use shown::Reproduction;
pub use text::{list, reproduction};
