//! The experiments by name.

use super::experiment::Experiment;
#[cfg(feature = "trace")]
use super::{contract, contract_programs};
use super::{curves, over_time, polled, systems, tables};

/// All experiments, paper by paper, in the paper's order.
pub fn all() -> Vec<Experiment> {
    // Figures of traces belong to builds that can trace.
    #[cfg_attr(not(feature = "trace"), allow(unused_mut))]
    let mut all = vec![
        tables::table2(),
        tables::table4(),
        tables::table5(),
        polled::section47(),
        polled::table6(),
        systems::table7(),
        systems::table7_leanstore(),
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
    ];
    #[cfg(feature = "trace")]
    all.extend([
        contract::figure3(),
        contract::figure4(),
        contract::figure5(),
        contract::figure6(),
        contract::figure7(),
        contract::figure8(),
        contract::figure9(),
        contract_programs::sqlite(),
        contract_programs::leveldb(),
        contract_programs::varmail(),
    ]);
    all
}

/// The experiment of that name.
pub fn find(name: &str) -> Option<Experiment> {
    all().into_iter().find(|experiment| experiment.name == name)
}
