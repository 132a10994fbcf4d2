//! The paper's experiments as data: each row's setup and results, and the paper's conclusions from them.
//!
//! Enters: the drives or files to run on, and the recordings made. Leaves: a sweep's steps, and rulings on the
//! claims.
//!
//! "The paper" is Haas et al. 2020 throughout, except in the modules `contract…`. All papers followed:
//!
//! | cited as | is |
//! |---|---|
//! | Haas et al. 2020 | G. Haas, M. Haubenschild, V. Leis: *Exploiting Directly-Attached NVMe Arrays in DBMS*, CIDR 2020 |
//! | Didona et al. 2021 | D. Didona, N. Ioannou, R. Stoica, K. Kourtis: *Toward a Better Understanding and Evaluation of Tree Structures on Flash SSDs*, PVLDB 14(3), 2021 |
//! | Ransom et al. 2025 | E. Ransom, A. Lim, M. Mitzenmacher: *Multi-Queue SSD I/O Modeling & Its Implications for Data Structure Design*, arXiv:2507.06349, 2025 |
//! | Saha et al. 2021 | M. P. Saha, A. Maruf, B. S. Kim, J. Bhimani: *KV-SSD: What Is It Good For?*, DAC 2021 |
//! | He et al. 2017 | J. He, S. Kannan, A. C. Arpaci-Dusseau, R. H. Arpaci-Dusseau: *The Unwritten Contract of Solid State Drives*, `EuroSys` 2017 |
//!
//! Every number here is from the paper's tables or text, with its source next to it. Of drawings, only the
//! numbers given in the text are used.

mod change;
#[cfg(feature = "trace")]
mod contract;
#[cfg(feature = "trace")]
mod contract_programs;
mod curves;
mod deviations;
mod experiment;
mod figure;
mod kept_figure;
mod lent;
mod list;
mod over_time;
mod place;
mod polled;
mod result;
mod systems;
mod tables;
#[cfg(test)]
mod tests;
mod verdict;

pub use change::{Change, Changes, Series, changes};
pub use deviations::{Run, deviations, host};
pub use experiment::{Claim, Curve, Experiment, ExperimentRow, Published, Says, Setup, Shape};
pub use figure::Figure;
#[cfg(all(test, feature = "trace"))]
pub use kept_figure::KeptFigure;
pub use lent::lent;
pub use list::{all, find};
pub use place::{Bed, Hardware, Planned, Storage, steps, with_values_of_rows, write_rate_bytes_per_s};
pub use result::{Beside, RowResult, claim_judged};
pub use verdict::{Judged, REPEATS_MIN, Ruling};
