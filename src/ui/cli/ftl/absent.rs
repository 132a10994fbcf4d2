//! The arguments of `stacktune ftl` in a build that reads no traces: anything is taken, so that the answer is how to get
//! it.

pub use super::contract::ContractArgs as FtlArgs;

pub(super) const FTL_HELP: &str = "";
