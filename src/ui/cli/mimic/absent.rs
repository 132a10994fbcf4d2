//! The arguments of `stacktune mimic` in a build that reads no traces: anything is taken, so that the answer is how to get
//! it.

pub use super::contract::ContractArgs as MimicArgs;

pub(super) const MIMIC_HELP: &str = "";
