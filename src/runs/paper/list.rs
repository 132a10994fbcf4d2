//! The experiments by name.

use super::experiment::Experiment;
use super::{curves, over_time, polled, tables};

/// All experiments, in the paper's order.
pub fn all() -> Vec<Experiment> {
    vec![
        tables::table2(),
        tables::table4(),
        tables::table5(),
        polled::section47(),
        polled::table6(),
        tables::table8(),
        tables::table9(),
        curves::solo(),
        curves::figure2(),
        curves::figure3(),
        over_time::figure4(),
        curves::figure5(),
        curves::figure6(),
        over_time::figure7(),
        over_time::figure8(),
    ]
}

/// The experiment of that name.
pub fn find(name: &str) -> Option<Experiment> {
    all().into_iter().find(|experiment| experiment.name == name)
}
